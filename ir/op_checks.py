"""What an op class declares, compiled into one function that checks an op against it.

The function is Python source without loops over fields: numbers of operands, results, regions and successors, types
against their constraints, properties against their kinds, result types against `infer`, then `verify_`.  Types and
attributes are interned, so each constraint remembers the ones it has admitted, and a combination of types and
properties for which `infer` agreed is not inferred again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .attributes import ArrayAttr, Attribute, DenseArrayAttr, DialectAttr, FloatAttr, IntegerAttr
from .definition import (
    ANY,
    MANY,
    ONE,
    OPERAND_SIZES,
    OPTIONAL,
    RESULT_SIZES,
    SAME_TYPE,
    TERMINATOR,
    Enumeration,
    Field,
    Op,
    Property,
)
from .diagnostics import Error, VerifyError
from .operations import Operation
from .types import I32, Type

FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError)
"""What a class's own code may raise when it meets IR that it did not expect."""


def check_of(cls: type[Operation]) -> Callable[[Any], None]:
    """The check of a class; unregistered ops have none."""
    return _Source(cls).compile() if issubclass(cls, Op) else _accept


def _accept(op: Operation) -> None:
    return None


class _Source:
    """Writes `check(op)` for a class."""

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "admit": _admit,
            "admit_property": _admit_property,
            "counts": _counts,
            "sizes": _sizes,
            "infer": _infer,
            "meaning": _meaning,
            "bare": _bare,
            "different": _different,
            "unknown": _unknown,
        }

    def compile(self) -> Callable[[Any], None]:
        cls, definition, emit = self.cls, self.cls.definition, self.lines.append
        emit("def check(op):")
        emit("    operands = op.operands; results = op.results; props = op.properties")
        self.fields("operand", definition.operands, "operands")
        self.fields("result", definition.results, "results")
        for kind, fields in (("region", definition.regions), ("successor", definition.successors)):
            emit(f"    if len(op.{kind}s) != {len(fields)}: counts(op, '{kind}', {len(fields)}, len(op.{kind}s))")
        for region in definition.regions:
            if region.single_block:
                emit(f"    if len(op.regions[{region.index}].blocks) != 1: meaning(op, None)")
            if region.bare:
                emit(f"    if op.regions[{region.index}].blocks[0].arguments: bare(op)")
        if SAME_TYPE in cls.traits:
            self.same_type()
        self.properties()
        if TERMINATOR in cls.traits:
            emit("    if op.next is not None: raise op.error('is a terminator, but does not end its block')")
        elif not definition.successors:
            pass
        if cls.infer is not Op.infer:
            if definition.regions:
                emit("    infer(op)")
            else:
                self.names["known"] = set()
                parts = [f"props.get({name!r})" for name in definition.properties]
                emit(
                    "    key = (*[v.type for v in operands], None, *[v.type for v in results]"
                    + "".join(f", {p}" for p in parts)
                    + ")"
                )
                emit("    if key not in known: infer(op); known.add(key)")
        if cls.verify_ is not Operation.verify_:
            emit("    meaning(op, op.verify_)")
        source = "\n".join(self.lines)
        exec(compile(source, f"<checks of {cls.name}>", "exec"), self.names)
        return self.names["check"]

    def fields(self, kind: str, fields: list[Any], group: str) -> None:
        """Numbers and types of operands or results."""
        emit = self.lines.append
        loose = sum(f.arity != ONE for f in fields)
        if not loose:
            emit(f"    if len({group}) != {len(fields)}: counts(op, '{kind}', {len(fields)}, len({group}))")
        else:
            key = OPERAND_SIZES if kind == "operand" else RESULT_SIZES
            self.names[f"{kind}_fields"] = fields
            if loose > 1:
                emit(f"    sizes(op, {key!r}, {kind}_fields, len({group}))")
            else:
                least = len(fields) - 1
                emit(f"    if len({group}) < {least}: counts(op, '{kind}', 'at least {least}', len({group}))")
                if any(f.arity == OPTIONAL for f in fields):
                    most = len(fields)
                    emit(f"    if len({group}) > {most}: counts(op, '{kind}', 'at most {most}', len({group}))")
        same = SAME_TYPE in self.cls.traits
        checked: set[int] = set()
        for field in fields:
            if field.constraint is ANY or (same and id(field.constraint) in checked):
                continue
            checked.add(id(field.constraint))
            self.names[f"{kind}_{field.index}"] = field
            self.names[f"ok_{kind}_{field.index}"] = set()
            arguments = f"op, '{kind}', {kind}_{field.index}"
            ok = f"ok_{kind}_{field.index}"
            if not field.segments:
                emit(f"    t = {group}[{field.index}].type")
                emit(f"    if t not in {ok}: admit({arguments}, t, {ok})")
            else:
                emit(f"    for v in {kind}_{field.index}.of(op):")
                emit(f"        if v.type not in {ok}: admit({arguments}, v.type, {ok})")

    def same_type(self) -> None:
        definition, emit = self.cls.definition, self.lines.append
        if any(f.arity != ONE for f in (*definition.operands, *definition.results)):
            emit("    if len({v.type for v in (*operands, *results)}) > 1: different(op)")
            return
        values = [f"operands[{i}]" for i in range(len(definition.operands))]
        values += [f"results[{i}]" for i in range(len(definition.results))]
        if len(values) > 1:
            emit(f"    t = {values[0]}.type")
            emit(f"    if {' or '.join(f'{v}.type is not t' for v in values[1:])}: different(op)")

    def properties(self) -> None:
        emit, declared = self.lines.append, self.cls.definition.properties
        if not declared:
            emit("    if props: unknown(op)")
            return
        emit("    found = 0")
        for name, prop in declared.items():
            self.names[f"property_{name}"] = prop
            self.names[f"ok_{name}"] = set()
            emit(f"    a = props.get({name!r})")
            emit("    if a is not None:")
            emit("        found += 1")
            emit(f"        if a not in ok_{name}: admit_property(op, property_{name}, a, ok_{name})")
            if not prop.optional:
                emit(f"    else: admit_property(op, property_{name}, None, ok_{name})")
        emit("    if len(props) != found: unknown(op)")


