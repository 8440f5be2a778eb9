"""Tracing: a Python function becomes `func.func @main` with one block.

While a trace is made, its Tensors stand for values of that block; every op on one adds an op to it.  A Tensor from
outside (of an enclosing trace, or with a value) that an op meets becomes an argument of the function, a *capture*.
Handles that are rebound inside (`+=`, optimizers, `.grad`) are put back when the trace ends, and what they were bound
to last is an *effect*: a result of the function that is written back after each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from .. import autograd as ag  # whose functions need what stands here: they are found when they are called
from ..ir.attributes import DenseAttr
from ..ir.builders.op_methods import OpMethods
from ..ir.builders.tensor import TensorBuilder
from ..ir.definition import ON_REDEFINITION
from ..ir.diagnostics import DeviceError, Error, ShapeError
from ..ir.dialects import builtin, func
from ..ir.location import called_function, caller_location
from ..ir.support.tensor_op import type_of_tensor
from ..ir.types import FloatType, TensorType
from ..ir.values import Value
from .abstract import AbstractValue, abstract_value, checked_size
from .context import ACTIVE_TRACES, CONTEXT, TraceError
from .dtypes import check_fits, of_element
from .graph import Node, infer, replay
from .lazy import record
from .numbers import Numbers, TracedNumber
from .pytree import Tree, flatten
from .sizes import Requirement
from .watched import plain

if TYPE_CHECKING:
    from .numbers import NumberProgram
    from .tensor import Tensor


class Traced:
    """The state of a Tensor that stands for a value of a trace."""

    __slots__ = ("trace", "value")

    def __init__(self, trace: Trace, value: Value) -> None:
        self.trace = trace
        self.value = value


@dataclass
class Effect:
    """A handle that was rebound: its new value is result `value`; `gradient`: it is `.grad` that was set (to None where
    `value` is)."""

    handle: Any
    gradient: bool
    aval: AbstractValue | None
    value: Value | None
    adds: bool = False
    """Whether it is a gradient to be added to the one that is there: that of an argument."""
    place: Any = None
    """Where the handle is read at each call, if that is known."""

    def target(self) -> Any:
        """The handle that is to be bound."""
        return self.handle if self.place is None else self.place.read()


@dataclass
class _Saved:
    """A handle as it was when it was first rebound."""

    handle: Any
    fields: tuple[Any, Any, Any, Any]


class Trace:
    """A function that is being recorded.

    `persistent`: it is kept and called again, so no value of a Tensor may be read while it is made.
    """

    def __init__(self, device: str, persistent: bool, outer: Trace | None) -> None:
        self.function = func.Func.of("main", [], [])
        self.function.location = caller_location()
        self.block = self.function.entry
        self.builder = TensorBuilder(self.block)
        self.device = device
        self.persistent = persistent or (outer is not None and outer.persistent)
        self.outer = outer
        self.captures: dict[int, tuple[Tensor, Value]] = {}
        self.numbers: Numbers | None = None
        self.arguments: dict[int, Tensor] = {}
        """The handles that stand for those of the caller."""
        self.saved: dict[int, _Saved] = {}
        self.leaves: list[tuple[Tensor, Value]] = []
        self.arrays: dict[int, tuple[Any, Tensor]] = {}
        self.gradients: dict[int, tuple[Tensor, Tensor | None]] = {}
        """Handles whose `.grad` from outside was read, and what it was."""
        self.gradients_of_arguments: set[int] = set()
        """The arguments, by number, whose `.grad` was read: that of the caller's, which is not known."""
        self.gradients_set: dict[int, bool] = {}
        """Handles whose `.grad` was set, and whether what was there before no longer counts."""
        self.requirements: list[Requirement] = []
        """What sizes must be at a call, of the outermost trace."""
        self.outside: dict[int, Any] | None = None
        """The Tensors that may become captures, and the arrays of those made while tracing, by id; None for any."""
        self.finished = False
        self.consumed = False
        """Whether `backward` ran: what was recorded for it is used up."""

    def argument(self, aval: AbstractValue, name: str | None = None) -> Tensor:
        """A Tensor for a new argument of the function."""
        value = self.block.add_argument(aval.type, name)
        tensor = self.tensor(aval, value)
        self.arguments[id(tensor)] = tensor
        if aval.requires_grad:
            self.leaves.append((tensor, value))
        return tensor

    def tensor(self, aval: AbstractValue, value: Value) -> Tensor:
        """A Tensor for a value of the block."""
        return ag.tensor.make(aval, None, Traced(self, value))

    def value_of(self, tensor: Tensor) -> Value:
        """The value of the block that a Tensor is; one from outside becomes a capture."""
        state = tensor._state
        if isinstance(state, Traced):
            if state.trace is self:
                return state.value
            if state.trace.finished:
                raise TraceError(
                    "a Tensor of a traced function is used after the function ended; return it instead of storing it",
                    caller_location(),
                )
        found = self.captures.get(id(tensor))
        if found is None:
            tensor._check_readable()
            if self.outside is not None and not (id(tensor) in self.outside or id(tensor._value) in self.outside):
                message = "a Tensor is read from where its changes cannot be seen; pass it as an argument, or keep it"
                raise TraceError(f"{message} in a variable, a container or an attribute", caller_location())
            value = self.block.add_argument(tensor._aval.type)
            self.captures[id(tensor)] = tensor, value
            if tensor._aval.requires_grad:
                self.leaves.append((tensor, value))
            return value
        return found[1]

    def array(self, array: Any) -> Tensor:
        """An ndarray from outside as a Tensor that shares its memory; one that was made while tracing is a constant."""
        array, root = plain(array), self._root()
        found = root.arrays.get(id(array))
        if found is None:
            is_known = root.outside is None or id(array) in root.outside
            tensor = ag.asarray(array, copy=False if is_known else None)
            found = root.arrays[id(array)] = array, tensor
            if root.outside is not None:
                root.outside[id(tensor)] = tensor
        return found[1]

    def _root(self) -> Trace:
        """The trace that is kept and called again, if there is one."""
        trace = self
        while trace.outside is None and trace.outer is not None:
            trace = trace.outer
        return trace if trace.outside is not None else self

    def note_made(self, array: object) -> None:
        """Note that the value of a Tensor was made while tracing."""
        outside = self._root().outside
        if outside is not None:
            outside[id(array)] = array

    def save(self, handle: Tensor) -> None:
        """Keep a handle as it is, before it is rebound for the first time."""
        if id(handle) not in self.saved:
            self.saved[id(handle)] = _Saved(handle, (handle._aval, handle._value, handle._state, handle._grad))

    def shows(self, handle: Tensor, value: Value) -> bool:
        """Whether a handle still stands for a value of the block."""
        state = handle._state
        if isinstance(state, Traced) and state.trace is self:
            return state.value is value
        captured = self.captures.get(id(handle))
        return captured is not None and captured[1] is value

    def read_gradient(self, handle: Tensor) -> None:
        """Note that `.grad` was read, in the outermost trace, unless it was set while tracing."""
        trace: Trace | None = self
        state = handle._state
        while trace is not None:
            if trace.gradients_set.get(id(handle)):
                return
            if id(handle) in trace.saved:  # bound to another value since
                state = trace.saved[id(handle)].fields[2]
            if trace.outer is None:
                if not isinstance(state, Traced):
                    trace.gradients.setdefault(id(handle), (handle, handle._grad))
                    if trace.outside is not None:
                        trace.outside[id(handle._grad)] = handle._grad
                elif id(handle) in trace.arguments:
                    trace.gradients_of_arguments.add(state.value.index)  # pyright: ignore[reportAttributeAccessIssue]
            trace = trace.outer

    def set_gradient(self, handle: Tensor) -> None:
        """Note that `.grad` is about to be set."""
        self.save(handle)
        self.gradients_set[id(handle)] = True

    def add_gradient(self, handle: Tensor, gradient: Tensor) -> bool:
        """Add to `.grad` of an argument, to which the caller's comes; False for others, and where it was set."""
        if id(handle) not in self.arguments or self.gradients_set.get(id(handle)):
            return False
        self.save(handle)
        self.gradients_set[id(handle)] = False
        handle._grad = gradient if handle._grad is None else handle._grad + gradient
        return True

    def restore(self) -> list[Effect]:
        """Put the handles back; what they were bound to."""
        effects: list[Effect] = []
        for saved in self.saved.values():
            handle, fields = saved.handle, saved.fields
            now = handle._aval, handle._value, handle._state, handle._grad
            handle._aval, handle._value, handle._state, handle._grad = fields
            if isinstance(fields[2], Traced) and fields[2].trace is self:
                if id(handle) not in self.arguments:  # made while tracing: nobody outside has it
                    continue
                if id(handle) in self.gradients_set:
                    effects.append(self._gradient_effect(handle, now[3]))
                if now[2] is not fields[2]:
                    effects.append(Effect(handle, False, now[0], now[2].value))
                continue
            if now[2] is not fields[2]:
                value = now[2].value if isinstance(now[2], Traced) and now[2].trace is self else None
                assert value is not None
                effects.append(Effect(handle, False, now[0], value))
            if id(handle) in self.gradients_set:  # also to what it is now: at another call it may be another one
                effects.append(self._gradient_effect(handle, now[3]))
        return effects

    def _gradient_effect(self, handle: Tensor, gradient: Tensor | None) -> Effect:
        if gradient is None:
            return Effect(handle, True, None, None)
        return Effect(handle, True, gradient._aval, self.value_of(gradient), not self.gradients_set[id(handle)])

    def forget(self) -> None:
        """Let go of what was read from outside: Tensors of the trace may live on."""
        self.captures, self.saved, self.gradients, self.arrays, self.outside = {}, {}, {}, {}, None

    # Ops.

    def emit(self, signature: tuple[Any, ...], operands: Sequence[Tensor], avals: Flags) -> list[Tensor]:
        """Add an op to the block."""
        b = self.builder
        b.location = caller_location()
        values = replay(b, signature, [self.value_of(t) for t in operands])
        if avals.blocked:
            values = tuple([_cut(self, v) for v in values])
        return [self.tensor(avals.of(signature[0], type_of_tensor(v)), v) for v in values]


