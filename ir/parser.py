"""Parsing of operations, blocks and regions: from text to IR.

An operation stands in generic form (`"arith.addi"(%a, %b) : (i32, i32) -> i32`) or in the custom form of its class
(`arith.addi %a, %b : i32`), which `ir.assembly` compiles from the class's `assembly` string or the class gives as a
class method `parse(parser)`.

A value may be used before its definition has been read: a placeholder of the type at its use stands in until then.
The parser checks names and types of values; all else is the verifier's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from . import assembly, registry
from .attributes import Attribute
from .collector import without_collector
from .definition import MANY, OPERAND_SIZES, RESULT_SIZES, TERMINATOR, Op, make
from .diagnostics import Error, ParseError
from .location import FileLoc
from .op_checks import FAULTS, admit_operands
from .operations import STRIDE, Block, Operation, Region, UnregisteredOp
from .property_text import parse_property
from .recursion import MAX_REGION_DEPTH, deep_recursion
from .types import Type
from .value_parser import Scope, ValueName, ValueParser
from .values import OpResult, Value

SHORT_NAMES: Final = {"module": "builtin.module", "func": "func.func", "return": "func.return", "call": "func.call"}
"""Operations that text may name without their dialect."""


class Parser(ValueParser):
    """Parses operations; custom `parse` methods of op classes work with this interface."""

    def __init__(self, text: str, filename: str = "-", allow_unregistered: bool = False) -> None:
        super().__init__(text, filename)
        self.allow_unregistered = allow_unregistered
        self.blocks: dict[str, tuple[Block, int]] = {}
        self.placed: set[Block] = set()
        self.op_class: type[Op] | None = None
        self.result_count = 0
        self.location: FileLoc = FileLoc(filename, 1, 1)
        self._region_depth = 0

    # Attributes of operations.

    def optional_attr_dict(self) -> dict[str, Attribute]:
        """`{..}` or nothing: properties and discardable attributes.

        A key that names a property of the op being parsed takes the short spelling of the property (`axes = [1]`,
        `axis = 1`); the op moves such entries to its properties.
        """
        if self.tokens[self.i] != "{":
            return {}
        cls = self.op_class
        if cls is None or not cls.definition.properties:
            return self.attribute_dict()
        properties = cls.definition.properties

        def value(key: str) -> Attribute:
            declared = properties.get(key)
            return self.attribute() if declared is None else parse_property(self, declared)

        return self.attribute_dict(value)

    def property_value(self, name: str) -> Attribute:
        """The value of the property `name` of the op being parsed, in its short spelling."""
        assert self.op_class is not None
        return parse_property(self, self.op_class.definition.properties[name])

    # Blocks and regions.

    def successor(self) -> Block:
        """`^bb1`: a block of the region being parsed."""
        i = self.i
        name = self.tokens[i]
        if name[:1] != "^" or len(name) < 2:
            self.unexpected("a block")
        self.i = i + 1
        found = self.blocks.get(name)
        if found is None:
            found = self.blocks[name] = Block(), i
        return found[0]

    def region(
        self,
        arguments: Iterable[tuple[ValueName, Type]] = (),
        *,
        isolated: bool = False,
        terminator: type[Op] | None = None,
    ) -> Region:
        """`{..}` of a custom form: an entry block with the arguments, ended with `terminator` if the text has none."""
        region = Region()
        entry = Block()
        self.expect("{")
        self._enter_region()
        saved = self._push(isolated)
        region.append(entry)
        self.placed.add(entry)
        for name, type in arguments:
            self.define(name[0], name[1], entry.add_argument(type))
        if self.tokens[self.i][:1] == "^" and not entry.arguments:
            self._label(entry)
        self._ops(entry)
        while self.tokens[self.i][:1] == "^":
            self._block(region)
        self.expect("}")
        self._pop(saved)
        self._region_depth -= 1
        if terminator is not None and len(region.blocks) == 1:
            last = entry.last
            if last is None or TERMINATOR not in last.traits:
                groups = [() if f.arity == MANY else None for f in terminator.definition.operands]
                entry.append(make(terminator, groups, (), (), (), {}, location=self.location))
        return region

    def _generic_region(self, isolated: bool) -> Region:
        region = Region()
        self.expect("{")
        self._enter_region()
        if self.accept("}"):
            self._region_depth -= 1
            return region
        saved = self._push(isolated)
        if self.tokens[self.i][:1] != "^":
            entry = Block()
            region.append(entry)
            self.placed.add(entry)
            self._ops(entry)
        while self.tokens[self.i][:1] == "^":
            self._block(region)
        self.expect("}")
        self._pop(saved)
        self._region_depth -= 1
        return region

    def _enter_region(self) -> None:
        self._region_depth += 1
        if self._region_depth > MAX_REGION_DEPTH:
            self.error(f"regions nested more than {MAX_REGION_DEPTH} deep", self.i - 1)

    def _push(self, isolated: bool) -> tuple[Any, ...]:
        saved = self.scope, self.defined, self.blocks, self.placed, self.op_class, self.result_count, self.location
        if isolated:
            self.scope = Scope()
            self.values = self.scope.values
        self.defined, self.blocks, self.placed = [], {}, set()
        return saved

    def _pop(self, saved: tuple[Any, ...]) -> None:
        for name, (block, index) in self.blocks.items():
            if block not in self.placed:
                self.error(f"use of undefined block '{name}'", index)
        if saved[0] is self.scope:
            for name in self.defined:
                del self.values[name]
        else:
            self.check_forward()
        self.scope, self.defined, self.blocks, self.placed, self.op_class, self.result_count, self.location = saved
        self.values = self.scope.values

    def check_forward(self) -> None:
        """Refuse values that were used but never defined."""
        for name, (_, index) in self.scope.forward.items():
            self.error(f"use of undefined value '{name}'", index)

    def _block(self, region: Region) -> None:
        """A block with its label."""
        i = self.i
        name = self.tokens[i]
        found = self.blocks.get(name)
        if found is None:
            block = Block()
            self.blocks[name] = block, i
        else:
            block, place = found
            if block in self.placed:
                self.error(f"redefinition of block '{name}'", i, "prior definition here", place)
            self.blocks[name] = block, i
        region.append(block)
        self._label(block)
        self._ops(block)

    def _label(self, block: Block) -> None:
        """`^bb0(%a: T):`, and the arguments of the block."""
        i = self.i
        name = self.tokens[i]
        if len(name) < 2:
            self.error("expected a block's name after '^'")
        known = self.blocks.setdefault(name, (block, i))
        if known[0] is not block:
            self.error(f"redefinition of block '{name}'", i, "prior definition here", known[1])
        self.placed.add(block)
        self.i += 1
        if self.accept("("):
            for text, index, type in self.list("", self.block_argument, ")") if not self.accept(")") else ():
                self.define(text, index, block.add_argument(type))
        self.expect(":")

    # Operations.

    def _ops(self, block: Block) -> None:
        """The operations of a block, up to `}` or the next label."""
        tokens = self.tokens
        operation = self.operation
        while True:
            token = tokens[self.i]
            if token == "}" or token[:1] == "^":
                return
            if not token:
                self.unexpected("an operation or '}'")
            op = operation()
            # Block.append, without its checks: the op is new.
            op.parent = block
            last = block.last
            if last is None:
                block.first = op
            else:
                op.prev = last
                last.next = op
                op.order = last.order + STRIDE
            block.last = op

    def operation(self) -> Operation:
        """One operation, detached; its results are bound to their names."""
        tokens = self.tokens
        i = self.i
        token = tokens[i]
        names: list[tuple[str, int, int]] = []  # (text, token number, results)
        count = 0
        if token[:1] == "%":
            while True:
                if token[:1] != "%" or len(token) < 2 or "#" in token:
                    self.i = i
                    self.unexpected("the name of a result")
                place, size = i, 1
                i += 1
                if tokens[i] == ":":
                    self.i = i + 1
                    size = self.integer()
                    i = self.i
                    if not 0 < size <= 1 << 20:
                        self.error("expected a positive number of results", i - 1)
                names.append((token, place, size))
                count += size
                if tokens[i] == ",":
                    i += 1
                    token = tokens[i]
                    continue
                break
            if tokens[i] != "=":
                self.i = i
                self.unexpected("'='")
            i += 1
            token = tokens[i]
        self.i = i
        self.result_count = count
        location = self.location = self.position(i)
        if token[:1] == '"':
            op = self._generic(self.string(), i, location)
        else:
            op = self._custom(token, i, location)
        if tokens[self.i] == "loc":
            op.location = self.location_attr()
        else:
            op.location = location
        results = op.results
        if count:
            if len(results) != count:
                self.error(f"'{op.name}' op defines {len(results)} results, but {count} names are given", i)
            if len(names) == 1 and count == 1:
                self.define(token := names[0][0], names[0][1], results[0])
            else:
                self._bind(names, results)
        return op

    def _bind(self, names: Sequence[tuple[str, int, int]], results: Sequence[OpResult]) -> None:
        number = 0
        for text, index, size in names:
            if size == 1:
                self.define(text, index, results[number])
                number += 1
                continue
            wish = None if text[1] in "0123456789" else text[1:]
            self.define(text, index, results[number])
            for k in range(size):
                if k:
                    self.define(f"{text}#{k}", index, results[number])
                results[number].name = wish
                number += 1

    def _custom(self, token: str, index: int, location: FileLoc) -> Operation:
        name = SHORT_NAMES.get(token, token)
        cls = self.op_class = registry.lookup(name)
        function = None if cls is None else _CUSTOM.get(cls)
        if function is None:
            function = self._custom_parser(name, token)
        self.i = index + 1
        try:
            op = function(self)
        except ParseError:
            raise
        except Error as e:
            place = location if e.location is None or e.location.file_position() is None else e.location
            raise ParseError(e.message, place, e.notes) from e
        except FAULTS as e:
            raise ParseError(f"'{name}' op is malformed: {e}", location).from_plugin(e) from e
        if op.attributes:
            assert cls is not None
            _move_properties(op, cls)
        return op

    def _custom_parser(self, name: str, token: str) -> Callable[[Parser], Operation]:
        if token[:1] != "_" and not token[:1].isalpha():
            self.unexpected("an operation")
        cls = self.op_of(name)
        if cls is None:
            self.error(f"'{name}' is not registered: it has no custom form, write it in generic form")
        function = assembly.custom_parser(cls)
        if function is None:
            self.error(f"'{name}' op has no custom form; write it in generic form")
        _CUSTOM[cls] = function
        return function

    def op_of(self, name: str) -> type[Op] | None:
        """The class of an op; None when it is unregistered and may be; errors point to the current token."""
        cls = registry.lookup(name)
        if cls is not None:
            return cls
        dialect = name.partition(".")[0]
        if registry.load_dialect(dialect):
            self.error(f"unknown operation '{name}' in the dialect '{dialect}'{registry.suggestion(name)}")
        if "." in name and not self.allow_unregistered:
            hint = registry.suggestion(name) or "; --allow-unregistered-dialect accepts it in generic form"
            self.error(f"unregistered operation '{name}'{hint}")
        if not name or ("." not in name and not self.allow_unregistered):
            self.error(f"'{name}' is not an operation")
        return None

    def _generic(self, name: str, start: int, location: FileLoc) -> Operation:
        cls = registry.lookup(name)
        if cls is None:
            self.i = start
            cls = self.op_of(name)
            self.i = start + 1
        tokens = self.tokens
        if tokens[self.i] != "(":
            self.unexpected("'('")
        i = self.i + 1
        names: list[int] = []
        token = tokens[i]
        if token == ")":
            i += 1
        else:
            while True:
                if token[:1] != "%" or len(token) < 2:
                    self.i = i
                    self.unexpected("a value")
                names.append(i)
                token = tokens[i + 1]
                i += 2
                if token == ",":
                    token = tokens[i]
                    continue
                if token == ")":
                    break
                self.i = i - 1
                self.unexpected("',' or ')'")
        self.i = i
        token = tokens[i]
        successors: Sequence[Block] = ()
        regions: list[Region] = []
        properties: dict[str, Attribute] | None = None
        attributes: dict[str, Attribute] | None = None
        if token != ":":
            if token == "[":
                successors = self.list("[", self.successor, "]")
            if self.accept("<"):
                self.op_class = None
                properties = self.attribute_dict()
                self.expect(">")
            if self.accept("("):
                isolated = cls is not None and assembly.is_isolated(cls)
                while True:
                    regions.append(self._generic_region(isolated))
                    if not self.accept(","):
                        break
                self.expect(")")
            if tokens[self.i] == "{":
                attributes = self.attribute_dict()
            self.expect(":")
        else:
            self.i = i + 1
        # The function type, without building one.
        types = self.types
        operands: list[Value] = []
        values = self.values
        at = self.i
        self.expect("(")
        for k, place in enumerate(names):
            if k:
                if tokens[self.i] != ",":
                    self.error(f"{len(names)} operands, but {k} operand types", at)
                self.i += 1
            type = types.get(tokens[self.i])
            if type is None:
                if tokens[self.i] == ")":
                    self.error(f"{len(names)} operands, but {k} operand types", at)
                type = self.type()
            else:
                self.i += 1
            value = values.get(tokens[place])
            if value is None or value.type is not type:
                value = self.resolve_token(tokens[place], place, type)
            operands.append(value)
        if tokens[self.i] == ",":
            self.error(f"{len(names)} operands, but more operand types", at)
        self.expect(")")
        self.expect("->")
        type = types.get(tokens[self.i])
        if type is None:
            results = self.result_types()
        else:
            self.i += 1
            results = [type]
        if cls is None:
            return UnregisteredOp(name, operands, results, properties, attributes, regions, successors, location)
        op = cls(operands, results, properties, attributes, regions, successors, location)
        if attributes:
            _move_properties(op, cls)
        return op

    def move_properties(self, op: Op) -> None:
        """Put properties that stand among an op's discardable attributes to their place."""
        _move_properties(op, type(op))

    def check_properties(self, op: Op) -> None:
        """Refuse an op without one of its properties, before types are inferred from them."""
        for name, declared in op.definition.properties.items():
            if name not in op.properties and not declared.optional:
                self.error(f"'{op.name}' op requires the property '{name}' ({declared.description})")

    def at_type(self) -> bool:
        """Whether a type starts here."""
        token = self.tokens[self.i]
        return token in self.types or token[:1] in ("!", "(") or self.names_type(token)

    def infer(self, op: Op) -> None:
        """Give an op without results those that follow from its operands and properties."""
        try:
            types = op.infer()
        except FAULTS:
            admit_operands(op)  # of another type than the op takes, they are what is wrong
            raise
        op.results = tuple([OpResult(t, op, i) for i, t in enumerate(types)])

    def top_level(self) -> Block:
        """The whole text: aliases and operations."""
        block = Block()
        self.placed.add(block)
        while token := self.tokens[self.i]:
            if token[:1] in "#!" and self.tokens[self.i + 1] == "=":
                self._alias(token)
            elif token == "}" or token[:1] == "^":
                self.unexpected("an operation")
            else:
                block.append(self.operation())
        self.check_forward()
        for name, (_, index) in self.blocks.items():
            self.error(f"use of undefined block '{name}'", index)
        return block

    def _alias(self, token: str) -> None:
        start, name = self.i, token[1:]
        self.i += 2
        if not name or "." in name:
            self.error("an alias is a name without a dot", start)
        table: dict[str, Any]
        if token[0] == "!":
            table, value = self.type_aliases, self.type()
        elif self.at("loc"):
            table, value = self.location_aliases, self.location_attr()
            if table.get(name) == value:  # looked up ahead
                return
        else:
            table, value = self.attribute_aliases, self.attribute()
        if name in table:
            self.error(f"redefinition of the alias '{token}'", start)
        table[name] = value


_CUSTOM: dict[type[Op], Callable[[Parser], Operation]] = {}
"""By class, not by name: whoever defines an op anew means the new one."""


def _move_properties(op: Operation, cls: type[Op]) -> None:
    """Inherent attributes that stand among the discardable ones become properties."""
    declared = cls.definition.properties
    for key in [k for k in op.attributes if k in declared or k in (OPERAND_SIZES, RESULT_SIZES)]:
        op.properties.setdefault(key, op.attributes.pop(key))


def parse_module(text: str, filename: str = "-", allow_unregistered: bool = False) -> Any:
    """The `builtin.module` that a text holds; other top-level operations are put into a module of their own.

    Raises ParseError for any text that is not IR.  The result is not verified yet.
    """
    from .dialects.builtin import Module  # late

    with deep_recursion:
        block = without_collector(lambda: Parser(text, filename, allow_unregistered).top_level())
    first = block.first
    if isinstance(first, Module) and first.next is None:
        first.detach()
        return first
    return Module((), (), None, None, [Region([block])], (), FileLoc(filename, 1, 1))
