"""A function traced and compiled for arguments of one kind, and how it is called.

Its inputs are the traced leaves, then the captures.  A result of the trace is an output of the executable, or an input
handed through.  Results after the function's own are the effects: what handles are bound to after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.diagnostics import DTypeError, Error, ShapeError, shown
from ..ir.dialects.func import Func
from ..ir.location import caller_location
from ..ir.values import BlockArgument
from ..runtime.entry import TensorClass
from .abstract import AbstractValue, abstract_value
from .arguments import Arguments
from .closure import Closure
from .context import CONTEXT
from .conversion import asarray
from .dtypes import as_dtype
from .graph import Callee
from .guards import READING, Source, Term
from .lazy import OFTEN
from .places import MISSING, Place
from .pytree import unflatten
from .tensor import DONATED, Tensor, make
from .trace import Traced, TracedFunction, emit_all
from .watched import plain

TENSOR_CLASS = TensorClass(Tensor, "_aval", "_value")


class Specialisation:
    """`results` says for each result of the traced function where it comes from: output `n` of the executable, or
    (negative) input `~n`."""

    def __init__(
        self,
        traced: TracedFunction,
        arguments: Arguments,
        closure: Closure,
        device: str,
        fast_math: bool,
        donates: frozenset[str],
    ) -> None:
        self.traced = traced
        # What the arguments were is not kept: they may be large.
        self.key, self.argument_avals, self._kinds = arguments.key, arguments.avals, _kinds(arguments)
        self._is_flat = arguments.is_flat
        self.closure = closure
        self.device = device
        self.fast_math = fast_math
        self.donates = donates
        self.executable: Any = None
        self._fast: Callable[..., Any] | None = None
        self._direct: Callable[..., Any] | None = None
        self._knows_fast = False
        self._calls = 0
        self._entry: Any = None
        self._callee: Callee | None = None
        closure.add_gradients(traced.gradients)
        arrays = {id(t): id(a) for a, t in traced.arrays}
        captured = [arrays.get(id(t), id(t)) for t in traced.captures]
        self.captures = [Capture(t, closure.sources.get(key)) for t, key in zip(traced.captures, captured, strict=True)]
        for effect in traced.effects:
            effect.place = closure.sources.get(id(effect.handle))
            if effect.place is not None:
                effect.handle = None
        closure.finish(captured, bool(traced.effects))
        traced.captures, traced.arrays, traced.gradients = [], [], []
        self.results: list[int] = []
        computed: dict[Any, int] = {}
        for value in traced.function.returns.operands:
            is_input = isinstance(value, BlockArgument)
            self.results.append(~value.index if is_input else computed.setdefault(value, len(computed)))
        self.module = traced.module()
        function = self.module.symbol("main")
        assert isinstance(function, Func)
        returned = function.returns.operands
        function.returns.set_operands([returned[self.results.index(n)] for n in range(len(computed))])
        function.update_type()
        bound = [e.aval for e in traced.effects if e.value is not None]
        self.avals: list[AbstractValue] = [*traced.outputs, *[a for a in bound if a is not None]]
        self.count = len(traced.outputs)
        # `backward` inside has used up what was recorded; else the call is an op whose results can be differentiated.
        self.records = not traced.consumed and any(a.requires_grad for a in traced.outputs)

    def compile(self) -> None:
        """Compile, unless nothing is computed."""
        if self.executable is None and any(r >= 0 for r in self.results):
            from ..runtime.compile import compile_function  # late

            self.executable = compile_function(self.module, device=self.device, fast_math=self.fast_math)

    def holds(self, arguments: Arguments) -> bool:
        """Whether what the function read from outside is what it was, and the trace is that of these numbers."""
        if not self.is_current():
            return False
        arguments.hidden = self.traced.numbers.run(arguments.sizes, arguments.numbers)
        return arguments.hidden is not None

    def is_current(self) -> bool:
        """Whether what the function read from outside is what it was."""
        return self.closure.hold() and all([c.holds() for c in self.captures])

    def is_obsolete(self) -> bool:
        """Whether an object among the arguments is gone, so that no call can be for this specialisation."""
        return any([get() is None for get in self.closure.weakly_held])

    def call(self, arguments: Arguments, out: object = None) -> Any:
        """Run on arguments that have this specialisation's key."""
        leaves = arguments.traced_leaves
        hidden = arguments.hidden
        if hidden is None:
            hidden = self.traced.numbers.run(arguments.sizes, arguments.numbers)
            if hidden is None:
                raise DTypeError(f"compiled for other numbers than {arguments.numbers}", caller_location())
        if self.traced.gradients_of_arguments:
            self._check_gradients(leaves)
        direct = self._direct_call() if out is None else None
        if direct is not None:
            found = direct(*leaves, *hidden)
            if found is not MISSING:
                return found
        if self.traced.requirements:
            for requirement in self.traced.requirements:
                requirement.check(arguments.sizes)
        captured = [c.read() for c in self.captures] if self.captures else []
        operands = [*leaves, *hidden, *captured]
        if self.records and CONTEXT.records_gradients:
            if out is not None:
                raise Error("out= cannot be given where gradients are recorded; use ag.no_grad()", caller_location())
            return self._record(operands)
        if out is not None:
            self._check_out(_listed(out))
        inputs = [_array(v) for v in leaves]
        inputs += hidden
        inputs += [_array(v) for v in captured]
        arrays = self._run(inputs, out)
        tensors: list[Tensor] = []
        for result, aval in zip(self.results, self.avals, strict=True):
            array = arrays[result] if result >= 0 else inputs[~result]
            if result < 0 and array is operands[~result]:
                array = array.copy()  # an ndarray of the caller, who may write to it
            tensors.append(make(_known(aval, array), array))
        if out is not None:
            _fill(out, tensors[: self.count])
        self._write_back(tensors, leaves)
        if self.donates:
            for tensor in arguments.donated(self.donates):
                tensor._value, tensor._state = None, DONATED
        return self._result([*_listed(out), *tensors[self.count :]] if out is not None else tensors)

    def _check_gradients(self, leaves: Sequence[Any]) -> None:
        """Refuse arguments that have a gradient where the function reads it, since it is not an input."""
        for number in self.traced.gradients_of_arguments:
            if number < len(leaves) and isinstance(leaves[number], Tensor) and leaves[number]._grad is not None:
                message = "jit: the function reads .grad of an argument, and this one has a gradient"
                remedy = "pass that as an argument, set .grad to None before, or read the Tensor from outside"
                raise Error(f"{message}; {remedy}", caller_location())

    def is_recorded_for_sizes(self) -> bool:
        """Whether a call would be recorded for `backward` although it knows no sizes, which eager ops need."""
        symbolic = any(a.size is None for a in self.argument_avals)
        return self.records and CONTEXT.records_gradients and symbolic

    def _run(self, inputs: list[Any], out: object) -> list[Any]:
        if self.executable is None:
            return []
        targets = None if out is None else self._targets(_listed(out), inputs)
        if targets is None and out is None:
            if self._calls == OFTEN and not any(isinstance(d, str) for a in self.avals for d in a.shape):
                self._entry = self.executable.native_entry(None, ["array"] * len(inputs), [None] * len(inputs))
            if self._entry is not None:
                from ..runtime.memory import shared_memory  # late

                empty = shared_memory().empty
                found = [
                    empty(t.shape, d)
                    for t, d in zip(self.executable.outputs, self.executable.output_dtypes, strict=True)
                ]
                if self._entry(*inputs, *found) is None:
                    return found
        return self.executable.run(inputs) if targets is None else self.executable.run(inputs, targets)

    def _check_out(self, given: list[Any]) -> None:
        """Refuse what results do not fit in, before anything runs."""
        if len(given) != self.count:
            raise ShapeError(f"out= has {len(given)} arrays, the function gives {self.count}", caller_location())
        for array, aval in zip(given, self.avals, strict=False):
            if not isinstance(array, np.ndarray | Tensor):
                raise DTypeError(f"out= takes ndarrays and Tensors, got {shown(array)}", caller_location())
            known, shape = as_dtype(array.dtype), array.shape
            if len(shape) != len(aval.shape) or any(isinstance(a, int) and a != b for a, b in zip(aval.shape, shape)):
                raise ShapeError(f"out= has the shape {shape}, the result {aval.shape}", caller_location())
            if known is not aval.dtype:
                raise ShapeError(f"out= has the dtype {known}, the result {aval.dtype}", caller_location())
            if isinstance(array, np.ndarray) and not array.flags.writeable:
                raise Error("out= holds an array that is read-only", caller_location())
        for number, array in enumerate(given):
            for other in given[:number]:
                arrays = isinstance(array, np.ndarray) and isinstance(other, np.ndarray)
                if array is other or (arrays and np.shares_memory(array, other)):
                    raise Error("out= has the same memory for two results", caller_location())

    def _targets(self, given: list[Any], inputs: Sequence[object]) -> list[Any] | None:
        """The arrays that the executable may write to directly: none of them an input, each a result of its own."""
        direct = (
            self.results == list(range(self.count))
            and all(isinstance(a, np.ndarray) and a.flags.c_contiguous for a in given)
            and not any(np.shares_memory(a, b) for a in given for b in inputs)
        )
        return given if direct else None

    def _record(self, operands: Sequence[object]) -> object:
        """The call as one op, for `backward`."""
        if self._callee is None:
            self._callee = Callee(self.traced.function)
        tensors = [v if isinstance(v, Tensor) else asarray(v) for v in operands]
        made = emit_all(("call", False, (("function", self._callee),)), tensors)
        for tensor, aval in zip(made, self.avals, strict=True):
            tensor._aval = tensor._lazy().aval = aval
        self._write_back(made, operands)
        return self._result(made)

    def _write_back(self, tensors: Sequence[Tensor], leaves: Sequence[object]) -> None:
        """Bind the handles that the function bound."""
        rest = iter(tensors[self.count :])
        for effect in self.traced.effects:
            new = None if effect.value is None else next(rest)
            handle = effect.target()
            if isinstance(handle._state, Traced):  # an argument of the trace stands for the caller's
                handle = leaves[handle._state.value.index]  # pyright: ignore[reportAttributeAccessIssue]
                if not isinstance(handle, Tensor):
                    if new is not None and not effect.gradient and isinstance(handle, np.ndarray):
                        _overwrite(handle, new)
                    continue
            if effect.gradient:
                known = handle._grad if effect.adds else None
                handle._grad = new if known is None or new is None else known + new
            elif new is not None:
                handle._aval, handle._value, handle._state = new._aval, new._value, new._state

    def _result(self, tensors: Sequence[object]) -> object:
        rest = iter(tensors)
        leaves = zip(self.traced.out_avals, self.traced.constants, strict=True)
        return unflatten(self.traced.out_tree, [c if a is None else next(rest) for a, c in leaves])

    def fast_call(self) -> Callable[..., Any] | None:
        """A function of the arguments that gives the result, or MISSING when they are not of this specialisation.

        None where there can be none: nested arguments or numbers, sizes that each call brings, results that are
        inputs, gradients to be recorded.
        """
        if not self._knows_fast:
            self._knows_fast = True
            entry = self._native_entry() if self._is_flat else None
            self._fast = None if entry is None else _generated(self, entry, is_guarded=True)
        return self._fast

    def _direct_call(self) -> Callable[..., Any] | None:
        """A function of the traced leaves and the hidden inputs, once there were many calls; or None."""
        self._calls += 1
        if self._calls == OFTEN:
            entry = self._native_entry()
            self._direct = None if entry is None else _generated(self, entry, is_guarded=False)
        return self._direct

    def _native_entry(self) -> object:
        """The entry that takes leaves, hidden inputs, captures and results as they are, if there can be one."""
        avals = [*self.argument_avals, *[c.aval for c in self.captures]]
        results = [r for r, _ in zip(self.results, self.avals)]
        if (
            self.executable is None
            or self.records
            or self._kinds is None
            or self.donates
            or self.traced.requirements
            or self.traced.gradients_of_arguments
            or not all(a.type.is_static for a in [*avals, *self.avals])
            or results != list(range(len(results)))
            or any(e.place is None and isinstance(e.handle._state, Traced) for e in self.traced.effects)
        ):
            return None
        hidden = ["array"] * len(self.traced.numbers.inputs)
        kinds = [*self._kinds, *hidden, *["array" if c.is_array else "tensor" for c in self.captures]]
        given = [*self.argument_avals, *[None] * len(hidden), *[c.aval for c in self.captures]]
        known = [a if k == "tensor" else None for a, k in zip(given, kinds, strict=True)]
        return self.executable.native_entry(TENSOR_CLASS, kinds, known)


