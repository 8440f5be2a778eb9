"""Kernels: what `kernel.launch` means.

The meaning is that of nested loops in row-major order: the points of the launch, and for each point its inner loops;
folds run in that order from their identity.  `sequential` does exactly this; `lanes` computes all points side by side
and gives the same bits.  Both report an access outside its bounds, and the launch checks that every element of an out
without init was stored exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..affine import AffineDim
from ..builders.sizes import evaluate
from ..dialects.kernel import Accumulate, Launch, Store
from ..numeric import constant, dtype
from ..types import DYNAMIC, ShapedType, TensorType, Type
from ..values import Value
from . import lanes, sequential
from .machine import Env, Interpreter, InterpreterError, handler
from .operands import Memory, Out, as_dtype

if TYPE_CHECKING:
    from ..arrays import Array


@handler("kernel.launch")
def launch(machine: Interpreter, op: Launch, env: Env) -> list[Array]:
    """Run the body for every point."""
    extents = [int(env[e]) if isinstance(e, Value) else e for e in op.bounds]
    symbols = dict(machine.symbols)
    ins: list[object] = []
    for value in op.ins:
        found = env[value]
        ins.append(Memory(found) if isinstance(value.type, ShapedType) else found)
        note_symbols(value.type, found, symbols)
    outs = [_out(op, i, env, extents, symbols) for i in range(len(op.out_arguments))]
    run = lanes.run if machine.lanes else sequential.run
    run(machine, op, extents, ins, outs)
    for i, out in enumerate(outs):
        _check_counts(op, i, out)
    return [] if op.on_buffers else [o.array for o in outs]


def note_symbols(type: Type, value: Array, symbols: dict[str, int]) -> None:
    """Enter the sizes that a tensor's symbols stand for."""
    if isinstance(type, TensorType):
        for name, extent in zip(type.symbols, value.shape):
            if name is not None:
                symbols[name] = extent


def _out(op: Launch, number: int, env: Env, extents: Sequence[int], symbols: dict[str, int]) -> Out:
    import numpy as np

    argument = op.out_arguments[number]
    start = op.init(number)
    accumulates = [user for user in argument.users if isinstance(user, Accumulate)]
    if op.on_buffers:
        array = env[op.outs_[number]]
    elif start is not None:
        array = env[start].copy()
    else:
        array = np.zeros(_shape(op, number, extents, symbols), dtype(argument.type))
    if start is not None:
        return Out(array, None)
    if accumulates:
        component = accumulates[0].dests.index(argument)
        array[...] = as_dtype(constant(accumulates[0].identity[component]), array.dtype)
        return Out(array, None)
    return Out(array, np.zeros(array.shape, np.int64))


def _shape(op: Launch, number: int, extents: Sequence[int], symbols: dict[str, int]) -> list[int]:
    """The shape of an out: dynamic extents by their symbol, or by the axis that a store has there."""
    argument = op.out_arguments[number]
    type = argument.type
    assert isinstance(type, TensorType)
    axes = {axis: extent for axis, extent in zip(op.axes, extents)}
    shape = list(type.shape)
    for d, name in enumerate(type.symbols):
        if shape[d] != DYNAMIC:
            continue
        found = _size(name, symbols) if name is not None else None
        for user in argument.users:
            if found is None and isinstance(user, Store | Accumulate):
                subscript = user.subscripts[d]
                if isinstance(subscript, AffineDim):
                    found = axes.get(user.indices[subscript.index])  # pyright: ignore[reportArgumentType]
        if found is None:
            raise InterpreterError(f"'kernel.launch' op: extent {d} of out {number}, {type}, is unknown", op.location)
        shape[d] = found
    return shape


def _size(name: str, symbols: dict[str, int]) -> int | None:
    """The size that an extent's name stands for, computed from those of its symbols."""
    try:
        return evaluate(name, symbols)
    except KeyError:
        return None


def _check_counts(op: Launch, number: int, out: Out) -> None:
    import numpy as np

    counts = out.counts
    if counts is None or bool((counts == 1).all()):
        return
    place = np.argwhere(counts != 1)[0]
    at = ", ".join(map(str, place.tolist()))
    raise InterpreterError(
        f"'kernel.launch' op stores element [{at}] of out {number} {counts[tuple(place)]} times; "
        "every element of an out without init must be stored once",
        op.location,
    )
