"""The IR itself: types, attributes, values, operations, op definitions, text, verifier, rewriting, interpreter."""