def _kinds(arguments: Arguments) -> list[str] | None:
    """What an entry takes for each traced leaf; None where it must look at the leaves itself."""
    kinds: list[str] = []
    for leaf, aval in zip(arguments.traced_leaves, arguments.avals, strict=True):
        if isinstance(leaf, Tensor):
            if leaf._aval is not aval:
                return None
            kinds.append("tensor")
        elif isinstance(leaf, np.ndarray):
            kinds.append("array")
        else:
            return None
    return kinds


class Capture:
    """A Tensor or ndarray from outside, and where it is read; without a place it is a constant made while tracing."""

    __slots__ = ("aval", "constant", "is_array", "place")

    def __init__(self, tensor: Tensor, place: Place | None) -> None:
        self.constant = tensor if place is None else None
        self.place = place
        self.aval = tensor._aval
        self.is_array = place is not None and isinstance(place.read(), np.ndarray)

    def read(self) -> object:
        """What stands there now."""
        return self.constant if self.place is None else plain(self.place.read())

    @property
    def term(self) -> Term:
        """`read` as an expression, which may give a stand-in for an array."""
        return ("{0}", (self.constant,)) if self.place is None else self.place.term

    def holds(self) -> bool:
        """Whether it is one of the same kind."""
        now = self.read()
        if self.is_array:
            return isinstance(now, np.ndarray) and now.shape == self.aval.shape and now.dtype == self.aval.dtype
        return isinstance(now, Tensor) and now._aval is self.aval


