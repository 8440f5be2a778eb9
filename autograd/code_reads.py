"""What the bytecode of a function names: globals, attributes, imports, and chains such as `np.random.rand`."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"})


class Chain(NamedTuple):
    """A name and the attributes read from it one after the other; `imported`: it is the name of a module."""

    root: str
    attributes: tuple[str, ...]
    imported: bool
    line: int


class CodeReads(NamedTuple):
    """`attributes`: every name and every string in the code, since strings may name attributes too."""

    globals: tuple[str, ...]
    attributes: frozenset[str]
    chains: tuple[Chain, ...]


@lru_cache(maxsize=4096)
def code_reads(code: CodeType) -> CodeReads:
    """What a code object and those nested in it name."""
    found: dict[str, None] = {}
    attributes: set[str] = set()
    chains: list[Chain] = []
    pending = [code]
    while pending:
        current = pending.pop()
        attributes.update(current.co_names)
        attributes.update(_strings(current.co_consts))
        pending += [c for c in current.co_consts if isinstance(c, CodeType)]
        found.update((str(i.argval), None) for i in dis.get_instructions(current) if i.opname in _GLOBALS)
        chains += _chains(current)
    return CodeReads(tuple(found), frozenset(attributes), tuple(chains))


def _strings(constants: Any) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _strings(constant)


def _chains(code: CodeType) -> Iterator[Chain]:
    modules: dict[str, str] = {}  # local names of modules that are imported inside
    root, attributes, imported, module, line = "", (), False, "", code.co_firstlineno
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        # Both Pythons with `starts_line` as a number and with it as a flag have the line of the position.
        at = instruction.positions.lineno if instruction.positions is not None else None
        line = at or line
        if name in _ATTRIBUTES and name != "IMPORT_FROM" and root:
            attributes = (*attributes, str(value))
            continue
        if name in ("EXTENDED_ARG", "CACHE", "NOP"):
            continue
        if root:
            yield Chain(root, attributes, imported, line)
        root, attributes, imported = "", (), False
        if name in _LOADS:
            root = str(value)
            if root in modules:
                root, imported = modules[root], True
        elif name == "IMPORT_NAME":
            module = str(value)
        elif name == "IMPORT_FROM":
            yield Chain(module, (str(value),), True, line)
        elif name.startswith("STORE_") and module:
            modules.setdefault(str(value), module)
        elif name.startswith("LOAD_FAST") and isinstance(value, str) and value in modules:
            root, imported = modules[value], True
    if root:
        yield Chain(root, attributes, imported, line)
