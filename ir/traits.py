"""Traits: facts about ops that passes rely on."""

from __future__ import annotations

from typing import Final


class Trait:
    """A fact about an op that passes rely on."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


PURE: Final = Trait("Pure")
"""No effect but its results; may be removed, merged, moved and repeated."""
COMMUTATIVE: Final = Trait("Commutative")
ELEMENTWISE: Final = Trait("Elementwise")
"""Takes scalars, or vectors of one shape in their place, and then does to each lane what it does to scalars; `evaluate`
works on arrays as on scalars."""
TERMINATOR: Final = Trait("Terminator")
ISOLATED: Final = Trait("IsolatedFromAbove")
"""Regions use nothing that is defined outside."""
CONSTANT: Final = Trait("ConstantLike")
"""No operands, one result, which the property `value` gives."""
SYMBOL: Final = Trait("Symbol")
"""Has the property `sym_name`."""
SYMBOL_TABLE: Final = Trait("SymbolTable")
NO_TERMINATOR: Final = Trait("NoTerminator")
RECURSIVE_EFFECTS: Final = Trait("RecursiveMemoryEffects")
"""Has the effects of the ops in its regions and no others."""
SAME_TYPE: Final = Trait("SameOperandsAndResultType")
LOOP: Final = Trait("Loop")
"""Its regions, but for closed ones, run any number of times, and each time with the same values from outside."""
ALLOCATES: Final = Trait("Allocates")
"""The result is fresh memory; an unused one may be removed, two are never merged."""
