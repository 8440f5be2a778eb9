"""autodiff: reverse-mode differentiation of a function.

In: `func.func @f(args) -> results` on tensors, its calls inlined.  Out: beside it a function that also takes the
cotangents of the results and gives those of the arguments in `wrt`:

    autodiff{function=f wrt=0,1}        @f_vjp : (args.., cotangents of results..) -> (results.., cotangents of wrt..)
    autodiff{function=f wrt=0,1 split}  @f_fwd : (args..) -> (results.., residuals..)
                                        @f_bwd : (residuals.., cotangents of results..) -> (cotangents of wrt..)

    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { %y = elementwise.exp %x; return %y }
        becomes, beside @f,
    func.func @f_vjp(%x, %dy) -> (tensor<4xf32>, tensor<4xf32>) {
      %y = elementwise.exp %x
      %dx = elementwise.mul %dy, %y
      return %y, %dx

The body is copied and its ops are visited last to first.  An op through which a result depends on a differentiated
argument hands the sum of its results' cotangents to its operands by the rule in its class (`ir.interfaces`); an op
without a rule is replaced by its expansion first.  Cotangents carry the masks of the selects that they passed through
every op (`ir.builders.masks`), applied where they are accumulated or summed and at the end.  The output is an ordinary
function: the pass applies to it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...ir.attributes import StringAttr
from ...ir.builder import Builder
from ...ir.builders.masks import Masks
from ...ir.builders.tensor import TensorBuilder
from ...ir.cotangents import ONE, Cotangent, Factor, Mask, Masked
from ...ir.diagnostics import PassError
from ...ir.dialects import builtin, elementwise, func
from ...ir.interfaces import Expands, HasMaskedVjp, HasPartials, HasVjp, IsLinear, MovesMasks, NoDerivative
from ...ir.location import CallSiteLoc
from ...ir.operations import Operation
from ...ir.support.tensor_op import type_of_tensor
from ...ir.types import FloatType, TensorType
from ...ir.values import Value
from ..manager import Pass

RULES = (HasPartials, IsLinear, HasVjp, HasMaskedVjp, NoDerivative)
"""What an op may say of its derivative."""


@dataclass
class Autodiff(Pass):
    """Differentiate a function in reverse mode."""

    name: ClassVar[str] = "autodiff"
    anchor: ClassVar[str] = "builtin.module"

    function: str = "main"
    """The function to differentiate."""
    wrt: tuple[int, ...] = (0,)
    """Which arguments to differentiate with respect to."""
    split: bool = False
    """Whether to make a forward and a backward function in place of one."""

    def run(self, op: Operation) -> None:
        assert isinstance(op, builtin.Module)
        source = op.symbol(self.function)
        if not isinstance(source, func.Func) or source.is_declaration:
            raise PassError(f"autodiff: the module has no function '@{self.function}' with a body", op.location)
        made = differentiate(source, self.wrt, f"{self.function}_vjp")
        new = split_at(made, source, self.function) if self.split else [made]
        for function in reversed(new):
            op.block.insert_before(function, source.next) if source.next else op.block.append(function)


def is_float_tensor(value: Value) -> bool:
    """Whether a value has a cotangent."""
    return isinstance(value.type, TensorType) and isinstance(value.type.element, FloatType)


def differentiate(source: func.Func, wrt: Sequence[int], name: str) -> func.Func:
    """The function `name` (detached) that `autodiff` adds for `source`."""
    for index in wrt:
        if not 0 <= index < len(source.arguments):
            raise PassError(
                f"autodiff: wrt={index} is out of range: '@{source.sym_name}' has {len(source.arguments)} arguments",
                source.location,
            )
        if not is_float_tensor(source.arguments[index]):
            raise PassError(
                f"autodiff: argument {index} of '@{source.sym_name}' is {source.arguments[index].type}; "
                "only float tensors can be differentiated",
                source.location,
            )
    function = source.clone()
    assert isinstance(function, func.Func)
    function.properties["sym_name"] = StringAttr(name)
    function.properties.pop("res_attrs", None)
    function.properties.pop("arg_attrs", None)
    _Reverse(function, [function.arguments[i] for i in wrt]).run()
    function.update_type()
    return function


class _Reverse:
    """Differentiation in place of one function."""

    def __init__(self, function: func.Func, wrt: list[Value]) -> None:
        self.function = function
        self.block = function.entry
        self.returns = function.returns
        self.wrt = wrt
        self.cotangents: dict[Value, list[Cotangent]] = {}
        self.b = TensorBuilder(self.block, self.returns)
        self.masks = Masks(self.b)

    def run(self) -> None:
        self.expand()
        active = self.active()
        results = list(self.returns.operands)
        names = [v.name for v in results]
        for value, name in zip(results, names, strict=True):
            if is_float_tensor(value):
                seed = self.block.add_argument(value.type, f"d{name}" if name else None)
                self.cotangents.setdefault(value, []).append(Cotangent(seed))
        op = self.returns.prev
        while op is not None:
            before = op.prev
            if op in active:
                self.reverse(op)
            op = before
        self.b.location = self.returns.location
        gradients: list[Value] = []
        for argument in self.wrt:
            gradient = self.gathered(argument)
            gradients.append(self.b.full_like(0.0, argument) if gradient is None else self.masks.applied(gradient))
        self.returns.set_operands([*results, *gradients])

    def expand(self) -> None:
        """Replace the ops that have no rule, and through which a derivative may pass, by their expansions."""
        changed = True
        while changed:
            changed = False
            for op in self.active():
                if isinstance(op, RULES):
                    continue
                if not isinstance(op, Expands):
                    raise PassError(f"autodiff: '{op.name}' has no derivative rule and no expansion", op.location)
                builder = TensorBuilder(before=op, location=op.location)
                values = op.expand(builder)
                op.replace_by([values] if isinstance(values, Value) else list(values))
                changed = True

    def active(self) -> dict[Operation, None]:
        """The ops, in order, that need an argument of `wrt` and that a float result needs."""
        reached: set[Value] = set(self.wrt)
        forward: list[Operation] = []
        for op in self.block:
            if op is self.returns or isinstance(op, NoDerivative):
                continue
            if any(v in reached for v in op.operands):
                reached.update(r for r in op.results if is_float_tensor(r))
                forward.append(op)
        needed: set[Value] = {v for v in self.returns.operands if is_float_tensor(v)}
        active: list[Operation] = []
        for op in reversed(forward):
            if any(r in needed for r in op.results):
                needed.update(op.operands)
                active.append(op)
        return dict.fromkeys(reversed(active))

    def reverse(self, op: Operation) -> None:
        """Hand the cotangents of an op's results to its operands."""
        if not any(r in self.cotangents for r in op.results):
            return
        self.b.location = CallSiteLoc(op.location, self.function.location)
        if isinstance(op, HasPartials):
            self.reverse_elementwise(op)
            return
        incoming = [self.early(op, self.gathered(r)) for r in op.results]
        if isinstance(op, HasMaskedVjp):
            for operand, ct in zip(op.operands, op.masked_vjp(self.masks, *incoming), strict=True):
                self.add(operand, ct)
            return
        values = [None if ct is None else self.masks.applied(ct) for ct in incoming]
        is_linear = isinstance(op, IsLinear)
        if is_linear:
            (ct,) = values
            assert ct is not None
            outgoing = op.transpose(self.b, ct)
        else:
            assert isinstance(op, HasVjp)
            outgoing = op.vjp(self.b, *values)
        moved = zip(op.operands, outgoing, self.live(op, incoming), strict=True)
        for operand, value, mask in moved:
            if value is not None:
                assert mask is not None
                self.add(operand, Cotangent(value, mask, zeroed=is_linear))

    def early(self, op: Operation, ct: Cotangent | None) -> Cotangent | None:
        """A cotangent whose mask is applied at once if it is soft and what the op is made from is tame."""
        if ct is None or not ct.mask or not all(f.soft for f in ct.mask):
            return ct
        return Cotangent(self.masks.applied(ct)) if all(self.masks.tame(v) for v in op.operands) else ct

    def live(self, op: Operation, incoming: Sequence[Cotangent | None]) -> Sequence[Mask | None]:
        """Where the operands of an op that is not elementwise are live."""
        given = [None if ct is None else ct.mask for ct in incoming]
        if isinstance(op, MovesMasks):
            return list(op.live(self.masks, *given))
        anywhere = [self.masks.whole(m, r) for m, r in zip(given, op.results, strict=True) if m is not None]
        mask = self.masks.either(anywhere)
        return [mask for _ in op.operands]

    def reverse_elementwise(self, op: HasPartials) -> None:
        """An elementwise op passes the mask on; where an operand was broadcast, the mask is applied, the cotangent
        summed, and what stays live is what one of the summed elements is live in."""
        incoming = self.gathered(op.results[0])
        assert incoming is not None
        for operand, partial in zip(op.operands, op.partials(self.b), strict=True):
            if partial is None or not is_float_tensor(operand):
                continue
            mask = incoming.mask
            if isinstance(partial, Masked):
                mask = (*mask, Factor(partial.condition, partial.soft))
                linear = partial.linear
            else:
                linear = partial
            untouched = linear is ONE and mask is incoming.mask
            ct = Cotangent(linear(incoming.value), mask, zeroed=untouched and incoming.zeroed)
            self.add(operand, self.unbroadcast(ct, operand))

    def unbroadcast(self, ct: Cotangent, operand: Value) -> Cotangent:
        """A cotangent summed over the axes along which the operand was repeated."""
        type, own = type_of_tensor(ct.value), type_of_tensor(operand)
        if type is own:
            return ct
        value = self.masks.applied(ct)
        missing = type.rank - own.rank
        axes = [i for i, d in enumerate(type.dims) if i < missing or (own.dims[i - missing] == 1 and d != 1)]
        if axes:
            value = self.b.reduce_sum(value, axes=axes)
        value = self.b.reshape(value, own.dims, self.b.extents(own.dims, operand))
        mask = self.masks.folded(ct.mask, type.rank, axes, operand)
        return Cotangent(value, self.masks.dropped(mask, type.rank, range(missing)), zeroed=True)

    def add(self, value: Value, ct: Cotangent | None) -> None:
        """Add a cotangent to the sum of those that a value has."""
        if ct is not None and is_float_tensor(value):
            self.cotangents.setdefault(value, []).append(ct)

    def gathered(self, value: Value) -> Cotangent | None:
        """The sum of a value's cotangents, which counts where one of them does."""
        parts = self.cotangents.get(value)
        if not parts:
            return None
        if len(parts) > 1:
            total = self.masks.applied(parts[0])
            for part in parts[1:]:
                total = self.b.value(elementwise.Add, total, self.masks.applied(part))
            self.cotangents[value] = [Cotangent(total, self.masks.either([p.mask for p in parts]), zeroed=True)]
        return self.cotangents[value][0]


