"""Emission of `vector`: one op to one instruction or intrinsic."""

from __future__ import annotations

from typing import Any

from ...ir.types import BF16, F32, I1, I8, I32, FloatType, Type, VectorType, element_bytes, element_type
from .arith import from_bf16, number_extremum, to_bf16
from .function import Function, emits
from .memory import entries, nontemporal
from .types import llvm_type, mangled, with_scalar

ORDERED = {"add": "fadd", "mul": "fmul"}
REDUCE_INTEGER = {
    "add": "add", "mul": "mul", "minui": "umin", "minsi": "smin", "maxui": "umax", "maxsi": "smax", "and": "and",
    "or": "or", "xor": "xor",
}  # fmt: skip
# How two halves are combined in a tree, for floats.
TREE = {
    "add": "fadd", "mul": "fmul", "maximumf": "llvm.maximum", "minimumf": "llvm.minimum",
}  # fmt: skip


def stored(type: VectorType) -> VectorType:
    """A vector as it lies in memory: flags in a byte each, where LLVM's own vectors of i1 are packed."""
    return VectorType(type.shape, I8) if type.element is I1 else type


def to_bytes(f: Function, value: str, type: VectorType) -> str:
    """A vector as it goes to memory."""
    return f.value(f"zext {llvm_type(type)} {value} to {llvm_type(stored(type))}") if type.element is I1 else value


def from_bytes(f: Function, value: str, type: VectorType) -> str:
    """A vector that came from memory."""
    return f.value(f"icmp ne {llvm_type(stored(type))} {value}, zeroinitializer") if type.element is I1 else value


@emits("vector.load")
def _load(f: Function, op: Any) -> None:
    type = stored(op.result.type)
    address = f.address(op.base, entries(f, op.indices))
    loaded = f.value(f"load {llvm_type(type)}, ptr {address}, align {element_bytes(type.element)}")
    f.bind(op.result, from_bytes(f, loaded, op.result.type))


@emits("vector.store")
def _store(f: Function, op: Any) -> None:
    type = stored(op.value.type)
    value = to_bytes(f, f.of(op.value), op.value.type)
    address = f.address(op.base, entries(f, op.indices))
    # A store around the caches wants its natural alignment, which the schedule that asks for it guarantees.
    align = element_bytes(type.element) * (type.num_elements if op.nontemporal else 1)
    f.line(f"store {llvm_type(type)} {value}, ptr {address}, align {align}{nontemporal(op)}")


@emits("vector.maskedload")
def _masked_load(f: Function, op: Any) -> None:
    type = stored(op.result.type)
    passed = to_bytes(f, f.of(op.pass_thru), op.result.type)
    address = f.address(op.base, entries(f, op.indices))
    text = llvm_type(type)
    f.declare(f"llvm.masked.load.{mangled(type)}.p0", text, ["ptr", llvm_type(op.mask.type), text])
    bytes_ = element_bytes(type.element)
    loaded = f.value(
        f"call {text} @llvm.masked.load.{mangled(type)}.p0(ptr align {bytes_} {address}, {f.typed(op.mask)}, "
        f"{text} {passed})"
    )
    f.bind(op.result, from_bytes(f, loaded, op.result.type))


@emits("vector.maskedstore")
def _masked_store(f: Function, op: Any) -> None:
    type = stored(op.value.type)
    value = to_bytes(f, f.of(op.value), op.value.type)
    address = f.address(op.base, entries(f, op.indices))
    text = llvm_type(type)
    f.declare(f"llvm.masked.store.{mangled(type)}.p0", "void", [text, "ptr", llvm_type(op.mask.type)])
    f.line(
        f"call void @llvm.masked.store.{mangled(type)}.p0({text} {value}, ptr align "
        f"{element_bytes(type.element)} {address}, {f.typed(op.mask)})"
    )


def _lane_pointers(f: Function, op: Any, lanes: int) -> str:
    address = f.address(op.base, entries(f, op.indices))
    element = llvm_type(op.base.type.element)
    return f.value(f"getelementptr {element}, ptr {address}, {f.typed(op.index_vec)}")


