"""Entries in this process: the objects their symbols stand for, and a Python callable around each.

An entry is called as `entry(*inputs, *outputs)`.  It returns None when the host function ran, and NotImplemented when
an argument was not what the signature says (then nothing ran).  AllocationError where it found no memory.

The native entry (lowering/llvm/entry.py) reads fields of objects at fixed offsets.  `find_layout` verifies these
offsets on known objects first; where they do not hold (another Python, a build without the GIL) the same checks run in
Python and ctypes makes the call: slower, and the same otherwise.
"""

from __future__ import annotations

import ctypes
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np

from ..ir.diagnostics import AllocationError, LoweringError
from ..lowering.llvm import entry as native_entry
from ..lowering.llvm.entry import Argument, Layout, Signature, emit_entry
from .native import NativeModule, compile_object, load_object
from .threads import SHARED_SYMBOLS

Entry = Callable[..., Any]

# The last map of a `ChainMap` is only read, which its type does not say.
_SHARED_SYMBOLS = cast("dict[str, int]", SHARED_SYMBOLS)

_METH_FASTCALL = 0x80
_T_OBJECT_EX = 16

_DTYPES = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64", "index": "int64"} | {
    f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("i", "int"), ("ui", "uint")) for bits in (8, 16, 32, 64)
}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of arrays of an IR element type (`f32`, `bf16`, `ui8`, `i1`). LoweringError where there is none."""
    if name in _DTYPES:
        return np.dtype(_DTYPES[name])
    import ml_dtypes

    if name == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    raise LoweringError(f"arrays of {name} cannot pass between Python and native code")


class TensorClass:
    """What an entry must know of the class of its tensor arguments.

    `abstract_value` and `value` name two `__slots__`: the interned object that stands for dtype and shape, and the
    ndarray (C-contiguous) or something else while there is none.
    """

    def __init__(self, cls: type, abstract_value: str, value: str) -> None:
        self.cls = cls
        self.abstract_value: Any = getattr(cls, abstract_value)
        self.value: Any = getattr(cls, value)
        self.offsets = (_slot_offset(cls, self.abstract_value), _slot_offset(cls, self.value))


def entry_text(signature: Signature, tensor_class: TensorClass | None = None) -> str:
    """LLVM IR of the native entry, to append to the text of the host function; empty where entries run in Python."""
    layout = find_layout(tensor_class)
    return "" if layout is None else emit_entry(signature, layout, declare=False)


def compile_entry(
    text: str,
    signature: Signature,
    *,
    name: str,
    tensor_class: TensorClass | None = None,
    abstract_values: Sequence[Any] = (),
    symbols: Mapping[str, int] | None = None,
) -> Entry:
    """Compile the LLVM IR of a host function together with its entry. Arguments as for `load_entry`."""
    text += entry_text(signature, tensor_class)
    data = compile_object(text, name=name)
    return load_entry(data, signature, name, tensor_class, abstract_values, symbols, text)


def load_entry(
    data: bytes,
    signature: Signature,
    name: str,
    tensor_class: TensorClass | None = None,
    abstract_values: Sequence[Any] = (),
    symbols: Mapping[str, int] | None = None,
    text: str | None = None,
) -> Entry:
    """A callable around an object that holds a host function and (where `entry_text` is not empty) its entry.

    `abstract_values`: for each input the interned object of a static tensor, None for all others; as many as inputs, or
    none at all. `symbols`: addresses of what the host function itself leaves open, beside what `load_object` finds and
    `nablair.parallel`, which starts the shared thread pool. `text`: the IR it came from, if known. The callable keeps
    code and objects alive.
    """
    keeper = _Keeper(signature, tensor_class, abstract_values)
    known = ChainMap(keeper.symbols, dict(symbols or {}), _SHARED_SYMBOLS)
    keeper.module = load_object(data, name=name, symbols=known, text=text)
    if find_layout(tensor_class) is None:
        return python_entry(signature, keeper.module.address(signature.function), tensor_class, abstract_values, keeper)
    return make_callable(keeper.module.address(signature.entry), name=name, owner=keeper)


def entry_of(
    host: NativeModule,
    signature: Signature,
    *,
    name: str,
    tensor_class: TensorClass | None = None,
    abstract_values: Sequence[Any] = (),
) -> Entry:
    """A callable around a host function that is loaded already, whose code it keeps alive; only the entry is compiled.

    Arguments as for `load_entry`.
    """
    address = host.address(signature.function)
    keeper = _Keeper(signature, tensor_class, abstract_values)
    keeper.host = host
    layout = find_layout(tensor_class)
    if layout is None:
        return python_entry(signature, address, tensor_class, abstract_values, keeper)
    text = emit_entry(signature, layout)
    known = ChainMap(keeper.symbols, {signature.function: address}, _SHARED_SYMBOLS)
    keeper.module = load_object(compile_object(text, name=name), name=name, symbols=known, text=text)
    return make_callable(keeper.module.address(signature.entry), name=name, owner=keeper)


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def make_callable(address: int, *, name: str, owner: Any) -> Entry:
    """A built-in function around a METH_FASTCALL function at `address`; it keeps `owner` (of the code) alive."""
    definition = MethodDefinition(name.encode(), address, _METH_FASTCALL, None)
    # The function refers to its definition without owning it: it owns its `self`, which CPython drops last.
    return new_function()(ctypes.addressof(definition), (definition, owner), None)


@cache
def new_function() -> Callable[[int, Any, None], Entry]:
    """CPython's PyCFunction_NewEx: (address of a MethodDefinition, `self`, no module) to a built-in function."""
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


