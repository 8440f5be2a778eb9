"""insert-checks: what a function could do outside of its buffers is looked at before it is done.

In: a module at loop level, right after lower-to-loops.  Out: the same with a `cf.assert` before each access whose
subscripts the loops' bounds do not keep inside, and before whatever else could go wrong in memory; a failed one ends
the run with an error that names the op.

    memref.store %v, %m[%i] : memref<6xf32>         // %i from data
        becomes
    %0 = arith.constant 6 : index
    %1 = arith.cmpi ult, %i, %0 : index
    cf.assert %1, "'memref.store' op: subscript 0 is out of bounds of memref<6xf32>"
    memref.store %v, %m[%i] : memref<6xf32>

A function in which all is proven stays as it is and is scheduled as ever; one with checks is no longer a kernel, so no
loop pass moves its accesses across them.  The rules are those of the interpreter.  What can neither be proven nor
checked is refused with the way out, `--unsafe`: views of unknown extent, recursion, more stack than threads have,
intrinsics by name, a buffer freed twice or used afterwards.  Devices other than the CPU have no checks: there, what is
not proven is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from ...ir.attribute_names import KERNEL, SCHEDULE
from ...ir.builders.scalar import ScalarBuilder
from ...ir.diagnostics import LoweringError
from ...ir.dialects import arith, cf, func, gpu, llvm, memref, scf, vector
from ...ir.operations import Operation
from ...ir.recursion import deep_recursion
from ...ir.support.mixed import Extent, known
from ...ir.target import Target
from ...ir.types import (
    DYNAMIC,
    I64,
    INDEX,
    FloatType,
    IndexType,
    IntegerType,
    MemRefType,
    Type,
    VectorType,
    element_type,
    with_element,
)
from ...ir.values import Value
from ..analysis.ranges import ALL, Ranges
from ..manager import Pass

MOST_STACK_BYTES = 4 << 20
"""What the functions that call each other may take together: half of the 8 MiB that threads have.  A bound of the
process, so that no text, whatever target it names, can take more."""
MOST_VECTOR_BYTES = 4096
"""Wider vectors are no hardware's and would fill the stack."""
INTRINSICS = ("llvm.x86.avx512bf16.dpbf16ps.",)
"""Prefixes of the intrinsics that may be called by name; they touch registers alone."""

Condition = Callable[[ScalarBuilder], Value]
"""Builds a condition before an op."""


@dataclass
class Check:
    """A condition that must hold before an op."""

    condition: Condition
    message: str


@dataclass
class InsertChecks(Pass):
    """Check what could write outside of buffers."""

    name: ClassVar[str] = "insert-checks"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        with deep_recursion:
            checked = Target.of(op).kind == "cpu"
            functions = {f.sym_name: f for f in op.regions[0].block if isinstance(f, func.Func)}
            for kernels in op.regions[0].block:
                if isinstance(kernels, gpu.Module):
                    raise _refusal(kernels, "holds kernels of a GPU, whose accesses are not checked")
            _refuse_deep_stacks(functions)
            for function in functions.values():
                found = list(_Function(function, functions).checks())
                if found and not checked:
                    first, check = found[0]
                    raise _refusal(first, f"cannot be shown to stay in bounds ({check.message})")
                for checked_op, check in found:
                    _insert(checked_op, check)
                self.count("checks", len(found))
                if found:
                    function.attributes.pop(KERNEL, None)
                    function.attributes.pop(SCHEDULE, None)


def _refusal(op: Operation, what: str) -> LoweringError:
    return LoweringError(f"'{op.name}' op {what}; ir-run --unsafe runs it as it is", op.location)


def _insert(op: Operation, check: Check) -> None:
    b = ScalarBuilder(before=op, location=op.location)
    b.create(cf.Assert, check.condition(b), msg=f"'{op.name}' op: {check.message}")