def _generated(specialisation: Specialisation, entry: object, is_guarded: bool) -> Callable[..., object]:
    """A function of what the entry takes before the captures: the result, or MISSING where the entry refuses these, or
    (`is_guarded`) what was read from outside has changed.  Its text has no step that this specialisation does not need.
    """
    source = Source()
    name, traced, count = source.name, specialisation.traced, specialisation.count
    missing, tensor = name(MISSING), name(Tensor)
    lines: list[str] = []
    if is_guarded and specialisation.closure.guards:
        lines += [f"if not {source.check(specialisation.closure.guards)}:", f"    return {missing}"]
    operands = ["*args"]
    for number, capture in enumerate(specialisation.captures):
        lines.append(f"c{number} = {source.text(capture.term)}")
        operands.append(f"c{number}")
    if lines:
        lines = ["try:", *[f"    {line}" for line in lines], f"except {name(READING)}:", f"    return {missing}"]
    for number, allocate in enumerate(_allocators(specialisation.avals)):
        lines.append(f"r{number} = {name(allocate)}()")
        operands.append(f"r{number}")
    lines += [f"if {name(entry)}({', '.join(operands)}) is not None:", f"    return {missing}"]
    place = count
    for effect in traced.effects:
        handle = f"{name(effect.target)}()"
        if effect.value is None:
            lines.append(f"{handle}._grad = None")
            continue
        aval = name(specialisation.avals[place])
        if effect.gradient:
            lines.append(f"{handle}._grad = {name(make)}({aval}, r{place})")
        else:
            lines += [f"handle = {handle}", f"handle._aval, handle._value, handle._state = {aval}, r{place}, None"]
        place += 1
    made = [f"t{number}" for number in range(count)]
    for number, (result, aval) in enumerate(zip(made, specialisation.avals, strict=False)):
        lines.append(f"{result} = {name(object.__new__)}({tensor})")
        lines.append(f"{result}._aval = {name(aval)}")
        lines.append(f"{result}._value = r{number}")
        lines.append(f"{result}._state = {result}._grad = None")
    tree = traced.out_tree
    if tree.kind is None and count == 1:
        lines.append("return t0")
    elif tree.kind is tuple and len(made) == len(tree.children) and all(c.kind is None for c in tree.children):
        lines.append(f"return ({''.join(f'{t}, ' for t in made)})")
    else:
        lines.append(f"return {name(specialisation._result)}([{', '.join(made)}])")
    return source.function("\n    ".join(["def made(*args):", *lines]))