class _Keeper:
    """What an entry's code refers to by address: it must live as long as the entry."""

    def __init__(self, signature: Signature, tensor_class: TensorClass | None, abstract_values: Sequence[Any]) -> None:
        self.module: NativeModule | None = None
        self.host: NativeModule | None = None
        objects: dict[str, Any] = {
            native_entry.ARRAY_TYPE: np.ndarray,
            native_entry.SUCCESS: None,
            native_entry.MISMATCH: NotImplemented,
            native_entry.EXHAUSTED: AllocationError,
        }
        for argument in signature.arguments:
            objects[native_entry.dtype_symbol(argument.dtype)] = numpy_dtype(argument.dtype)
        for index, argument in enumerate(signature.inputs):
            if argument.kind != "tensor":
                continue
            if tensor_class is None:
                raise LoweringError(f"entry of '{signature.function}': input {index} is a tensor of no class")
            objects[native_entry.TENSOR_TYPE] = tensor_class.cls
            if argument.has_static_shape and not abstract_values:
                raise LoweringError(f"entry of '{signature.function}': input {index} needs its abstract value")
            objects[native_entry.abstract_value_symbol(index)] = abstract_values[index] if abstract_values else None
        self._objects = objects
        self.symbols = {symbol: id(thing) for symbol, thing in objects.items()}


def find_layout(tensor_class: TensorClass | None = None) -> Layout | None:
    """The offsets of the fields that a native entry reads, verified in this process; None where they do not hold."""
    layout = _array_layout()
    if layout is None or tensor_class is None:
        return layout
    abstract_value, value = tensor_class.offsets
    if abstract_value is None or value is None:
        return None
    return replace(layout, tensor_abstract_value=abstract_value, tensor_value=value)


@cache
def _array_layout() -> Layout | None:
    """NumPy's published layout, if arrays whose fields are known show them there."""
    if not _has_plain_objects() or np.ndarray.__basicsize__ < 80:
        return None
    layout = Layout()
    dense = np.arange(6, dtype=np.float32).reshape(2, 3)
    frozen = dense[:1]
    frozen.flags.writeable = False
    for array in (dense, dense.T, frozen, np.zeros((), np.int8), np.zeros((0, 4, 5), np.float64)):
        at = id(array)
        flags = _int32(at + layout.array_flags)
        sizes = _pointer(at + layout.array_sizes)
        if (
            _pointer(at + layout.object_type) != id(np.ndarray)
            or _pointer(at + layout.array_data) != array.ctypes.data
            or _int32(at + layout.array_rank) != array.ndim
            or _pointer(at + layout.array_dtype) != id(array.dtype)
            or bool(flags & 0x1) != array.flags.c_contiguous
            or bool(flags & 0x100) != array.flags.aligned
            or bool(flags & 0x400) != array.flags.writeable
            or [_pointer((sizes or 0) + 8 * axis) or 0 for axis in range(array.ndim)] != list(array.shape)
        ):
            return None
    return layout