class _Function:
    """The checks of one function."""

    def __init__(self, function: func.Func, functions: dict[str, func.Func]) -> None:
        self.function = function
        self.functions = functions
        self.ranges = Ranges()

    def checks(self) -> Iterator[tuple[Operation, Check]]:
        """Each op that needs a check, with the check; LoweringError for what has none."""
        for op in list(self.function.walk()):
            self.refuse(op)
            rule = RULES.get(type(op))
            if rule is not None:
                for check in rule(self, op):
                    yield op, check

    def refuse(self, op: Operation) -> None:
        """Raise for an op whose values no check can follow."""
        for value in op.results:
            type = value.type
            if isinstance(type, MemRefType):
                if not isinstance(op, VIEWS):
                    raise _refusal(op, "gives a buffer that cannot be followed")
                if not _is_plain(type.element):
                    raise _refusal(op, f"has elements of type {type.element}, which lie in memory in no fixed way")
            if isinstance(type, VectorType):
                width = 64 if isinstance(type.element, IndexType) else getattr(type.element, "width", 64)
                if type.num_elements * width > 8 * MOST_VECTOR_BYTES:
                    raise _refusal(op, f"computes a {type}; vectors have at most {MOST_VECTOR_BYTES} bytes")
        if isinstance(op, func.Call) and self.functions[op.callee].is_declaration:
            raise LoweringError(f"calls '@{op.callee}', which this module does not define", op.location)
        if isinstance(op, llvm.CallIntrinsic) and not op.intrin.startswith(INTRINSICS):
            raise _refusal(op, f"calls '{op.intrin}', which may do anything")

    # Conditions.

    def extent(self, buffer: Value, axis: int) -> int | None:
        """An extent, where the type says it."""
        assert isinstance(buffer.type, MemRefType)
        size = buffer.type.shape[axis]
        return None if size == DYNAMIC else size

    def inside(self, buffer: Value, axis: int, first: Extent, count: int, name: str) -> Iterator[Check]:
        """`count` subscripts from `first` on lie inside of an axis."""
        size = self.extent(buffer, axis)
        low, high = self.ranges.of(first)
        if size is not None and low >= 0 and high + count <= size:
            return
        message = f"{name} {axis} is out of bounds of {buffer.type}"
        yield Check(lambda b: _inside(b, first, count, _extent(b, buffer, axis)), message)

    def subscripts(self, buffer: Value, indices: Sequence[Extent], counts: Sequence[int]) -> Iterator[Check]:
        """A box lies inside of a buffer."""
        for axis, (index, count) in enumerate(zip(indices, counts, strict=True)):
            yield from self.inside(buffer, axis, index, count, "subscript")


def _is_plain(type: Type) -> bool:
    if isinstance(type, IntegerType):
        return type.width in (1, 8, 16, 32, 64)
    return isinstance(type, FloatType | IndexType)


def _extent(b: ScalarBuilder, buffer: Value, axis: int) -> Value:
    assert isinstance(buffer.type, MemRefType)
    size = buffer.type.shape[axis]
    return b.index_constant(size) if size != DYNAMIC else b.value_of(memref.Dim, buffer, b.index_constant(axis))


def _inside(b: ScalarBuilder, first: Extent, count: int, extent: Value) -> Value:
    at = b.index_of(first)
    if count == 1:
        return b.cmp("ult", at, extent)
    last = b.sub(extent, b.index_constant(count))
    return b.and_(b.cmp("sge", at, b.index_constant(0)), b.cmp("sle", at, last))


# Rules: the checks before an op.


def _element(f: _Function, op: memref.Load | memref.Store | memref.AtomicRmw | memref.Prefetch) -> Iterator[Check]:
    yield from f.subscripts(op.memref, op.indices, [1] * len(op.indices))


def _box(f: _Function, op: vector.Load | vector.Store) -> Iterator[Check]:
    type = op.value.type if isinstance(op, vector.Store) else op.result.type
    assert isinstance(type, VectorType)
    if type.rank != 1:
        raise _refusal(op, f"moves a {type}; vectors of one axis can be checked")
    if not op.indices:
        if type.num_elements != 1:
            raise _refusal(op, f"moves a {type} in {op.base.type}")
        return
    yield from f.subscripts(op.base, op.indices, [1] * (len(op.indices) - 1) + [type.num_elements])


