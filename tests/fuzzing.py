"""How many cases the tests that draw them take: few in every run, many in `make fuzz`."""

import os

FACTOR = int(os.environ.get("NABLAIR_FUZZ", "1"))
"""By how much the number of drawn cases is multiplied."""


def cases(count: int) -> int:
    """A number of cases, of which `make fuzz` draws more."""
    return count * FACTOR
