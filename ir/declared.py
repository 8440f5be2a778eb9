"""What an op declares beside its meaning, as plain data: its function in the front-end, and samples.

    class Tanh(UnaryFloat, HasPartials):
        name = "elementwise.tanh"
        api = Api("tanh", "float")
        samples = (Sample("numpy:tanh"),)

From `api` follow `ag.tanh(x, /)`, its export, its docstring and a row of docs/functions.md.  From `samples` follow the
tests of the op: its meaning against the reference, on every device, as text, and its derivatives against differences.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from .types import BF16, F16, F32, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64, Type

Promotion = Literal["same", "float", "stay", "none", "bool", "values"]
"""What becomes of the arrays that a function is given:

    same     all take their common dtype
    float    the same, and integers and bools become float32
    stay     floats are operands; anything else is the result itself, as a copy
    none     each stays what it is
    bool     all must be bools
    values   the first must be bools, the others take their common dtype
"""


class Api(NamedTuple):
    """A function of the front-end that applies the op to its arrays.

    Behind the arrays come `options`, given by place or by name, and `keywords`, given by name; each is a property of
    the op with its default and is checked as its kind demands, but for

        axis    counted from the front or the end; of an op with `axes`: an integer, several, or None for all; of an op
                with `axis`: an integer, `default_axis` by default, where None is the axis of the flattened array
        dtype   where the op has no such property: of the elements, before it, and of the result
    """

    name: str
    promote: Promotion = "same"
    options: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    """The names of the arrays, when they may be given by name; else they are x, or x1, x2 and so on, given by place."""
    default_axis: int | None = None
    doc: str = ""
    """The docstring, where that of the op does not do."""


class Argument(NamedTuple):
    """An operand of a sample: its shape, the range that its elements are drawn from, and its element type (None: the
    free one, which the sample's `elements` are tried for)."""

    shape: tuple[int, ...]
    low: float = -3.0
    high: float = 3.0
    element: Type | None = None


class Sample(NamedTuple):
    """Operands on which an op is tried, and what it should give.

    `reference`: the same function by somebody else, on float64 (or integer) arrays: `module:function`, called with the
    operands, or an expression in the names of operands and properties, `np` (NumPy) and `special` (SciPy's).
    """

    reference: str
    arguments: tuple[Argument, ...] = ()
    """The operands; none: those that are usual for the op's number of operands, drawn from `low` to `high`."""
    low: float = -3.0
    high: float = 3.0
    properties: Mapping[str, Any] = MappingProxyType({})
    elements: Container[Type] | None = None
    """The element types to try; None: all that the op accepts."""
    smooth: bool = True
    """Whether differences tell the derivative at these operands, if the op has one."""
    note: str = ""
    """What tells the sample from others with operands of the same shapes."""

    def spread(self, count: int) -> Sequence[Sample]:
        """The sample with its arguments; of the usual ones, for an op of `count` operands, several samples."""
        if self.arguments:
            return [self]
        return [self._replace(arguments=tuple([Argument(s, self.low, self.high) for s in u])) for u in USUAL[count]]

    def types(self, accepted: Container[Type]) -> list[Type]:
        """The element types to try of an op that accepts these."""
        wanted = accepted if self.elements is None else self.elements
        return [t for t in ELEMENT_TYPES if t in wanted]


ELEMENT_TYPES: Sequence[Type] = (F32, F64, F16, BF16, I32, I64, I8, I16, UI8, UI16, UI32, UI64, I1)
"""What elements of tensors are."""

USUAL: Mapping[int, Sequence[tuple[tuple[int, ...], ...]]] = {
    1: (((4, 5),),),
    2: (((4, 5), (4, 5)), ((4, 1), (1, 5)), ((3, 4, 5), (5,)), ((), (6,))),
    3: (((4, 5), (4, 5), (4, 5)), ((4, 1), (1, 5), ())),
}
"""Shapes of operands, by their number: equal ones, and ones that broadcast."""
