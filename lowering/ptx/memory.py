"""Emission of `memref`: addresses with extents and strides known to the emitter; views are arithmetic."""

from __future__ import annotations

from typing import Any

from ...ir.diagnostics import LoweringError
from ...ir.dialects import memref
from ...ir.types import DYNAMIC, I1, MemRefType, element_bytes
from ...ir.values import Value
from ..emission import chosen_extent
from .function import Buffer, Function, emits
from .registers import memory_type, register_class

ALIGNMENT = 16


def subscripts(f: Function, buffer: Buffer, indices: Any) -> list[int | Value]:
    """Subscripts of an access: numbers where they are known and the stride is."""
    found: list[int | Value] = []
    for index, stride in zip(indices, buffer.strides, strict=True):
        number = f.index(index) if isinstance(index, Value) else index
        if isinstance(number, int) and not isinstance(stride, int) and number and isinstance(index, Value):
            f.bind(index, f.held(index))
            number = index
        found.append(number if isinstance(number, int) else index)
    return found


@emits("memref.load")
def _load(f: Function, op: Any) -> None:
    buffer, type = f.buffers[op.memref], op.memref.type.element
    address = f.address(buffer, type, subscripts(f, buffer, op.indices))
    space = f"{buffer.space}.nc" if buffer.constant else buffer.space
    if type is I1:
        byte = f.value("b32", f"ld.{space}.u8", address)
        f.set(op.result, "setp.ne.u32", byte, "0")
    else:
        f.set(op.result, f"ld.{space}.{memory_type(type)}", address)


@emits("memref.store")
def _store(f: Function, op: Any) -> None:
    buffer, type = f.buffers[op.memref], op.memref.type.element
    address = f.address(buffer, type, subscripts(f, buffer, op.indices))
    value = f.held(op.value)
    if register_class(op.value.type) == "pred":
        value = f.value("b32", "selp.b32", "1", "0", value)
    f.line(f"st.{buffer.space}.{memory_type(type)} {address}, {value}")


def declare_array(f: Function, value: Value, space: str) -> None:
    """An array of the kernel: of the block (`shared`) or of one thread (`local`)."""
    type = value.type
    assert isinstance(type, MemRefType)
    if not type.is_static:
        raise LoweringError(f"an array of type {type} needs a fixed size")
    name = f"{f.name}_a{len(f.arrays)}"
    size = max(1, type.num_elements) * element_bytes(type.element)
    f.arrays.append(f"\t.{space} .align {ALIGNMENT} .b8 {name}[{size}];")
    pointer = f.value("b64", "mov.u64", name)
    f.buffers[value] = f.buffer_of(MemRefType(type.shape, type.element), pointer, space, ())


@emits("memref.alloca")
def _alloca(f: Function, op: Any) -> None:
    space = op.result.type.space
    declare_array(f, op.result, "shared" if space is not None and "workgroup" in str(space) else "local")


@emits("memref.dim")
def _dim(f: Function, op: Any) -> None:
    f.bind(op.result, chosen_extent(op, f.buffers[op.source].sizes, f.index(op.index)))


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
    f.buffers[op.result] = Buffer(
        source.pointer, source.space, tuple(sizes), tuple(strides), source.constant, source.small
    )


@emits("memref.cast")
def _cast(f: Function, op: Any) -> None:
    source, type = f.buffers[op.source], op.result.type
    sizes = tuple(s if d == DYNAMIC else d for s, d in zip(source.sizes, type.shape, strict=True))
    f.buffers[op.result] = Buffer(source.pointer, source.space, sizes, source.strides, source.constant, source.small)
