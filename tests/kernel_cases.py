"""The kernel programs of filecheck/kernels: inputs for each, and what NumPy makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Case = tuple[list[Any], list[Any]]

FOLDER = Path(__file__).parent / "filecheck" / "kernels"
BF16 = ml_dtypes.bfloat16


def normal(*shape: int, seed: int = 0) -> Any:
    """Normal f32 numbers; the same for the same shape and seed."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def softmax(x: Any, axis: int) -> Any:
    """Softmax along an axis."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    """One head."""
    return softmax(q @ k.T / math.sqrt(q.shape[1]), 1) @ v


def program_a() -> Case:
    x = normal(64, 64)
    return [x], [np.maximum(x * 0.5, 0) + 1]


def program_b() -> Case:
    a, b, c = normal(64, 64), normal(64), normal(64, 64, seed=1)
    return [a, b, c], [np.tanh(np.maximum((a + b) * c, 0))]


def program_c() -> Case:
    a, b, c, dy = normal(64, 64), normal(64), normal(64, 64, seed=1), normal(64, 64, seed=2)
    z = (a + b) * c
    dz = dy * (1 - np.tanh(np.maximum(z, 0)) ** 2) * (z > 0)
    return [a, b, c, dy], [dz * c, (dz * c).sum(0), dz * (a + b)]


def program_e() -> Case:
    x, g, b = normal(32, 64), normal(64), normal(64, seed=1)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    return [x, g, b], [(x - mean[:, None]) * rstd[:, None] * g + b, mean, rstd]


def program_e1() -> Case:
    x, g, dy = normal(32, 64), normal(64), normal(32, 64, seed=1)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    h = (x - mean[:, None]) * rstd[:, None]
    w = dy * g
    dx = rstd[:, None] * (w - w.mean(1, keepdims=True) - h * (w * h).mean(1, keepdims=True))
    return [x, g, dy, mean, rstd], [dx, (dy * h).sum(0), dy.sum(0)]


def program_f() -> Case:
    a, b, bias = normal(28, 8).astype(BF16), normal(8, 64).astype(BF16), normal(64)
    h = a.astype(np.float32) @ b.astype(np.float32) + bias
    return [a, b, bias], [0.5 * h * (1 + np.vectorize(math.erf)(h * math.sqrt(0.5)))]


def program_g() -> Case:
    x, dy, w, v = normal(32, 16), normal(32, 24), normal(16, 24), normal(16, 24, seed=1)
    new = 0.9 * v + x.T @ dy
    return [x, dy, w, v, np.float32(0.1)], [w - 0.1 * new, new]


CLASSES = np.random.default_rng(4).integers(0, 10, 8)


def program_h() -> Case:
    x = normal(8, 10)
    lse = np.log(np.exp(x).sum(1))
    return [x, CLASSES], [(lse - x[range(8), CLASSES]).mean(), lse]


def program_h1() -> Case:
    x = normal(8, 10)
    lse = np.log(np.exp(x).sum(1)).astype(np.float32)
    return [x, CLASSES, lse, np.array(2.0, np.float32)], [(softmax(x, 1) - np.eye(10)[CLASSES]) * 2 / 8]


def program_i() -> Case:
    x = normal(8, 10)
    x[1, [4, 6]] = np.nan
    x[2] = 1
    x[3] = -np.inf
    return [x], [np.argmax(x, 1)]


def program_k() -> Case:
    t, index = normal(32, 8), np.random.default_rng(5).integers(-32, 32, 16)
    return [t, index], [np.tanh(t[index])]


def program_k1() -> Case:
    dy, index = normal(16, 8), np.random.default_rng(6).integers(0, 32, 16)
    want = np.zeros((32, 8))
    np.add.at(want, index, dy)
    return [dy, index], [want]


def program_l() -> Case:
    x, w = normal(1, 3, 8, 8), normal(4, 3, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [(p, q) for p in range(3) for q in range(3)]
    want = sum(np.einsum("nchw,oc->nohw", padded[:, :, p : p + 8, q : q + 8], w[:, :, p, q]) for p, q in taps)
    return [x, w], [want]


def program_o() -> Case:
    x = normal(8, 8)
    want = x.copy()
    want[2:6] = 0
    return [x], [want]


QKV = normal(16, 8), normal(24, 8), normal(24, 8, seed=1)

CASES: dict[str, Callable[[], Case]] = {
    "a": program_a,
    "b": program_b,
    "c": program_c,
    "d": lambda: ([normal(32, 64)], [softmax(normal(32, 64), 1)]),
    "d1": lambda: ([normal(32, 64)], [softmax(normal(32, 64), 0)]),
    "e": program_e,
    "e1": program_e1,
    "f": program_f,
    "g": program_g,
    "h": program_h,
    "h1": program_h1,
    "i": program_i,
    "j": lambda: ([normal(8, 10)], [normal(8, 10).cumsum(1)]),
    "k": program_k,
    "k1": program_k1,
    "l": program_l,
    "m": lambda: (list(QKV), [attention(*QKV)]),
    "m1": lambda: (list(QKV), [attention(*QKV)]),
    "n": lambda: ([5, normal(5, 64), normal(5, 64, seed=1)], [normal(5, 64) * normal(5, 64, seed=1)]),
    "o": program_o,
    "p": lambda: ([normal(8, 10)], [normal(8, 10).sum(1)]),
}
"""Name of the file and of its function -> (arguments, results)."""


def text_of(name: str) -> str:
    """The program's text."""
    return (FOLDER / f"{name}.mlir").read_text()