def _counts(op: Operation, kind: str, expected: int | str, got: int) -> NoReturn:
    plural = "" if expected == 1 else "s"
    raise op.error(f"expects {expected} {kind}{plural}, got {got}")


def _sizes(op: Operation, key: str, fields: list[Field], total: int) -> None:
    """The segment sizes are there, fit the fields, and add up."""
    sizes = op.properties.get(key)
    if not isinstance(sizes, DenseArrayAttr) or sizes.element is not I32 or len(sizes.values) != len(fields):
        raise op.error(f"requires the property '{key}' as array<i32> with {len(fields)} entries")
    for field, size in zip(fields, sizes.values):
        if size < 0 or (field.arity != MANY and size > 1) or (field.arity == ONE and size != 1):
            raise op.error(f"has {size} values for '{field.name}' in '{key}'")
    if sum(sizes.values) != total:
        raise op.error(f"has {total} values, but '{key}' adds up to {sum(sizes.values)}")


def _admit(op: Operation, kind: str, field: Field, type: Type, admitted: set[Type]) -> None:
    """Remember a type that satisfies its constraint; else raise, with the definition of the operand."""
    if type in field.constraint:
        admitted.add(type)
        return
    error = op.error(f"{kind} '{field.name}' must be {field.constraint.description}, got {type}")
    if kind == "operand":
        for value in op.operands:
            if value.type is type and (owner := value.defining_op) is not None:
                raise error.note("the operand is defined here", owner.location)
    raise error


def admit_operands(op: Op) -> None:
    """Raise VerifyError when an operand does not satisfy its constraint."""
    for field in op.definition.operands:
        for value in field.of(op):
            if value.type not in field.constraint:
                _admit(op, "operand", field, value.type, set())


def _admit_property(op: Operation, prop: Property[Any], found: Attribute | None, admitted: set[Attribute]) -> None:
    """Remember an attribute that fits a property; else raise."""
    if found is None:
        raise op.error(f"requires the property '{prop.name}' ({prop.description})")
    good = isinstance(found, prop.kind)
    if good and prop.type is not None:
        if isinstance(found, IntegerAttr | FloatAttr):
            good = found.type is prop.type
        elif isinstance(found, DenseArrayAttr):
            good = found.element is prop.type
    if good and isinstance(prop, Enumeration) and isinstance(found, IntegerAttr):
        good = 0 <= found.value < len(prop.names)
    if good and isinstance(found, DialectAttr) and prop.kind is DialectAttr:
        try:
            prop.encode(prop.decode(found))
        except FAULTS:
            good = False
    if good and prop.kind is ArrayAttr:
        try:
            good = prop.encode(prop.decode(found)) is found
        except FAULTS:
            good = False
    if not good:
        raise op.error(f"property '{prop.name}' must be {prop.description}, got {found}")
    admitted.add(found)


def _unknown(op: Operation) -> None:
    assert isinstance(op, Op)
    definition = op.definition
    known = set(definition.properties)
    for key, fields in ((OPERAND_SIZES, definition.operands), (RESULT_SIZES, definition.results)):
        if sum(f.arity != ONE for f in fields) > 1:
            known.add(key)
    for key in op.properties:
        if key not in known:
            raise op.error(f"has no property '{key}'")


def _bare(op: Operation) -> NoReturn:
    raise op.error("expects a block without arguments")


def _different(op: Operation) -> NoReturn:
    operands = ", ".join(str(v.type) for v in op.operands)
    results = ", ".join(str(v.type) for v in op.results)
    error = op.error(f"requires one type for all operands and results, got ({operands}) -> ({results})")
    first = op.operands[0].type if op.operands else None
    for value in op.operands:
        if value.type is not first and (owner := value.defining_op) is not None:
            raise error.note("the operand of another type is defined here", owner.location)
    raise error


def _infer(op: Op) -> None:
    """Result types are those that follow from the operands."""
    expected: list[Type] = []
    _meaning(op, lambda: expected.extend(op.infer()))
    given = [r.type for r in op.results]
    if given != expected:
        raise op.error(
            f"has results of type ({', '.join(map(str, given))}), "
            f"but its operands give ({', '.join(map(str, expected))})"
        )


def _meaning(op: Operation, check: Callable[[], None] | None) -> None:
    """Run a class's own check; whatever it raises becomes a VerifyError at the op."""
    if check is None:
        raise op.error("expects a region with exactly one block")
    try:
        check()
    except VerifyError:
        raise
    except Error as error:
        raise VerifyError(error.message, error.location or op.location, error.notes) from error
    except FAULTS as error:
        # A check that looks into regions comes before the checks of the ops inside, which say better what is wrong.
        for inner in op.walk():
            if inner is not op:
                check_of(type(inner))(inner)
        raise VerifyError(f"'{op.name}' op is malformed: {error}", op.location).from_plugin(error) from error
