"""What one call costs before any work: entries for 1, 2 and 3 arrays of 16 float32, and an output from the pool.

    python benchmarks/call_overhead.py

Prints the least of several repetitions in nanoseconds; NumPy's own call on the same arrays stands beside it.
"""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np

from nablair.lowering.llvm.entry import Argument, Signature
from nablair.runtime.entry import Entry, TensorClass, compile_entry, python_entry
from nablair.runtime.native import compile_ir
from nablair.runtime.native_pool import NativePool
from nablair.runtime.pool import BufferPool


class Tensor:
    """The least that an entry asks of a class of tensors."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: object, value: Any) -> None:
        self.kind = kind
        self.value = value


SIXTEEN = object()
TENSOR = TensorClass(Tensor, "kind", "value")


def kernel(inputs: int, dynamic: bool) -> str:
    """LLVM IR: the sum of `inputs` arrays of 16 float32 goes to the output."""
    pointers = [f"%a{i}" for i in range(inputs)] + ["%out"]
    parameters = ", ".join(f"ptr {p}, i64 {p}n" if dynamic else f"ptr {p}" for p in pointers)
    lines = [f"define void @sum({parameters}) nounwind {{"]
    lines += [f"  %x{i} = load <16 x float>, ptr %a{i}, align 4" for i in range(inputs)]
    total = "%x0"
    for i in range(1, inputs):
        lines.append(f"  %s{i} = fadd <16 x float> {total}, %x{i}")
        total = f"%s{i}"
    return "\n".join([*lines, f"  store <16 x float> {total}, ptr %out, align 4", "  ret void", "}", ""])


def signature(inputs: int, kind: Any, *, dynamic: bool = False, release_gil: bool = False) -> Signature:
    shape: tuple[int | str, ...] = ("n",) if dynamic else (16,)
    given = (Argument(kind, "f32", shape),) * inputs
    return Signature("sum", given, (Argument("array", "f32", shape),), release_gil)


def native(inputs: int, kind: Any, **more: bool) -> Entry:
    text = kernel(inputs, more.get("dynamic", False))
    values = (SIXTEEN,) * inputs
    return compile_entry(text, signature(inputs, kind, **more), name="sum", tensor_class=TENSOR, abstract_values=values)


def in_python(inputs: int, kind: Any) -> Entry:
    module = compile_ir(kernel(inputs, dynamic=False), name="sum")
    return python_entry(signature(inputs, kind), module.address("sum"), TENSOR, (SIXTEEN,) * inputs, module)


def nanoseconds(statement: str, names: dict[str, Any]) -> float:
    timer = timeit.Timer(statement, globals=names)
    number = 20_000
    return min(timer.repeat(15, number)) / number * 1e9


def main() -> None:
    pool = BufferPool()
    float32 = np.dtype(np.float32)
    array = np.ones(16, np.float32)
    out = np.empty(16, np.float32)
    tensor = Tensor(SIXTEEN, array)
    names: dict[str, Any] = {"a": array, "t": tensor, "out": out, "np": np, "pool": pool, "shape": (16,), "f": float32}
    native_pool = NativePool()
    names |= {"slow": pool.allocator((16,), float32), "native_pool": native_pool}
    names |= {"allocate": native_pool.allocator((16,), float32), "large": native_pool.allocator((4096, 1024), float32)}
    rows = [
        ("BufferPool: empty((16,), float32)", "pool.empty(shape, f)", None),
        ("BufferPool: allocator((16,), float32)()", "slow()", None),
        ("NativePool: empty((16,), float32)", "native_pool.empty(shape, f)", None),
        ("NativePool: allocator((16,), float32)()", "allocate()", None),
        ("NativePool: allocator((4096, 1024), float32)()", "large()", None),
        ("np.empty((16,), float32)", "np.empty(shape, f)", None),
        ("np.add(a, b, out)", "np.add(a, a, out)", None),
    ]
    for inputs in (1, 2, 3):
        for kind, name in (("array", "a"), ("tensor", "t")):
            given = ", ".join([name] * inputs)
            title = f"{inputs} {kind}"
            call = f"entry({given}, out)"
            rows += [
                (f"{title}, out given", call, native(inputs, kind)),
                (f"{title}, sizes by name, out given", call, native(inputs, kind, dynamic=True)),
                (f"{title}, GIL released, out given", call, native(inputs, kind, release_gil=True)),
                (f"{title}, out from the pool", f"entry({given}, allocate())", native(inputs, kind)),
            ]
    rows.append(("2 tensor, out given, entry in Python", "entry(t, t, out)", in_python(2, "tensor")))
    for title, statement, entry in rows:
        print(f"{title:45} {nanoseconds(statement, names | {'entry': entry}):7.0f} ns")


if __name__ == "__main__":
    main()
