"""What the bytecode of a function names: globals, attributes, imports, and chains such as `np.random.rand`."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


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
    codes = [code]
    for current in codes:
        attributes.update(current.co_names)
        attributes.update(_strings(current.co_consts))
        codes += [c for c in current.co_consts if isinstance(c, CodeType)]
        found.update((str(i.argval), None) for i in dis.get_instructions(current) if i.opname in _GLOBALS)
    modules: dict[str, str] = {}
    chains = [c for current in codes for c in _imports(current, modules)]
    chains += [c for current in codes for c in _chains(current, modules)]
    return CodeReads(tuple(found), frozenset(attributes), tuple(chains))


def _strings(constants: Any) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _strings(constant)


def _imports(code: CodeType, modules: dict[str, str]) -> Iterator[Chain]:
    """What is imported inside; `modules` gets the names that modules are bound to. Relative names start with dots."""
    line, module, before = code.co_firstlineno, "", [0, 0]
    is_direct = False
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        line = _line(instruction) or line
        if name == "IMPORT_NAME":
            module = "." * (before[-2] if isinstance(before[-2], int) else 0) + str(value)
            is_direct = True
        elif name == "IMPORT_FROM":
            yield Chain(module, (str(value),), True, line)
            yield Chain(f"{module}{'' if module.endswith('.') else '.'}{value}", (), True, line)  # it may be a module
            if module.endswith(f".{value}"):
                yield Chain(module, (), True, line)
            is_direct = False
        elif name.startswith("STORE_") and is_direct:
            modules[str(value)] = module.partition(".")[0]
            is_direct = False
        before = [before[-1], value]


def _chains(code: CodeType, modules: dict[str, str]) -> Iterator[Chain]:
    root, attributes, imported, line = "", (), False, code.co_firstlineno
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        line = _line(instruction) or line
        if name in _ATTRIBUTES and root:
            attributes = (*attributes, str(value))
            continue
        if name in ("EXTENDED_ARG", "CACHE", "NOP"):
            continue
        if root:
            yield Chain(root, attributes, imported, line)
        root, attributes, imported = "", (), False
        if isinstance(value, str) and (name in _LOADS or name.startswith("LOAD_FAST")):
            if value in modules:
                root, imported = modules[value], True
            elif name in _LOADS:
                root = value
    if root:
        yield Chain(root, attributes, imported, line)


def _line(instruction: dis.Instruction) -> int | None:
    # `starts_line` is a number in some versions of Python and a flag in others.
    return None if instruction.positions is None else instruction.positions.lineno
