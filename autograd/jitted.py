"""jit: a Python function, compiled for the structure, dtypes and shapes of its arguments.

A call looks for a *specialisation*: first by handing the arguments to the native entries of those in use, which check
types, dtypes and shapes themselves; else by a key of the arguments' structure and abstract values, and its guards
(closure.py).  Where there is none, the function is traced and compiled.  Numbers are traced (as weak 0-d Tensors);
other things that are not arrays, and the arguments in `static_argnames`, are part of the key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, overload

import numpy as np

from ..ir.diagnostics import Error, ShapeError
from ..ir.dialects.builtin import Module
from ..ir.location import caller_location
from ..ir.values import BlockArgument
from ..runtime.entry import TensorClass
from .abstract import AbstractValue, abstract_value
from .closure import MISSING, Closure, Place
from .context import ACTIVE_TRACES, CONTEXT
from .dtypes import as_dtype, of_number
from .graph import Callee
from .lazy import BoundedCache
from .pytree import Tree, flatten, unflatten
from .tensor import DONATED, Tensor, asarray, make
from .trace import TracedFunction, emit_all, trace_function

SPECIALISATIONS = 1024
"""How many argument keys a function keeps; the one not used for longest goes first."""
FAST = 4
"""How many native entries a call tries before it looks at the arguments itself."""

TENSOR_CLASS = TensorClass(Tensor, "_aval", "_value")


@dataclass
class Statistics:
    """`hits`: calls that found their specialisation; `misses`: calls that traced; `compiles`: specialisations compiled."""

    hits: int = 0
    misses: int = 0
    compiles: int = 0


@dataclass
class Arguments:
    """The arguments of a call, taken apart: `leaves` that are traced and their abstract values, the rest in `key`."""

    leaves: list[Any]
    avals: list[AbstractValue]
    key: tuple[Any, ...]
    tree: Tree
    is_traced: list[bool]
    names: list[str | None]
    donated: list[bool]
    is_flat: bool


class Jitted:
    """What `jit` gives: call it as the function itself."""

    __wrapped_function__ = True

    def __init__(
        self,
        function: Callable[..., Any],
        device: str | None,
        fast_math: bool,
        static_argnames: Sequence[str],
        donate_argnames: Sequence[str],
        dynamic: bool | None,
    ) -> None:
        update_wrapper(self, function, updated=())
        self.function = function
        self.device = device
        self.fast_math = fast_math
        self.dynamic = bool(dynamic)
        self.static = frozenset((static_argnames,) if isinstance(static_argnames, str) else static_argnames)
        self.donated = frozenset((donate_argnames,) if isinstance(donate_argnames, str) else donate_argnames)
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            parameters = {}
        self.parameters = [
            n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        unknown = [n for n in self.static | self.donated if n not in parameters and not takes_any]
        if unknown:
            raise Error(f"jit: the function has no parameter '{sorted(unknown)[0]}'", caller_location())
        self._takes_out = "out" in parameters
        self._statistics = Statistics()
        self._specialisations: BoundedCache[list[Specialisation]] = BoundedCache(SPECIALISATIONS)
        self._fast: list[Callable[..., Any]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and not ACTIVE_TRACES:
            for fast in self._fast:
                found = fast(*args)
                if found is not MISSING:
                    self._statistics.hits += 1
                    return found
        return self._call(args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        from functools import partial

        return self if instance is None else partial(self, instance)

    def stats(self) -> Statistics:
        """A copy of the counts."""
        s = self._statistics
        return Statistics(s.hits, s.misses, s.compiles)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The IR for such arguments, without running anything."""
        return Lowered(self, self._specialise(self._take_apart(args, kwargs)))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = None if self._takes_out else kwargs.pop("out", None)
        if CONTEXT.trace is not None:
            if out is not None:
                raise Error("out= cannot be given while a function is traced", caller_location())
            return self.function(*args, **kwargs)
        arguments = self._take_apart(args, kwargs)
        known = self._specialisations.get(arguments.key)
        specialisation = None if known is None else next((s for s in known if s.holds()), None)
        if specialisation is None:
            self._statistics.misses += 1
            specialisation = self._specialise(arguments)
            specialisation.compile()
            self._statistics.compiles += 1
            if known is None:
                known = self._specialisations.put(arguments.key, [])
            known.insert(0, specialisation)
            del known[FAST:]
        else:
            self._statistics.hits += 1
            self._make_fast(specialisation, arguments)
        return specialisation.call(arguments, out)

    def _make_fast(self, specialisation: Specialisation, arguments: Arguments) -> None:
        """Give a specialisation that is used again a native entry."""
        if specialisation.is_fast is None:
            fast = specialisation.fast(arguments)
            specialisation.is_fast = fast is not None
            if fast is not None:
                self._fast = [fast, *self._fast[: FAST - 1]]

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        names: list[str | None] = []
        donated: list[bool] = []
        leaves: list[Any] = []
        trees: list[Any] = []
        is_flat = not kwargs
        positional = [
            (self.parameters[i] if i < len(self.parameters) else None, value) for i, value in enumerate(args)
        ]
        for name, value in [*positional, *sorted(kwargs.items())]:
            if name in self.static:
                trees.append(_Static(value))
                is_flat = False
                continue
            found, tree = flatten(value)
            is_flat = is_flat and tree.kind is None
            trees.append(tree)
            leaves += found
            names += [name if len(found) == 1 else None] * len(found)
            donated += [name in self.donated] * len(found)
        tree = Tree(tuple, (len(args), tuple(sorted(kwargs))), tuple(trees))
        avals, key, is_traced = _abstract(leaves, self.device, self.dynamic)
        full = (tree, tuple(key), CONTEXT.records_gradients, self.device or CONTEXT.device)
        return Arguments(leaves, avals, full, tree, is_traced, names, donated, is_flat and all(is_traced))

    def _specialise(self, arguments: Arguments) -> Specialisation:
        closure = Closure(self.function)
        tree, (count, keywords) = arguments.tree, arguments.tree.data

        def body(tensors: list[Tensor]) -> Any:
            rest = iter(tensors)
            leaves = iter([next(rest) if t else v for t, v in zip(arguments.is_traced, arguments.leaves, strict=True)])
            values = [
                c.value if isinstance(c, _Static) else unflatten(c, [next(leaves) for _ in range(c.size)])
                for c in tree.children
            ]
            return self.function(*values[:count], **dict(zip(keywords, values[count:], strict=True)))

        names = [n for n, t in zip(arguments.names, arguments.is_traced, strict=True) if t]
        device = self.device or _device_of(arguments.avals)
        traced = trace_function(body, arguments.avals, names, persistent=True, device=device)
        return Specialisation(traced, arguments, closure, device, self.fast_math)


