"""The reference meaning of each level of IR, for tests and for reading; never an execution tier."""
