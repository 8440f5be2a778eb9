"""Device code and its launches: modules of kernels, thread coordinates, barriers and shuffles; upstream's `gpu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import UNIT, Attribute, DialectAttr, SymbolRefAttr, TypeAttr
from ..builder import Builder
from ..definition import (
    INDEX_,
    ISOLATED,
    PURE,
    SYMBOL,
    SYMBOL_TABLE,
    TERMINATOR,
    Op,
    TypeConstraint,
    array,
    attr,
    integer,
    integers,
    operand,
    optional_operand,
    region,
    result,
    string,
    type_,
    variadic_operand,
)
from ..operations import Block, Region
from ..types import I1, I32, INDEX, FloatType, FunctionType, IntegerType, MemRefType, Type, VectorType
from ..values import BlockArgument, Value
from .dialect_properties import DialectEnumeration

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

DIMENSIONS = ("x", "y", "z")
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


class Module(Op):
    """`gpu.module @name {..}`: the functions of a device."""

    name = "gpu.module"
    traits = frozenset({ISOLATED, SYMBOL, SYMBOL_TABLE})
    sym_name = string()
    targets = array(optional=True)
    body = region()

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


KERNEL = "gpu.kernel"
"""The discardable attribute that marks a function as an entry for launches."""


class Func(Op):
    """`gpu.func @name(%x : memref<..>) workgroup(%s : memref<..>) private(..) kernel attributes {..} {..}`.

    The entry block's arguments are the parameters, the workgroup buffers, then the private ones.
    """

    name = "gpu.func"
    traits = frozenset({ISOLATED, SYMBOL})
    sym_name = string()
    function_type = type_()
    workgroup_attributions = integer(default=0)
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
    def workgroup(self) -> list[BlockArgument]:
        """The buffers that a block of threads shares."""
        start = len(self.function_type.inputs)
        return self.body.entry.arguments[start : start + self.workgroup_attributions]

    @property
    def private(self) -> list[BlockArgument]:
        """The buffers of one thread."""
        return self.body.entry.arguments[len(self.function_type.inputs) + self.workgroup_attributions :]

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


class LaunchFunc(Op):
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
            cls, [], *grid, *block, none, none, none, shared_size, arguments, none, kernel=SymbolRefAttr(module, [kernel])
        )


class Coordinate(Op):
    """Base of the four ops that tell a thread where it is."""

    traits = frozenset({PURE})
    result = result(INDEX_)
    dimension = DialectEnumeration("gpu", "<dim {}>", DIMENSIONS)
    upper_bound = integer(INDEX, optional=True)

    def infer(self) -> Sequence[Type]:
        return [INDEX]


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


class Shuffle(Op):
    """`%v, %ok = gpu.shuffle xor %x, %offset, %width : f32`: the value of another thread of the subgroup."""

    name = "gpu.shuffle"
    value = operand()
    offset = operand()
    width = operand()
    shuffled = result()
    valid = result()
    mode = DialectEnumeration("gpu", "<shuffle_mode {}>", ("xor", "down", "up", "idx"))

    def infer(self) -> Sequence[Type]:
        return [self.value.type, I1]