class _Static(Tree):
    """An argument that is part of the key."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        try:
            super().__init__(_Static, (type(value), value), ())
        except TypeError:
            raise Error(f"a static argument must be hashable, got {value!r}", caller_location()) from None
        self.value = value


def _device_of(avals: Sequence[AbstractValue]) -> str:
    return next((a.device for a in avals if not a.weak), CONTEXT.device)


def _abstract(
    leaves: Sequence[Any], device: str | None, dynamic: bool
) -> tuple[list[AbstractValue], list[Any], list[bool]]:
    """The abstract values of the leaves that are traced; the key of each leaf; which are traced."""
    avals: list[AbstractValue] = []
    key: list[Any] = []
    is_traced: list[bool] = []
    names: dict[Any, str] = {}
    for leaf in leaves:
        kind = of_number(leaf)
        if isinstance(leaf, Tensor):
            leaf._check_readable()
            aval = leaf._aval
            if device is not None and aval.device != device:
                aval = abstract_value(aval.dtype, aval.shape, device, aval.weak, aval.requires_grad)
        elif isinstance(leaf, np.ndarray | np.generic):
            aval = abstract_value(as_dtype(leaf.dtype), leaf.shape, device or CONTEXT.device)
        elif kind is not None:
            aval = abstract_value(kind, (), device or CONTEXT.device, True)
        else:
            is_traced.append(False)
            key.append(_Static(leaf))
            continue
        if dynamic:
            dims = tuple([d if d in (0, 1) else names.setdefault(d, f"n{len(names)}") for d in aval.shape])
            aval = abstract_value(aval.dtype, dims, aval.device, aval.weak, aval.requires_grad)
        is_traced.append(True)
        avals.append(aval)
        key.append((aval, isinstance(leaf, Tensor)))
    return avals, key, is_traced


class Specialisation:
    """A traced and compiled function.

    Its inputs are the traced leaves, then the captures; `results` says for each result of the traced function where it
    comes from: output `n` of the executable, or (negative) input `~n`, which is handed through.
    """

    def __init__(
        self, traced: TracedFunction, arguments: Arguments, closure: Closure, device: str, fast_math: bool
    ) -> None:
        self.traced = traced
        self.device = device
        self.fast_math = fast_math
        self.closure = closure
        self.arguments = arguments
        self.is_fast: bool | None = None
        self.executable: Any = None
        arrays = {id(t): a for a, t in traced.arrays}
        self.captures = [
            _Capture(t, closure.sources.get(id(t)) or closure.sources.get(id(arrays.get(id(t)))), t._aval)
            for t in traced.captures
        ]
        function = traced.function
        returns = function.returns
        self.results: list[int] = []
        computed: dict[Any, int] = {}
        for value in returns.operands:
            if isinstance(value, BlockArgument):
                self.results.append(~value.index)
            else:
                self.results.append(computed.setdefault(value, len(computed)))
        self.module = traced.module()
        inner: Any = self.module.symbol("main")
        kept = [inner.returns.operands[self.results.index(n)] for n in range(len(computed))]
        inner.returns.set_operands(kept)
        inner.update_type()
        self.result_avals = [*traced.outputs, *[e.aval for e in traced.effects if e.value is not None]]
        wanted = any(a.requires_grad for a in traced.outputs)
        self.records = wanted and not traced.consumed
        self._callee: Callee | None = None

    def compile(self) -> None:
        """Compile, unless nothing is computed."""
        if self.executable is None and any(r >= 0 for r in self.results):
            from ..runtime.compile import compile_function

            self.executable = compile_function(self.module, device=self.device, fast_math=self.fast_math)

    def holds(self) -> bool:
        """Whether what the function read from outside is what it was."""
        return self.closure.hold() and all(c.holds() for c in self.captures)

    def call(self, arguments: Arguments, out: Any = None) -> Any:
        """Run on arguments that have this specialisation's key."""
        leaves = [v for v, t in zip(arguments.leaves, arguments.is_traced, strict=True) if t]
        self._refresh()
        captures = [c.read() for c in self.captures]
        if self.records and CONTEXT.records_gradients:
            if out is not None:
                raise Error("out= cannot be given where gradients are recorded; use ag.no_grad()", caller_location())
            return self._record([*leaves, *captures])
        inputs = [_array(v, a) for v, a in zip(leaves, arguments.avals, strict=True)]
        inputs += [c._value if c._value is not None else c._array() for c in captures]
        arrays = self._run(inputs, out)
        tensors: list[Tensor] = []
        for result, aval in zip(self.results, self.result_avals, strict=True):
            array = arrays[result] if result >= 0 else inputs[~result]
            assert aval is not None
            if result < 0 and isinstance(leaf := [*leaves, *captures][~result], np.ndarray) and array is leaf:
                array = array.copy()
            tensors.append(make(_known(aval, array), array))
        if out is not None:
            _fill(out, tensors[: len(self.traced.outputs)])
        self._write_back(tensors, leaves)
        if any(arguments.donated):
            for leaf, donated in zip(leaves, arguments.donated, strict=False):
                if donated and isinstance(leaf, Tensor):
                    leaf._value, leaf._state = None, DONATED
        return self._result(tensors if out is None else _chosen(out, tensors, len(self.traced.outputs)))

    def _run(self, inputs: list[Any], out: Any) -> list[Any]:
        if self.executable is None:
            return []
        targets = _targets(out, self, inputs)
        return self.executable.run(inputs) if targets is None else self.executable.run(inputs, targets)

    def _refresh(self) -> None:
        """Fill the Tensors of captured arrays that cannot be shared."""
        for array, tensor in self.traced.arrays:
            tensor._value = asarray(array, dtype=tensor.dtype)._value

    def _record(self, operands: Sequence[Any]) -> Any:
        """The call as one op, for `backward`."""
        if self._callee is None:
            self._callee = Callee(self.traced.function)
        tensors = [v if isinstance(v, Tensor) else asarray(v) for v in operands]
        made = emit_all(("call", False, (("function", self._callee),)), tensors)
        for tensor, aval in zip(made, self.result_avals, strict=True):
            assert aval is not None
            tensor._aval = aval
            tensor._lazy().aval = aval
        self._write_back(made, operands)
        return self._result(made)

    def _write_back(self, tensors: Sequence[Tensor], leaves: Sequence[Any]) -> None:
        """Bind the handles that the function bound."""
        rest = iter(tensors[len(self.traced.outputs) :])
        for effect in self.traced.effects:
            new = None if effect.value is None else next(rest)
            handle = effect.handle
            if not effect.gradient:
                assert new is not None
                handle._aval, handle._value, handle._state = new._aval, new._value, new._state
                continue
            state = handle._state
            index = getattr(getattr(state, "value", None), "index", None)
            target = leaves[index] if index is not None and getattr(state, "trace", None) is not None else handle
            if isinstance(target, Tensor):
                target._grad = new

    def _result(self, tensors: Sequence[Tensor]) -> Any:
        rest = iter(tensors)
        constants = zip(self.traced.out_avals, self.traced.constants, strict=True)
        return unflatten(self.traced.out_tree, [c if a is None else next(rest) for a, c in constants])

    def fast(self, arguments: Arguments) -> Callable[..., Any] | None:
        """A function of the arguments that gives the result, or MISSING when they are not of this specialisation; None
        where there can be none: gradients are recorded, handles bound, arguments nested or numbers."""
        traced = self.traced
        leaf = traced.out_tree.kind is None
        plain = leaf or (traced.out_tree.kind is tuple and all(c.kind is None for c in traced.out_tree.children))
        if (
            not arguments.is_flat
            or self.executable is None
            or self.records
            or traced.effects
            or traced.arrays
            or any(arguments.donated)
            or not plain
            or any(a is None for a in traced.out_avals)
            or any(isinstance(d, str) for a in self.result_avals if a is not None for d in a.shape)
            or any(r < 0 for r in self.results)
            or len(set(self.results)) != len(self.results)
        ):
            return None
        kinds = ["tensor" if isinstance(v, Tensor) else "array" for v in arguments.leaves]
        if any(not isinstance(v, Tensor | np.ndarray) for v in arguments.leaves):
            return None
        kinds += ["tensor"] * len(self.captures)
        avals = [*arguments.avals, *[c.aval for c in self.captures]]
        if any(a.device != v._aval.device for a, v in zip(avals, arguments.leaves) if isinstance(v, Tensor)):
            return None
        static = [a if k == "tensor" and a.type.is_static else None for a, k in zip(avals, kinds, strict=True)]
        entry = self.executable.native_entry(TENSOR_CLASS, kinds, static)
        if entry is None:
            return None
        return _fast_call(self, entry, leaf)


