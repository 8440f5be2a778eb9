"""The Python numbers among the arguments of a compiled function, and the sizes that it knows at a call only.

A traced function sees a `TracedNumber` in the place of such an argument.  What it computes of these numbers alone is
Python's own arithmetic, which is done again at every call; where a number meets a Tensor, it becomes a hidden input of
the compiled function, in the dtype that the op takes it in.  So a number has its full value, is checked and rounded as
eagerly, and a call with another one compiles nothing.

    jit(lambda x, s: x * (s + 1))(x, 0.1)     is compiled as  f(x, 1.1 in the dtype of x)

The trace holds for all calls in which every step gives a value of the same type, or raises the same exception, as it
did when it was traced; for others the function is traced anew.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from .. import autograd as ag  # whose functions need what stands here: they are found when they are called
from ..ir.builders.sizes import evaluate
from ..ir.location import caller_location
from ..ir.values import Value
from .abstract import abstract_value
from .context import CONTEXT, TraceError
from .dtypes import DType, element, int64, of_python
from .identity import identity
from .sizes import SymbolicSize

if TYPE_CHECKING:
    from .tensor import Tensor
    from .trace import Trace


def of_number(value: object) -> DType | None:
    """The dtype that a Python number has by itself, None for everything else."""
    if type(value) is SymbolicSize:
        return int64
    return of_python(type(value._now) if type(value) is TracedNumber else type(value))


class _Step(NamedTuple):
    """One computation: `run` takes the values so far.  `outcome`: the type of its value or of the exception that it
    raised, or what tells the value from others where it `decides`."""

    run: Callable[[list[Any]], Any]
    decides: bool
    outcome: Any


def _on_places(function: Callable[..., object], operands: Sequence[object]) -> Callable[[list[Any]], Any]:
    """A function of numbers as one of the values so far."""
    given = [(v._place, None) if type(v) is TracedNumber else (None, v) for v in operands]
    first, *rest = given
    if first[0] is not None and all(place is None for place, _ in rest):  # the most frequent, in half the time
        place, constants = first[0], [c for _, c in rest]
        return lambda values: function(values[place], *constants)
    return lambda values: function(*[c if place is None else values[place] for place, c in given])


class Numbers:
    """The numbers of a trace: what symbols of sizes stand for, the numbers given, then what was computed of both.

    `inputs`: the places of those that became arguments of the function, which stand after the leaves."""

    def __init__(self, trace: Trace, sizes: dict[str, int], given: Sequence[object], leaves: int) -> None:
        self.trace = trace
        self.values: list[Any] = [sizes, *given]
        self.steps: list[_Step] = []
        self.inputs: list[int] = []
        self._leaves = leaves
        self._arguments: dict[tuple[int, DType], Value] = {}
        self._sizes: dict[str, TracedNumber] = {}

    @property
    def traced(self) -> list[TracedNumber]:
        """What the function sees in place of the numbers given."""
        return [TracedNumber(self, place) for place in range(1, len(self.values))]

    def size(self, size: str) -> TracedNumber:
        """A symbolic size as a number."""
        found = self._sizes.get(size)
        if found is None:
            found = self._sizes[size] = self.apply(partial(evaluate, size), TracedNumber(self, 0))
        return found

    def apply(self, function: Callable[..., object], *operands: object, decides: bool = False) -> Any:
        """A function of numbers, computed now and at each call; it raises what the function raises."""
        if self.trace.finished:
            message = "a number of a traced function is used after the function ended; return it instead of storing it"
            raise TraceError(message, caller_location())
        if any(type(v) is TracedNumber and v._numbers is not self for v in operands):
            raise TraceError("numbers of two traced functions meet", caller_location())
        run = _on_places(function, [self.size(v) if type(v) is SymbolicSize else v for v in operands])
        value = error = None
        try:
            value = run(self.values)
        except Exception as raised:
            error = raised
        outcome = identity(value) if decides and error is None else type(value if error is None else error)
        self.steps.append(_Step(run, decides, outcome))
        self.values.append(value)
        if error is not None:
            raise error
        return value if decides else TracedNumber(self, len(self.values) - 1)

    def tensor(self, number: TracedNumber, dtype: DType, device: str) -> Tensor:
        """A number as a hidden input of a dtype; DTypeError where it does not fit."""
        aval = abstract_value(dtype, (), device)
        known = self._arguments.get((number._place, dtype))
        if known is None:
            self.inputs.append(self.apply(element, number, dtype)._place)
            known = self.trace.block.add_argument(aval.type, None, self._leaves + len(self.inputs) - 1)
            self._arguments[number._place, dtype] = known
        return self.trace.tensor(aval, known)

    def program(self) -> NumberProgram:
        """What a call has to compute."""
        return NumberProgram(tuple(self.steps), tuple(self.inputs))


class NumberProgram(NamedTuple):
    """What is computed of the numbers of a call before the compiled function runs."""

    steps: tuple[_Step, ...]
    inputs: tuple[int, ...]

    def run(self, sizes: dict[str, int], given: Sequence[Any]) -> list[Any] | None:
        """The hidden inputs for these sizes and numbers; None where the trace does not hold for them."""
        values: list[Any] = [sizes, *given]
        for run, decides, expected in self.steps:
            try:
                value = run(values)
            except Exception as error:  # the trace raises it, unless it is the one that the trace met
                value, outcome = None, type(error)
            else:
                outcome = identity(value) if decides else type(value)
            if outcome != expected:
                return None
            values.append(value)
        return [values[place] for place in self.inputs]


def _binary(function: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    def method(self: TracedNumber, other: Any) -> Any:
        if of_number(other) is not None:
            pair = (other, self) if reflected else (self, other)
            return self._numbers.apply(function, *pair)
        if isinstance(other, np.ndarray | np.generic):
            trace = CONTEXT.trace
            array = ag.asarray(other) if trace is None else trace.array(other)
            return function(array, self) if reflected else function(self, array)
        return NotImplemented  # the operators of Tensors take numbers

    return method


def _unary(function: Callable[..., object]) -> object:
    def method(self: TracedNumber, *others: Any) -> Any:
        return self._numbers.apply(function, self, *others)

    return method


def _refused(reading: str) -> Any:
    def method(self: TracedNumber, *_: Any, **__: Any) -> NoReturn:
        raise TraceError(
            f"the value of a number cannot be read while a function is traced ({reading}): compute with the number "
            "itself, choose between values with ag.where(condition, a, b), or name the argument in static_argnames",
            caller_location(),
        )

    return method


class TracedNumber:
    """A Python number while a function is traced: what Python computes of numbers it computes of these too."""

    __slots__ = ("_numbers", "_place")
    __array_ufunc__ = None  # NumPy's arrays and scalars leave their operators to this class

    def __init__(self, numbers: Numbers, place: int) -> None:
        self._numbers = numbers
        self._place = place

    @property
    def _now(self) -> object:
        """The value in the call that is traced."""
        return self._numbers.values[self._place]

    def map(self, function: Callable[[Any], Any]) -> TracedNumber:
        """A function of the number, computed at each call; one that raises is traced anew when it does."""
        return self._numbers.apply(function, self)

    def decide(self, function: Callable[[Any], Any]) -> object:
        """What a function of the number gives, to be used by Python: the trace holds for numbers that give the same."""
        return self._numbers.apply(function, self, decides=True)

    def tensor(self, dtype: DType | None, device: str) -> Tensor:
        """The number as a 0-d Tensor, None: of the dtype that it has by itself; DTypeError where it does not fit."""
        own = of_number(self) if dtype is None else dtype
        assert own is not None
        return self._numbers.tensor(self, own, device)

    __add__, __radd__ = _binary(operator.add), _binary(operator.add, True)
    __sub__, __rsub__ = _binary(operator.sub), _binary(operator.sub, True)
    __mul__, __rmul__ = _binary(operator.mul), _binary(operator.mul, True)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _binary(operator.truediv, True)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _binary(operator.floordiv, True)
    __mod__, __rmod__ = _binary(operator.mod), _binary(operator.mod, True)
    __pow__, __rpow__ = _binary(operator.pow), _binary(operator.pow, True)
    __and__, __rand__ = _binary(operator.and_), _binary(operator.and_, True)
    __or__, __ror__ = _binary(operator.or_), _binary(operator.or_, True)
    __xor__, __rxor__ = _binary(operator.xor), _binary(operator.xor, True)
    __lshift__, __rlshift__ = _binary(operator.lshift), _binary(operator.lshift, True)
    __rshift__, __rrshift__ = _binary(operator.rshift), _binary(operator.rshift, True)
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __neg__, __pos__ = _unary(operator.neg), _unary(operator.pos)
    __abs__, __invert__ = _unary(operator.abs), _unary(operator.invert)
    __round__, __trunc__ = _unary(round), _unary(math.trunc)
    __floor__, __ceil__ = _unary(math.floor), _unary(math.ceil)

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Any:
        return other // self, other % self

    __bool__ = _refused("`if`, `while`, `and`, `bool()`")
    __float__, __int__ = _refused("float()"), _refused("int()")
    __complex__, __index__ = _refused("complex()"), _refused("index()")
    __hash__ = _refused("hash()")
    __array__, __reduce__ = _refused("as an ndarray"), _refused("pickling")

    def __format__(self, spec: str) -> str:
        return self.__float__() if spec else repr(self)

    def __repr__(self) -> str:
        return f"number(traced, {type(self._now).__name__})"