def _allocators(avals: Sequence[AbstractValue]) -> list[Callable[[], Any]]:
    from ..runtime.memory import shared_memory  # late

    allocator = shared_memory().allocator
    return [allocator(a.shape, a.dtype.numpy) for a in avals]


def _known(aval: AbstractValue, array: Any) -> AbstractValue:
    """The abstract value of a result, symbols replaced by the sizes of this call."""
    if aval.shape == array.shape:
        return aval
    return abstract_value(aval.dtype, array.shape, aval.device, aval.requires_grad)


def _array(operand: object) -> Any:
    """The C-contiguous array of an operand."""
    if isinstance(operand, Tensor):
        return operand._value if operand._value is not None else operand._array()
    if type(operand) is np.ndarray and operand.flags.c_contiguous and operand.flags.aligned and operand.dtype.isnative:
        return operand
    return asarray(operand)._value


def _overwrite(array: Any, new: Tensor) -> None:
    """Write to an ndarray among the arguments what the function wrote to it; Error where it is read-only."""
    if not array.flags.writeable:
        raise Error("jit: the function writes to an argument that is a read-only ndarray", caller_location())
    array[...] = new.numpy()


def _listed(out: object) -> list[Any]:
    return list(out) if isinstance(out, list | tuple) else [out]


def _fill(out: object, tensors: Sequence[Tensor]) -> None:
    """Put results where `out=` wants them."""
    for target, tensor in zip(_listed(out), tensors, strict=True):
        if isinstance(target, Tensor):
            target._rebind(tensor)
        elif target is not tensor._value:
            target[...] = tensor._value