def _element(value: Value) -> object:
    return type_of_tensor(value).element


def _cut(trace: Trace, value: Value) -> Value:
    """The value without its derivative."""
    return trace.builder.stop_gradient(value) if isinstance(_element(value), FloatType) else value


@dataclass(slots=True)
class Flags:
    """What results of an op take from its operands beside dtype and shape; `blocked`: gradients end at them."""

    device: str
    requires_grad: bool
    blocked: bool

    def of(self, name: str, type: TensorType) -> AbstractValue:
        """The abstract value of a result of this type; ShapeError, naming the op, for what is too large to be."""
        dtype = of_element(type.element)
        return abstract_value(dtype, checked_size(dtype, type.dims), self.device, self.requires_grad and dtype.is_float)


def flags_of(operands: Sequence[Tensor]) -> Flags:
    """What the results of an op on these take; DeviceError when they lie on different devices."""
    device = CONTEXT.device if CONTEXT.trace is None else CONTEXT.trace.device
    return combine([t._aval for t in operands], CONTEXT.records_gradients, device)


def combine(avals: Sequence[AbstractValue], records_gradients: bool, default_device: str) -> Flags:
    """`flags_of` for abstract values; without operands the results lie on `default_device`."""
    wants_grad, device = False, ""
    for number, aval in enumerate(avals):
        wants_grad = wants_grad or aval.requires_grad
        if device and aval.device != device:
            message = f"operand {number} lies on {aval.device}, those before it on {device}; ag.to_device copies"
            raise DeviceError(message, caller_location())
        device = aval.device
    records = wants_grad and records_gradients
    return Flags(device or default_device, records, wants_grad and not records)


