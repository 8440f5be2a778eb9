"""Sums cut into blocks, chains and lanes, as schedules have it."""