class _Capture:
    """A Tensor from outside, and where it is read if that is known."""

    __slots__ = ("aval", "place", "tensor")

    def __init__(self, tensor: Tensor, place: Place | None, aval: AbstractValue) -> None:
        self.tensor = tensor
        self.place = place
        self.aval = aval

    def read(self) -> Tensor:
        """The Tensor that stands there now."""
        if self.place is None:
            return self.tensor
        now = self.place.read()
        return now if isinstance(now, Tensor) else self.tensor

    def holds(self) -> bool:
        """Whether it is one of the same kind."""
        if self.place is None:
            return self.tensor._aval is self.aval
        now = self.place.read()
        if isinstance(now, np.ndarray):
            return now is self.tensor._value or now is getattr(self.tensor._value, "base", None)
        return isinstance(now, Tensor) and now._aval is self.aval


def _fast_call(specialisation: Specialisation, entry: Any, is_leaf: bool) -> Callable[..., Any]:
    """The shortest way from arguments to results."""
    from ..runtime.memory import shared_memory

    avals = [a for a in specialisation.result_avals if a is not None]
    allocate = shared_memory().allocator
    makers = [allocate(a.shape, a.dtype.numpy) for a in avals]
    holds = specialisation.closure.hold if specialisation.closure.guards else None
    hidden = specialisation.captures
    if is_leaf and holds is None and not hidden:
        (maker,), (aval,) = makers, avals
        new = object.__new__

        def one(*args: Any) -> Any:
            out = maker()
            if entry(*args, out) is not None:
                return MISSING
            tensor = new(Tensor)
            tensor._aval = aval
            tensor._value = out
            tensor._state = tensor._grad = None
            return tensor

        return one

    def several(*args: Any) -> Any:
        if holds is not None and not holds():
            return MISSING
        outs = [maker() for maker in makers]
        if entry(*args, *[c.read() for c in hidden], *outs) is not None:
            return MISSING
        if is_leaf:
            return make(avals[0], outs[0])
        return tuple([make(a, o) for a, o in zip(avals, outs, strict=True)])

    return several


