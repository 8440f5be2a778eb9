"""Sizes that are symbols while a function is traced with `dynamic=True`.

`x.shape[i]` is then a `SymbolicSize`: sums, products and quotients of such sizes are sizes again, and may stand where
a shape or a subscript needs a number; computed with other numbers, or where it meets a Tensor, a size is a number of
the trace (numbers.py).  No symbol is below 2 (extents of 0 and 1 are numbers), and two symbols of arguments are never
equal; what Python asks of a size (`if n > 3`, `range(n)`) is answered where that decides it, else refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, floordiv, mod
from operator import mul as multiply
from operator import sub as subtract
from typing import TYPE_CHECKING, Any, NoReturn

from ..ir.builders import sizes
from ..ir.diagnostics import Error, ShapeError
from ..ir.location import Location, caller_location
from ..ir.support.shapes import Dims
from .context import CONTEXT, TraceError

if TYPE_CHECKING:
    from .numbers import TracedNumber

LEAST = 2
"""What no symbol is below."""


class Requirement:
    """A size that must not be negative (or, if `is_zero`, must be 0) at a call, and the error when it is otherwise."""

    def __init__(self, size: str, is_zero: bool, error: type[Error], message: str, location: Location) -> None:
        self.size = size
        self.is_zero = is_zero
        self.error = error
        self.message = message
        self.location = location

    def check(self, known: dict[str, int]) -> None:
        """Raise the error where the requirement does not hold for these sizes."""
        value = sizes.evaluate(self.size, known)
        if value < 0 or (self.is_zero and value):
            bound = ", ".join(f"{name} = {known[name]}" for name in sorted(sizes.symbols(self.size)))
            raise self.error(f"{self.message} (here {bound})", self.location)


def require(size: Any, error: type[Error], message: str, is_zero: bool = False) -> None:
    """Let each call check that a size is not negative (or is 0); raise the error now where none can be."""
    size = plain(size)
    if isinstance(size, int):
        if size < 0 or (is_zero and size):
            raise error(message, caller_location())
        return
    bound = sizes.lower_bound(size, LEAST)
    if not is_zero and bound is not None and bound >= 0:
        return
    above = sizes.lower_bound(sizes.minus(0, size), LEAST)
    if (above is not None and above > 0) or (is_zero and bound is not None and bound > 0):
        raise error(message, caller_location())
    trace = CONTEXT.trace
    if trace is None:
        raise error(message, caller_location())
    while trace.outer is not None:
        trace = trace.outer
    trace.requirements.append(Requirement(size, is_zero, error, message, caller_location()))


def is_size(value: object) -> bool:
    """Whether a value is a size that is not a number."""
    return isinstance(value, str)


def plain(value: object) -> Any:
    """A size as IR has it."""
    return str(value) if isinstance(value, SymbolicSize) else value


def symbolic(size: int | str) -> Any:
    """A size as a user sees it."""
    return SymbolicSize(size) if isinstance(size, str) else size


def shape_of(dims: Dims) -> Dims:
    """A shape as a user sees it."""
    return tuple([symbolic(d) for d in dims])


def sign(size: int | str) -> int | None:
    """1 or 0 for a size that is never negative, -1 for one that always is, None where that depends."""
    if isinstance(size, int):
        return -1 if size < 0 else 1
    bound = sizes.lower_bound(size, LEAST)
    if bound is not None and bound >= 0:
        return 1
    below = sizes.lower_bound(sizes.minus(0, size), LEAST)
    return -1 if below is not None and below > 0 else None


def _arithmetic(on_sizes: Callable[[Any, Any], int | str], function: Any, reflected: bool = False) -> Any:
    def method(self: SymbolicSize, other: Any) -> Any:
        if isinstance(other, bool | float):
            return function(other, self.number()) if reflected else function(self.number(), other)
        if not isinstance(other, int | SymbolicSize):
            return NotImplemented  # Tensors and traced numbers know what to do
        a, b = str(self), plain(other)
        try:
            return symbolic(on_sizes(b, a) if reflected else on_sizes(a, b))
        except ZeroDivisionError:
            raise ShapeError(f"the size {self} is divided by 0", caller_location()) from None

    return method


def _remainder(a: int | str, b: int | str) -> int | str:
    return sizes.minus(a, sizes.times(b, sizes.quotient(a, b)))


def _comparison(word: str, holds: Callable[[int], bool], equality: bool = False) -> Any:
    def method(self: SymbolicSize, other: Any) -> Any:
        if not isinstance(other, int | SymbolicSize):
            return getattr(str, f"__{'eq' if word == '==' else 'ne'}__")(self, other) if equality else NotImplemented
        difference = sizes.minus(str(self), plain(other))
        if isinstance(difference, int):
            return holds(difference)
        above, below = sizes.lower_bound(difference, LEAST), sizes.lower_bound(sizes.minus(0, difference), LEAST)
        answers: set[bool] = set()
        if above is not None:
            answers = {holds(d) for d in ((1,) if above > 0 else (above, 0, 1))}
        elif below is not None:
            answers = {holds(-d) for d in ((1,) if below > 0 else (below, 0, 1))}
        if equality and isinstance(other, SymbolicSize) and sizes.is_symbol(self) and sizes.is_symbol(other):
            answers = {holds(1)}
        if len(answers) == 1:
            return answers.pop()
        _refuse(self, f"{self} {word} {other}")

    return method


def _refuse(size: str, reading: str) -> NoReturn:
    raise TraceError(
        f"the size {size} is a symbol while a function is traced with dynamic=True, so {reading} is not known: compute "
        "with the size itself, choose between values with ag.where(condition, a, b), or trace without dynamic=True",
        caller_location(),
    )


def _refused(reading: str) -> Any:
    def method(self: SymbolicSize, *_: Any) -> NoReturn:
        _refuse(self, reading)

    return method


class SymbolicSize(str):
    """An extent that is known when the function is called: the text of an expression over symbols, which computes."""

    __slots__ = ()

    __add__, __radd__ = _arithmetic(sizes.plus, add), _arithmetic(sizes.plus, add, True)
    __sub__, __rsub__ = _arithmetic(sizes.minus, subtract), _arithmetic(sizes.minus, subtract, True)
    __mul__, __rmul__ = _arithmetic(sizes.times, multiply), _arithmetic(sizes.times, multiply, True)
    __floordiv__, __rfloordiv__ = _arithmetic(sizes.quotient, floordiv), _arithmetic(sizes.quotient, floordiv, True)
    __mod__, __rmod__ = _arithmetic(_remainder, mod), _arithmetic(_remainder, mod, True)
    __eq__, __ne__ = _comparison("==", lambda d: d == 0, True), _comparison("!=", lambda d: d != 0, True)
    __lt__, __le__ = _comparison("<", lambda d: d < 0), _comparison("<=", lambda d: d <= 0)
    __gt__, __ge__ = _comparison(">", lambda d: d > 0), _comparison(">=", lambda d: d >= 0)
    __hash__ = str.__hash__
    __int__, __float__ = _refused("int()"), _refused("float()")
    __index__ = _refused("its number (range(), a Python index, len())")

    def __neg__(self) -> object:
        return symbolic(sizes.minus(0, str(self)))

    def __pos__(self) -> object:
        return self

    def __bool__(self) -> bool:
        return self != 0

    def __truediv__(self, other: object) -> Any:
        return self.number() / other

    def __rtruediv__(self, other: object) -> Any:
        return other / self.number()

    def __pow__(self, other: object) -> Any:
        return self.number() ** other

    def __rpow__(self, other: object) -> Any:
        return other ** self.number()

    def number(self) -> TracedNumber:
        """The size as a number that is computed with at each call."""
        trace = CONTEXT.trace
        while trace is not None and trace.outer is not None:
            trace = trace.outer
        if trace is None or trace.numbers is None:
            message = f"the size {self} of a traced function is used after the function ended; return it instead"
            raise Error(message, caller_location())
        return trace.numbers.size(self)
