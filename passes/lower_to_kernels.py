"""lower-to-kernels: every tensor op becomes a `kernel.launch` of that one op.

In: a function of tensor-level ops.  Out: the same function with one launch for each op, broadcasting, transposes,
slices and reversals gone into the subscripts of its loads.

    %t = array.transpose %x {permutation = [1, 0]} : tensor<8x4xf32> -> tensor<4x8xf32>
    %y = elementwise.add %t, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
        becomes
    %y = kernel.launch (%i, %j) in (4, 8) ins(%x .., %b ..) outs(%y : tensor<4x8xf32>) {
      %0 = kernel.load %x[%j, %i]
      %1 = kernel.load %b[%j]
      %2 = arith.addf %0, %1 : f32
      kernel.store %2, %y[%i, %j]
    }

The domain of a launch is its result's axes without those of extent 1, which stand as the constant 0 in subscripts.  An
op says what one point of its result is (`point`), or where each point of an operand is added (`scatter`); a view op
says which point of its operand one of its points is (`view`) and makes no kernel: views compose into the loads of their
users.  A view becomes a copying launch only where something other than a kernel needs it (a return, a call).  Equal
symbols get one index value, made by one `array.dim`.  A constant whose elements are all equal is a number in the
launches that load it; where the array itself is needed, a launch fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr, constant_attr
from ..ir.builder import Builder
from ..ir.builders import sizes
from ..ir.builders.point import Monoid, PointBuilder
from ..ir.builders.subscripts import AffineSubscript, inside
from ..ir.builders.tensor import TensorBuilder
from ..ir.dialects import array, kernel
from ..ir.dialects.linalg.indexing import Adding
from ..ir.interfaces import PointForm, ScatterForm, ViewForm
from ..ir.location import Location
from ..ir.operations import Block, Operation
from ..ir.support.tensor_op import TensorOp, type_of_tensor
from ..ir.target import Target
from ..ir.types import DYNAMIC, INDEX, TensorType, Type, signless
from ..ir.values import BlockArgument, OpResult, Value
from .kernel import build
from .manager import Pass

AXIS_NAMES = "ijhvwxyz"
FOLD_NAMES = "kpqrst"


@dataclass
class LowerToKernels(Pass):
    """Turn tensor ops into kernel launches."""

    name: ClassVar[str] = "lower-to-kernels"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                # A GPU may lack f64, and has atomic additions of f32 that are faster.
                _Lowering(block, has_f64=Target.of(op).kind == "cpu").run()


def is_view(op: Operation | None) -> bool:
    """Whether an op only renames the points of its first operand."""
    return isinstance(op, ViewForm)


class _Lowering:
    """Lowering of one block."""

    def __init__(self, block: Block, has_f64: bool) -> None:
        self.block = block
        self.has_f64 = has_f64
        self.sizes: dict[object, int | Value] = {}

    def run(self) -> None:
        self.unify_sizes()
        for op in list(self.block):
            if isinstance(op, Adding) and (wide := op.sum_type(self.has_f64)) is not type_of_tensor(op.result).element:
                b = TensorBuilder(before=op, location=op.location)
                op.replace_by([op.widened(b, wide, _is_zeros(op.operands[0]))])
        for op in self.block:
            if not isinstance(op, TensorOp) or is_view(op):
                continue
            if isinstance(op, PointForm):
                self.lower(op)
            elif isinstance(op, ScatterForm):
                self.lower_scatter(op)
        for op in self.block:
            if is_view(op) and any(not _is_lowered(user) for user in op.results[0].users):
                self.copy_view(op)
        for op in self.block:
            if isinstance(op, array.Constant) and op.result.users and _splat(op.result) is not None:
                self.fill(op)
        op = self.block.last
        while op is not None:
            before = op.prev
            if (is_view(op) or isinstance(op, array.Dim)) and not op.results[0].users:
                op.erase()
            op = before

    def unify_sizes(self) -> None:
        """Let every extent that is asked for be the one index value of its symbol, so that no intermediate tensor is
        kept for its extents alone."""
        for op in list(self.block):
            if isinstance(op, array.Dim):
                size = self.size(op.x, op.axis)
                if isinstance(size, Value) and size is not op.result:
                    op.replace_by([size])

    def lower(self, op: TensorOp) -> None:
        """Replace an op by its launch."""
        launch = _LaunchPoint(self, op, op.operands, self.domain(op))
        assert isinstance(op, PointForm)
        values = op.point(launch)
        stored = [values] if isinstance(values, Value) else list(values)
        outs = [_Out(r.type, r.name, launch.axes) for r in op.results]
        self.replace(op, launch.build(op.location, stored, outs))

    def lower_scatter(self, op: TensorOp) -> None:
        """Replace an op that adds each point of its last operand to an element of its first by a launch that
        accumulates."""
        updates = op.operands[-1]
        assert isinstance(updates.type, TensorType)
        launch = _LaunchPoint(self, op, op.operands, [self.size(updates, i) for i in range(updates.type.rank)])
        assert isinstance(op, ScatterForm)
        value, at = op.scatter(launch)
        (result,) = op.results
        start = op.operands[0]
        out = _Out(result.type, result.name, at, accumulates=True, initial=None if _is_zeros(start) else start)
        self.replace(op, launch.build(op.location, [value], [out]))

    def replace(self, op: TensorOp, launch: kernel.Launch) -> None:
        """Put a launch in an op's place."""
        self.block.insert_before(launch, op)
        op.replace_by(launch.results)

    def domain(self, op: TensorOp) -> list[int | Value]:
        """The extents of an op's result."""
        type = op.results[0].type
        assert isinstance(type, TensorType)
        found: list[int | Value] = []
        for axis, extent in enumerate(type.shape):
            if extent != DYNAMIC:
                found.append(extent)
                continue
            source = op.result_extent(axis)
            found.append(self.size(*source) if isinstance(source, tuple) else self.named(source, type.symbols[axis]))
        return found

    def named(self, extent: int | Value, symbol: str | None) -> int | Value:
        """The index value of a symbol whose size an operand gives: one for all, where it follows from arguments."""
        if symbol is None or isinstance(extent, int):
            return extent
        if symbol not in self.sizes:
            self.sizes[symbol] = self.from_arguments(symbol) or extent
        return self.sizes[symbol]

    def copy_view(self, op: Operation) -> None:
        """Make a view's result real for its users that are no kernels."""
        (result,) = op.results
        assert isinstance(op, TensorOp)
        launch = _LaunchPoint(self, op, [result], self.domain(op))
        value = launch.load(0, launch.axes)
        copy = launch.build(op.location, [value], [_Out(result.type, result.name, launch.axes)])
        assert op.next is not None
        self.block.insert_before(copy, op.next)
        result.replace_by(copy.results[0], lambda user: user is not copy and not is_view(user))

    def fill(self, op: array.Constant) -> None:
        """Let a launch make a constant array, which is as large in the program's text as in memory otherwise."""
        (result,) = op.results
        launch = _LaunchPoint(self, op, [result], self.domain(op))
        value = launch.load(0, launch.axes)
        self.replace(op, launch.build(op.location, [value], [_Out(result.type, result.name, launch.axes)]))

    def size(self, value: Value, axis: int) -> int | Value:
        """The extent of a tensor's axis: an int, or the index value of its symbol, computed at the block's start or
        just after the tensor."""
        type = value.type
        assert isinstance(type, TensorType)
        if type.shape[axis] != DYNAMIC:
            return type.shape[axis]
        key = type.symbols[axis] or (value, axis)
        known = self.sizes.get(key)
        if known is None:
            known = self.sizes[key] = self.find_size(value, axis, type.symbols[axis])
        return known

    def find_size(self, value: Value, axis: int, symbol: str | None) -> int | Value:
        """The index value of an extent: what arguments tell of the symbol, or an operand of the op that makes the
        tensor, or the `array.dim` of the tensor itself."""
        found = None if symbol is None else self.from_arguments(symbol)
        if found is not None:
            return found
        definer = value.defining_op
        if isinstance(definer, TensorOp) and isinstance(value, OpResult):
            source = definer.result_extent(axis, value.index)
            if not isinstance(source, tuple):
                return source
            if source[0] is not value:
                return self.size(*source)
        place = self.block.first if definer is None else definer.next
        return self.dim(value, axis, symbol, place)

    def dim(self, value: Value, axis: int, symbol: str | None, place: Operation | None) -> Value:
        """A new `array.dim` before an op."""
        dim = Builder(self.block, place).create(array.Dim, value, axis=axis)
        dim.result.name = symbol
        return dim.result

    def from_arguments(self, symbol: str) -> Value | None:
        """The index value of an extent at the start of the block: an index argument of its name, the `array.dim` of an
        argument, or what is computed from such values; None where arguments do not tell."""
        for argument in self.block.arguments:
            if argument.type is INDEX and argument.name == symbol:
                return argument
        for argument in self.block.arguments:
            if isinstance(argument.type, TensorType) and symbol in argument.type.symbols:
                return self.dim(argument, argument.type.symbols.index(symbol), symbol, self.block.first)
        if sizes.is_symbol(symbol):
            return None
        parts: dict[str, Value] = {}
        for part in sorted(sizes.symbols(symbol)):
            known = self.sizes.get(part) or self.from_arguments(part)
            if not isinstance(known, Value):
                return None
            parts[part] = self.sizes[part] = known
        last: Operation | None = None
        for made in (v.defining_op for v in parts.values()):
            if made is not None and (last is None or last.is_before(made)):
                last = made
        place = self.block.first if last is None else last.next
        return sizes.compute(Builder(self.block, place), symbol, parts.__getitem__)


