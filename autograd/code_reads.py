"""What the bytecode of a function names: globals, attributes, imports, and chains such as `np.random.rand`."""

from __future__ import annotations

import dis
import string
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL"})
_SIMPLE = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_ATTR")
_NOTHING = frozenset({"EXTENDED_ARG", "CACHE", "NOP", "PRECALL", "PUSH_NULL"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


class Chain(NamedTuple):
    """A name and the attributes read from it one after the other; `imported`: it is the name of a module; `is_bare`:
    what was read is called without arguments."""

    root: str
    attributes: tuple[str, ...]
    imported: bool
    line: int
    is_bare: bool = False


class CodeReads(NamedTuple):
    """`attributes`: every name and every string in the code, since strings may name attributes too; `types_at`: where
    the type of a value is asked and looked at (unlike in `type(x).name`)."""

    globals: tuple[str, ...]
    attributes: frozenset[str]
    chains: tuple[Chain, ...]
    types_at: tuple[str, int] | None


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
    if any(i.opname == "MATCH_CLASS" for current in codes for i in dis.get_instructions(current)):
        attributes.add("__match_args__")
    lines = [line for current in codes for line in _types(current)]
    types_at = (code.co_filename, lines[0]) if lines else None
    return CodeReads(tuple(found), frozenset(attributes), tuple(chains), types_at)


def named_in_format(text: object) -> Iterator[str]:
    """The names in a text as `str.format` takes it: "{a.b[c]}" gives a, b and c."""
    if not isinstance(text, str) or "{" not in text:
        return
    try:
        fields = [f for _, f, _, _ in string.Formatter().parse(text) if f]
    except ValueError:
        return
    for field in fields:
        yield from field.replace("[", ".").replace("]", "").split(".")


def _types(code: CodeType) -> Iterator[int]:
    """The lines where `type` is read and not called for an attribute of the type at once, as in `type(x).name`."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _NOTHING]
    line = code.co_firstlineno
    for place, instruction in enumerate(instructions):
        line = _line(instruction) or line
        if instruction.opname in _GLOBALS and instruction.argval == "type":
            after = place + 1
            while after < len(instructions) and instructions[after].opname.startswith(_SIMPLE):
                after += 1
            called, attribute = [*(i.opname for i in instructions[after : after + 2]), "", ""][:2]
            is_last_of_two = after == place + 1 and called.startswith("CALL") and instructions[after].arg == 2
            is_looked_up = after > place + 1 and called.startswith("CALL") and attribute in _ATTRIBUTES
            if not is_last_of_two and not is_looked_up:  # such as isinstance(x, type), or type(x).name
                yield line


def _strings(constants: Iterable[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
            yield from named_in_format(constant)
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
        if name in _NOTHING:
            continue
        if root:
            yield Chain(root, attributes, imported, line, name.startswith("CALL") and instruction.arg == 0)
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
