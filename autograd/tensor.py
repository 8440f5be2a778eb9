"""Tensor: a handle to an immutable array value.

A handle is in one of three states: it has a value (`_value`, an ndarray), it was recorded and is not computed yet
(`_state` is a `Lazy`), or it stands for a value of a trace (`_state` is `Traced`).  `+=` and optimizers bind a handle
to another value; no value ever changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from .. import autograd as ag  # whose functions need what stands here: they are found when they are called
from ..ir.builders.sizes import times
from ..ir.diagnostics import DTypeError, Error, ShapeError, shown
from ..ir.location import called_function, caller_location
from ..ir.support.shapes import shape_text
from .abstract import AbstractValue
from .array_like import ArrayLike, DTypeLike
from .context import CONTEXT, TraceError
from .dtypes import DType, holds_kind
from .graph import Lazy
from .lazy import evaluate
from .operators import Operators
from .sizes import shape_of, symbolic
from .trace import Traced, emit, is_traced


class Donated:
    """The state of a Tensor whose memory was given to a compiled call."""


DONATED = Donated()


class Tensor(Operators):
    """An n-dimensional array.

    `Tensor(data, dtype=None, device=None, requires_grad=False)` copies; see `asarray`.  Operators follow the Python
    array API standard; a Tensor with `requires_grad` takes part in `backward()` with PyTorch's meaning.

    Values do not change; `x += 1` and `x[0] = 1` bind the handle x to a new one.  What was computed from x before keeps
    what it was, and so do views of x (basic subscripts, `reshape`, `permute_dims`, `broadcast_to`, `expand_dims`,
    `squeeze`, `flip`, `unstack`, `detach`): a view shows x as it was when it was made.  Where NumPy and PyTorch would
    change x through a view, by writing to it, there is an Error for as long as x is there.  All other functions copy.
    """

    __slots__ = ("__weakref__", "_aval", "_bases", "_grad", "_state", "_value")

    _aval: AbstractValue
    _value: Any
    _state: Any
    _grad: Tensor | None
    _bases: tuple[ReferenceType[Tensor], ...]
    """Of a view: the Tensors whose elements it shows.  Others lack it."""

    def __init__(
        self, data: ArrayLike, dtype: DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
    ) -> None:
        if isinstance(data, Tensor) and data._aval.requires_grad:
            data = ag.stop_gradient(data)
        made = ag.asarray(data, dtype=dtype, device=device, copy=True)
        self._aval, self._value, self._state, self._grad = made._aval, made._value, made._state, None
        if type(self._state) is Lazy:
            set_owner(self, self._state)
        if requires_grad is not False:
            self.requires_grad = requires_grad

    # What is known without the value.

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents: integers, or sizes that compute (sizes.py) while a function is traced with `dynamic=True`."""
        aval = self._aval
        return aval.shape if aval.size is not None else shape_of(aval.shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._aval.dtype

    @property
    def device(self) -> str:
        """The name of the device that ops on it run on."""
        return self._aval.device

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._aval.shape)

    @property
    def size(self) -> Any:
        """The number of elements, a symbolic one where an extent is."""
        size = self._aval.size
        return symbolic(times(*self._aval.shape)) if size is None else size

    @property
    def T(self) -> Tensor:
        """A matrix transposed; ShapeError for other than two axes."""
        if self.ndim != 2:
            raise ShapeError(f"T: needs two axes, got shape {shape_text(self.shape)}; use .mT", caller_location())
        return ag.matrix_transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return ag.matrix_transpose(self)

    # The value.

    def _array(self, reading: str = "numpy()") -> Any:
        """The ndarray that holds the value, computed now if it was not; TraceError while a function is traced."""
        if CONTEXT.trace is not None and (CONTEXT.trace.persistent or isinstance(self._state, Traced)):
            raise TraceError(_REFUSALS.get(reading, _REFUSALS[""]).format(reading), caller_location())
        value = self._value
        if value is None:
            self._check_readable()
            state = self._state
            if isinstance(state, Traced):
                raise TraceError(
                    "a Tensor of a traced function is read after the function ended; return it instead of storing it",
                    caller_location(),
                )
            evaluate([state])
            value = self._value = state.value
        return value

    def _check_readable(self) -> None:
        if self._state is DONATED:
            raise Error("the Tensor was donated to a compiled call, which may have overwritten it", caller_location())

    def _lazy(self) -> Lazy:
        """The recorded value that the handle shows."""
        state = self._state
        if type(state) is Lazy:
            return state
        self._check_readable()
        if state is not None:
            raise TraceError(
                "a Tensor of a traced function is used after the function ended; return it instead of storing it",
                caller_location(),
            )
        made = self._state = Lazy(self._aval, self._value)
        made.owner = ref(self)
        return made

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only view, without a copy."""
        view = self._array().view()
        view.flags.writeable = False
        return view

    def item(self) -> Any:
        """The only element, as a Python number."""
        array = self._array("item()")
        if array.size != 1:
            message = f"{called_function()}: needs one element, got shape {shape_text(self.shape)}"
            raise ShapeError(message, caller_location())
        return array.reshape(-1)[0].item() if array.dtype.kind != "V" else float(array.reshape(-1)[0])

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self._array("tolist()").tolist()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return ag.exports.as_ndarray(self, dtype, copy)

    def __array_ufunc__(self, ufunc: object, method: str, *inputs: object, **options: object) -> object:
        return ag.exports.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return ag.exports.apply_function(function, args, options)

    def __dlpack__(
        self, *, stream: object = None, max_version: object = None, dl_device: object = None, copy: bool | None = None
    ) -> Any:
        return ag.exports.as_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU

    def __buffer__(self, flags: int) -> memoryview:
        ag.exports.check_readable(self, "memoryview")
        return memoryview(self.numpy())  # pyright: ignore[reportArgumentType]

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __bool__(self) -> bool:
        return bool(self._scalar("bool()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        value = self._scalar("index()")
        if not self.dtype.is_integer:
            raise DTypeError(f"a Tensor of {self.dtype} is not an index", caller_location())
        return int(value)

    def _scalar(self, reading: str) -> Any:
        array = self._array(reading)
        if array.size != 1:
            word = reading.removesuffix("()")
            message = f"{word}: only a Tensor of one element has a value, got shape {shape_text(self.shape)}"
            raise ShapeError(message, caller_location())
        return array.reshape(-1)[0]

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len: a Tensor without axes has no length", caller_location())
        extent = self._aval.shape[0]
        if not isinstance(extent, int):
            message = f"len: Python wants a number, but the extent is the symbol {extent}; use x.shape[0]"
            raise ShapeError(message, caller_location())
        return extent

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def __reduce__(self) -> Any:
        return _restored, (self._array().copy(), self.dtype.name, self.device, self.requires_grad)

    def __repr__(self) -> str:
        aval = self._aval
        extras = "" if aval.device == "cpu" else f", device={aval.device!r}"
        extras += ", requires_grad=True" if aval.requires_grad else ""
        if self._state is DONATED:
            return f"Tensor(donated, {aval}{extras})"
        if isinstance(self._state, Traced) or (CONTEXT.trace is not None and self._value is None):
            return f"Tensor(traced, {aval}{extras})"
        before, CONTEXT.trace = CONTEXT.trace, None
        try:
            text = np.array2string(self._array(), separator=", ", prefix="Tensor(")
        finally:
            CONTEXT.trace = before
        return f"Tensor({text}, dtype={aval.dtype}{extras})"

    # Binding.

    def _rebind(self, new: Tensor) -> None:
        """Let the handle show the value of another."""
        trace = CONTEXT.trace
        if trace is not None:
            value = trace.value_of(new)
            trace.save(self)
            self._aval, self._value, self._state = new._aval, None, Traced(trace, value)
            return
        self._aval, self._value, self._state = new._aval, new._value, new._state
        if type(self._state) is Lazy:
            self._state.owner = ref(self)

    def _update(self, new: Any) -> Tensor:
        """`+=` and its like: the dtype stays.  Error for a view of a Tensor that is there, which would have to change
        too."""
        if any([b() is not None for b in getattr(self, "_bases", ())]):
            message = "a view of another Tensor (reshape, a slice, .T ..) cannot be written to"
            remedy = "write to that Tensor, or to a copy of the view, ag.asarray(view)"
            raise Error(f"{called_function()}: {message}: {remedy}", caller_location())
        if self._aval.requires_grad and CONTEXT.records_gradients and self._is_leaf():
            message = "a Tensor that requires a gradient is bound to another value; do it under ag.no_grad()"
            raise Error(f"{called_function()}: {message}", caller_location())
        if new is NotImplemented:
            return new
        if new.shape != self.shape:
            message = f"shape {shape_text(self.shape)} cannot hold the result's {shape_text(new.shape)}"
            raise ShapeError(f"{called_function()}: {message}", caller_location())
        if not holds_kind(self.dtype, new.dtype):
            message = f"update: {self.dtype} cannot hold the result's {new.dtype}; bind the result to the name itself"
            raise DTypeError(message, caller_location())
        new = ag.functions.cast(new, self.dtype)
        becomes_leaf = self._aval.requires_grad and not new._aval.requires_grad
        if becomes_leaf:
            new = _leaf(new)
        self._rebind(new)
        if becomes_leaf and isinstance(self._state, Traced):
            self._state.trace.leaves.append((self, self._state.value))
        return self

    # Gradients.

    def _is_leaf(self) -> bool:
        state = self._state
        return state is None or (type(state) is Lazy and state.node is None) or self._is_traced_leaf()

    def _is_traced_leaf(self) -> bool:
        state = self._state
        return isinstance(state, Traced) and any(v is state.value for _, v in state.trace.leaves)

    @property
    def requires_grad(self) -> bool:
        """Whether ops on it are recorded for `backward`."""
        return self._aval.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if not isinstance(wanted, bool | np.bool_):
            message = f"requires_grad of a Tensor must be True or False, got {shown(wanted)}"
            raise DTypeError(message, caller_location())
        if wanted == self._aval.requires_grad:
            return
        if wanted and not self._aval.dtype.is_float:
            message = f"requires_grad: only float Tensors can require a gradient, got {self._aval.dtype}"
            raise DTypeError(message, caller_location())
        if isinstance(self._state, Traced):
            message = "requires_grad cannot be set while a function is traced; set it before, or use ag.grad"
            raise TraceError(message, caller_location())
        value = self._array()
        self._aval, self._state, self._value = self._aval.replace(requires_grad=bool(wanted)), None, value

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` added up, or None."""
        if CONTEXT.trace is not None:
            CONTEXT.trace.read_gradient(self)
        return self._grad

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        if gradient is not None and not isinstance(gradient, Tensor):
            raise DTypeError(f"a gradient must be a Tensor or None, got {shown(gradient)}", caller_location())
        if gradient is not None and (gradient.shape != self.shape or gradient.dtype is not self.dtype):
            message = f"grad: a gradient of {self._aval} must be like it, got {gradient._aval}"
            raise ShapeError(message, caller_location())
        if CONTEXT.trace is not None:
            CONTEXT.trace.set_gradient(self)
        self._grad = gradient

    def backward(self, gradient: Tensor | None = None) -> None:
        """Add the gradients of this Tensor to `.grad` of all Tensors with `requires_grad` that it was computed from.

        `gradient`: that of the Tensor itself, 1 by default, which needs a single element.
        """
        ag.backward(self, gradient)

    def detach(self) -> Tensor:
        """The same value without its history; a view."""
        return view(ag.stop_gradient(self), self)