def split_at(made: func.Func, source: func.Func, name: str) -> list[func.Func]:
    """A `_vjp` function as a forward function that also returns residuals, and a backward function that takes them."""
    arguments, block = len(source.arguments), made.entry
    seeds = made.arguments[arguments:]
    late: set[Value] = set(seeds)
    backward: list[Operation] = []
    results = len(source.type.results)
    returned = made.returns.operands
    needed_forward = ancestors_of(returned[:results])
    for op in block:
        if op is made.returns:
            continue
        if any(v in late for v in op.operands) or op not in needed_forward:
            late.update(op.results)
            backward.append(op)
    residuals = list(
        dict.fromkeys(
            v for values in (*(op.operands for op in backward), returned[results:]) for v in values if v not in late
        )
    )
    bwd = func.Func.of(f"{name}_bwd", [*(v.type for v in residuals), *(s.type for s in seeds)], [])
    bwd.location = made.location
    inner = bwd.entry
    table: dict[Value, Value] = dict(zip([*residuals, *seeds], inner.arguments, strict=True))
    for old, new in list(table.items()):
        new.name = old.name
    for op in backward:
        inner.append(op.clone(table))
    Builder(inner, location=made.location).create(func.Return, [table.get(v, v) for v in returned[results:]])
    bwd.update_type()
    made.returns.set_operands([*returned[:results], *residuals])
    for op in reversed(backward):
        op.erase()
    for index in reversed(range(arguments, arguments + len(seeds))):
        block.erase_argument(index)
    made.properties["sym_name"] = StringAttr(f"{name}_fwd")
    made.update_type()
    return [made, bwd]


def ancestors_of(values: Sequence[Value]) -> set[Operation]:
    """The ops that values are computed by."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        op = pending.pop().defining_op
        if op is not None and op not in found:
            found.add(op)
            pending += op.operands
    return found