def _known(aval: AbstractValue, array: Any) -> AbstractValue:
    """The abstract value of a result, symbols replaced by the sizes of this call."""
    if aval.shape == array.shape:
        return aval
    return abstract_value(aval.dtype, array.shape, aval.device, aval.weak, aval.requires_grad)


def _array(leaf: Any, aval: AbstractValue) -> Any:
    """The C-contiguous array of an argument."""
    if isinstance(leaf, Tensor):
        return leaf._value if leaf._value is not None else leaf._array()
    return np.ascontiguousarray(leaf, aval.dtype.numpy).reshape(np.shape(leaf))


def _out_arrays(out: Any) -> list[Any]:
    return list(out) if isinstance(out, list | tuple) else [out]


def _targets(out: Any, specialisation: Specialisation, inputs: Sequence[Any]) -> list[Any] | None:
    """The arrays that the executable writes to: those given, unless one of them is also an input or cannot be written
    to directly; then the results are copied afterwards."""
    if out is None:
        return None
    given = _out_arrays(out)
    count = len(specialisation.traced.outputs)
    if len(given) != count:
        raise ShapeError(f"out= has {len(given)} arrays, the function gives {count}", caller_location())
    for array, aval in zip(given, specialisation.result_avals, strict=False):
        assert aval is not None
        shape = array.shape
        known = as_dtype(array.dtype)
        if any(isinstance(a, int) and a != b for a, b in zip(aval.shape, shape)) or len(shape) != len(aval.shape):
            raise ShapeError(f"out= has the shape {shape}, the result {aval.shape}", caller_location())
        if known is not aval.dtype:
            raise ShapeError(f"out= has the dtype {known}, the result {aval.dtype}", caller_location())
    direct = (
        all(isinstance(a, np.ndarray) and a.flags.c_contiguous and a.flags.writeable for a in given)
        and specialisation.results == list(range(len(specialisation.results)))
        and len(specialisation.results) == count
        and not any(np.shares_memory(a, b) for a in given for b in inputs)
    )
    return given if direct else None


