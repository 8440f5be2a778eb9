"""The walk over all that a function can reach from outside of its arguments: guards for it, and the places of arrays.

It starts at the function and follows cells, defaults, the globals that the code names, functions in turn, containers,
attributes, slots and classes.  Of an object, of a class and of a module of the user it follows the attributes that some
code (or a string in it) names, and all of them where code looks attributes up by computed names.
"""

from __future__ import annotations

import _thread
import builtins
import gc
import sys
from abc import ABCMeta, get_cache_token
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property, partial
from importlib.util import resolve_name
from itertools import compress
from operator import attrgetter, itemgetter, methodcaller
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any
from weakref import ref

import numpy as np

from ..ir.diagnostics import Error
from ..ir.location import FileLoc, caller_location
from . import functions
from .code_reads import code_reads, named_in_format
from .guards import Guard
from .identity import hides_state, told_by_themselves
from .libraries import (
    ENVIRONMENT,
    imported,
    is_benign,
    is_data,
    is_fixed,
    is_impure,
    is_library,
    is_library_class,
    is_unseeded,
    reads_files,
)
from .places import (
    MISSING,
    AttributePlace,
    CellPlace,
    ClassPlace,
    DefaultPlace,
    FixedPlace,
    Holder,
    IndexPlace,
    KeyPlace,
    Place,
    SlotPlace,
    namespace,
)
from .readers import (
    absence,
    class_reads,
    class_terms,
    dict_terms,
    getter,
    instance_reads,
    instance_terms,
    is_memory,
    list_terms,
    underlying,
)
from .tensor import Tensor
from .watched import plain

LIMIT = 100_000
"""How many objects a function may reach."""

_LOOKED_UP = """getattr vars dir locals __dict__ __getattribute__ __slots__ __getstate__ __reduce__ __reduce_ex__
    attrgetter methodcaller getmembers signature asdict astuple fields replace copy deepcopy dumps
    getattr_static"""
_DYNAMIC = frozenset(_LOOKED_UP.split())
"""Names that say that attributes may be looked up by names that no code tells."""
_KEPT_BY_PYTHON = """__module__ __doc__ __dict__ __weakref__ __annotations__ __qualname__ __firstlineno__
    __static_attributes__ __annotate__ __annotate_func__ __annotations_cache__ __dataclass_fields__
    __dataclass_params__ __orig_bases__ __parameters__ __abstractmethods__ _abc_impl __slots__ __subclasshook__
    __init_subclass__ __name__ __loader__ __spec__ __builtins__ __file__ __cached__ __package__"""
_BOOKKEEPING = frozenset(_KEPT_BY_PYTHON.split())
_ASKED = ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")
"""What of functions and classes counts where code names it."""
_MADE_BY = frozenset({"__init__", "__new__", "__post_init__", "__del__"})
"""What of a class runs only where code calls the class."""
_NAMESPACES = frozenset({"__globals__", "f_globals", "f_locals", "f_back"})
_OWN = vars(type)["__dict__"]
_NAMES_OF_VALUES = frozenset(n for t in (Tensor, np.ndarray, np, functions, dict, list, str) for n in dir(t))
_ATOMS = (type(None), int, float, complex, str, bytes, np.generic, np.dtype, range, slice)
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
_GENERATORS = {"numpy.random": ("Generator", "RandomState", "BitGenerator")}

Child = tuple[Place, Any]