@emits("vector.gather")
def _gather(f: Function, op: Any) -> None:
    type = stored(op.result.type)
    passed = to_bytes(f, f.of(op.pass_thru), op.result.type)
    lanes, text = type.num_elements, llvm_type(type)
    pointers = _lane_pointers(f, op, lanes)
    name = f"llvm.masked.gather.{mangled(type)}.v{lanes}p0"
    f.declare(name, text, [f"<{lanes} x ptr>", f"<{lanes} x i1>", text])
    loaded = f.value(
        f"call {text} @{name}(<{lanes} x ptr> align {element_bytes(type.element)} {pointers}, {f.typed(op.mask)}, "
        f"{text} {passed})"
    )
    f.bind(op.result, from_bytes(f, loaded, op.result.type))


@emits("vector.scatter")
def _scatter(f: Function, op: Any) -> None:
    type = stored(op.value.type)
    value = to_bytes(f, f.of(op.value), op.value.type)
    lanes, text = type.num_elements, llvm_type(type)
    pointers = _lane_pointers(f, op, lanes)
    name = f"llvm.masked.scatter.{mangled(type)}.v{lanes}p0"
    f.declare(name, "void", [text, f"<{lanes} x ptr>", f"<{lanes} x i1>"])
    f.line(
        f"call void @{name}({text} {value}, <{lanes} x ptr> align {element_bytes(type.element)} {pointers}, "
        f"{f.typed(op.mask)})"
    )


@emits("vector.broadcast")
def _broadcast(f: Function, op: Any) -> None:
    type, source = op.result.type, op.source
    if isinstance(source.type, VectorType):
        if source.type.num_elements == type.num_elements:
            f.bind(op.result, f.of(source))
            return
        places = [i % source.type.num_elements for i in range(type.num_elements)]
        f.bind(op.result, _shuffle(f, source.type, f.of(source), f.of(source), places))
        return
    f.bind(op.result, broadcast(f, f.typed(source), type))


def broadcast(f: Function, typed: str, type: VectorType) -> str:
    """A scalar in every lane."""
    text = llvm_type(type)
    single = f.value(f"insertelement {text} poison, {typed}, i64 0")
    return f.value(f"shufflevector {text} {single}, {text} poison, <{type.num_elements} x i32> zeroinitializer")


def _shuffle(f: Function, type: Type, a: str, b: str, places: list[int]) -> str:
    text = llvm_type(type)
    mask = ", ".join(f"i32 {p}" for p in places)
    return f.value(f"shufflevector {text} {a}, {text} {b}, <{len(places)} x i32> <{mask}>")


@emits("vector.shuffle")
def _shuffle_op(f: Function, op: Any) -> None:
    f.bind(op.result, _shuffle(f, op.v1.type, f.of(op.v1), f.of(op.v2), list(op.mask)))


@emits("vector.create_mask")
def _create_mask(f: Function, op: Any) -> None:
    """The count is clamped first, so that lanes compare in 32 bits however large it is."""
    lanes = op.result.type.num_elements
    (count,) = entries(f, op.sizes)
    if isinstance(count, int):
        f.bind(op.result, _first_lanes(lanes, count))
        return
    least = f.call("llvm.smax.i64", "i64", [("i64", str(count)), ("i64", "0")])
    most = f.call("llvm.smin.i64", "i64", [("i64", least), ("i64", str(lanes))])
    narrow = f.value(f"trunc i64 {most} to i32")
    splatted = broadcast(f, f"i32 {narrow}", VectorType([lanes], I32))
    steps = ", ".join(f"i32 {i}" for i in range(lanes))
    f.bind(op.result, f.value(f"icmp slt <{lanes} x i32> <{steps}>, {splatted}"))


def _first_lanes(lanes: int, count: int) -> str:
    return "<" + ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(lanes)) + ">"