def emit(method: str, *operands: Tensor, variadic: bool = False, **properties: object) -> Any:
    """Apply the op that a method of `TensorBuilder` builds: its result, or the tuple of its results.

    Errors: those of the op (ShapeError, DTypeError) with the user's line, DeviceError for mixed devices.
    """
    try:
        results = emit_all((method, variadic, tuple(properties.items())), operands)
    except Error as error:
        # The op names itself; a function of several ops says which function it is.
        name = called_function()
        if name and error.message.partition(":")[0].rpartition(".")[2] != name:
            error.message = f"{name}: {error.message}"
        raise
    except ValueError as error:  # of a type that there is not
        message = f"{called_function()}: {error}; there can be no array of 2**62 bytes"
        raise ShapeError(message, caller_location()) from None
    return results[0] if len(results) == 1 else tuple(results)


class Ops(OpMethods["Tensor"]):
    """`emit` with the name of the op as an attribute: `ops.layer_norm(x, axis=1)`."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("__"):
            raise AttributeError(name)
        made = partial(emit, name)
        setattr(self, name, made)
        return made


ops: Final = Ops()


def emit_all(signature: tuple[Any, ...], operands: Sequence[Tensor]) -> list[Tensor]:
    """`emit` for a node's signature; a list of results."""
    trace = CONTEXT.trace
    if trace is not None and (not operands or is_traced(operands)):
        return trace.emit(signature, operands, flags_of(operands))
    inputs = tuple([t._lazy() for t in operands])
    avals = _result_avals(signature, tuple([t._aval for t in operands]), CONTEXT.records_gradients, CONTEXT.device)
    method, variadic, properties = signature
    node = Node(method, inputs, properties, variadic, caller_location())
    make, set_owner = ag.tensor.make, ag.tensor.set_owner
    return [set_owner(make(v.aval, None, v), v) for v in record(node, avals)]


def is_traced(operands: Iterable[object]) -> bool:
    """Whether an op on these belongs to the trace that is being made.

    Where the trace is made anew at every call, ops on nothing but Tensors with values are computed at once."""
    trace = CONTEXT.trace
    if trace is None or trace.persistent:
        return trace is not None
    return any(isinstance(getattr(t, "_state", None), Traced) for t in operands)


@lru_cache(maxsize=4096)
def _result_avals(
    signature: tuple[Any, ...], avals: tuple[AbstractValue, ...], records_gradients: bool, device: str
) -> tuple[AbstractValue, ...]:
    """The abstract values of an op's results; errors are not remembered."""
    flags = combine(avals, records_gradients, device)
    return tuple([flags.of(signature[0], t) for t in infer(signature, tuple([a.type for a in avals]))])


