"""Tensor.backward: the recorded graph as a function, differentiated by the same transform as `grad`.

Eagerly, the nodes from the Tensor back to the leaves (Tensors with `requires_grad` that were not computed) make a
function.  Values that are known already are inputs of it; the loss and other values that a Tensor still shows and that
were not needed so far come out of the same run as the gradients.  The compiled function is kept by structure, with
symbols for sizes as in lazy.py.

In a trace the block so far is differentiated; what it computes twice is merged by common-subexpression elimination.

A gradient goes to the handle that was recorded, also when that has been bound to another value since, by `-=` or by an
optimizer.  Where the gradient itself needs the value that the handle had, this is an error, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import autograd as ag  # whose functions need what stands here: they are found when they are called
from ..ir.attributes import IntegerAttr
from ..ir.bounded_cache import BoundedCache
from ..ir.builders.tensor import TensorBuilder
from ..ir.definition import ON_REDEFINITION
from ..ir.diagnostics import DTypeError, Error, ShapeError, shown
from ..ir.dialects import array, builtin, elementwise, func
from ..ir.forking import PLANNER
from ..ir.location import caller_location
from ..ir.support.shapes import shape_text
from ..ir.support.tensor_op import type_of_tensor
from ..ir.types import I64, FloatType
from ..ir.values import Value
from ..passes.autodiff.transform import ancestors_of, differentiate
from ..passes.lower_to_kernels import is_view
from .abstract import AbstractValue
from .array_like import ArrayLike
from .context import CONTEXT, at_caller, no_grad
from .conversion import asarray
from .graph import Lazy, ancestors, inline
from .lazy import (
    PLANS,
    STATISTICS,
    EagerProgram,
    Form,
    Graph,
    Reference,
    build,
    materialize,
    symbolize_shapes,
)
from .tensor import Tensor, make, set_owner
from .trace import Trace

_SAVED = "autograd.saved"


def backward(tensor: Tensor, gradient: ArrayLike | None = None) -> None:
    """Add the gradients of a Tensor to `.grad` of all Tensors with `requires_grad` that it was computed from.

    `gradient`: that of the Tensor itself, of its shape and dtype; 1 by default, which needs a single element.
    """
    if not isinstance(tensor, Tensor):
        raise DTypeError(f"backward: needs a Tensor, got {shown(tensor)}", caller_location())
    aval = tensor._aval
    if not aval.requires_grad:
        message = "backward: the Tensor does not depend on one with requires_grad, or was computed under no_grad or"
        raise Error(f"{message} from something detached", caller_location())
    seed = None if gradient is None else asarray(gradient)
    if seed is None and aval.size != 1:
        message = f"backward: a Tensor of shape {shape_text(aval.shape)} needs the gradient to start from"
        raise ShapeError(message, caller_location())
    if seed is not None and seed.shape != aval.shape:
        shapes = f"{shape_text(seed.shape)} for a Tensor of shape {shape_text(aval.shape)}"
        raise ShapeError(f"backward: a gradient of shape {shapes}", caller_location())
    if seed is not None and seed.dtype is not aval.dtype:
        raise DTypeError(f"backward: a gradient of {seed.dtype} for a Tensor of {aval.dtype}", caller_location())
    trace = CONTEXT.trace
    if trace is not None:
        _in_trace(trace, tensor, seed)
    else:
        _eager(tensor._lazy(), seed)


def accumulate(leaf: Tensor, gradient: Tensor) -> None:
    """Add to `.grad`."""
    trace = CONTEXT.trace
    if trace is not None and trace.add_gradient(leaf, gradient):
        return
    known = leaf.grad
    with no_grad():
        leaf.grad = gradient if known is None else known + gradient


# In a trace.


def _in_trace(trace: Trace, tensor: Tensor, seed: Tensor | None) -> None:
    root = trace.value_of(tensor)
    start = None if seed is None else trace.value_of(seed)
    function, b = trace.function, trace.builder
    reached = _reached(root, {v for _, v in trace.leaves})
    leaves = [(t, v) for t, v in trace.leaves if v in reached]
    arguments: list[Value] = list(function.arguments)
    # Values that parameters were bound to in the trace become arguments, which the derivative is taken by.
    bound = [v for _, v in leaves if v not in arguments]
    b.location = caller_location()
    recorded = func.Func.of("backward", [v.type for v in (*arguments, *bound)], [])
    stand_ins: dict[Value, Value] = dict(zip((*arguments, *bound), recorded.arguments, strict=True))
    table: dict[Any, Any] = dict(zip(arguments, recorded.arguments, strict=False))
    for op in function.entry:
        recorded.entry.append(op.clone(table))
        table.update({r: stand_ins[r] for r in op.results if r in stand_ins})
    end = TensorBuilder(recorded.entry, location=b.location)
    end.create(func.Return, [stand_ins.get(root) or table[root]])
    recorded.update_type()
    made = differentiate(recorded, [stand_ins[v].index for _, v in leaves], "backward")  # pyright: ignore
    needed = _needed_values(made, [made.arguments[stand_ins[v].index] for _, v in leaves])  # pyright: ignore
    for place in needed:
        _check_unchanged(leaves[place][0], trace.shows(*leaves[place]))
    if start is None:
        start = b.constant(1.0, type_of_tensor(root))
    values = inline(b, made, [*arguments, *bound, start])
    trace.consumed = True
    for (leaf, _), value in zip(leaves, values[1:], strict=True):
        accumulate(leaf, trace.tensor(leaf._aval.replace(requires_grad=False), value))


def _reached(root: Value, leaves: set[Value]) -> set[Value]:
    """Which leaves a value depends on, by ops that gradients pass."""
    seen: set[Value] = set()
    pending = [root]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.defining_op
        if value not in leaves and op is not None and not isinstance(op, elementwise.StopGradient):
            pending += op.operands
    return seen & leaves


def _needed_values(made: func.Func, arguments: Sequence[Value], others: int = 0) -> list[int]:
    """Which of these arguments (by number) the gradients of a function use themselves or through a view, rather than
    what was computed from them on the way to the first result; the gradients stand after `others` results more."""
    forward = ancestors_of(made.returns.operands[:1])
    source: dict[Value, int] = {v: i for i, v in enumerate(arguments)}
    needed: set[int] = set()
    wanted = ancestors_of(made.returns.operands[1 + others :])
    for op in made.entry:
        if op in forward:
            if is_view(op) and op.operands[0] in source:
                source[op.results[0]] = source[op.operands[0]]
        elif op in wanted and not isinstance(op, array.Dim):  # an extent stays what it was
            needed.update(source[v] for v in op.operands if v in source)
    return sorted(needed)


def _check_unchanged(leaf: Tensor, unchanged: bool) -> None:
    """Refuse a gradient that needs a value which the handle no longer shows."""
    if not unchanged:
        message = f"backward: a Tensor of shape {shape_text(leaf.shape)} was changed in place after it was recorded"
        remedy = "its gradient needs the value that it had: call backward before the change, or change a copy"
        raise Error(f"{message}; {remedy}", caller_location())


# Eagerly.


@dataclass
class BackwardProgram:
    """A compiled graph with gradients: which of the values known beforehand it takes beside the inputs, and for which
    leaves the gradients need their values."""

    plan: EagerProgram
    saved: list[int]
    needed: list[int]


_plans: BoundedCache[BackwardProgram] = BoundedCache(PLANS, PLANNER)
_exact: BoundedCache[tuple[BackwardProgram, tuple[Any, ...]]] = BoundedCache(PLANS)
"""The plans of graphs with all their sizes, and the numbers that they take."""
ON_REDEFINITION.extend([_plans.clear, _exact.clear])


def _eager(root: Lazy, seed: Tensor | None) -> None:
    nodes = ancestors([root], lambda v: v.aval.requires_grad or v.value is None)
    graph = Graph(nodes)
    leaves = [v for v in graph.inputs if v.aval.requires_grad]
    if root.node is None:
        leaves = [root]
    known: list[Lazy] = []
    outputs: list[Lazy] = []
    flags: list[tuple[tuple[bool, bool], ...]] = []
    for node in nodes:
        row: list[tuple[bool, bool]] = []
        for value in [r() for r in node.results]:
            is_known = value is not None and value.value is not None
            if value is not None and is_known:
                known.append(value)
            elif value is not None and value.live_tensor() is not None:
                outputs.append(value)
            row.append((is_known, value is not None and value.aval.requires_grad))
        flags.append(tuple(row))
    if root.node is None:
        accumulate(_tensor(root), _ones(root.aval) if seed is None else seed)
        return
    wrt = tuple([graph.number(v)[1] for v in leaves])
    outs = tuple([graph.number(v) for v in outputs])
    at = graph.number(root)
    device = root.aval.device
    wanted = (tuple(flags), wrt, outs, at, seed is None, device)
    exact = (graph.structure, tuple([v.aval for v in graph.inputs]), *wanted)
    found = _exact.get(exact)
    if found is None:
        form = symbolize_shapes(graph, may_collapse=False)

        def program() -> BackwardProgram:
            STATISTICS.compiles += 1
            return _compile(graph, form, flags, wrt, outs, at, seed is None, device)

        plan = _plans.get_or_make((form.structure, form.types, form.names, *wanted), program)
        found = _exact.put(exact, (plan, form.numbers))
    plan, numbers = found
    handles = [None if v.owner is None else v.owner() for v in leaves]
    for place in plan.needed:
        handle, leaf = handles[place], leaves[place]
        if handle is not None:
            _check_unchanged(handle, handle._state is leaf or handle._value is leaf.value)
    arrays = [*[v.value for v in graph.inputs], *numbers, *[known[i].value for i in plan.saved]]
    if seed is not None:
        arrays.append(seed._array())
    STATISTICS.runs += 1
    try:
        results = plan.plan.run(arrays, [v.aval.shape for v in (*outputs, *leaves)])
    except Error as error:
        at_caller(error, [v.aval for v in (*outputs, *leaves)])
        raise
    for value, made in zip(outputs, results, strict=False):
        materialize(value, made)
    for leaf, handle, made in zip(leaves, handles, results[len(outputs) :], strict=True):
        if handle is not None:
            accumulate(handle, make(leaf.aval.replace(requires_grad=False), made))


def _tensor(value: Lazy) -> Tensor:
    found = value.live_tensor()
    return set_owner(make(value.aval, value.value, value), value) if found is None else found


def _ones(aval: AbstractValue) -> Tensor:
    return ag.ones(aval.shape, dtype=aval.dtype, device=aval.device)


def _compile(
    graph: Graph,
    form: Form,
    flags: Sequence[tuple[tuple[bool, bool], ...]],
    wrt: Sequence[int],
    outs: Sequence[Reference],
    root: Reference,
    starts_at_one: bool,
    device: str,
) -> BackwardProgram:
    """The function of a graph: of inputs, saved values (and the first gradient), giving outputs and gradients."""
    from ..runtime.compile import compile_function  # late

    numbers = iter(range(sum(is_known for row in flags for is_known, _ in row)))

    def visit(node: int, b: TensorBuilder, results: tuple[Value, ...]) -> tuple[Value, ...]:
        made: list[Value] = []
        for (is_known, wants_grad), value in zip(flags[node], results, strict=True):
            if is_known and value.defining_op is not None:
                value.defining_op.attributes[f"{_SAVED}.{getattr(value, 'index', 0)}"] = IntegerAttr(next(numbers), I64)
            elif is_known:
                next(numbers)
            is_float = isinstance(type_of_tensor(value).element, FloatType)
            made.append(value if wants_grad or not is_float else b.stop_gradient(value))
        return tuple(made)

    locations = [n.location for n in graph.nodes]
    function, find = build(form.structure, form.types, locations, visit, form.names)
    b = TensorBuilder(function.entry, location=caller_location())
    kept = [find(r) for r in outs]
    cut = [b.stop_gradient(v) if isinstance(type_of_tensor(v).element, FloatType) else v for v in kept]
    b.create(func.Return, [find(root), *cut])
    function.update_type()
    inputs = len(function.arguments)
    made = differentiate(function, wrt, "main")
    needed = _needed_values(made, [made.arguments[i] for i in wrt], len(kept))
    entry, returns = made.entry, made.returns
    seed, *rest = made.arguments[inputs:]
    if starts_at_one:
        start = TensorBuilder(entry, entry.first, made.location)
        seed.replace_by(start.constant(1.0, type_of_tensor(seed)))
    returns.set_operands(returns.operands[1:])
    _erase_dead(made)
    saved = _take_saved(made)
    _erase_dead(made)
    for argument in reversed([seed, *rest] if starts_at_one else rest):
        entry.erase_argument(argument.index)
    if not starts_at_one:
        # The first gradient comes last.
        last = entry.add_argument(seed.type)
        seed.replace_by(last)
        entry.erase_argument(seed.index)
    made.update_type()
    return BackwardProgram(
        EagerProgram(compile_function(builtin.Module.of([made]), device=device), False), saved, needed
    )


def _erase_dead(made: func.Func) -> None:
    """Remove what is not used: the saved values are to be those that the gradients need."""
    op = made.returns.prev
    while op is not None:
        before = op.prev
        if not any(r.users for r in op.results):
            op.erase()
        op = before


def _take_saved(made: func.Func) -> list[int]:
    """Make arguments of the marked values that the function uses."""
    saved: list[int] = []
    for op in list(made.entry):
        for key in [k for k in op.attributes if k.startswith(_SAVED)]:
            mark = op.attributes.pop(key)
            assert isinstance(mark, IntegerAttr)
            value = op.results[int(key.rpartition(".")[2])]
            if value.users:
                saved.append(mark.value)
                value.replace_by(made.entry.add_argument(value.type))
    return saved