_REFUSALS = {
    "": "the value of a Tensor cannot be read while a function is traced ({0}); return it from the function",
    "bool()": "a Tensor has no truth value while a function is traced (`if`, `while`, `and`, `bool()`): "
    "write ag.where(condition, a, b), or name the argument in static_argnames",
    "index()": "a Tensor is not a Python index while a function is traced: use ag.take, or name the argument in "
    "static_argnames",
}
for _reading in ("float()", "int()", "complex()", "item()"):
    _REFUSALS[_reading] = (
        "the value of a Tensor cannot be read while a function is traced ({0}): go on with the Tensor itself, choose "
        "between values with ag.where(condition, a, b), or return it from the function"
    )


def make(aval: AbstractValue, value: object, state: object = None) -> Tensor:
    """A handle in a given state."""
    tensor = object.__new__(Tensor)
    tensor._aval = aval
    tensor._value = value
    tensor._state = state
    tensor._grad = None
    return tensor


def set_owner(tensor: Tensor, lazy: Lazy) -> Tensor:
    """Say that a handle shows a recorded value."""
    lazy.owner = ref(tensor)
    return tensor


def copied(tensor: Tensor) -> Tensor:
    """A handle of its own for the same value: writing to either leaves the other as it is.  Gradients pass."""
    aval, value = tensor._aval, tensor._value
    records = aval.requires_grad and CONTEXT.records_gradients
    trace = CONTEXT.trace
    if is_traced((tensor,)):
        assert trace is not None
        if not aval.requires_grad:
            return trace.tensor(aval, trace.value_of(tensor))
    elif value is not None and not records:
        tensor._check_readable()
        return make(aval.replace(requires_grad=False), value)
    return emit("transpose", tensor, permutation=tuple(range(len(aval.shape))))


def view(made: Tensor, base: Tensor) -> Tensor:
    """Say that a Tensor shows elements of another, in NumPy's and PyTorch's meaning: it cannot be written to while that
    is there."""
    further = [b for b in getattr(base, "_bases", ()) if b() is not None]
    made._bases = (ref(base), *further)
    return made


def _leaf(tensor: Tensor) -> Tensor:
    """The same value with `requires_grad`, without a history."""
    aval, state = tensor._aval.replace(requires_grad=True), tensor._state
    return make(aval, None, state) if isinstance(state, Traced) else make(aval, tensor._array())


def _restored(array: Any, dtype: str, device: str, requires_grad: bool) -> Tensor:
    """A Tensor from what pickling kept of it."""
    return Tensor(array, dtype, device, requires_grad)