ON_REDEFINITION.append(_result_avals.cache_clear)


def constant(value: Any, aval: AbstractValue) -> Tensor:
    """A Python number at every point of a shape, as an op; DTypeError where it does not fit the dtype."""
    check_fits(value, aval.dtype)
    if aval.size is None:
        signature = ("full", False, (("value", value), ("type", aval.type)))
    else:
        signature = ("constant", False, (("value", DenseAttr.splat(aval.type, value)),))
    trace = CONTEXT.trace
    if trace is not None:
        return trace.emit(signature, (), Flags(aval.device, False, False))[0]
    node = Node("constant", (), signature[2], False, caller_location())
    (lazy,) = record(node, [aval])
    return ag.tensor.set_owner(ag.tensor.make(aval, None, lazy), lazy)


@dataclass
class TracedFunction:
    """What tracing gave.

    `function`: arguments are the leaves traced, then the captures; results are `outputs`, then the values of effects.
    `out_leaves`: for each leaf of the function's result a Tensor's abstract value, or the leaf itself in `constants`.
    """

    function: func.Func
    captures: list[Tensor]
    out_tree: Tree
    out_avals: list[AbstractValue | None]
    constants: list[Any]
    effects: list[Effect]
    consumed: bool
    numbers: NumberProgram
    """What is computed of the numbers among the arguments; its inputs are arguments between leaves and captures."""
    gradients: list[tuple[Tensor, Tensor | None]]
    """Handles whose `.grad` the function read, and what it was."""
    arrays: list[tuple[Any, Tensor]]
    """ndarrays that the function read, and the Tensors that stand for them."""
    gradients_of_arguments: list[int]
    """The arguments whose `.grad` the function read, which it takes for None."""
    requirements: list[Requirement]

    @property
    def outputs(self) -> list[AbstractValue]:
        """The abstract values of the results that are Tensors."""
        return [a for a in self.out_avals if a is not None]

    def module(self) -> builtin.Module:
        """A module of the function alone."""
        return builtin.Module.of([self.function.clone()])


def trace_function(
    body: Callable[[list[Tensor], list[TracedNumber]], Any],
    avals: Sequence[AbstractValue],
    names: Sequence[str | None],
    *,
    persistent: bool,
    device: str | None = None,
    numbers: Sequence[object] = (),
    sizes: dict[str, int] | None = None,
    finish: Callable[[list[Any]], None] | None = None,
    outside: dict[int, Any] | None = None,
) -> TracedFunction:
    """Trace `body(arguments, numbers)`; it returns a pytree of Tensors and other things.

    `outside`: the Tensors and ndarrays from outside that it may read, by id; None for any.
    `finish(leaves of the result)` may check and replace leaves, for differentiation: the values of effects are then cut
    off from gradients.
    """
    outer = CONTEXT.trace
    trace = Trace(device or (outer.device if outer else CONTEXT.device), persistent, outer)
    trace.outside = outside
    CONTEXT.trace = trace
    ACTIVE_TRACES.append(trace)
    effects: list[Effect] | None = None
    try:
        arguments = [trace.argument(a, n) for a, n in zip(avals, names, strict=True)]
        given = trace.numbers = Numbers(trace, sizes or {}, numbers, len(arguments))
        leaves, tree = flatten(body(arguments, given.traced))
        if outer is None:
            leaves = [v.tensor(None, trace.device) if type(v) is TracedNumber else v for v in leaves]
        if finish is not None:
            finish(leaves)
        is_tensor = [isinstance(v, ag.tensor.Tensor) for v in leaves]
        out_avals = [v._aval if t else None for v, t in zip(leaves, is_tensor, strict=True)]
        values = [trace.value_of(v) for v, t in zip(leaves, is_tensor, strict=True) if t]
        effects = trace.restore()
        found = [e.value for e in effects if e.value is not None]
        values += found if finish is None else [_cut(trace, v) for v in found]
    finally:
        if effects is None:
            trace.restore()
        trace.finished = True
        CONTEXT.trace = outer
        ACTIVE_TRACES.remove(trace)
    assert effects is not None
    trace.builder.location = trace.function.location
    trace.builder.create(func.Return, values)
    trace.function.update_type()
    traced = TracedFunction(
        trace.function,
        [tensor for tensor, _ in trace.captures.values()],
        tree,
        out_avals,
        [None if t else v for v, t in zip(leaves, is_tensor, strict=True)],
        effects,
        trace.consumed,
        given.program(),
        list(trace.gradients.values()),
        list(trace.arrays.values()),
        sorted(trace.gradients_of_arguments),
        trace.requirements,
    )
    trace.forget()
    return traced