@dataclass
class _Out:
    """An out of a launch under construction; one that accumulates adds to `initial`, by default to zeros."""

    type: Type
    name: str | None
    at: Sequence[AffineSubscript | int]
    accumulates: bool = False
    initial: Value | None = None


def _is_lowered(op: Operation) -> bool:
    """Whether an op takes its operands as subscripts of loads: a launch (by now) or another view."""
    return is_view(op) or isinstance(op, array.Dim)


class _LaunchPoint(PointBuilder):
    """The point of a launch under construction."""

    def __init__(
        self, lowering: _Lowering, op: Operation, operands: Sequence[Value], extents: Sequence[int | Value]
    ) -> None:
        self.lowering = lowering
        self.operands = operands
        self.body = Block()
        super().__init__(self.body, location=op.location)
        self.ins: dict[Value, BlockArgument] = {}
        self.domain: list[tuple[BlockArgument, int | Value]] = []
        self.axes: list[AffineSubscript] = []
        for axis, extent in enumerate(extents):
            if extent == 1:
                self.axes.append(AffineSubscript.of(0))
                continue
            name = AXIS_NAMES[len(self.domain)] if len(self.domain) < len(AXIS_NAMES) else f"i{axis}"
            argument = BlockArgument(INDEX, self.body, 0, name)
            self.domain.append((argument, extent))
            self.axes.append(AffineSubscript.of(argument))

    def in_argument(self, value: Value) -> BlockArgument:
        """The block argument of an in."""
        argument = self.ins.get(value)
        if argument is None:
            argument = self.ins[value] = BlockArgument(value.type, self.body, 0, value.name)
        return argument

    def extent(self, operand: int, axis: int) -> int | Value:
        size = self.lowering.size(self.operands[operand], axis)
        return size if isinstance(size, int) else self.in_argument(size)

    def reduce(
        self,
        extents: Sequence[int | Value],
        by: Monoid,
        body: Callable[[list[AffineSubscript]], Value | Sequence[Value]],
        names: Sequence[str] = FOLD_NAMES,
    ) -> list[Value]:
        return super().reduce(extents, by, body, names)

    def load(self, operand: int, subscripts: Sequence[AffineSubscript | int], fill: float | None = None) -> Value:
        value = self.operands[operand]
        at = [AffineSubscript.of(s) for s in subscripts]
        if fill is not None:
            return self.guarded(value, at, fill)
        value, at = self.through_views(value, at)
        number = _splat(value)
        return build.load(self, self.in_argument(value), at) if number is None else self.number(number)

    def number(self, value: Attribute) -> Value:
        """The element of a constant; integers lose their sign."""
        if isinstance(value, IntegerAttr):
            return self.constant(value.value, signless(value.type))
        return self.constant(value)

    def outside(self, value: int | Value) -> AffineSubscript | int:
        return value if isinstance(value, int) else AffineSubscript.of(self.in_argument(value))

    def extent_of(self, value: Value, axis: int) -> AffineSubscript | int:
        return self.outside(self.lowering.size(value, axis))

    def through_views(
        self, value: Value, at: Sequence[AffineSubscript], guarded: bool = False
    ) -> tuple[Value, list[AffineSubscript]]:
        """The value and subscripts that a subscripted chain of views comes down to; `guarded`: they may lie outside."""
        subscripts = list(at)
        while isinstance(view := value.defining_op, ViewForm):
            subscripts = [AffineSubscript.of(s) for s in view.view(self, subscripts)]
            value = view.operands[0]
        source = value.type
        assert isinstance(source, TensorType)
        if guarded:
            return value, subscripts
        # Along an axis of extent 1 every subscript is 0.
        return value, [AffineSubscript.of(0) if d == 1 else s for d, s in zip(source.shape, subscripts, strict=True)]

    def guarded(self, value: Value, at: list[AffineSubscript], fill: float) -> Value:
        """An element, or `fill` outside the bounds.  What lies outside a view may lie inside its source, so the bounds
        of a view are tested beside those of the source."""
        source, subscripts = self.through_views(value, at, guarded=True)
        number = _splat(source)
        if number is not None:
            element = self.number(number)
        else:
            element = build.load(self, self.in_argument(source), subscripts, fill)
            if source is value:
                return element
        type = value.type
        assert isinstance(type, TensorType)
        sizes = [self.lowering.size(value, axis) for axis in range(type.rank)]
        open_ends = [(i, s) for i, s in zip(at, sizes, strict=True) if not self.covers(i, s)]
        if not open_ends:
            return element
        limits = [self.in_argument(s) if isinstance(s, Value) else s for _, s in open_ends]
        at_values = [self.index_value(i) for i, _ in open_ends]
        return self.select(inside(self, at_values, limits), element, self.constant(constant_attr(fill, element.type)))

    def covers(self, index: AffineSubscript, size: int | Value) -> bool:
        """Whether a subscript is an axis of just this size, so that it lies inside."""
        return any(index == AffineSubscript.of(axis) and size == extent for axis, extent in self.domain)

    def build(self, location: Location, values: Sequence[Value], outs: Sequence[_Out]) -> kernel.Launch:
        """The launch that stores `values` (or adds them) into the outs."""
        arguments = [BlockArgument(o.type, self.body, 0, o.name) for o in outs]
        for value, argument, out in zip(values, arguments, outs, strict=True):
            add = build.add_to if out.accumulates else build.store
            add(self, value, argument, out.at)
        self.create(kernel.Yield, [])
        build.adopt(self.body, [*(a for a, _ in self.domain), *self.ins.values(), *arguments])
        inits = {i: o.initial for i, o in enumerate(outs) if o.initial is not None}
        extents = [e for _, e in self.domain]
        return build.new_launch(extents, list(self.ins), [o.type for o in outs], self.body, location, inits)


def _is_zeros(value: Value) -> bool:
    """Whether a tensor is +0 everywhere, what a sum starts from."""
    op = value.defining_op
    found = op.value if isinstance(op, array.Full) else _splat(value)
    if isinstance(found, FloatAttr):
        return found.bits == 0
    return isinstance(found, IntegerAttr) and found.value == 0


def _splat(value: Value) -> Attribute | None:
    """The element of a constant whose elements are all equal."""
    op = value.defining_op
    if isinstance(op, array.Constant):
        attribute = op.properties["value"]
        if isinstance(attribute, DenseAttr) and attribute.is_splat:
            return attribute.scalar()
    return None
