"""What is taken as constant: the modules of Python, NumPy and this package, and the code of others that are installed.

What of them is not: clocks, random numbers, files, the environment, and names that are looked up by text.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

_PACKAGE = __name__.partition(".")[0]
_ROOMS = frozenset({"autograd", "ir", "passes", "runtime", "lowering"})
_LIBRARIES = frozenset({"numpy", "ml_dtypes"})

# By name: a module that nobody has imported yet is in nobody's function, and importing all of them takes its time.
_IMPURE = {
    "time": ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
             "process_time_ns", "thread_time", "thread_time_ns", "localtime", "gmtime", "ctime", "asctime", "strftime"),
    "uuid": ("uuid1", "uuid4"),
    "secrets": ("token_bytes", "token_hex", "randbelow", "randbits", "choice", "token_urlsafe"),
    "os": ("urandom", "getcwd", "listdir", "scandir", "stat", "access", "getpid", "getppid", "times"),
    "os.path": ("exists", "isfile", "isdir", "getsize", "getmtime", "getatime", "getctime"),
    "threading": ("current_thread", "get_ident", "get_native_id", "active_count"),
    "numpy": ("load", "loadtxt", "genfromtxt", "fromfile", "geterr", "get_printoptions"),
    "codecs": ("open",),
    "decimal": ("getcontext",),
    "builtins": ("open", "input", "eval", "exec", "globals", "__import__"),
    "inspect": ("currentframe", "stack"),
    "importlib": ("import_module",),
    "sys": ("getrecursionlimit", "_getframe"),
}  # fmt: skip
"""Functions that give another result at each call whatever their arguments are, by module."""
_UNSEEDED = {
    "random": ("Random",),
    "numpy.random": ("default_rng", "RandomState", "SeedSequence", "PCG64"),
}
"""Functions and classes that draw random numbers when called without arguments, by module."""
_DATES = frozenset({"now", "utcnow", "today"})
_FILES = frozenset(
    {"read_text", "read_bytes", "exists", "is_file", "is_dir", "iterdir", "glob", "rglob", "stat", "cwd"}
)
_STREAMS = frozenset({"read", "readline", "readlines", "readinto", "getvalue", "getbuffer"})
_ENVIRONMENT_READERS = [getattr(os, n) for n in ("getenv", "getenvb") if hasattr(os, n)]
ENVIRONMENT: dict[Any, Any] = dict.fromkeys([*_ENVIRONMENT_READERS, os.path.expandvars, os.path.expanduser], os.environ)
"""Functions of the library that read an object which can be watched."""

_BENIGN_MODULES = frozenset(
    ["logging", "pathlib", "re", "datetime", "decimal", "_decimal", "fractions", "uuid", "typing", "inspect", "abc"]
)
_MAKERS = frozenset({"abc", "collections", "dataclasses", "enum", "functools", "types", "typing"})
"""Modules that make classes, which then say that they are of these modules."""
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
"""Flags of types (Include/object.h of CPython): made while the program runs; nothing can be set on it."""
_known: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


@cache
def _installed() -> tuple[str, ...]:
    """Where packages are installed."""
    import sysconfig  # most programs do not come here

    return tuple(p for p in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")} if p)


@cache
def _python() -> tuple[str, ...]:
    """Where Python's own modules are."""
    import sysconfig  # most programs do not come here

    return tuple(p for p in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")} if p)


def imported(table: Mapping[str, tuple[str, ...]]) -> tuple[Any, ...]:
    """Those of the functions and classes in a table, by module, whose modules are imported."""
    found = [getattr(sys.modules.get(module), name, None) for module, names in table.items() for name in names]
    return tuple(f for f in found if f is not None)


def is_library(table: Mapping[str, object]) -> bool:
    """Whether the code of a module is taken as constant: that of Python and of installed packages."""
    file = table.get("__file__")
    return is_fixed(table) or (isinstance(file, str) and file.startswith(_installed()))


def is_fixed(table: Mapping[str, object]) -> bool:
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
    return not isinstance(file, str) or (file.startswith(_python()) and not file.startswith(_installed()))


def is_library_class(cls: type) -> bool:
    """Whether a class comes from a library."""
    known = _known.get(cls)
    if known is None:
        module = sys.modules.get(cls.__module__)
        known = _known[cls] = module is not None and is_library(vars(module)) and _is_made_there(cls, module)
    return known


def _is_made_there(cls: type, module: ModuleType) -> bool:
    """Whether a class is of the module that it names: what `abc`, `types` or `dataclasses` make for the user is not."""
    is_of_python = cls.__flags__ & _HEAP and not cls.__flags__ & _IMMUTABLE
    if not is_of_python or "<locals>" in cls.__qualname__ or module.__name__.partition(".")[0] == _PACKAGE:
        return True
    found: object = module
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls or module.__name__ not in _MAKERS


def is_benign(cls: type) -> bool:
    """Whether nothing that a function computes comes from the state of such objects: locks, loggers, paths, dates."""
    module = cls.__module__
    if module.startswith((f"{_PACKAGE}.ir.", f"{_PACKAGE}.autograd.dtypes")):
        return True
    is_known = module.partition(".")[0] in _BENIGN_MODULES or cls.__name__ in ("lock", "RLock")
    return is_known and is_library_class(cls)


def is_data(module: object, name: str) -> bool:
    """Whether a name in a module of Python is of a value that may be set, such as `sys.argv`."""
    table = vars(module)
    top = str(table.get("__name__", "")).partition(".")[0]
    if top in _LIBRARIES or top in (_PACKAGE, "math", "cmath", "string"):
        return False
    value = table.get(name)
    return not callable(value) and not isinstance(value, ModuleType)


def reads_files(value: object, names: set[str]) -> bool:
    """Whether something is a path, the class of paths or a stream, and code names methods that read from it."""
    if isinstance(value, io.IOBase):
        return not value.closed and value.readable() and not _STREAMS.isdisjoint(names)
    paths = imported({"pathlib": ("PurePath",)})
    is_path = isinstance(value, paths) or (isinstance(value, type) and issubclass(value, paths))
    return is_path and not _FILES.isdisjoint(names)


def is_unseeded(value: object) -> bool:
    """Whether random numbers come of a call without arguments."""
    return any(value is u for u in imported(_UNSEEDED))


def is_impure(value: object) -> bool:
    """Whether a function gives another result at each call whatever its arguments are."""
    if not callable(value) or isinstance(value, type):
        return False
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, imported({"datetime": ("date",)})):
        return getattr(value, "__name__", "") in _DATES
    return any(value is f for f in imported(_IMPURE))