def _lanes(
    f: _Function, op: vector.MaskedLoad | vector.MaskedStore | vector.Gather | vector.Scatter
) -> Iterator[Check]:
    """Lanes run along the last axis; over contiguous memory they may run on into the next rows."""
    buffer, type = op.base, op.mask.type
    assert isinstance(buffer.type, MemRefType) and isinstance(type, VectorType)
    contiguous = buffer.type.layout is None
    if type.rank != 1 or not op.indices:
        raise _refusal(op, f"moves lanes of {type} in {buffer.type}, which cannot be checked")
    *lead, last = op.indices

    def holds(b: ScalarBuilder) -> Value:
        extents = [_extent(b, buffer, axis) for axis in range(len(op.indices))]
        before, size = b.index_constant(0), extents[-1]
        if contiguous:
            size = b.index_constant(1)
            for index, extent in zip([*lead, b.index_constant(0)], extents, strict=True):
                before, size = b.add(b.mul(before, extent), index), b.mul(size, extent)
        wide = VectorType(type.shape, I64)

        def splat(number: Value) -> Value:
            return b.value_of(vector.Broadcast, b.index_cast(number, I64), results=[wide])

        if isinstance(op, vector.Gather | vector.Scatter):
            offsets: Value = op.index_vec
        else:
            offsets = b.value_of(vector.Step, results=[with_element(type, INDEX)])
        element = element_type(offsets.type)
        if element is not I64:
            cast = arith.IndexCast if isinstance(element, IndexType) else arith.ExtSI
            offsets = b.value_of(cast, offsets, results=[wide])
        position = b.add(offsets, splat(b.add(last, before)))
        inside = b.cmp("ult", position, splat(size))
        for index, extent in zip(lead, extents, strict=False):
            row = b.cmp("ult", index, extent)
            inside = b.and_(inside, b.value_of(vector.Broadcast, row, results=[type]))
        either = b.or_(inside, b.not_(op.mask))
        return b.value_of(vector.Reduction, either, None, kind="and")

    yield Check(holds, f"a lane is out of bounds of {buffer.type}")


def _subview(f: _Function, op: memref.Subview) -> Iterator[Check]:
    for axis, (offset, size, stride) in enumerate(zip(op.offsets, op.sizes, op.strides, strict=True)):
        extent = f.extent(op.source, axis)
        (low, high), (_, most), (least, widest) = f.ranges.of(offset), f.ranges.of(size), f.ranges.of(stride)
        if extent is not None and low >= 0 and least > 0 and f.ranges.of(size)[0] >= 0:
            if high + max(most - 1, 0) * widest < extent or (most == 0 and high <= extent):
                continue

        def holds(b: ScalarBuilder, axis: int = axis, of: tuple[Extent, ...] = (offset, size, stride)) -> Value:
            first, count, step = (b.index_of(e) for e in of)
            zero, one = b.index_constant(0), b.index_constant(1)
            whole = _extent(b, op.source, axis)
            empty = b.and_(b.cmp("eq", count, zero), b.cmp("ule", first, whole))
            forward = b.cmp("sgt", step, zero)
            # (size - 1) * stride <= extent - 1 - offset, without a product that could wrap.
            room = b.div(b.sub(b.sub(whole, one), first), b.maximum(step, one), unsigned=True)
            fits = b.and_(b.cmp("ult", first, whole), b.cmp("ule", b.sub(count, one), room))
            return b.and_(forward, b.or_(empty, b.and_(b.cmp("sgt", count, zero), fits)))

        yield Check(holds, f"axis {axis} of the box is out of bounds of {op.source.type}")


def _reinterpret(f: _Function, op: memref.ReinterpretCast) -> Iterator[Check]:
    source = op.source.type
    entries = [[known_entry(e) for e in part] for part in (op.offsets, op.sizes, op.strides)]
    assert isinstance(source, MemRefType)
    if source.layout is not None or not source.is_static or any(None in part for part in entries):
        raise _refusal(op, f"sees {source} with an extent or stride that is known only at run time")
    (first,), sizes, strides = ([e for e in part if e is not None] for part in entries)
    reach = [(n - 1) * s for n, s in zip(sizes, strides, strict=True)]
    low, high = first + sum(r for r in reach if r < 0), first + sum(r for r in reach if r > 0)
    if min(sizes, default=1) < 0 or (all(sizes) and not (low >= 0 and high < prod(source.shape))):
        raise LoweringError(f"'{op.name}' op reaches elements {low} to {high} of {source}", op.location)
    yield from ()


def known_entry(entry: Extent) -> int | None:
    """The integer that an entry of a list is known to be."""
    return entry if isinstance(entry, int) else known(entry)


def _cast(f: _Function, op: memref.Cast) -> Iterator[Check]:
    source, target = op.source.type, op.result.type
    assert isinstance(source, MemRefType) and isinstance(target, MemRefType)
    if source.layout is not target.layout:
        raise _refusal(op, f"claims strides that {source} may not have")
    for axis, (before, after) in enumerate(zip(source.shape, target.shape, strict=True)):
        if before == DYNAMIC and after != DYNAMIC:
            yield Check(
                lambda b, axis=axis, after=after: b.cmp("eq", _extent(b, op.source, axis), b.index_constant(after)),
                f"axis {axis} is not that of {target}",
            )


