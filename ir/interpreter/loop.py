"""The loop level: structured control flow in sequence, buffers, and vectors that move in and out of them.

Vector ops that touch no memory mean what their classes' `evaluate` says.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING

from ..dialects.memref import Global
from ..dialects.memref.layout import strided
from ..dialects.vector import Gather, Scatter
from ..numeric import constant, dtype
from ..support import mixed
from ..support.combining import combiner
from ..types import DYNAMIC, IntegerType, MemRefType, VectorType
from ..values import Value
from .machine import Env, Interpreter, handler
from .memory import box, element, fault, flat, restrided, root

if TYPE_CHECKING:
    from ..arrays import Array
    from ..dialects import cf, memref, scf, vector
    from ..operations import Operation

    Masked = vector.MaskedLoad | vector.MaskedStore | vector.Gather | vector.Scatter


def number(entry: mixed.Extent, env: Env) -> int:
    """An entry of a list that mixes integers and values."""
    return entry if isinstance(entry, int) else int(env[entry])


def numbers(entries: Sequence[mixed.Extent], env: Env) -> list[int]:
    """A list that mixes integers and values."""
    return [number(e, env) for e in entries]


def at(values: Sequence[Value], env: Env) -> list[int]:
    """The values of index operands as Python integers."""
    return [int(env[v]) for v in values]


# Control flow.


@handler("scf.forall")
def forall(machine: Interpreter, op: scf.Forall, env: Env) -> None:
    """Run the body for every point, in row-major order or in one that the machine's seed shuffles."""
    import numpy as np

    ranges = [
        range(low, high, step)
        for low, high, step in zip(numbers(op.lower, env), numbers(op.upper, env), numbers(op.step, env), strict=True)
    ]
    points: Iterable[tuple[int, ...]] = product(*ranges)
    if machine.seed is not None:
        points = shuffled = list(points)
        random.Random(machine.seed).shuffle(shuffled)
    for point in points:
        machine.run(op.body, [np.int64(i) for i in point], env)


@handler("scf.forall.in_parallel")
def in_parallel(machine: Interpreter, op: scf.InParallel, env: Env) -> None:
    """The terminator runs nothing: the buffers have been written already."""


@handler("scf.for")
def for_(machine: Interpreter, op: scf.For, env: Env) -> Sequence[object]:
    """Run the body for each value of the counter in order; the values that the last one yields."""
    counter = dtype(op.lower.type).type
    lower, upper, step = int(env[op.lower]), int(env[op.upper]), int(env[op.step])
    if step <= 0:
        raise fault(op, f"needs a positive step, got {step}")
    width = op.lower.type.width if isinstance(op.lower.type, IntegerType) else 64
    if lower < upper and upper + step >= 1 << (width - 1):
        raise fault(op, f"has a counter that cannot pass {upper} by {step} in {width} bits")
    values = [env[v] for v in op.inits]
    for i in range(lower, upper, step):
        values = machine.run(op.body, [counter(i), *values], env)
    return values


@handler("scf.if")
def if_(machine: Interpreter, op: scf.If, env: Env) -> Sequence[object]:
    """Run the branch that the condition takes; the values that it yields."""
    branch = op.then if env[op.condition] else op.otherwise
    return machine.run(branch, [], env) if branch.blocks else []


@handler("scf.while")
def while_(machine: Interpreter, op: scf.While, env: Env) -> Sequence[object]:
    """Run `before` and `after` in turn until the condition of `before` is false; the values that it passes on."""
    values: Sequence[object] = [env[v] for v in op.inits]
    while True:
        go, *values = machine.run(op.before, values, env)
        if not go:
            return values
        values = machine.run(op.after, values, env)


@handler("cf.assert")
def assert_(machine: Interpreter, op: cf.Assert, env: Env) -> None:
    """InterpreterError where the condition is false."""
    if not env[op.arg]:
        raise fault(op, f"does not hold: {op.msg}")


# Buffers.


@handler("memref.alloc", "memref.alloca")
def alloc(machine: Interpreter, op: memref.Alloc | memref.Alloca, env: Env) -> Sequence[object]:
    """A buffer whose elements are undefined; InterpreterError for a negative extent."""
    type = op.result.type
    assert isinstance(type, MemRefType)
    sizes = iter(at(op.sizes, env))
    shape = [next(sizes) if extent == DYNAMIC else extent for extent in type.shape]
    if any(extent < 0 for extent in shape):
        raise fault(op, f"allocates a buffer of shape {shape}")
    return [machine.memory.allocate(type, shape)]


@handler("memref.dealloc")
def dealloc(machine: Interpreter, op: memref.Dealloc, env: Env) -> None:
    """Free a buffer: its elements are undefined from here on."""
    machine.memory.free(env[op.memref])


@handler("memref.global")
def global_(machine: Interpreter, op: memref.Global, env: Env) -> None:
    """A definition runs nothing; `memref.get_global` looks it up."""


