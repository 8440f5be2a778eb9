"""The fundamental types of PTX (PTX ISA, section 5.2) and the NumPy dtype that carries each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class PtxType:
    """`kind`: p predicate, b bits, u unsigned, s signed, f float, h bfloat16 (carried as its 16 bits)."""

    name: str
    dtype: np.dtype
    kind: str

    @property
    def size(self) -> int:
        return self.dtype.itemsize

    @property
    def bits(self) -> int:
        return self.dtype.itemsize * 8

    @property
    def numpy(self) -> str:
        return self.dtype.name


def _types() -> dict[str, PtxType]:
    table = {"pred": PtxType("pred", np.dtype(bool), "p")}
    for bits in (8, 16, 32, 64):
        for kind, numpy in (("b", "uint"), ("u", "uint"), ("s", "int")):
            table[f"{kind}{bits}"] = PtxType(f"{kind}{bits}", np.dtype(f"{numpy}{bits}"), kind)
    for bits in (16, 32, 64):
        table[f"f{bits}"] = PtxType(f"f{bits}", np.dtype(f"float{bits}"), "f")
    table["bf16"] = PtxType("bf16", np.dtype("uint16"), "h")
    for packed in ("f16x2", "bf16x2", "tf32"):
        table[packed] = PtxType(packed, np.dtype("uint32"), "b")
    return table


TYPES = _types()


def bits_type(size: int) -> str:
    """Name of the untyped type of that many bytes."""
    return f"b{size * 8}"