def _has_plain_objects() -> bool:
    """Whether objects begin with a reference count and a type of 8 bytes each, as in CPython built with the GIL."""
    return sys.implementation.name == "cpython" and sys.maxsize == 2**63 - 1 and object.__basicsize__ == 16


def _slot_offset(cls: type, slot: Any) -> int | None:
    """The offset of a slot of `cls`, from its descriptor (PyMemberDescrObject); None where it is not seen to hold."""
    if not _has_plain_objects() or type(slot).__name__ != "member_descriptor" or type(slot).__basicsize__ != 48:
        return None
    member = _pointer(id(slot) + 40)
    if not member:
        return None
    name = _pointer(member)
    if not name or ctypes.string_at(name) != slot.__name__.encode() or _int32(member + 8) != _T_OBJECT_EX:
        return None
    offset = _pointer(member + 16) or 0
    if not 16 <= offset <= cls.__basicsize__ - 8:
        return None
    instance, marker = object.__new__(cls), object()
    slot.__set__(instance, marker)
    return offset if _pointer(id(instance) + offset) == id(marker) else None


def _pointer(address: int) -> int | None:
    return ctypes.c_void_p.from_address(address).value


def _int32(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


def python_entry(
    signature: Signature,
    address: int,
    tensor_class: TensorClass | None,
    abstract_values: Sequence[Any],
    owner: Any,
) -> Entry:
    """The same entry in Python, for the host function at `address`; it keeps `owner` alive."""
    count = len(signature.inputs)
    checks = [
        _ArgumentCheck(
            argument,
            is_output=index >= count,
            tensor_class=tensor_class if argument.kind == "tensor" else None,
            abstract_value=abstract_values[index] if index < len(abstract_values) else None,
        )
        for index, argument in enumerate(signature.arguments)
    ]
    types: list[Any] = []
    for argument in signature.arguments:
        types.append(ctypes.c_int64 if argument.kind == "number" else ctypes.c_void_p)
        types += [ctypes.c_int64] * sum(isinstance(size, str) for size in argument.shape)
    status = ctypes.c_int32 if signature.may_fail else None
    prototype = (ctypes.CFUNCTYPE if signature.release_gil else ctypes.PYFUNCTYPE)(status, *types)
    function = prototype(address)

    def entry(*arguments: Any, _owner: Any = owner) -> Any:
        if len(arguments) != len(checks):
            return NotImplemented
        sizes: dict[str, int] = {}
        operands: list[int] = []
        held: list[Any] = []  # meanwhile another thread may rebind the value of a Tensor
        for check, argument in zip(checks, arguments):
            array = check.array(argument, sizes)
            if array is None:
                return NotImplemented
            held.append(array)
            operands.append(int(array) if check.is_number else array.ctypes.data)
            operands += [size for size, name in zip(array.shape, check.shape) if isinstance(name, str)]
        if function(*operands):
            raise AllocationError(signature.exhausted)
        return None

    return entry


class _ArgumentCheck:
    """Whether an object is what an `Argument` says."""

    def __init__(
        self, argument: Argument, *, is_output: bool, tensor_class: TensorClass | None, abstract_value: Any
    ) -> None:
        self.shape = argument.shape
        self.is_number = argument.kind == "number"
        self._argument = argument
        self._dtype = numpy_dtype(argument.dtype)
        self._is_output = is_output
        self._tensor_class = tensor_class
        self._abstract_value = abstract_value

    def array(self, given: Any, sizes: dict[str, int]) -> np.ndarray[Any, Any] | None:
        """The array in `given`, or None if something does not fit. Names new in `sizes` are bound."""
        array = given if self._tensor_class is None else self._value(self._tensor_class, given)
        if type(array) is not np.ndarray or array.dtype is not self._dtype or array.ndim != len(self.shape):
            return None
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned and (flags.writeable or not self._is_output)):
            return None
        if array.ctypes.data % self._argument.alignment:
            return None
        for actual, size in zip(array.shape, self.shape):
            if actual != (size if isinstance(size, int) else sizes.setdefault(size, actual)):
                return None
        return array

    def _value(self, tensor_class: TensorClass, given: Any) -> Any:
        if type(given) is not tensor_class.cls:
            return None
        try:
            if self._argument.has_static_shape:
                if tensor_class.abstract_value.__get__(given) is not self._abstract_value:
                    return None
            return tensor_class.value.__get__(given)
        except AttributeError:  # an empty slot
            return None
