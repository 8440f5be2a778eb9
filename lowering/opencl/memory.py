"""Emission of `memref`: pointers with extents and strides known to the emitter; views are arithmetic."""

from __future__ import annotations

from typing import Any

from ...ir.diagnostics import LoweringError
from ...ir.dialects import memref
from ...ir.types import BF16, DYNAMIC, F16, F64, I1, MemRefType, Type
from ...ir.values import Value
from ..emission import chosen_extent
from .arith import PACK_HALF, UNPACK_HALF
from .function import Buffer, Function, emits
from .types import memory_type


def entries(f: Function, values: Any) -> list[int | str]:
    """Numbers as they are, values by name."""
    return [f.index(v) if isinstance(v, Value) else v for v in values]


def read(f: Function, buffer: Buffer, at: str, element: Type) -> str:
    """The expression of an element."""
    if element is F16:
        return f"{f.program.helper('unpack_half', UNPACK_HALF)}({buffer.pointer}[{at}])"
    if element is BF16:
        return f"as_float((uint){buffer.pointer}[{at}] << 16)"
    return f"{buffer.pointer}[{at}]" + (" != 0" if element is I1 else "")


def write(f: Function, buffer: Buffer, at: str, element: Type, value: str) -> None:
    """Store an element; a 16-bit value is exact in its float."""
    if element is F16:
        f.line(f"{buffer.pointer}[{at}] = {f.program.helper('pack_half', PACK_HALF)}({value});")
    elif element is BF16:
        f.line(f"{buffer.pointer}[{at}] = (ushort)(as_uint({value}) >> 16);")
    else:
        f.line(f"{buffer.pointer}[{at}] = {value};")


@emits("memref.load")
def _load(f: Function, op: Any) -> None:
    buffer = f.buffers[op.memref]
    f.set(op.result, read(f, buffer, f.offset(buffer, entries(f, op.indices)), op.memref.type.element))


@emits("memref.store")
def _store(f: Function, op: Any) -> None:
    buffer = f.buffers[op.memref]
    write(f, buffer, f.offset(buffer, entries(f, op.indices)), op.memref.type.element, f.of(op.value))


def declare_array(f: Function, value: Value, space: str) -> None:
    """An array of the kernel: of the group or of one work-item."""
    type = value.type
    assert isinstance(type, MemRefType)
    if not type.is_static:
        raise LoweringError(f"an array of type {type} needs a fixed size")
    if type.element is F64:
        f.program.double = True
    name = f.fresh("a")
    qualifier = "" if space == "__private" else f"{space} "
    f.head.append(f"  {qualifier}{memory_type(type.element)} {name}[{max(1, type.num_elements)}];")
    f.buffers[value] = f.buffer_of(MemRefType(type.shape, type.element), name, space, ())


@emits("memref.alloca")
def _alloca(f: Function, op: Any) -> None:
    space = op.result.type.space
    declare_array(f, op.result, "__local" if space is not None and "workgroup" in str(space) else "__private")


@emits("memref.dim")
def _dim(f: Function, op: Any) -> None:
    f.bind(op.result, chosen_extent(op, f.buffers[op.source].sizes, f.index(op.index)))


@emits("memref.subview")
def _subview(f: Function, op: Any) -> None:
    source = f.buffers[op.source]
    offset = f.offset(source, entries(f, op.offsets))
    sizes = entries(f, op.sizes)
    strides = [f.multiply(a, b) for a, b in zip(source.strides, entries(f, op.strides), strict=True)]
    kept = [i for i in range(len(sizes)) if i not in op.dropped]
    place: int | str = int(offset) if offset.isdigit() else offset
    f.buffers[op.result] = Buffer(
        source.pointer, source.space, place, tuple(sizes[i] for i in kept), tuple(strides[i] for i in kept)
    )


@emits("memref.collapse_shape")
def _collapse(f: Function, op: memref.CollapseShape) -> None:
    source = f.buffers[op.source]
    sizes: list[int | str] = []
    strides: list[int | str] = []
    for group in op.reassociation:
        size: int | str = 1
        for axis in group:
            size = f.multiply(size, source.sizes[axis])
        sizes.append(size)
        strides.append(source.strides[group[-1]])
    f.buffers[op.result] = Buffer(source.pointer, source.space, source.offset, tuple(sizes), tuple(strides))


@emits("memref.cast")
def _cast(f: Function, op: Any) -> None:
    source, type = f.buffers[op.source], op.result.type
    sizes = tuple(s if d == DYNAMIC else d for s, d in zip(source.sizes, type.shape, strict=True))
    f.buffers[op.result] = Buffer(source.pointer, source.space, source.offset, sizes, source.strides)