def _fill(out: Any, tensors: Sequence[Tensor]) -> None:
    """Put results where `out=` wants them."""
    for target, tensor in zip(_out_arrays(out), tensors, strict=True):
        if isinstance(target, Tensor):
            target._rebind(tensor)
        elif target is not tensor._value:
            target[...] = tensor._value


def _chosen(out: Any, tensors: Sequence[Tensor], count: int) -> list[Any]:
    return [*_out_arrays(out), *tensors[count:]]


class Lowered:
    """The IR of a function for given arguments."""

    def __init__(self, jitted: Jitted, specialisation: Specialisation) -> None:
        self._jitted = jitted
        self._specialisation = specialisation

    @property
    def module(self) -> Module:
        """The module that tracing gave."""
        return self._specialisation.module

    def as_text(self, stage: str = "tensor") -> str:
        """The text at a stage: "trace", "tensor", "kernel", "loop", "llvm", "asm", "opencl" or "ptx"."""
        if stage == "trace":
            return str(self.module)
        from ..runtime.compile import lower

        return str(lower(self.module, self._specialisation.device, stage))

    def compile(self) -> Compiled:
        """The executable function."""
        self._specialisation.compile()
        return Compiled(self._jitted, self._specialisation)


class Compiled:
    """A function compiled for one kind of arguments; others are refused."""

    def __init__(self, jitted: Jitted, specialisation: Specialisation) -> None:
        self._jitted = jitted
        self._specialisation = specialisation

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        arguments = self._jitted._take_apart(args, kwargs)
        expected = self._specialisation.arguments
        if arguments.key != expected.key:
            raise ShapeError(f"compiled for {expected.avals}, got {arguments.avals}", caller_location())
        return self._specialisation.call(arguments, out)


@overload
def jit(function: Callable[..., Any], **options: Any) -> Jitted: ...
@overload
def jit(function: None = None, **options: Any) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    device: str | None = None,
    fast_math: bool = False,
    static_argnames: str | Sequence[str] = (),
    donate_argnames: str | Sequence[str] = (),
    dynamic: bool | None = None,
) -> Any:
    """A function that is traced and compiled at its first call with arguments of a kind, and runs compiled from then on.

    `device`: where it runs, by default where its arguments lie.  `static_argnames`: arguments that are no arrays but
    part of the specialisation.  `donate_argnames`: arguments that the caller gives up; reading them afterwards raises.
    `dynamic`: specialise to dtypes and axes, not to sizes.  Calls take `out=`: arrays (or Tensors) that receive the
    results.  See closure.py for what the function may read from outside.
    """

    def wrap(f: Callable[..., Any]) -> Jitted:
        return Jitted(f, device, fast_math, static_argnames, donate_argnames, dynamic)

    return wrap if function is None else wrap(function)
