"""Device code and its launches: modules of kernels, thread coordinates, barriers and shuffles; upstream's `gpu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..attributes import UNIT, DialectAttr, SymbolRefAttr, dict_text, symbol_text
from ..builder import Builder
from ..definition import (
    INDEX_,
    ISOLATED,
    OPERAND_SIZES,
    PURE,
    SYMBOL,
    SYMBOL_TABLE,
    TERMINATOR,
    Op,
    array,
    attr,
    integer,
    integers,
    make,
    operand,
    optional_operand,
    region,
    result,
    string,
    type_,
    variadic_operand,
)
from ..interfaces import CustomForm
from ..operations import Block, Operation, Region
from ..support.dialect_properties import DialectEnumeration
from ..types import (
    F32,
    F64,
    I1,
    I32,
    I64,
    INDEX,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    Type,
)
from ..values import BlockArgument, Value
from .memref.views import expect_type

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

DIMENSIONS = ("x", "y", "z")
SHUFFLE_MODES = ("xor", "up", "down", "idx")
WORKGROUP = DialectAttr("gpu", "address_space<workgroup>")
"""The memory space of `memref<256xf32, #gpu.address_space<workgroup>>`: one copy for each block of threads."""
PRIVATE = DialectAttr("gpu", "address_space<private>")
"""The memory space of one thread."""


def block_mapping(dimension: str) -> DialectAttr:
    """`#gpu.block<x>`: an axis of a forall that blocks run."""
    return DialectAttr("gpu", f"block<{dimension}>")


def thread_mapping(dimension: str) -> DialectAttr:
    """`#gpu.thread<x>`: an axis of a forall that the threads of a block run."""
    return DialectAttr("gpu", f"thread<{dimension}>")


class ModuleEnd(Op):
    """Ends the body of a `gpu.module`."""

    name = "gpu.module_end"
    traits = frozenset({PURE, TERMINATOR})
    assembly = "attr-dict"


class Module(Op, CustomForm):
    """`gpu.module @name {..}`: the functions of a device."""

    name = "gpu.module"
    traits = frozenset({ISOLATED, SYMBOL, SYMBOL_TABLE})
    sym_name = string()
    targets = array(optional=True)
    body = region(bare=True)

    def verify_(self) -> None:
        if not isinstance(self.body.block.last, ModuleEnd):
            raise self.error("must end in gpu.module_end")

    @classmethod
    def parse(cls, p: Parser) -> Module:
        name = p.symbol()
        targets = p.attribute() if p.at("[") else None
        attributes = p.optional_attr_dict() if p.accept("attributes") else {}
        body = p.region(isolated=True, terminator=ModuleEnd)
        op = make(cls, (), [], [body], (), {"sym_name": name, "targets": targets})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(f"{symbol_text(self.sym_name)} ")
        if self.targets is not None:
            w.attribute(self.properties["targets"])
            w.write(" ")
        if self.attributes:
            w.write("attributes")
            w.attr_dict(self, elided=("sym_name", "targets"))
            w.write(" ")
        with w.isolated():
            w.region(self.body, hide_terminator=True)

    @classmethod
    def build(cls, b: Builder, name: str) -> Module:
        """A module that holds only its terminator."""
        body = Block()
        body.append(ModuleEnd())
        return b.create(cls, regions=[Region([body])], sym_name=name)


class Return(Op):
    """Ends a `gpu.func`."""

    name = "gpu.return"
    traits = frozenset({PURE, TERMINATOR})
    values = variadic_operand()
    assembly = "attr-dict ($values^ `:` type($values))?"

    def verify_(self) -> None:
        function = self.parent_op
        if not isinstance(function, Func):
            raise self.error("must stand in a gpu.func")
        given, expected = [v.type for v in self.values], list(function.function_type.results)
        if given != expected:
            raise self.error(f"must return ({join(expected)}) from @{function.sym_name}, got ({join(given)})")


def join(types: Sequence[Type]) -> str:
    """`f32, index`."""
    return ", ".join(map(str, types))


def _typed_names(p: Parser) -> list[tuple[Any, Type]]:
    """`(%x : f32, %n : index)`."""
    return p.list("(", p.typed_argument, ")")


def _write_typed(w: Printer, values: Sequence[Value], colon: str = ": ") -> None:
    w.write("(")
    for i, value in enumerate(values):
        w.write(", " if i else "")
        w.value(value)
        w.write(f"{colon}{value.type}")
    w.write(")")


CONTAINER = "gpu.container_module"
"""The discardable attribute of a module that has device modules and their launches in it."""
KERNEL = "gpu.kernel"
"""The discardable attribute that marks a function as an entry for launches."""


class Func(Op, CustomForm):
    """`gpu.func @name(%x : memref<..>) workgroup(%s : memref<..>) private(..) kernel attributes {..} {..}`.

    The entry block's arguments are the parameters, the workgroup buffers, then the private ones.
    """

    name = "gpu.func"
    traits = frozenset({ISOLATED, SYMBOL})
    sym_name = string()
    function_type = type_()
    workgroup_attributions = integer(optional=True)  # no default: upstream writes 0 out
    known_block_size = integers(element=I32, optional=True)
    known_grid_size = integers(element=I32, optional=True)
    arg_attrs = array(optional=True)
    res_attrs = array(optional=True)
    body = region(single_block=False)
    # Upstream's generic form has these outside `<{..}>`.
    outer_properties = ("sym_name", "workgroup_attributions")

    @property
    def is_kernel(self) -> bool:
        """Whether it can be launched."""
        return KERNEL in self.attributes

    @property
    def parameters(self) -> list[BlockArgument]:
        """The entry's arguments that callers give."""
        return self.body.entry.arguments[: len(self.function_type.inputs)]

    @property
    def workgroup_count(self) -> int:
        """How many of the entry's arguments are workgroup buffers."""
        return self.workgroup_attributions or 0

    @property
    def workgroup(self) -> list[BlockArgument]:
        """The buffers that a block of threads shares."""
        start = len(self.function_type.inputs)
        return self.body.entry.arguments[start : start + self.workgroup_count]

    @property
    def private(self) -> list[BlockArgument]:
        """The buffers of one thread."""
        return self.body.entry.arguments[len(self.function_type.inputs) + self.workgroup_count :]

    def verify_(self) -> None:
        signature = self.function_type
        if not isinstance(signature, FunctionType):
            raise self.error(f"needs a function type, got {signature}")
        if not self.body.blocks:
            raise self.error("must have a body")
        given = [a.type for a in self.body.entry.arguments]
        if given[: len(signature.inputs)] != list(signature.inputs):
            raise self.error(f"has the type {signature} but a body with arguments ({join(given)})")
        if len(given) < len(signature.inputs) + self.workgroup_count:
            raise self.error(f"has {self.workgroup_count} workgroup buffers but ({join(given)}) as arguments")
        for what, space, arguments in (
            ("workgroup", WORKGROUP, self.workgroup),
            ("private", PRIVATE, self.private),
        ):
            for argument in arguments:
                if not isinstance(argument.type, MemRefType) or argument.type.space is not space:
                    raise self.error(f"needs {what} buffers in the memory space {space}, got {argument.type}")
        if self.is_kernel and signature.results:
            raise self.error("is a kernel and so cannot return values")

    @classmethod
    def parse(cls, p: Parser) -> Func:
        name = p.symbol()
        inputs = _typed_names(p)
        results: list[Type] = []
        if p.accept("->"):
            results = p.list("(", p.type, ")") if p.at("(") else [p.type()]
        workgroup = _typed_names(p) if p.accept("workgroup") else []
        private = _typed_names(p) if p.accept("private") else []
        kernel = p.accept("kernel")
        attributes = p.optional_attr_dict() if p.accept("attributes") else {}
        body = p.region([*inputs, *workgroup, *private], isolated=True)
        properties = {
            "sym_name": name,
            "function_type": FunctionType([t for _, t in inputs], results),
            "workgroup_attributions": len(workgroup),
        }
        op = make(cls, (), [], [body], (), properties)
        op.attributes = {**attributes, KERNEL: UNIT} if kernel else attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(symbol_text(self.sym_name))
        with w.isolated():
            w.fresh_names(self.body.entry.arguments)
            _write_typed(w, self.parameters)
            if results := self.function_type.results:
                w.write(f" -> ({join(results)})" if len(results) > 1 else f" -> {results[0]}")
            for word, arguments in ((" workgroup", self.workgroup), (" private", self.private)):
                if arguments:
                    w.write(word)
                    _write_typed(w, arguments, " : ")
            if self.is_kernel:
                w.write(" kernel")
            hidden = ("sym_name", "function_type", "workgroup_attributions", KERNEL)
            rest = {**self.properties, **self.attributes}
            if shown := {key: rest[key] for key in sorted(rest) if key not in hidden}:
                w.write(f" attributes {dict_text(shown)}")
            w.write(" ")
            w.region(self.body)

    @classmethod
    def build(
        cls,
        b: Builder,
        name: str,
        inputs: Sequence[Type],
        workgroup: Sequence[Type] = (),
        private: Sequence[Type] = (),
        kernel: bool = True,
        results: Sequence[Type] = (),
        known_block_size: Sequence[int] | None = None,
        known_grid_size: Sequence[int] | None = None,
    ) -> Func:
        """A function whose entry block has its arguments and no ops yet."""
        body = Region([Block([*inputs, *workgroup, *private])])
        return b.create(
            cls,
            regions=[body],
            attributes={KERNEL: UNIT} if kernel else None,
            sym_name=name,
            function_type=FunctionType(inputs, results),
            workgroup_attributions=len(workgroup),
            known_block_size=known_block_size,
            known_grid_size=known_grid_size,
        )