def _collapse(f: _Function, op: memref.CollapseShape) -> Iterator[Check]:
    source = op.source.type
    assert isinstance(source, MemRefType)
    if source.layout is not None and any(len(group) > 1 for group in op.reassociation):
        raise _refusal(op, f"merges axes of {source}, which may not lie close together")
    yield from ()


def _expand(f: _Function, op: memref.ExpandShape) -> Iterator[Check]:
    source = op.source.type
    assert isinstance(source, MemRefType)
    shape = op.output_shape
    for axis, group in enumerate(op.reassociation):
        factors = [shape[i] for i in group]
        numbers = [known_entry(e) for e in factors]
        if source.shape[axis] != DYNAMIC and all(n is not None and n >= 0 for n in numbers):
            if prod(n for n in numbers if n is not None) == source.shape[axis]:
                continue

        def holds(b: ScalarBuilder, axis: int = axis, factors: list[Extent] = factors) -> Value:
            whole = _extent(b, op.source, axis)
            most = b.maximum(whole, b.index_constant(1))
            product, small = b.index_constant(1), b.cmp("eq", whole, whole)
            for factor in factors:
                size = b.index_of(factor)
                product, small = b.mul(product, size), b.and_(small, b.cmp("ule", size, most))
            return b.and_(small, b.cmp("eq", product, whole))

        yield Check(holds, f"axis {axis} of {source} has another extent than its parts")


def _copy(f: _Function, op: memref.Copy) -> Iterator[Check]:
    source, target = op.source, op.target
    assert isinstance(source.type, MemRefType) and isinstance(target.type, MemRefType)
    for axis, (a, b_) in enumerate(zip(source.type.shape, target.type.shape, strict=True)):
        if DYNAMIC in (a, b_):
            yield Check(
                lambda b, axis=axis: b.cmp("eq", _extent(b, source, axis), _extent(b, target, axis)),
                f"the buffers differ along axis {axis}",
            )


def _loop(f: _Function, op: scf.For | scf.Forall) -> Iterator[Check]:
    """A step forwards, and a counter that passes the bound without wrapping."""
    bounds: tuple[Sequence[Extent], ...] = (
        (op.lower, op.upper, op.step) if isinstance(op, scf.Forall) else ([op.lower], [op.upper], [op.step])
    )
    for lower, upper, step in zip(*bounds, strict=True):
        narrow = upper.type if isinstance(upper, Value) else None
        top = (1 << (narrow.width - 1)) - 1 if isinstance(narrow, IntegerType) else ALL[1]
        if f.ranges.of(step)[0] > 0 and f.ranges.of(upper)[1] + f.ranges.of(step)[1] <= top:
            continue

        def holds(b: ScalarBuilder, entries: tuple[Extent, ...] = (lower, upper, step), top: int = top) -> Value:
            low, high, by = (b.index_of(e) for e in entries)
            limit = b.sub(b.constant(top, by.type), by)
            passes = b.or_(b.cmp("sle", high, limit), b.cmp("sge", low, high))
            return b.and_(b.cmp("sgt", by, b.constant(0, by.type)), passes)

        yield Check(holds, "needs a positive step and a bound that the counter can pass")


def _lane(f: _Function, op: vector.Extract | vector.Insert) -> Iterator[Check]:
    """A lane of a vector."""
    type = op.vector.type if isinstance(op, vector.Extract) else op.dest.type
    assert isinstance(type, VectorType)
    lanes = type.num_elements
    for entry in op.position:
        low, high = f.ranges.of(entry)
        if low < 0 or high >= lanes:

            def holds(b: ScalarBuilder, entry: Extent = entry) -> Value:
                return b.cmp("ult", b.index_of(entry), b.index_constant(lanes))

            yield Check(holds, f"no lane of {type}")


