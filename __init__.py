"""nablair: an MLIR-style compiler toolkit in pure Python.

A Python function is traced into an SSA IR; passes differentiate, fuse and lower it; LLVM IR, OpenCL C or PTX comes out.
Names load when they are first used (PEP 562), so `import nablair` costs next to nothing and pulls in no dependency.
"""

from importlib import import_module

TYPE_CHECKING = False  # what type checkers take for true; importing `typing` would be most of the cost of this module
if TYPE_CHECKING:
    from typing import Any

    from . import autograd, ir, lowering, passes, runtime, testing, tools
    from .ir.diagnostics import (
        AllocationError,
        CheckError,
        DeviceError,
        DTypeError,
        Error,
        LoweringError,
        ParseError,
        PassError,
        ShapeError,
        SubscriptError,
        VerifyError,
    )

__version__ = "0.1.0"

__all__ = [
    "AllocationError",
    "CheckError",
    "DTypeError",
    "DeviceError",
    "Error",
    "LoweringError",
    "ParseError",
    "PassError",
    "ShapeError",
    "SubscriptError",
    "VerifyError",
    "autograd",
    "ir",
    "lowering",
    "passes",
    "runtime",
    "testing",
    "tools",
]

_ROOMS = frozenset({"autograd", "ir", "lowering", "passes", "runtime", "testing", "tools"})


def __getattr__(name: str) -> "Any":
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name in __all__:
        value = getattr(import_module(".ir.diagnostics", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