class LaunchFunc(Op, CustomForm):
    """`gpu.launch_func @module::@kernel blocks in (..) threads in (..) args(%x : memref<..>)`."""

    name = "gpu.launch_func"
    async_dependencies = variadic_operand()
    grid_x = operand()
    grid_y = operand()
    grid_z = operand()
    block_x = operand()
    block_y = operand()
    block_z = operand()
    cluster_x = optional_operand()
    cluster_y = optional_operand()
    cluster_z = optional_operand()
    shared_size = optional_operand()
    arguments = variadic_operand()
    stream = optional_operand()
    kernel = attr(SymbolRefAttr)

    def verify_(self) -> None:
        if self.async_dependencies or self.results or self.stream is not None or self.cluster_x is not None:
            raise self.error("is synchronous here: it has no tokens, streams or clusters")
        if len(self.kernel.nested) != 1:
            raise self.error(f"needs a kernel of the form @module::@function, got {self.kernel}")
        sizes = (*self.grid, *self.block)
        if any(v.type is not sizes[0].type for v in sizes) or not isinstance(sizes[0].type, IndexType | IntegerType):
            raise self.error(f"needs six sizes of one integer type, got ({join([v.type for v in sizes])})")
        if self.shared_size is not None and self.shared_size.type is not I32:
            raise self.error(f"needs an i32 for the bytes of dynamic workgroup memory, got {self.shared_size.type}")
        module = next((op for op in self.ancestors() if SYMBOL_TABLE in op.traits), None)
        if module is not None:
            self._verify_kernel(module)

    def _verify_kernel(self, module: Operation) -> None:
        if CONTAINER not in module.attributes:
            raise self.error(f"needs the attribute '{CONTAINER}' on the module around it")
        kernel = self.find_kernel(module)
        if kernel is None or not kernel.is_kernel:
            raise self.error(f"names {self.kernel}, which is not a kernel of this module")
        given, expected = [v.type for v in self.arguments], list(kernel.function_type.inputs)
        if given != expected:
            raise self.error(f"gives ({join(given)}) to {self.kernel}, which takes ({join(expected)})")

    def find_kernel(self, module: Operation) -> Func | None:
        """The function that the launch names, in the module around it."""
        for outer in module.regions[0].block:
            if isinstance(outer, Module) and outer.sym_name == self.kernel.root:
                for inner in outer.body.block:
                    if isinstance(inner, Func) and inner.sym_name == self.kernel.nested[0]:
                        return inner
        return None

    @classmethod
    def parse(cls, p: Parser) -> LaunchFunc:
        kernel = p.attribute()
        p.expect("blocks")
        p.expect("in")
        grid = p.list("(", p.operand, ")")
        p.expect("threads")
        p.expect("in")
        block = p.list("(", p.operand, ")")
        if len(grid) != 3 or len(block) != 3:
            p.error("expected three sizes for the grid and three for a block")
        if p.accept(":"):
            p.type()
        shared = p.operand() if p.accept("dynamic_shared_memory_size") else None
        arguments: list[Value] = []

        def argument() -> None:
            arguments.append(p.operand())
            p.expect(":")
            expect_type(p, arguments[-1])

        if p.accept("args"):
            p.list("(", argument, ")")
        groups: tuple[Any, ...] = ([], *grid, *block, None, None, None, shared, arguments, None)
        op = make(cls, groups, [], (), (), {"kernel": kernel})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        w.write(f"{self.kernel} blocks in (")
        w.values(self.grid)
        w.write(") threads in (")
        w.values(self.block)
        w.write(")")
        if self.grid_x.type is not INDEX:
            w.write(f" : {self.grid_x.type}")
        if self.shared_size is not None:
            w.write(" dynamic_shared_memory_size ")
            w.value(self.shared_size)
        if self.arguments:
            w.write(" args")
            _write_typed(w, self.arguments, " : ")
        w.attr_dict(self, elided=("kernel", OPERAND_SIZES))

    @property
    def grid(self) -> tuple[Value, Value, Value]:
        """The number of blocks along x, y, z."""
        return self.grid_x, self.grid_y, self.grid_z

    @property
    def block(self) -> tuple[Value, Value, Value]:
        """The number of threads of a block along x, y, z."""
        return self.block_x, self.block_y, self.block_z

    @classmethod
    def build(
        cls,
        b: Builder,
        module: str,
        kernel: str,
        grid: Sequence[Value],
        block: Sequence[Value],
        arguments: Sequence[Value],
        shared_size: Value | None = None,
    ) -> LaunchFunc:
        """A launch; `shared_size` is the number of bytes of dynamic workgroup memory, an i32."""
        none = None
        return b.create(
            cls,
            [],
            *grid,
            *block,
            none,
            none,
            none,
            shared_size,
            arguments,
            none,
            kernel=SymbolRefAttr(module, [kernel]),
        )


