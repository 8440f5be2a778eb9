"""Loop level to PTX text."""
