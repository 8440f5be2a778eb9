"""Rules that `canonicalize` applies: a module for each dialect, with `RULES`."""