def _dealloc(f: _Function, op: memref.Dealloc) -> Iterator[Check]:
    """A buffer is freed once, where it was allocated, and used no more."""
    made = op.memref.defining_op
    frees = [u for u in _users(op.memref) if isinstance(u, memref.Dealloc)]
    if not isinstance(made, memref.Alloc) or made.parent is not op.parent or len(frees) != 1:
        raise _refusal(op, "does not free, once, a buffer that was allocated in its own block")
    for user in _reach(op.memref):
        at = user
        while at.parent is not op.parent:
            outer = at.parent.parent.parent if at.parent is not None and at.parent.parent is not None else None
            assert outer is not None
            at = outer
        if at is not op and op.is_before(at):
            raise _refusal(user, "uses a buffer that was freed before")
    yield from ()


def _users(value: Value) -> list[Operation]:
    return list(value.users)


def _reach(value: Value) -> Iterator[Operation]:
    """The ops that use a buffer or a view of it."""
    pending = [value]
    while pending:
        for user in _users(pending.pop()):
            yield user
            pending += [r for r in user.results if isinstance(r.type, MemRefType)]


def _get_global(f: _Function, op: memref.GetGlobal) -> Iterator[Check]:
    if not f_only_reads(op.result, f.functions, set()):
        raise LoweringError(f"'@{op.symbol}' is constant, and the program may write to it", op.location)
    yield from ()


def f_only_reads(value: Value, functions: dict[str, func.Func], seen: set[Value]) -> bool:
    """Whether nothing writes to a buffer through a value."""
    if value in seen:
        return True
    seen.add(value)
    for user in _users(value):
        if isinstance(user, func.Call):
            callee = functions[user.callee]
            arguments = [a for a, v in zip(callee.arguments, user.operands, strict=True) if v is value]
            if not all(f_only_reads(a, functions, seen) for a in arguments):
                return False
        elif isinstance(user, VIEWS):
            if not all(f_only_reads(r, functions, seen) for r in user.results):
                return False
        elif isinstance(user, memref.Copy):
            if user.target is value:
                return False
        elif not isinstance(user, READERS):
            return False
    return True


VIEWS = (
    memref.Alloc, memref.Alloca, memref.GetGlobal, memref.Subview, memref.ReinterpretCast, memref.Cast,
    memref.CollapseShape, memref.ExpandShape,
)  # fmt: skip
"""Ops whose buffers are followed."""
READERS = (memref.Load, memref.Dim, memref.Prefetch, vector.Load, vector.MaskedLoad, vector.Gather)

RULES: dict[type[Operation], Callable[[_Function, Any], Iterator[Check]]] = {
    memref.Load: _element, memref.Store: _element, memref.AtomicRmw: _element, memref.Prefetch: _element,
    vector.Load: _box, vector.Store: _box,
    vector.MaskedLoad: _lanes, vector.MaskedStore: _lanes, vector.Gather: _lanes, vector.Scatter: _lanes,
    vector.Extract: _lane, vector.Insert: _lane,
    memref.Subview: _subview, memref.ReinterpretCast: _reinterpret, memref.Cast: _cast,
    memref.CollapseShape: _collapse, memref.ExpandShape: _expand, memref.Copy: _copy,
    memref.Dealloc: _dealloc, memref.GetGlobal: _get_global,
    scf.For: _loop, scf.Forall: _loop,
}  # fmt: skip
"""How each op is checked; one without a row touches no memory."""


def _refuse_deep_stacks(functions: dict[str, func.Func]) -> None:
    """LoweringError for functions that call themselves, and for chains of calls that need too much stack."""
    needed: dict[str, int] = {}
    open_: set[str] = set()

    def bytes_of(name: str, call: Operation) -> int:
        if name in open_:
            raise _refusal(call, f"calls '@{name}', which is running already; recursion has no bound that is known")
        if name not in needed:
            function = functions[name]
            open_.add(name)
            own, deepest = 0, 0
            for op in function.walk():
                own += sum(_stack_bytes(op, r) for r in op.results)
                if isinstance(op, func.Call):
                    deepest = max(deepest, bytes_of(op.callee, op))
            open_.discard(name)
            needed[name] = own + deepest
            if needed[name] > MOST_STACK_BYTES:
                raise _refusal(function, f"needs {needed[name]} bytes of stack, of {MOST_STACK_BYTES}")
        return needed[name]

    for name, function in functions.items():
        bytes_of(name, function)


def _stack_bytes(op: Operation, value: Value) -> int:
    """Bytes that a value may take on the stack at worst."""
    type = value.type
    if isinstance(op, memref.Alloca) and isinstance(type, MemRefType):
        return max(64, 8 * prod(type.shape)) if type.is_static else 0
    return 8 * type.num_elements if isinstance(type, VectorType) else 8
