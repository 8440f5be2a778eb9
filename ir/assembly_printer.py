"""Compiles an assembly string into the Python function that prints the op's custom form.

Where no optional part stands in between, the whole form is one f-string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .assembly_format import AttrDict, Group, Literal, TypeOf, Types, Variable, flat, parse_format
from .attributes import UNIT, UnitAttr, dict_text
from .definition import ONE, Field, Op, OperandField, Property, RegionField, SuccessorField
from .property_text import attr_dict_text, property_text

if TYPE_CHECKING:
    from .operations import Operation
    from .printer import Printer

_CLOSERS = frozenset(">)}],")
_OPENERS = frozenset("<([{")


class PrinterSource:
    """Writes `print_(op, w)` for a class: f-strings appended to the printer's pieces."""

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.elements = parse_format(cls)
        self.lines: list[str] = []
        self.pending: list[str] = []
        self.depth = 1
        self.punctuation = False  # the last element was punctuation: an opening bracket stands apart from it
        self.glued = False  # no space before whatever comes next
        self.names: dict[str, Any] = {
            "dict_text": dict_text,
            "attr_dict_text": attr_dict_text,
            "property_text": property_text,
            "signature": _signature_text,
            "result_text": _result_text,
            "UNIT": UNIT,
        }
        mentioned = [e.field for e in flat(self.elements) if isinstance(e, Variable)]
        self.elided = frozenset(f.name for f in mentioned if isinstance(f, Property))
        self.names["elided"] = self.elided

    def compile(self) -> Callable[[Operation, Printer], None]:
        for element in self.elements:
            self.element(element)
        self.flush()
        source = "def print_(op, w):\n    out = w.out; names = w.names\n" + "\n".join(self.lines)
        if not self.lines:
            source += "    return"
        exec(compile(source, f"<assembly of {self.cls.name}>", "exec"), self.names)
        return self.names["print_"]

    def emit(self, text: str) -> None:
        self.flush()
        self.lines.append("    " * self.depth + text)

    def flush(self) -> None:
        if self.pending:
            self.lines.append("    " * self.depth + f'out.append(f"{"".join(self.pending)}")')
            self.pending = []

    def text(self, text: str) -> None:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("{", "{{").replace("}", "}}")
        self.pending.append(escaped)

    def code(self, expression: str) -> None:
        self.pending.append("{" + expression + "}")

    def space(self) -> None:
        if not self.glued:
            self.text(" ")
        self.glued = self.punctuation = False

    def access(self, field: Field) -> str:
        """The expression of an operand or result field's only value."""
        group = "operands" if isinstance(field, OperandField) else "results"
        if not field.segments:
            return f"op.{group}[{field.index}]"
        self.names[f"field_{field.name}"] = field
        return f"field_{field.name}.of(op)[0]"

    def values(self, field: Field) -> str:
        self.names[f"field_{field.name}"] = field
        return f"field_{field.name}.of(op)"

    def element(self, element: Any) -> None:
        match element:
            case Literal(text):
                self.literal(text)
            case Variable(field):
                self.variable(field)
            case TypeOf(field):
                if field.arity == ONE:
                    self.space()
                    self.code(f"{self.access(field)}.type._text")
                else:
                    self.space()
                    self.code(f"', '.join([v.type._text for v in {self.values(field)}])")
            case AttrDict():
                properties = set(self.cls.definition.properties) - self.elided
                if properties:
                    self.emit("text = attr_dict_text(op, elided)")
                else:
                    self.emit("text = ' ' + dict_text(op.attributes) if op.attributes else ''")
                self.code("text")
                self.glued = self.punctuation = False
            case Types(kind):
                self.space()
                if kind == "signature":
                    self.code("signature(op)")
                elif kind == "type(operands)":
                    self.code("', '.join([v.type._text for v in op.operands])")
                elif kind == "type(results)":
                    self.code("', '.join([v.type._text for v in op.results])")
                else:
                    self.code("'(' + ', '.join([v.type._text for v in op.operands]) + ') -> ' + result_text(op)")
            case Group(elements, anchor):
                self.group(elements, anchor)
            case _:
                raise TypeError(f"unknown element {element!r}")

    def group(self, elements: tuple[Any, ...], anchor: Field | Property[Any]) -> None:
        if isinstance(anchor, Property):
            name = anchor.name
            self.names[f"property_{name}"] = anchor
            condition = f"{name!r} in op.properties"
            if anchor.default is not None and anchor.kind is not UnitAttr:
                self.names[f"default_{name}"] = anchor.to_attribute(anchor.default)
                condition += f" and op.properties[{name!r}] is not default_{name}"
        elif isinstance(anchor, RegionField):
            condition = f"op.regions[{anchor.index}].blocks"
        else:
            condition = self.values(anchor)
        glued, punctuation = self.glued, self.punctuation
        self.emit(f"if {condition}:")
        self.depth += 1
        for inner in elements:
            self.element(inner)
        self.flush()
        self.depth -= 1
        if elements and isinstance(elements[-1], Literal) and elements[-1].text[:1] in _OPENERS:
            raise TypeError(f"{self.cls.name}: a group of assembly ends with an opening bracket")
        self.glued, self.punctuation = glued, punctuation

    def literal(self, text: str) -> None:
        if not text.strip():  # `` glues, ` ` is a space
            self.glued = True
            self.text(text)
            return
        closing = text in _CLOSERS
        opening = text in _OPENERS and not self.punctuation
        if not (self.glued or closing or opening):
            self.text(" ")
        self.text(text)
        self.glued = text[-1] in _OPENERS
        self.punctuation = not (text[0].isalnum() or text[0] == "_")

    def variable(self, field: Any) -> None:
        if isinstance(field, OperandField):
            if field.arity == ONE:
                self.space()
                self.code(f"names[{self.access(field)}]")
            else:
                space = "" if self.glued else " "
                self.emit(f"text = ', '.join([names[v] for v in {self.values(field)}])")
                self.code(f"'{space}' + text if text else text")
                self.glued = self.punctuation = False
        elif isinstance(field, RegionField):
            self.space()
            hide = self.cls.implied_terminator is not None
            self.emit(f"w.region(op.regions[{field.index}], arguments=True, hide_terminator={hide})")
        elif isinstance(field, SuccessorField):
            self.space()
            self.code(f"w.block_name(op.successors[{field.index}])")
        elif isinstance(field, Property) and field.kind is not UnitAttr:
            self.space()
            self.names[f"property_{field.name}"] = field
            found = f"op.properties[{field.name!r}]"
            if field.default is not None:
                self.names[f"default_{field.name}"] = field.to_attribute(field.default)
                found = f"op.properties.get({field.name!r}, default_{field.name})"
            self.code(f"property_text(property_{field.name}, {found})")


def _signature_text(op: Operation) -> str:
    operands = [v.type for v in op.operands]
    results = [v.type for v in op.results]
    first = (operands or results or [None])[0]
    if first is not None and all(t is first for t in operands) and all(t is first for t in results) and results:
        return str(first)
    return f"{', '.join(map(str, operands))} -> {_result_text(op)}".lstrip()


def _result_text(op: Operation) -> str:
    results = [str(v.type) for v in op.results]
    return results[0] if len(results) == 1 and not results[0].startswith("(") else f"({', '.join(results)})"
