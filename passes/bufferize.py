"""bufferize: tensors become buffers.

In: functions of `kernel.launch` ops on tensors.  Out: the same functions on memrefs, without results: each returned
tensor is a last argument that the function writes, temporaries are allocated and freed, and launches have buffer form.

    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = kernel.launch (%i) in (4) ins(%x : ..) outs(%y : tensor<4xf32>) {..}
      return %y : tensor<4xf32>
        becomes
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      kernel.launch (%i) in (4) ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {..}
      return

A launch writes straight into the argument of the value that is returned; a value that is returned twice, or an argument
that is, is copied.  A temporary lives from its launch to its last user.  Bools take a byte, integers lose their sign.
An out whose launch reads a dying temporary only where it then stores takes the temporary's buffer.
An out with an initial value takes over that value's buffer when it is a temporary that nobody reads later, else a copy;
of several outs with one initial value, one may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..ir.attributes import DenseAttr, IntegerAttr, TypeAttr
from ..ir.builder import Builder
from ..ir.builders import sizes
from ..ir.builders.subscripts import AffineSubscript
from ..ir.definition import make
from ..ir.diagnostics import PassError
from ..ir.dialects import arith, array, func, kernel, memref
from ..ir.operations import Operation
from ..ir.target import ALIGNMENT, Target
from ..ir.types import DYNAMIC, I1, I8, INDEX, FunctionType, IntegerType, MemRefType, TensorType, Type
from ..ir.values import Value
from .kernel import build
from .manager import Pass

HOST_SHARE, HOST_SHARES = 64, 16
"""A temporary of a host program may take a 64th of what a buffer may take of the stack, all of them 16 times that: a
quarter, since the kernels that it calls need theirs."""


@dataclass
class Bufferize(Pass):
    """Turn tensors into buffers."""

    name: ClassVar[str] = "bufferize"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in list(op.regions[0].block):
            if isinstance(function, func.Func) and not function.is_declaration and _has_tensors(function):
                _Bufferizer(op, function).run()


def _has_tensors(function: func.Func) -> bool:
    return any(isinstance(v.type, TensorType) for op in function.entry for v in (*op.results, *op.operands)) or any(
        isinstance(a.type, TensorType) for a in function.arguments
    )


def buffer_type(type: Type) -> Type:
    """The memref for a tensor type; other types stay."""
    if not isinstance(type, TensorType):
        return type
    element = type.element
    if element is I1:
        element = I8
    elif isinstance(element, IntegerType):
        element = IntegerType(element.width)
    return MemRefType(type.shape, element)


class _Bufferizer:
    """Bufferization of one function."""

    def __init__(self, module: Operation, function: func.Func) -> None:
        self.module = module
        self.function = function
        self.block = function.entry
        self.buffers: dict[Value, Value] = {}
        self.temporaries: dict[Value, None] = {}
        self.destinations: dict[Value, Value] = {}
        self.symbols: dict[str, tuple[Value, int]] = {}
        self.globals = 0
        self.target = Target.of(function)
        self.stack = 0

    def run(self) -> None:
        returns = self.function.returns
        copies: list[tuple[Value, Value]] = []
        for argument in list(self.block.arguments):
            if isinstance(argument.type, TensorType):
                for axis, symbol in enumerate(argument.type.symbols):
                    if symbol is not None:
                        self.symbols.setdefault(symbol, (argument, axis))
                argument.type = buffer_type(argument.type)
                self.buffers[argument] = argument
        results = list(returns.operands)
        for value in results:
            if not isinstance(value.type, TensorType | MemRefType):
                raise PassError(
                    f"bufferize: function '{self.function.sym_name}' returns a {value.type}", returns.location
                )
            target = self.block.add_argument(buffer_type(value.type), value.name)
            if isinstance(value.defining_op, kernel.Launch) and value not in self.destinations:
                self.destinations[value] = target
            else:
                copies.append((value, target))
        last = self.last_uses()
        returns.set_operands(())
        for op in self.block:
            if op is not returns:
                self.op(op, last)
        b = Builder.before_op(returns)
        for value, target in copies:
            b.create(memref.Copy, self.buffers[value], target)
        self.free()
        types = [a.type for a in self.block.arguments]
        self.function.properties["function_type"] = TypeAttr(FunctionType(types, ()))
        self.function.properties.pop("res_attrs", None)
        for op in reversed(list(self.block)):
            if any(isinstance(r.type, TensorType) for r in op.results):
                op.erase()

    def last_uses(self) -> dict[Value, Operation]:
        """The last op of the block that uses each value."""
        last: dict[Value, Operation] = {}
        for op in self.block:
            for value in op.operands:
                last[value] = op
        return last

    def op(self, op: Operation, last: dict[Value, Operation]) -> None:
        """Bufferize one op; ops that leave tensors alone stay."""
        if isinstance(op, kernel.Launch):
            self.launch(op, last)
        elif isinstance(op, array.Dim):
            op.replace_by([self.dim(Builder.before_op(op), self.buffers[op.x], op.axis)])
        elif isinstance(op, array.Constant):
            self.constant(op)
        elif any(isinstance(v.type, TensorType | MemRefType) for v in (*op.operands, *op.results)):
            raise PassError(
                f"bufferize: '{op.name}' is not a kernel; lower-to-kernels and inline run first", op.location
            )

    def constant(self, op: array.Constant) -> None:
        """A constant array lives with the module."""
        value = op.properties["value"]
        assert isinstance(value, DenseAttr)
        type = buffer_type(op.result.type)
        assert isinstance(type, MemRefType)
        name = f"{self.function.sym_name}_c{self.globals}"
        self.globals += 1
        properties = {
            "sym_name": name,
            "sym_visibility": "private",
            "type": type,
            "initial_value": DenseAttr(TensorType(type.shape, type.element), value.data),
            "constant": True,
        }
        block = self.module.regions[0].block
        block.insert_before(make(memref.Global, (), [], (), (), properties, location=op.location), self.function)
        named = make(memref.GetGlobal, (), [type], (), (), {"name": name}, location=op.location)
        self.block.insert_before(named, op)
        self.buffers[op.result] = named.result

    def launch(self, op: kernel.Launch, last: dict[Value, Operation]) -> None:
        """A launch in buffer form in place of one on tensors."""
        b = Builder.before_op(op)
        outs: list[Value] = []
        for number, result in enumerate(op.results):
            init = op.init(number)
            target = self.destinations.get(result)
            dies = init is not None and last.get(init) is op and init not in op.ins
            # Another out that starts at the same value may have it already; what is in it is copied before the launch.
            if target is None and init is not None and dies:
                buffer = self.buffers[init]
                target = buffer if buffer in self.temporaries and buffer not in outs else None
            if target is None:
                target = self.in_place(op, number, last, outs) or self.allocate(b, op, number, result)
            if init is not None and self.buffers[init] is not target:
                b.create(memref.Copy, self.buffers[init], target)
            self.buffers[result] = target
            outs.append(target)
        ins = [self.buffers.get(v, v) for v in op.ins]
        (region,) = op.regions
        region.parent = None
        op.regions = ()
        for argument in region.block.arguments:
            argument.type = buffer_type(argument.type)
        static = op.extents
        new = make(
            kernel.Launch,
            (op.extents_, ins, outs),
            [],
            [region],
            (),
            {"extents": static, "inits": op.inits or None, "schedule": op.schedule},
            location=op.location,
        )
        new.attributes = op.attributes
        self.block.insert_before(new, op)

    def in_place(
        self, op: kernel.Launch, number: int, last: dict[Value, Operation], taken: Sequence[Value]
    ) -> Value | None:
        """A temporary that the launch is the last to read, and reads at each point only where it stores afterwards."""
        argument = op.out_arguments[number]
        body = op.body.block
        store = next(iter(argument.users))
        alone = argument.num_users == 1 and isinstance(store, kernel.Store) and store.parent is body
        if not alone or op.init(number) is not None:
            return None
        assert isinstance(store, kernel.Store)
        at = build.indices_of(store)
        for value, inner in zip(op.ins, op.in_arguments, strict=True):
            buffer = self.buffers.get(value)
            dies = last.get(value) is op and op.ins.count(value) == 1
            if buffer is None or not dies or buffer not in self.temporaries or buffer in taken:
                continue
            same = all(
                isinstance(u, kernel.Load)
                and u.fill is None
                and u.parent is body
                and u.is_before(store)
                and build.indices_of(u) == at
                for u in inner.users
            )
            if same and buffer.type is buffer_type(argument.type):
                return buffer
        return None

    def on_stack(self, type: MemRefType) -> bool:
        """Whether a temporary is small enough for the stack of the host program."""
        if self.target.kind != "cpu" or not type.is_static:
            return False
        size = type.num_elements * 8
        most = self.target.stack_bytes // HOST_SHARE
        if size > most or self.stack + size > most * HOST_SHARES:
            return False
        self.stack += size
        return True

    def allocate(self, b: Builder, op: kernel.Launch, number: int, result: Value) -> Value:
        """A temporary for a result."""
        type = buffer_type(result.type)
        assert isinstance(type, MemRefType)
        found: list[Value] = []
        if not type.is_static:
            found = self.dynamic_sizes(b, op, number, type)
        if self.on_stack(type):
            new = b.value(memref.Alloca, [], [], results=[type], alignment=ALIGNMENT)
        else:
            new = b.value(memref.Alloc, found, [], results=[type])
        new.name = result.name
        self.temporaries[new] = None
        return new

    def dynamic_sizes(self, b: Builder, op: kernel.Launch, number: int, type: MemRefType) -> list[Value]:
        """The index values of an out's dynamic extents: those of axes that it is stored along, else those of an initial
        value, else what the function's arguments say of their symbols."""
        argument, init = op.out_arguments[number], op.init(number)
        tensor = op.results[number].type
        assert isinstance(tensor, TensorType)
        outside: dict[Value, Value] = dict(zip(op.in_arguments, op.ins, strict=True))
        bounds: dict[Value, int | Value] = {}
        for loop in op.walk():
            if isinstance(loop, kernel.Axes):
                bounds.update(zip(loop.axes, loop.bounds, strict=True))
        found: list[Value] = []
        for axis, extent in enumerate(type.shape):
            if extent != DYNAMIC:
                continue
            size: int | Value | None = None
            for user in argument.users:
                if isinstance(user, kernel.Store | kernel.Accumulate) and not isinstance(size, Value):
                    index = build.indices_of(user)[axis]
                    size = next((bounds.get(v) for v in index.values if index == AffineSubscript.of(v)), None)
            if isinstance(size, Value):
                # The extent of an inner loop came into the launch as a scalar.
                found.append(outside.get(size, size))
            elif init is not None:
                found.append(self.dim(b, self.buffers[init], axis))
            else:
                symbol = tensor.symbols[axis]
                found.append(sizes.compute(b, symbol or "?", lambda name: self.size(b, op, name)))
        return found

    def size(self, b: Builder, op: kernel.Launch, symbol: str) -> Value:
        """The index value of a symbol."""
        for argument in self.block.arguments:
            if argument.type is INDEX and argument.name == symbol:
                return argument
        if symbol not in self.symbols:
            raise PassError(f"bufferize: neither an axis nor an argument gives the extent {symbol}", op.location)
        return self.dim(b, *self.symbols[symbol])

    def dim(self, b: Builder, buffer: Value, axis: int) -> Value:
        """The extent of a buffer."""
        return b.value(memref.Dim, buffer, b.value(arith.Constant, value=IntegerAttr(axis, INDEX)))

    def free(self) -> None:
        """Free each temporary after its last user."""
        for value in self.temporaries:
            if isinstance(value.defining_op, memref.Alloca):
                continue
            user = max(value.users, key=lambda op: op.order)
            assert user.parent is not None
            Builder.after_op(user).create(memref.Dealloc, value)
