"""Checks in programs that nobody vouches for: what could write outside of buffers is looked at while it runs."""