@handler("memref.get_global")
def get_global(machine: Interpreter, op: memref.GetGlobal, env: Env) -> Sequence[object]:
    """The array of a global, the same for every look-up in a run."""
    known = machine.memory.globals
    if op.symbol not in known:
        for other in machine.module.walk():
            if isinstance(other, Global):
                known[other.sym_name] = constant(other.initial_value)
    if op.symbol not in known:
        raise fault(op, f"names '@{op.symbol}', which the module does not have")
    return [known[op.symbol]]


@handler("memref.load")
def load(machine: Interpreter, op: memref.Load, env: Env) -> Sequence[object]:
    """Read the element at the subscripts; InterpreterError out of bounds."""
    buffer, *subscripts = [env[v] for v in op.operands]
    found = element(op, buffer, subscripts)
    machine.memory.before_read(op, found)
    return [found[()]]


@handler("memref.store")
def store(machine: Interpreter, op: memref.Store, env: Env) -> None:
    """Write the element at the subscripts; InterpreterError out of bounds."""
    value, buffer, *subscripts = [env[v] for v in op.operands]
    place = element(op, buffer, subscripts)
    machine.memory.before_write(op, place)
    place[()] = value


@handler("memref.atomic_rmw")
def atomic_rmw(machine: Interpreter, op: memref.AtomicRmw, env: Env) -> Sequence[object]:
    """The element as it was; no other thread comes between, so this is not a race."""
    place = element(op, env[op.memref], at(op.indices, env))
    with machine.memory.unwatched():
        machine.memory.before_read(op, place)
    old = place[()]
    place[()] = combiner(op.kind, op.value.type)(old, env[op.value])
    return [old]


@handler("memref.copy")
def copy(machine: Interpreter, op: memref.Copy, env: Env) -> None:
    """Copy all elements; InterpreterError where the shapes differ."""
    source, target = env[op.source], env[op.target]
    if source.shape != target.shape:
        raise fault(op, f"copies a buffer of shape {list(source.shape)} to one of shape {list(target.shape)}")
    machine.memory.before_read(op, source)
    machine.memory.before_write(op, target)
    target[...] = source


@handler("memref.prefetch")
def prefetch(machine: Interpreter, op: memref.Prefetch, env: Env) -> None:
    """A hint to caches, without a meaning."""


@handler("memref.dim")
def dim(machine: Interpreter, op: memref.Dim, env: Env) -> Sequence[object]:
    """The extent of a buffer along an axis, as int64."""
    import numpy as np

    shape, axis = env[op.source].shape, int(env[op.index])
    if not 0 <= axis < len(shape):
        raise fault(op, f"asks for axis {axis} of a buffer of rank {len(shape)}")
    return [np.int64(shape[axis])]


@handler("memref.subview")
def subview(machine: Interpreter, op: memref.Subview, env: Env) -> Sequence[object]:
    """A view of a strided box; InterpreterError where it reaches outside."""
    source = env[op.source]
    offsets, sizes, strides = numbers(op.offsets, env), numbers(op.sizes, env), numbers(op.strides, env)
    picks: list[int | slice] = []
    for axis, (offset, size, stride, extent) in enumerate(zip(offsets, sizes, strides, source.shape, strict=True)):
        last = offset + (size - 1) * stride
        if size < 0 or stride <= 0 or (size > 0 and not (offset >= 0 and last < extent)):
            raise fault(
                op,
                f"is out of bounds: {size} elements from {offset} on by {stride} along axis {axis}, "
                f"which has {extent} elements",
            )
        picks.append(offset if axis in op.dropped else slice(offset, last + 1, stride) if size else slice(0, 0))
    return [source[(*picks, ...)]]


@handler("memref.collapse_shape")
def collapse_shape(machine: Interpreter, op: memref.CollapseShape, env: Env) -> Sequence[object]:
    """The same memory with axes merged."""
    shape = env[op.source].shape
    merged: list[int] = []
    for group in op.reassociation:
        extent = 1
        for axis in group:
            extent *= shape[axis]
        merged.append(extent)
    return [reshape(op, env[op.source], merged)]


@handler("memref.expand_shape")
def expand_shape(machine: Interpreter, op: memref.ExpandShape, env: Env) -> Sequence[object]:
    """The same memory with axes split."""
    return [reshape(op, env[op.source], numbers(op.output_shape, env))]


def reshape(op: Operation, view: Array, shape: Sequence[int]) -> Array:
    """The view in another shape; an error when that needs a copy."""
    if any(extent < 0 for extent in shape):
        raise fault(op, f"sees a buffer in the shape {list(shape)}")
    try:
        out = view.reshape(shape)
    except ValueError:
        out = None
    if out is None or (out.size and root(out) is not root(view)):
        raise fault(op, f"cannot see a buffer of shape {list(view.shape)} as {list(shape)} without a copy")
    return out