class Walk:
    """`guards` of what was reached; `arrays`: Tensors and ndarrays and where they stand; `states`: things that draw
    numbers, whose state must not change while a function is traced.

    `held_by_others`: those of the roots that guards are not to keep alive; `weakly_held`: those that none does.
    """

    def __init__(self, roots: Sequence[Child], held_by_others: Sequence[object] = ()) -> None:
        self.names: set[str] = set()
        self._held_by_others = {
            id(v) for given in held_by_others for v in told_by_themselves(given) if type(v).__weakrefoffset__
        }
        while True:
            known = len(self.names)
            self.guards: list[Guard] = []
            self.arrays: list[Child] = []
            self.states: list[Guard] = []
            self.weakly_held: list[Callable[[], Any]] = []
            self._seen: dict[Any, Any] = {}
            self._codes: list[FunctionType] = []
            self.types_at: tuple[str, int] | None = None
            self._cells: list[tuple[str, Any]] = []
            self._tables: dict[int, tuple[dict[str, Any], str, dict[str, None], dict[str, None]]] = {}
            self._pending: list[Child] = list(roots)
            self._is_dynamic = not self.names.isdisjoint(_DYNAMIC)
            while self._pending:
                place, value = self._pending.pop()
                if isinstance(value, Tensor | np.ndarray):
                    self.arrays.append((place, value))
                    if not is_library_class(type(value)):
                        self._class(type(value), False)
                else:
                    self._visit(value, place.label)
            if len(self.names) == known:
                break
            # What was passed over may be named by code that was found later.
        self._finish()

    # What is collected.

    def _children(self, children: Sequence[Child]) -> list[bool]:
        """Follow these; which of them are no arrays, and so to be guarded by identity or value."""
        self._pending += reversed([(p, v) for p, v in children if v is not MISSING])
        return [not isinstance(v, Tensor | np.ndarray) for _, v in children]

    def _table(self, table: dict[str, Any], label: str, names: Iterator[str] | Sequence[str], has_all: bool) -> None:
        """Follow names in a namespace of which only these count."""
        known = self._tables.setdefault(id(table), (table, label, {}, {}))
        for name in names:
            if name not in table:
                known[3][name] = None
            elif name not in known[2] and name not in _BOOKKEEPING:
                value = plain(table[name])
                # What is read of a module, its chains tell.
                if has_all or not isinstance(value, ModuleType):
                    self._children([(KeyPlace(table, name, f"{label}.{name}" if has_all else name), value)])
                if not isinstance(value, Tensor | np.ndarray):
                    known[2][name] = None

    def _finish(self) -> None:
        for table, label, present, absent in self._tables.values():
            if present:
                owners = [(table, f"[{n!r}]", n) for n in present]
                self.guards.append(Guard(label, getter(table, list(present)), owners))
            if absent:
                lacks = ("{0}.keys().isdisjoint({1})", (table, tuple(absent)))
                self.guards.append(Guard(label, absence(table, tuple(absent)), terms=[lacks]))
        codes = self._codes
        if codes:
            owners = [(f, ".__code__", f.__name__) for f in codes]
            self.guards.append(Guard("a function", lambda: [f.__code__ for f in codes], owners))
        cells = self._cells
        if cells:
            owners = [(c, ".cell_contents", n) for n, c in cells]
            self.guards.append(Guard("an enclosing function", lambda: [c.cell_contents for _, c in cells], owners))

    # Kinds of things.

    def _visit(self, value: Any, label: str) -> None:
        self.names.update(named_in_format(value))
        if reads_files(value, self.names):
            self._refuse_impure(label, None)
        if id(value) in self._seen or _is_atom(value):
            return None
        self._seen[id(value)] = value
        if len(self._seen) > LIMIT:
            raise Error(f"jit: the function reaches too many objects through {label}", caller_location())
        if isinstance(value, FunctionType):
            return self._function(value, label)
        if isinstance(value, ModuleType):
            if is_library(vars(value)):
                return None
            if self._is_dynamic:
                self.guards.append(Guard(label, lambda: [len(vars(value))]))
            return self._table(vars(value), label, self._named(vars(value)), True)
        if isinstance(value, type):
            return self._class(value, True)
        if isinstance(value, MethodType):
            parts = {"__func__": value.__func__, "__self__": value.__self__}
        elif isinstance(value, partial):
            parts = {"func": value.func, "args": value.args, "keywords": value.keywords}
        elif isinstance(value, np.ufunc):
            if all(set(t) <= set("O->") for t in value.types):
                raise Error(f"jit: {label} is a function of Python in a ufunc, which cannot be seen", caller_location())
            return None
        elif isinstance(value, staticmethod | classmethod):
            parts = {"__func__": value.__func__}
        elif isinstance(value, property):
            parts = {"fget": value.fget, "fset": value.fset, "fdel": value.fdel}
        elif isinstance(value, cached_property):
            parts = {"func": value.func}
        elif isinstance(value, attrgetter | methodcaller | itemgetter):
            parts = {str(i): v for i, v in enumerate(gc.get_referents(value)) if not isinstance(v, type)}
            for given in [value.__reduce__()[1]] if isinstance(value, attrgetter | methodcaller) else []:
                self.names.update(n for v in given if isinstance(v, str) for n in v.split("."))
        elif isinstance(value, ref):
            self.guards.append(Guard(label, lambda: [value()]))
            parts = {"()": value()}
        elif isinstance(value, ContextVar):
            self.guards.append(Guard(label, lambda: [value.get(MISSING)]))
            parts = {"get()": value.get(MISSING)}
        elif type(value).__name__ == "_lru_cache_wrapper":
            # What it kept may be given; what it keeps from now on, and a clear, are seen by the counts.
            self.guards.append(Guard(label, lambda: [value.cache_info().misses, value.cache_info().currsize]))
            parts = {"__wrapped__": value.__wrapped__}
        elif hasattr(type(value), "__wrapped_function__"):
            wrapping: Any = value
            parts = {"function": wrapping.function}
        else:
            return self._container(value, label)
        self._children([(FixedPlace(v, f"{label}.{n}"), v) for n, v in parts.items()])
        if isinstance(value, partial | property | cached_property | staticmethod | classmethod):
            # `__setstate__` and `__init__` may be called again.
            names = list(parts)
            owners = [(value, f".{n}", f"{label}.{n}") for n in names]
            self.guards.append(Guard(label, lambda: [getattr(value, n) for n in names], owners))
        if not isinstance(value, MethodType):
            if not is_library_class(type(value)):
                self._class(type(value), False)
            self._set_by_users(value, label, False)
        return None

    def _set_by_users(self, value: object, label: str, takes_all: bool) -> None:
        """Attributes set on functions and the like, which mostly have none."""
        try:
            table = namespace(value)
        except AttributeError:
            return
        if not (table or self._is_dynamic or self.names - _NAMES_OF_VALUES):
            return  # nothing that is read could be set on it
        names = [n for n in table if n == "__wrapped__" or not n.startswith("_")]
        self._table(table, label, [n for n in names if takes_all or self._counts(n)], True)
        is_it = ("{0}.__dict__ is {1}", (value, table))
        has_these = ("[*{0}] == {1}", (table, [*table])) if table else ("not {0}", (table,))
        self.guards.append(Guard(label, lambda: [now := namespace(value), *now], terms=[is_it, has_these]))

    def _container(self, value: Any, label: str) -> None:
        kind = type(value)
        if isinstance(value, MappingProxyType):
            mapping = underlying(value)
            if not isinstance(mapping, dict):
                self._children([(FixedPlace(mapping, label), mapping)])
                return
            value, kind = mapping, dict
        if isinstance(value, tuple):
            self._children([(IndexPlace(value, i, f"{label}[{i}]"), v) for i, v in enumerate(tuple.__iter__(value))])
        elif isinstance(value, list | deque):
            iterate: Any = list.__iter__ if isinstance(value, list) else deque.__iter__
            mask = self._children(
                [(IndexPlace(value, i, f"{label}[{i}]"), plain(v)) for i, v in enumerate(iterate(value))]
            )
            terms = list_terms(value, mask) if isinstance(value, list) and kind is list else ()
            self.guards.append(Guard(label, lambda: [len(value), *compress(iterate(value), mask)], terms=terms))
        elif isinstance(value, dict):
            # The order of an OrderedDict is its own.
            ordered: Any = OrderedDict if isinstance(value, OrderedDict) else dict
            keys, values = ordered.keys, ordered.values
            items: list[Child] = [(KeyPlace(value, k, f"{label}[{k!r}]"), plain(v)) for k, v in ordered.items(value)]
            mask = self._children(items)
            self._children([(FixedPlace(k, f"a key of {label}"), k) for k in keys(value)])
            if isinstance(value, defaultdict):
                self._children([(FixedPlace(value.default_factory, f"{label}.default_factory"), value.default_factory)])
                self.guards.append(Guard(label, lambda: [value.default_factory]))
            # Keys of other types may have an equality of their own.
            terms = dict_terms(value, mask) if type(value) is dict and all(type(k) is str for k in value) else ()
            self.guards.append(Guard(label, lambda: [*keys(value), *compress(values(value), mask)], terms=terms))
        elif isinstance(value, set | frozenset):
            self._children([(FixedPlace(v, f"an element of {label}"), v) for v in value])
            if isinstance(value, set):
                self.guards.append(Guard(label, lambda: [*value]))
        elif isinstance(value, bytearray | memoryview | array) or is_memory(value):
            self.guards.append(Guard(label, lambda: [bytes(value)]))
            return
        elif self._is_source(value, label):
            return
        else:
            if not self._instance(value, label):
                self._foreign(value, label)
            elif isinstance(value, BaseException):
                self._referents(value, label, (type, TracebackType))
            return
        if kind not in (tuple, list, deque, dict, set, frozenset):
            self._instance(value, label)

    def _is_source(self, value: Any, label: str) -> bool:
        """What draws numbers has a state that is not to change while tracing."""
        read: Callable[[], Any]
        if isinstance(value, imported(_GENERATORS)):
            bits: Any = getattr(value, "bit_generator", value)
            read = lambda: [repr(getattr(bits, "state", None) or getattr(value, "_bit_generator").state)]  # noqa: E731, B009
        elif "random" in sys.modules and isinstance(value, sys.modules["random"].Random):
            read = lambda: [repr(value.getstate())]  # noqa: E731
        else:
            return False
        self.states.append(Guard(label, read))
        return True

    def _foreign(self, value: Any, label: str) -> None:
        """Objects without attributes of their own."""
        bound = getattr(value, "__self__", None)
        if bound is not None and not isinstance(bound, ModuleType):
            if is_impure(value):
                self._refuse_impure(label, None)
            self._children([(FixedPlace(bound, f"{label}.__self__"), bound)])
            return
        if is_impure(value):
            self._refuse_impure(label, None)
        if isinstance(value, _VIEWS):
            self._children([(FixedPlace(value.mapping, label), value.mapping)])
            return
        if hasattr(value, "readable") and not value.closed and not value.readable():
            return
        if hasattr(type(value), "__next__"):
            message = f"jit: {label} is an iterator, which would be read while tracing alone; make it a list"
            raise Error(message, caller_location())
        module = sys.modules.get(getattr(value, "__module__", None) or "")
        is_function_of_library = callable(value) and module is not None and is_library(vars(module))
        if isinstance(value, _thread._local | np.void) or not (is_library_class(type(value)) or is_function_of_library):
            message = f"jit: {label} is a {type(value).__qualname__}, whose changes cannot be seen"
            raise Error(f"{message}; pass what the function needs of it as arguments", caller_location())
        self._referents(value, label, (type, ModuleType))

    def _referents(self, value: object, label: str, but: tuple[type, ...]) -> None:
        """What objects of C refer to is all that Python can see of them."""
        read = lambda: [v for v in gc.get_referents(value) if not isinstance(v, but)]  # noqa: E731
        seen = read()
        if seen:
            self._children([(FixedPlace(v, label), v) for v in seen])
            self.guards.append(Guard(label, read))

    def _asked(self, value: object, label: str) -> None:
        """What code asks of functions and classes by names that Python keeps."""
        asked = [n for n in _ASKED if n in self.names]
        if asked:
            read = lambda: [getattr(value, n, None) for n in asked]  # noqa: E731
            self._children([(FixedPlace(v, f"{label}.{n}"), v) for n, v in zip(asked, read(), strict=True)])
            self.guards.append(Guard(label, read))

    def _function(self, function: FunctionType, label: str) -> None:
        if is_impure(function):
            self._refuse_impure(label, None)
        if function in ENVIRONMENT:
            self._children([(FixedPlace(ENVIRONMENT[function], "os.environ"), ENVIRONMENT[function])])
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            place = CellPlace(cell, name)
            value = plain(place.read())
            if value is MISSING:
                self.guards.append(Guard(name, lambda place=place: [place.read()]))
            elif name == "__class__" and isinstance(value, type) and "super" in code_reads(code).globals:
                self._class(value, False)
            elif isinstance(value, ModuleType) or self._children([(place, value)])[0]:
                self._cells.append((name, cell))
        for number, value in enumerate(function.__defaults__ or ()):
            self._children([(DefaultPlace(function, number, f"a default of {function.__name__}"), value)])
        if function.__kwdefaults__:
            self._visit(function.__kwdefaults__, f"a default of {function.__name__}")
        if function.__defaults__ or function.__kwdefaults__:
            label = f"a default of {function.__name__}"
            owners = [(function, f".__{n}__", label) for n in ("defaults", "kwdefaults")]
            self.guards.append(Guard(label, lambda: [function.__defaults__, function.__kwdefaults__], owners))
        library = is_library(function.__globals__)
        if vars(function) or not library:
            self._set_by_users(function, function.__name__, library)
        if library:
            return
        self._codes.append(function)
        self._asked(function, function.__name__)
        reads = code_reads(code)
        self.names |= reads.attributes
        self.types_at = self.types_at or reads.types_at
        for name in _NAMESPACES.intersection(reads.attributes):
            self._refuse_impure(name, (code.co_filename, code.co_firstlineno))
        table = function.__globals__
        self._table(table, table.get("__name__", "globals"), reads.globals, False)
        builtin: Any = vars(builtins)
        set_by_users = [
            n for n in reads.globals if n not in table and not isinstance(builtin.get(n), type | BuiltinFunctionType)
        ]
        self._table(builtin, "builtins", [n for n in set_by_users if n in builtin], False)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for root, names, is_import, line, is_bare in reads.chains:
            if is_import:
                if root.startswith("."):
                    root = resolve_name(root, table.get("__package__") or "")
                module = sys.modules.get(root)
                if module is None:
                    self._table(sys.modules, "sys.modules", [root], True)
                elif isinstance(module, ModuleType):
                    self._module(module, root, names, (code.co_filename, line), is_bare)
                continue
            value = CellPlace(cells[root], root).read() if root in cells else table.get(root, vars(builtins).get(root))
            if is_impure(value) or (is_bare and not names and is_unseeded(value)):
                self._refuse_impure(root, (code.co_filename, line))
            if (
                names
                and isinstance(value, type)
                and is_library_class(value)
                and is_impure(getattr(value, names[0], None))
            ):
                self._refuse_impure(f"{root}.{names[0]}", (code.co_filename, line))
            if isinstance(value, ModuleType):
                self._module(value, root, names, (code.co_filename, line), is_bare)

    def _module(self, module: ModuleType, label: str, names: Sequence[str], at: tuple[str, int], is_bare: bool) -> None:
        """A chain of attributes that starts at a module; those of libraries are taken as constant, but what changes
        by itself."""
        if not is_library(vars(module)):
            inner = vars(module).get(names[0]) if names else None
            if isinstance(inner, ModuleType):
                self._table(vars(module), label, names[:1], False)
                self._module(inner, f"{label}.{names[0]}", names[1:], at, is_bare)
            elif names:
                self._table(vars(module), label, [*names[:1], "__getattr__"], True)
            else:
                self._pending.append((FixedPlace(module, label), module))
            return
        if not is_fixed(vars(module)) or (names and is_data(module, names[0])):
            self._table(vars(module), label, names[:1], False)
        chosen = [*names[:1]] or [n for n in sorted(self.names) if n in vars(module)]
        for name in chosen:
            value = vars(module).get(name, MISSING)
            inner = f"{label}.{name}"
            if isinstance(value, ModuleType):
                if names:
                    self._module(value, inner, names[1:], at, is_bare)
            elif reads_files(value, self.names) or (is_bare and not names[1:] and is_unseeded(value)):
                self._refuse_impure(inner, at)
            elif is_impure(value) or (names[1:2] and is_impure(getattr(value, names[1], None))):
                self._refuse_impure(".".join([inner, *names[1:2]]), at)
            elif isinstance(value, FunctionType) and value in ENVIRONMENT:
                self._visit(value, inner)
            elif not isinstance(value, type | FunctionType) and not isinstance(value, _ATOMS) and value is not MISSING:
                self._pending.append((KeyPlace(vars(module), name, inner), value))

    def _refuse_impure(self, label: str, at: tuple[str, int] | None) -> None:
        where = caller_location() if at is None else FileLoc(at[0], at[1], 1)
        message = f"jit: what {label} gives cannot be told from the code, and it would be called while tracing alone"
        raise Error(f"{message}; pass its value as an argument", where)

    def _counts(self, name: str) -> bool:
        return name == "__wrapped__" or (name not in _BOOKKEEPING and (self._is_dynamic or name in self.names))

    def _named(self, table: Mapping[str, object]) -> list[str]:
        """The names of a namespace that count, those that are not there too."""
        if self._is_dynamic:
            return [*{**dict.fromkeys(self.names), **dict.fromkeys(n for n in table if n not in _BOOKKEEPING)}]
        return [n for n in self.names if n not in _BOOKKEEPING]

    def _class(self, cls: type, is_named: bool) -> None:
        """`is_named`: code reaches the class itself, and not just objects of it, so it may call it."""
        is_called = is_named or self._is_dynamic or self.types_at is not None or "__class__" in self.names
        if type(cls) is not type and not is_library_class(type(cls)):
            self._pending.append((FixedPlace(type(cls), type(cls).__qualname__), type(cls)))
        for base in cls.__mro__:
            if is_library_class(base) or (base, True) in self._seen or (base, is_called) in self._seen:
                continue
            self._seen[base, is_called] = base
            table = vars(base)
            if "__match_args__" in self.names:
                self.names.update(table.get("__match_args__", ()))
            self._asked(base, base.__qualname__)
            if isinstance(base, ABCMeta):
                self.guards.append(Guard("classes registered", lambda: [get_cache_token()]))
            if "__subclasses__" in self.names:
                self.guards.append(Guard(f"class {base.__qualname__}", base.__subclasses__))
            followed = [
                n
                for n, v in table.items()
                if n not in _BOOKKEEPING
                and not isinstance(v, MemberDescriptorType)
                and (self._counts(n) or (n.startswith("__") and n.endswith("__")))
                and (is_called or n not in _MADE_BY or n in self.names)
            ]
            children: list[Child] = [
                (ClassPlace(base, n, f"{base.__qualname__}.{n}"), plain(table[n])) for n in followed
            ]
            kept = list(compress(followed, self._children(children)))
            kept += [n for n, v in table.items() if isinstance(v, MemberDescriptorType) and self._counts(n)]
            self.guards.append(
                Guard(
                    f"class {base.__qualname__}",
                    class_reads(base, table, kept),
                    terms=class_terms(base, table, kept),
                )
            )

    def _instance(self, value: object, label: str) -> bool:
        """An object's own attributes and its class; False when it has none."""
        cls: Any = type(value)
        if is_benign(cls):
            return True
        bases = [b for b in cls.__mro__ if b is not object]
        takes_all = self._is_dynamic or any(is_library_class(b) for b in bases)
        slots = [
            (n, d) for b in bases for n, d in vars(b).items() if isinstance(d, MemberDescriptorType)
        ]  # fmt: skip
        for base in bases:
            if not is_library_class(base) and not isinstance(vars(base).get("__dict__", _OWN), GetSetDescriptorType):
                message = f"jit: {label} is a {cls.__qualname__}, whose __dict__ is a property"
                raise Error(f"{message}; pass what the function needs of it as arguments", caller_location())
        try:
            table = namespace(value)
        except AttributeError:
            table = None
        if table is None and is_library_class(cls):
            return False
        if not is_library_class(cls):
            self._class(cls, False)
            if not any(is_library_class(b) for b in bases) and hides_state(cls, len(slots)):
                return False
        is_weak = id(value) in self._held_by_others
        holder = Holder(value, is_weak)
        if is_weak:
            self.weakly_held.append(holder.get)
        if table is not None:
            followed = [n for n in table if takes_all or self._counts(n)]
            children: list[Child] = [(AttributePlace(holder, n, f"{label}.{n}"), plain(table[n])) for n in followed]
            names = list(compress(followed, self._children(children)))
            self.guards.append(Guard(label, instance_reads(holder, names), terms=instance_terms(holder, names)))
        else:
            text, objects = holder.term
            kind = (f"{text}.__class__ is {{1}}", (*objects, value.__class__))
            self.guards.append(Guard(label, lambda: [holder.get().__class__], terms=[kind]))
        chosen = [(n, d) for n, d in slots if takes_all or self._counts(n)]
        if chosen:
            places = [SlotPlace(holder, d, f"{label}.{n}") for n, d in chosen]
            found = [(p, plain(p.read())) for p in places]
            kept_places = list(compress(places, self._children(found)))
            self.guards.append(Guard(label, lambda: [p.read() for p in kept_places]))
        return True


def _is_atom(value: object) -> bool:
    """Whether a value has no parts and never changes, as a record of NumPy's does."""
    return isinstance(value, _ATOMS) and is_library_class(type(value)) and not isinstance(value, np.void)
