"""Symbols of the IR as names of the targets: any text becomes an identifier, two symbols never the same one, and none
that a target or a library knows.

A symbol that is an identifier and cannot be taken for anything else stays.  An identifier that could be gets the prefix
`nb_`; any other text is spelled behind `nbx_`, an underscore as `__` and any byte but letters and digits as `_xHH`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

from ..ir.operations import Operation
from ..ir.symbols import symbol_name

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_GENERATED_KERNEL = re.compile(r"[A-Za-z][A-Za-z0-9_]*_k[0-9]+", re.ASCII)
_OURS = re.compile(r"nb[xm]?_")

_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim "
    "floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint "
    "lround modf nearbyint pow powi remainder remquo rint round roundeven scalbn sin sincos sinh sqrt tan tanh "
    "tgamma trunc fmaximum fminimum"
)
_MEMORY = (
    "abort aligned_alloc bcmp bzero calloc exit free malloc memalign memccpy memchr memcmp memcpy memmove mempcpy "
    "memset posix_memalign realloc"
)
CALLED = frozenset(_MEMORY.split()) | {name + suffix for name in _MATH.split() for suffix in ("", "f", "l")}
"""Functions of the C library that LLVM's code, or ours, may call: one of the same name would be called instead."""


def spelled(text: str) -> str:
    """Any text in letters, digits and underscores; different texts differ."""
    data = text.encode("utf-8", "surrogateescape")
    plain = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    return "".join("__" if b == 95 else chr(b) if b in plain else f"_x{b:02X}" for b in data)


def _named(symbol: str, is_safe: Callable[[str], object]) -> str:
    if _IDENTIFIER.fullmatch(symbol) is None:
        return f"nbx_{spelled(symbol)}"
    return symbol if is_safe(symbol) and not _OURS.match(symbol) else f"nb_{symbol}"


@cache
def function_name(symbol: str) -> str:
    """The name in native code of a function or global of a module.  Names that begin with an underscore or `Py` belong
    to the language and to Python."""
    return _named(symbol, lambda s: s not in CALLED and not s.startswith(("_", "Py")))


def kernel_name(symbol: str) -> str:
    """The name of a kernel in OpenCL C and PTX.  Words of theirs, built-in functions and our helpers are many; none
    ends like `main_k0`, as the kernels do that `map-gpu` makes."""
    return _named(symbol, _GENERATED_KERNEL.fullmatch)


def kernel_names(module: Operation) -> dict[tuple[str, str], str]:
    """The names of all kernels of a module by (symbol of the gpu.module, symbol of the kernel)."""
    symbols: list[tuple[str, str]] = []
    for outer in module.regions[0].block:
        if outer.name == "gpu.module":
            functions = [op for op in outer.regions[0].block if op.name == "gpu.func"]
            symbols += [(symbol_name(outer) or "", symbol_name(op) or "") for op in functions]
    times = Counter(name for _, name in symbols)
    return {
        (outer, name): kernel_name(name) if times[name] == 1 else f"nbm_{spelled(outer)}_s{spelled(name)}"
        for outer, name in symbols
    }