class Coordinate(Op, CustomForm):
    """Base of the four ops that tell a thread where it is."""

    traits = frozenset({PURE})
    result = result(INDEX_)
    dimension = DialectEnumeration("gpu", "<dim {}>", DIMENSIONS)
    upper_bound = integer(INDEX, optional=True)

    def infer(self) -> Sequence[Type]:
        return [INDEX]

    @classmethod
    def parse(cls, p: Parser) -> Coordinate:
        dimension = p.identifier()
        if dimension not in DIMENSIONS:
            p.error(f"expected a dimension x, y or z, got {dimension}")
        bound = p.integer() if p.accept("upper_bound") else None
        op = make(cls, (), None, (), (), {"dimension": dimension, "upper_bound": bound})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        w.write(self.dimension)
        if self.upper_bound is not None:
            w.write(f" upper_bound {self.upper_bound}")
        w.attr_dict(self, elided=("dimension", "upper_bound"))


class BlockId(Coordinate):
    """The block's place in the grid along a dimension."""

    name = "gpu.block_id"


class ThreadId(Coordinate):
    """The thread's place in its block along a dimension."""

    name = "gpu.thread_id"


class BlockDim(Coordinate):
    """The number of threads of a block along a dimension."""

    name = "gpu.block_dim"


class GridDim(Coordinate):
    """The number of blocks along a dimension."""

    name = "gpu.grid_dim"