@emits("vector.constant_mask")
def _constant_mask(f: Function, op: Any) -> None:
    (count,) = op.mask_dim_sizes
    f.bind(op.result, _first_lanes(op.result.type.num_elements, count))


@emits("vector.extract")
def _extract(f: Function, op: Any) -> None:
    (place,) = entries(f, op.position)
    f.bind(op.result, f.value(f"extractelement {f.typed(op.vector)}, i64 {place}"))


@emits("vector.insert")
def _insert(f: Function, op: Any) -> None:
    (place,) = entries(f, op.position)
    f.bind(op.result, f.value(f"insertelement {f.typed(op.dest)}, {f.typed(op.source)}, i64 {place}"))


@emits("vector.extract_strided_slice")
def _slice(f: Function, op: Any) -> None:
    (offset,), (size,), (stride,) = op.offsets, op.sizes, op.strides
    places = [offset + i * stride for i in range(size)]
    f.bind(op.result, _shuffle(f, op.vector.type, f.of(op.vector), "poison", places))


@emits("vector.step")
def _step(f: Function, op: Any) -> None:
    lanes = op.result.type.num_elements
    f.bind(op.result, "<" + ", ".join(f"i64 {i}" for i in range(lanes)) + ">")


@emits("vector.reduction")
def _reduction(f: Function, op: Any) -> None:
    """With `reassoc` a float sum is the halving tree that the dialect defines, spelled out; else lanes in order."""
    type, kind = op.vector.type, op.kind
    element = element_type(type)
    text, scalar = llvm_type(type), llvm_type(element)
    vector = f.of(op.vector)
    if kind in REDUCE_INTEGER and not isinstance(element, FloatType):
        name = f"llvm.vector.reduce.{REDUCE_INTEGER[kind]}.{mangled(type)}"
        total = f.call(name, scalar, [(text, vector)])
        if op.acc is not None:
            total = _combine_integer(f, kind, scalar, element, f.of(op.acc), total)
        f.bind(op.result, total)
        return
    tree = kind not in ORDERED or "reassoc" in str(op.fastmath)
    lanes = type.num_elements
    if tree and lanes & (lanes - 1) == 0:
        width = lanes
        while width > 1:
            half = width // 2
            low = _shuffle(f, VectorType([width], element), vector, "poison", list(range(half)))
            high = _shuffle(f, VectorType([width], element), vector, "poison", list(range(half, width)))
            vector = _combine(f, kind, VectorType([half], element), low, high)
            width = half
        total = f.value(f"extractelement <1 x {scalar}> {vector}, i64 0")
        if op.acc is not None:
            total = _combine(f, kind, element, f.of(op.acc), total)
    else:
        total = f.of(op.acc) if op.acc is not None else f.value(f"extractelement {text} {vector}, i64 0")
        for lane in range(0 if op.acc is not None else 1, lanes):
            total = _combine(f, kind, element, total, f.value(f"extractelement {text} {vector}, i64 {lane}"))
    f.bind(op.result, total)


def _combine(f: Function, kind: str, type: Type, a: str, b: str) -> str:
    if element_type(type) is BF16:
        single = with_scalar(type, F32)
        return to_bf16(f, _combine(f, kind, single, from_bf16(f, a, type), from_bf16(f, b, type)), single)
    if kind in ("maxnumf", "minnumf"):
        return number_extremum(f, "maximum" if kind == "maxnumf" else "minimum", type, a, b)
    operation, text = TREE[kind], llvm_type(type)
    if operation.startswith("llvm."):
        return f.call(f"{operation}.{mangled(type)}", text, [(text, a), (text, b)])
    return f.value(f"{operation} {text} {a}, {b}")


def _combine_integer(f: Function, kind: str, text: str, element: Type, a: str, b: str) -> str:
    operation = REDUCE_INTEGER[kind]
    if operation in ("umin", "smin", "umax", "smax"):
        return f.call(f"llvm.{operation}.{mangled(element)}", text, [(text, a), (text, b)])
    return f.value(f"{operation} {text} {a}, {b}")
