"""The invariants of the kernel ops, and the checks that several ops share.

1. The arguments of a body are the axes (index), the ins and the outs; results have the types of the outs; maps fit
   the rank and the index operands; a scalar has the element type of the memory it comes from or goes to.
2. Outs are written only, by stores or by accumulates but not by both; ins and locals are read only.
3. An out without init is stored exactly once per element, or accumulated.
4. Stores and accumulates stand in the bodies of launch and sweep and in `do`.
5. combine captures nothing and yields the types of the identity.
6. A subscript that is an axis lies inside the bounds, or the load has an `else`.
7. Every region ends in `kernel.yield`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...definition import Op
from ...operations import Operation, Region
from ...types import DYNAMIC, Type
from .base import Axes, LaunchLike, Monoidal, Yield


def join_types(types: Sequence[Type]) -> str:
    """Types as a message shows them."""
    return ", ".join(map(str, types))


def check_region(op: Op, what: str, region: Region, arguments: Sequence[Type], yields: Sequence[Type] | None) -> None:
    """One block with these arguments that ends in a yield of these types (None: of any)."""
    if len(region.blocks) != 1:
        raise op.error(f"needs a {what} of one block")
    block = region.block
    given = [a.type for a in block.arguments]
    if given != list(arguments):
        raise op.error(f"expects a {what} with arguments ({join_types(arguments)}), got ({join_types(given)})")
    last = block.last
    if not isinstance(last, Yield):
        raise op.error(f"must end its {what} in kernel.yield")
    found = [v.type for v in last.values]
    if yields is not None and found != list(yields):
        raise op.error(f"must yield ({join_types(yields)}) in its {what}, got ({join_types(found)})")


def check_extents(op: Axes) -> None:
    """Raise unless the static and dynamic extents fit together and none is negative."""
    Axes.bounds.check(op)
    for extent in op.extents:
        if extent < 0 and extent != DYNAMIC:
            raise op.error(f"has a negative extent, {extent}")


def is_in_launch(op: Operation) -> bool:
    """Whether an op stands in the body of a launch, at any depth."""
    return any(isinstance(a, LaunchLike) for a in op.ancestors())


def check_inside(op: Operation) -> None:
    """Raise unless an op stands in a launch."""
    if not is_in_launch(op):
        raise op.error("must stand in a kernel.launch")


def check_place(op: Operation) -> None:
    """Rule 4."""
    region = op.parent_region
    while region is not None:
        parent = region.parent
        if not (isinstance(parent, Axes) and parent.may_write_in(region)):
            name = parent.name if parent is not None else "no op"
            raise op.error(f"cannot stand in {name}; only the bodies of launch and sweep, and do, may write")
        if isinstance(parent, LaunchLike):
            return
        region = parent.parent_region
    raise op.error("must stand in a kernel.launch")


def verify_monoid(op: Monoidal, types: Sequence[Type]) -> None:
    """Rule 5, for elements of these types."""
    given: list[Type | None] = [getattr(a, "type", None) for a in op.identity]
    if given != list(types):
        found = ", ".join(map(str, op.identity))
        raise op.error(f"has the identity [{found}] for elements of types ({join_types(types)})")
    region = op.combine_region
    check_region(op, "combine region", region, [*types, *types], types)
    inside: set[Operation] = set()
    for inner in region.block:
        inside.update(inner.walk())
    for inner in inside:
        for value in inner.operands:
            defined = value.defining_op
            if defined is None:
                owner = value.block
                defined = owner.parent_op if owner is not None else None
                if owner is region.block:
                    continue
            if defined not in inside:
                raise op.error(f"has a combine region that uses a value from outside in '{inner.name}'")