class Barrier(Op):
    """All threads of the block wait here for each other, and see each other's writes from here on.

    It declares no effects, hence counts as reading and writing everything.
    """

    name = "gpu.barrier"
    assembly = "attr-dict"


class Shuffle(Op, CustomForm):
    """`%v, %ok = gpu.shuffle xor %x, %offset, %width : f32`: the value of another thread of the subgroup."""

    name = "gpu.shuffle"
    value = operand()
    offset = operand()
    width = operand()
    shuffled = result()
    valid = result()
    mode = DialectEnumeration("gpu", "<shuffle_mode {}>", SHUFFLE_MODES)

    def infer(self) -> Sequence[Type]:
        return [self.value.type, I1]

    def verify_(self) -> None:
        if self.offset.type is not I32 or self.width.type is not I32:
            raise self.error(f"needs an offset and a width of type i32, got {self.offset.type} and {self.width.type}")
        if self.value.type not in (I32, I64, F32, F64):
            raise self.error(f"moves values of type i32, i64, f32 or f64, got {self.value.type}")

    @classmethod
    def parse(cls, p: Parser) -> Shuffle:
        mode = p.identifier()
        if mode not in SHUFFLE_MODES:
            p.error(f"expected one of {', '.join(SHUFFLE_MODES)}, got {mode}")
        value = p.operand()
        p.expect(",")
        offset = p.operand()
        p.expect(",")
        width = p.operand()
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, value)
        op = make(cls, (value, offset, width), None, (), (), {"mode": mode})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(f"{self.mode} ")
        w.values(self.operands)
        w.attr_dict(self, elided=("mode",))
        w.write(f" : {self.value.type}")
