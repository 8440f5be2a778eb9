"""What is taken as constant: the modules of Python, NumPy and this package, and the code of others that are installed.

What of them is not: clocks, random numbers, files, the environment, and names that are looked up by text.
"""

from __future__ import annotations

import builtins
import datetime
import importlib
import inspect
import os
import secrets
import sys
import sysconfig
import time
import uuid
from collections.abc import Mapping
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

_PACKAGE = __name__.partition(".")[0]
_ROOMS = frozenset({"autograd", "ir", "passes", "runtime", "lowering"})
_LIBRARIES = frozenset({"numpy", "ml_dtypes"})
_INSTALLED = tuple(p for p in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")} if p)
_PYTHON = tuple(p for p in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")} if p)

_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
           "process_time_ns", "thread_time", "thread_time_ns", "localtime", "gmtime", "ctime", "asctime")  # fmt: skip
_IMPURE = frozenset(
    [
        *(getattr(time, n) for n in _CLOCKS if hasattr(time, n)),
        *(getattr(uuid, n) for n in ("uuid1", "uuid4")),
        *(getattr(secrets, n) for n in ("token_bytes", "token_hex", "randbelow", "randbits")),
        *(getattr(os, n) for n in ("urandom", "getcwd", "listdir", "stat", "getpid", "times")),
        *(getattr(builtins, n) for n in ("open", "input", "eval", "exec", "globals", "__import__")),
        *(getattr(inspect, n) for n in ("currentframe", "stack")),
        importlib.import_module,
        getattr(sys, "_getframe"),  # noqa: B009 - the type checker does not let it be named
    ]
)
_DATES = frozenset({"now", "utcnow", "today"})
ENVIRONMENT: dict[Any, Any] = {os.getenv: os.environ}
"""Functions of the library that read an object which can be watched."""

_BENIGN_MODULES = frozenset(
    ["logging", "pathlib", "re", "datetime", "decimal", "_decimal", "fractions", "uuid", "typing", "inspect", "abc"]
)
_known: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def is_library(table: Mapping[str, Any]) -> bool:
    """Whether the code of a module is taken as constant: that of Python and of installed packages."""
    file = table.get("__file__")
    return is_fixed(table) or (isinstance(file, str) and file.startswith(_INSTALLED))


def is_fixed(table: Mapping[str, Any]) -> bool:
    """Whether the names in a module are taken as constant too."""
    name = str(table.get("__name__", ""))
    top, _, rest = name.partition(".")
    if top == _PACKAGE:
        return not rest or rest.partition(".")[0] in _ROOMS
    if top in _LIBRARIES:
        return True
    if top not in sys.stdlib_module_names:
        return False
    # A module of the user may have the name of one of Python's.
    file = table.get("__file__")
    return not isinstance(file, str) or (file.startswith(_PYTHON) and not file.startswith(_INSTALLED))


def is_library_class(cls: type) -> bool:
    """Whether a class comes from a library."""
    known = _known.get(cls)
    if known is None:
        module = sys.modules.get(cls.__module__)
        known = _known[cls] = module is not None and is_library(vars(module))
    return known


def is_benign(cls: type) -> bool:
    """Whether nothing that a function computes comes from the state of such objects: locks, loggers, paths, dates."""
    module = cls.__module__
    if module.startswith((f"{_PACKAGE}.ir.", f"{_PACKAGE}.autograd.dtypes")):
        return True
    is_known = module.partition(".")[0] in _BENIGN_MODULES or cls.__name__ in ("lock", "RLock")
    return is_known and is_library_class(cls)


def is_impure(value: Any) -> bool:
    """Whether a function gives another result at each call whatever its arguments are."""
    if isinstance(value, FunctionType):
        return value in _IMPURE
    if not callable(value) or isinstance(value, type):
        return False
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, datetime.date):
        return getattr(value, "__name__", "") in _DATES
    try:
        return value in _IMPURE
    except TypeError:
        return False
