"""The skeleton of a kernel: its loops and memory traffic, without names, scalar ops and the order of neighbours.

Two kernels with one skeleton have the same domain, the same inner loops (kind, extents, results, nesting) and locals,
and load, store and accumulate the same elements in the same loops.  A subscript reads as the axis that it is: `0.1` is
the second axis of the outermost loop; anything else that is no constant reads `*`.

    launch (32)
      reduce (64) x1
        load tensor<32x64xf32>[0.0, 1.0]
      store tensor<32xf32>[0.0]
"""

from __future__ import annotations

from nablair.ir.affine import AffineConstant
from nablair.ir.dialects import kernel
from nablair.ir.operations import Block, Operation
from nablair.ir.values import BlockArgument, Value
from nablair.passes.kernel import structure

LOOPS = (kernel.Launch, *structure.LOOPS)


def skeleton(launch: kernel.Launch) -> str:
    """The skeleton's text."""
    return "\n".join(_lines(launch, {}, 0))


def _lines(op: Operation, names: dict[Value, str], depth: int) -> list[str]:
    """An op's lines: a loop's header and what is inside, in a fixed order."""
    indent = "  " * depth
    if isinstance(op, kernel.Load | kernel.Store | kernel.Accumulate):
        return [indent + _access(op, names)]
    if not isinstance(op, LOOPS):
        return []
    extents = ", ".join(str(e) if isinstance(e, int) else "?" for e in structure.extents(op))
    results = f" x{len(op.results)}" if op.results and not isinstance(op, kernel.Launch) else ""
    inner = dict(names)
    for region in op.regions:
        for axis, argument in enumerate(region.block.arguments[: len(structure.extents(op))]):
            inner[argument] = f"{depth}.{axis}"
    parts = [part for region in op.regions for part in _block(region.block, inner, depth + 1)]
    starts = f" from {[str(v.type) for v in op.outs_]}" if isinstance(op, kernel.Launch) and op.inits else ""
    return [f"{indent}{op.name.removeprefix('kernel.')} ({extents}){results}{starts}", *parts]


def _block(block: Block, names: dict[Value, str], depth: int) -> list[str]:
    """The lines of a block: its accesses, then its loops in the order of the text; a load that recurs stands once."""
    loads, writes, loops = set[str](), list[str](), list[str]()
    for op in block:
        if isinstance(op, kernel.Load):
            loads.update(_lines(op, names, depth))
        else:
            (loops if isinstance(op, LOOPS) else writes).extend(_lines(op, names, depth))
    return [*sorted([*loads, *writes]), *loops]


def _access(op: kernel.Load | kernel.Store | kernel.Accumulate, names: dict[Value, str]) -> str:
    """An access without its value."""

    def place(subscript: object) -> str:
        if isinstance(subscript, AffineConstant):
            return str(subscript.value)
        return names.get(subscript, "*") if isinstance(subscript, BlockArgument) else "*"

    at = ", ".join(map(place, structure.subscripts(op)))
    memory = op.source if isinstance(op, kernel.Load) else op.operands[len(op.operands) - len(op.indices) - 1]
    kind = "" if isinstance(memory, BlockArgument) else "local "
    guard = " else" if isinstance(op, kernel.Load) and op.fill is not None else ""
    return f"{op.name.removeprefix('kernel.')} {kind}{memory.type}[{at}]{guard}"
