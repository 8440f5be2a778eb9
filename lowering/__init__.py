"""From loop-level IR to target text or object code; nothing is executed here."""