@handler("memref.reinterpret_cast")
def reinterpret_cast(machine: Interpreter, op: memref.ReinterpretCast, env: Env) -> Sequence[object]:
    """A view that starts at the base of the source's buffer."""
    source: Array = env[op.source]
    assert isinstance(op.source.type, MemRefType)
    # The base is where the source's own offset counts from; where that is not known, the start of the memory.
    offset = strided(op.source.type)[1]
    whole = root(source)
    begin = source.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    base = 0 if offset == DYNAMIC else begin // source.itemsize - offset
    first = base + numbers(op.offsets, env)[0]
    return [restrided(op, source, first, numbers(op.sizes, env), numbers(op.strides, env))]


@handler("memref.cast")
def cast(machine: Interpreter, op: memref.Cast, env: Env) -> Sequence[object]:
    """The same view; an error when its shape or strides are not those of the result's type."""
    view: Array = env[op.source]
    type = op.result.type
    assert isinstance(type, MemRefType)
    strides = strided(type)[0]
    for axis, extent in enumerate(view.shape):
        if type.shape[axis] not in (DYNAMIC, extent):
            raise fault(op, f"casts a buffer of shape {list(view.shape)} to {type}")
        if view.size > 1 and extent > 1 and strides[axis] not in (DYNAMIC, view.strides[axis] // view.itemsize):
            raise fault(op, f"casts a buffer with other strides to {type}")
    return [view]


# Vectors in memory.


@handler("vector.load")
def vector_load(machine: Interpreter, op: vector.Load, env: Env) -> Sequence[object]:
    """Read a box of the vector's shape; InterpreterError where it reaches outside."""
    type = op.result.type
    assert isinstance(type, VectorType)
    base, *subscripts = [env[v] for v in op.operands]
    found = box(op, base, subscripts, type.shape)
    machine.memory.before_read(op, found)
    return [found.copy()]


@handler("vector.store")
def vector_store(machine: Interpreter, op: vector.Store, env: Env) -> None:
    """Write a box of the vector's shape; InterpreterError where it reaches outside."""
    type = op.value.type
    assert isinstance(type, VectorType)
    value, base, *subscripts = [env[v] for v in op.operands]
    place = box(op, base, subscripts, type.shape)
    machine.memory.before_write(op, place)
    place[...] = value


def lanes(op: Masked, env: Env, places: Array) -> tuple[Array, Array, Array]:
    """`(memory, chosen lanes, their places)`: flat memory from the base's start on, and where the lanes lie in it.

    Lanes run along the last axis; over contiguous memory they may run on into the next rows.  Lanes whose mask is unset
    are not looked at.
    """
    import numpy as np

    base: Array = env[op.base]
    mask: Array = env[op.mask]
    if mask.ndim > 1:
        raise fault(op, "has a mask of more than one axis, which the interpreter does not follow")
    chosen = np.flatnonzero(mask)
    if not chosen.size:
        return flat(base), chosen, np.zeros(0, np.int64)
    lead = at(op.indices, env)
    last = (lead[-1] if lead else 0) + np.asarray(places)[chosen].astype(np.int64)
    strides = [s // base.itemsize for s in base.strides]
    linear = last * (strides[-1] if strides else 1)
    for subscript, stride, extent in zip(lead[:-1], strides[:-1], base.shape[:-1], strict=True):
        if not 0 <= subscript < extent:
            raise fault(op, f"is out of bounds: subscript {subscript} along an axis of {extent} elements")
        linear = linear + subscript * stride
    whole = base.flags.c_contiguous
    position, extent = (linear, base.size) if whole else (last, base.shape[-1])
    if not (position.min() >= 0 and position.max() < extent):
        worst = position.min() if position.min() < 0 else position.max()
        raise fault(op, f"is out of bounds: element {worst} of {extent}")
    memory = flat(base)
    first = (base.__array_interface__["data"][0] - memory.__array_interface__["data"][0]) // base.itemsize
    return memory[first:], chosen, linear


@handler("vector.maskedload", "vector.gather")
def masked_load(machine: Interpreter, op: vector.MaskedLoad | vector.Gather, env: Env) -> Sequence[object]:
    """Elements where the mask is set."""
    memory, chosen, places = lanes(op, env, _places(op, env))
    machine.memory.before_read(op, env[op.base], places)
    out = env[op.pass_thru].copy()
    out[chosen] = memory[places]
    return [out]


@handler("vector.maskedstore", "vector.scatter")
def masked_store(machine: Interpreter, op: vector.MaskedStore | vector.Scatter, env: Env) -> None:
    """Elements where the mask is set, in the order of lanes."""
    memory, chosen, places = lanes(op, env, _places(op, env))
    machine.memory.before_write(op, env[op.base], places)
    for lane, place in zip(chosen, places, strict=True):
        memory[place] = env[op.value][lane]


def _places(op: Masked, env: Env) -> Array:
    """The distance of each lane from the first subscripts."""
    import numpy as np

    return env[op.index_vec] if isinstance(op, Gather | Scatter) else np.arange(len(env[op.mask]))
