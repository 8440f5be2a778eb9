"""Printing of IR as text, in custom or generic form.

A value prints as the name it wishes, made unique with a suffix, else as a number.  Names are given in text order and
are free again at the end of the region that defines them; an isolated region starts afresh.  Generic form is exactly
MLIR's.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Final

from . import assembly
from .affine import AffineMap, dim
from .attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr, dict_text, symbol_text
from .collector import without_collector
from .definition import ISOLATED, NO_TERMINATOR, TERMINATOR, Op
from .dialect import dialect_of
from .interfaces import CustomForm
from .location import quote
from .operations import Block, Operation, Region
from .property_text import attr_dict_text, property_text
from .recursion import deep_recursion
from .types import FunctionType, Type
from .values import Value

SHORT: Final = {"builtin.module": "module", "func.return": "return"}
"""Operations that custom form names without their dialect."""

_NAME = re.compile(r"[A-Za-z$._-][\w$.-]*", re.ASCII)
_FOREIGN = re.compile(r"[^\w$.-]", re.ASCII)


class _Names(dict[Value, str]):
    """The texts of values, `%` included; a value that is looked up gets its name then."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer

    def __missing__(self, value: Value) -> str:
        return self.printer.name_early(value)


class Printer:
    """Collects text; custom `print` methods of op classes work with this interface."""

    def __init__(
        self,
        generic: bool = False,
        compat: bool = False,
        locations: bool = False,
        keep_names: bool = True,
    ) -> None:
        self.generic = generic
        self.compat = compat
        self.locations = locations
        self.keep_names = keep_names
        self.out: list[str] = []
        self.names = _Names(self)
        self.used: set[str] = set()
        self.log: list[str] = []  # names in use that end with the region
        self.number = 0
        self._kept_number = 0  # numbers below were given before their definition: not free at the end of a region
        self._blocks: dict[Block, str] = {}
        self.indent = "\n"

    # What custom printers use.

    def write(self, text: str) -> None:
        """Add text."""
        self.out.append(text)

    def value(self, value: Value) -> None:
        """Add a value's name."""
        self.out.append(self.names[value])

    def values(self, values: Iterable[Value]) -> None:
        """Add names separated by commas."""
        names = self.names
        self.out.append(", ".join([names[v] for v in values]))

    def type(self, type: Type) -> None:
        """Add a type."""
        self.out.append(str(type))

    def types(self, types: Iterable[Type]) -> None:
        """Add types separated by commas."""
        self.out.append(", ".join([str(t) for t in types]))

    def attribute(self, attribute: Attribute, with_type: bool = True) -> None:
        """Add an attribute, a number perhaps without its type."""
        text = str(attribute)
        if not with_type and isinstance(attribute, IntegerAttr | FloatAttr | DenseAttr):
            text = text.removesuffix(f" : {attribute.type}")
        self.out.append(text)

    def attr_dict(self, op: Operation, elided: Iterable[str] = ()) -> None:
        """Add ` {..}` with the discardable attributes and all properties that are not elided; nothing when none."""
        self.out.append(attr_dict_text(op, frozenset(elided)))

    def property_value(self, op: Op, name: str) -> None:
        """Add a property in its short spelling."""
        self.out.append(property_text(op.definition.properties[name], op.properties[name]))

    def symbol(self, name: str) -> None:
        """Add `@name`."""
        self.out.append(symbol_text(name))

    def subscripts(self, map: AffineMap, values: Sequence[Value]) -> None:
        """Add `[%i + 2 * %k - 1, %c]`."""
        distinct = list(dict.fromkeys(values))
        if len(distinct) < len(values):
            # The text is read with one dimension for a value, and sums print in the order of dimensions.
            map = map.compose(AffineMap(len(distinct), 0, [dim(distinct.index(v)) for v in values]))
        names = [self.names[v] for v in distinct]
        self.out.append("[" + ", ".join([r.format(names) for r in map.results]) + "]")

    def fresh_names(self, values: Iterable[Value]) -> None:
        """Give values their names in the current scope, as their definition."""
        for value in values:
            if value not in self.names:
                self.names[value] = self._choose(value)

    @contextmanager
    def isolated(self) -> Generator[None]:
        """A scope of its own: outer names may be used again."""
        if self.generic:
            yield
            return
        saved = self._isolate()
        yield
        self._restore(saved)

    @contextmanager
    def scope(self) -> Generator[None]:
        """Names that are chosen inside are free again at the end: for arguments that the op prints before a region."""
        log, number = len(self.log), self.number
        yield
        self._release(log, number)

    def adopt_name(self, value: Value, text: str) -> None:
        """Let a value be called `text`, a name from an outer scope, if that is free here."""
        if text in self.used or "#" in text:
            return
        self.names[value] = text
        self.used.add(text)
        self.log.append(text)
        if text[1:].isdigit():
            self.number = max(self.number, int(text[1:]) + 1)

    def region(
        self, region: Region, *, arguments: bool = False, hide_terminator: bool = False, labelled: bool = False
    ) -> None:
        """Add `{..}`.

        `arguments`: the entry block's arguments stand in a label (else the op prints them itself, with
        `fresh_names`); `hide_terminator`: leave out a last op that is only a terminator, without operands
        (it stays where locations are printed, which it would lose); `labelled`: an empty block has a label.
        """
        log, number = len(self.log), self.number
        out = self.out
        out.append("{")
        outer = self.indent
        inner = self.indent = outer + "  "
        for index, block in enumerate(region.blocks):
            self.fresh_names(block.arguments)
            # In generic form `{}` is a region without blocks, so an empty block needs its label.
            if index or (arguments and block.arguments) or (labelled and block.first is None):
                self._label(region, block, outer, with_arguments=bool(index) or arguments)
            op = block.first
            last = block.last
            if hide_terminator and not self.locations and last is not None and _implied(last):
                while op is not last:
                    assert op is not None
                    out.append(inner)
                    self.operation(op)
                    op = op.next
                continue
            while op is not None:
                out.append(inner)
                self.operation(op)
                op = op.next
        self.indent = outer
        out.append("}" if out[-1] == "{" else outer + "}")
        self._release(log, number)

    # Names.

    def _isolate(self) -> tuple[set[str], list[str], int, int]:
        saved = self.used, self.log, self.number, self._kept_number
        self.used, self.log, self.number, self._kept_number = set(), [], 0, 0
        return saved

    def _restore(self, saved: tuple[set[str], list[str], int, int]) -> None:
        self.used, self.log, self.number, self._kept_number = saved

    def _release(self, log: int, number: int) -> None:
        names = self.log
        if len(names) > log:
            self.used.difference_update(names[log:])
            del names[log:]
        self.number = max(number, self._kept_number)

    def _choose(self, value: Value, early: bool = False) -> str:
        wish = value.name
        if wish and self.keep_names:
            if _NAME.fullmatch(wish) is None:
                wish = _FOREIGN.sub("_", wish)
                if wish[0].isdigit():
                    wish = "_" + wish
            text = "%" + wish
            used = self.used
            if text in used:
                suffix = 0
                while f"{text}_{suffix}" in used:
                    suffix += 1
                text = f"{text}_{suffix}"
            used.add(text)
            if not early:
                self.log.append(text)
            return text
        number = self.number
        self.number = number + 1
        if early:
            self._kept_number = number + 1
        return f"%{number}"

    def name_early(self, value: Value) -> str:
        """The name of a value that is used before its definition is printed."""
        text = self.names[value] = self._choose(value, early=True)
        return text

    def block_name(self, block: Block) -> str:
        """`^bb1`."""
        found = self._blocks.get(block)
        if found is None:
            region = block.parent
            blocks = region.blocks if region is not None else [block]
            for index, each in enumerate(blocks):
                self._blocks[each] = f"^bb{index}"
            found = self._blocks[block]
        return found

    def _label(self, region: Region, block: Block, indent: str, with_arguments: bool = True) -> None:
        names = self.names
        self.fresh_names(block.arguments)
        text = ", ".join([f"{names[a]}: {a.type}" for a in block.arguments]) if with_arguments else ""
        self.out.append(f"{indent}{self.block_name(block)}{f'({text})' if text else ''}:")

    # Operations.

    def operation(self, op: Operation) -> None:
        """Add an operation, its location included if asked for."""
        out = self.out
        results = op.results
        if results:
            names = self.names
            if len(results) == 1:
                result = results[0]
                text = names[result] if result in names else self._choose(result)
                names[result] = text
                out.append(text + " = ")
            else:
                self._results(op)
        if self.generic:
            self._generic(op)
        else:
            cls = op.__class__
            entry = _FORMS.get(cls)
            if entry is None:
                entry = _form(op)
            name, function, spaced = entry
            if function is None:
                self._generic(op)
            else:
                out.append(name)
                if spaced:
                    place = len(out)
                    function(op, self)
                    if len(out) > place and (text := next((t for t in out[place:] if t), "")) and text[0] != " ":
                        out[place - 1] = name + " "
                else:
                    function(op, self)
        if self.locations:
            out.append(f" loc({op.location})")

    def _results(self, op: Operation) -> None:
        """Several results: one name for all where they wish the same (or no) name, else a name each."""
        results = op.results
        names = self.names
        if any(r in names for r in results) or (self.keep_names and len({r.name for r in results}) > 1):
            self.fresh_names(results)
            self.out.append(", ".join([names[r] for r in results]) + " = ")
            return
        text = self._choose(results[0])
        for index, result in enumerate(results):
            names[result] = f"{text}#{index}"
        self.out.append(f"{text}:{len(results)} = ")

    def _generic(self, op: Operation) -> None:
        out, names = self.out, self.names
        operands = op.operands
        name = op.name
        if self.compat:
            dialect = dialect_of(name)
            if dialect is not None and dialect.foreign:
                name = dialect.foreign + name[len(dialect.name) :]
        out.append(f"{quote(name)}({', '.join([names[v] for v in operands])})")
        if op.successors:
            out.append(f"[{', '.join(map(self.block_name, op.successors))}]")
        properties, attributes = op.properties, op.attributes
        if outer := op.outer_properties:
            attributes = {**attributes, **{k: properties[k] for k in outer if k in properties}}
            properties = {k: v for k, v in properties.items() if k not in outer}
        if properties:
            out.append(f" <{dict_text(properties)}>")
        if op.regions:
            out.append(" (")
            isolated = not self.generic or (isinstance(op, Op) and assembly.is_isolated(type(op)))
            isolated = isolated and ISOLATED in op.traits
            for index, region in enumerate(op.regions):
                if index:
                    out.append(", ")
                saved = self._isolate() if isolated else None
                self.region(region, arguments=True, labelled=True)
                if saved is not None:
                    self._restore(saved)
            out.append(")")
        if attributes:
            out.append(" " + dict_text(attributes))
        types = ", ".join([v.type._text for v in operands])  # pyright: ignore[reportPrivateUsage]
        results = op.results
        if len(results) == 1:
            result = results[0].type
            text = f"({result})" if isinstance(result, FunctionType) else str(result)
        else:
            text = f"({', '.join([str(r.type) for r in results])})"
        out.append(f" : ({types}) -> {text}")


_FORMS: dict[type[Operation], tuple[str, Any, bool]] = {}


def _form(op: Operation) -> tuple[str, Any, bool]:
    """`(name, printing function, whether a space goes between)` of a class, remembered."""
    cls = type(op)
    function = assembly.custom_printer(cls)
    entry = SHORT.get(cls.name, cls.name), function, issubclass(cls, CustomForm)
    _FORMS[cls] = entry
    return entry


def _implied(op: Operation) -> bool:
    """Whether a terminator may be left out of the text."""
    if op.operands or op.attributes or op.properties or op.successors or TERMINATOR not in op.traits:
        return False
    return all(NO_TERMINATOR in op.traits and all(b.first is None for b in r.blocks) for r in op.regions)


def print_op(
    op: Operation,
    generic: bool = False,
    compat: bool = False,
    locations: bool = False,
    keep_names: bool = True,
) -> str:
    """The text of an operation.

    `generic`: MLIR's generic form; `compat`: dialect names that the real mlir-opt does not take for its own;
    `locations`: `loc(..)` behind every op; `keep_names`: values print under the names they wish.
    """
    printer = Printer(generic or compat, compat, locations, keep_names)
    with deep_recursion:
        without_collector(printer.operation, op)
    return "".join(printer.out)
