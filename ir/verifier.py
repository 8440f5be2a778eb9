"""The verifier: every invariant of IR, checked in one pass in text order.

Per op: what its class declares (`ir.op_checks`), result types equal to `infer`, and `verify_`.  Per block: linked list
and terminator.  Per value: use lists and dominance.  Per symbol table: unique names, and references through the hook
`verify_symbols(tables)` of ops that refer to symbols.  Branching ops may give `successor_operands(index)`, which must
fit the arguments of the successor.

Whether a value dominates its use is decided in constant time by the chain of blocks that are open where the use stands;
only regions with several blocks need dominators.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .collector import without_collector
from .definition import ISOLATED, NO_TERMINATOR, SYMBOL_TABLE, TERMINATOR, Op
from .diagnostics import VerifyError
from .dominance import Dominance
from .interfaces import Branches, VerifiesSymbols
from .op_checks import check_of
from .operations import Block, Operation, Region
from .symbols import SymbolTables, symbol_name
from .values import BlockArgument, OpResult, Value


def verify(op: Operation) -> None:
    """Raise VerifyError at the first invariant that `op`, or anything inside it, breaks."""
    without_collector(_Verifier(op).run)


class _Verifier:
    """One run.  `open` maps each block around the current op, out to the isolated one, to its op on the way there."""

    def __init__(self, root: Operation) -> None:
        self.root = root
        self.dominance = Dominance()
        self.tables = SymbolTables()
        self.references: list[Any] = []
        self.open: dict[Block, Operation] = {}
        # Blocks to verify, ops behind whose regions to go on, and the open blocks to return to.
        self.pending: list[Block | Operation | dict[Block, Operation]] = []
        self.edges = 0  # pairs of an op and a distinct operand
        self.uses = 0  # entries of use lists

    def run(self) -> None:
        root = self.root
        around: Operation | None = root
        while around is not None and around.parent is not None:
            self.open[around.parent] = around
            around = around.parent_op
            if around is not None and ISOLATED in around.traits:
                break
        if root.parent is None:
            self.open[Block()] = root
        self.ops(root, root.parent, root)
        pending = self.pending
        while pending:
            task = pending.pop()
            if isinstance(task, Block):
                self.block(task)
            elif isinstance(task, dict):
                self.open = task
            else:
                self.ops(task.next, task.parent, None)
        if ISOLATED in root.traits and self.edges != self.uses:
            self.stale_uses()
        for op in self.references:
            assert isinstance(op, VerifiesSymbols)
            op.verify_symbols(self.tables)

    def ops(self, op: Operation | None, block: Block | None, only: Operation | None) -> None:
        """Verify `op` and those behind it, until one has regions (which come first); `only`: just this one."""
        open = self.open
        checks, referring = _CHECKS, _REFERRING
        edges = uses_total = 0
        while op is not None:
            open[block] = op  # pyright: ignore[reportArgumentType]
            operands = op.operands
            for value in operands:
                if type(value) is OpResult:
                    owner = value.owner
                    home = owner.parent
                    if home is block:
                        if owner.order >= op.order:
                            self.not_dominated(op, value)
                    else:
                        around = None if home is None else open.get(home)
                        if around is None:
                            self.distant(op, value)
                        elif owner.order >= around.order:
                            self.not_dominated(op, value)
                elif type(value) is BlockArgument:
                    if value.owner is not block and value.owner not in open:
                        self.distant(op, value)
                else:
                    raise op.error("uses a value that nothing defines")
            count = len(operands)
            if count == 1:
                edges += 1
                value = operands[0]
                if value.use_list is not op and value.uses.get(op) != 1:
                    self.bad_uses(op)
            elif count:
                distinct = set(operands)
                edges += len(distinct)
                counted = 0
                for value in distinct:
                    if value.use_list is op:
                        counted += 1
                    elif found := value.uses.get(op):
                        counted += found
                    else:
                        self.bad_uses(op)
                if counted != count:
                    self.bad_uses(op)
            results = op.results
            for result in results:
                uses_total += result.num_users
                if result.owner is not op:
                    raise op.error(f"has result {result.index}, which belongs to '{result.owner.name}'")
            check = checks.get(op.__class__)
            if check is None:
                check = checks[op.__class__] = check_of(type(op))
                if isinstance(op, VerifiesSymbols):
                    _REFERRING.add(type(op))
            check(op)
            if op.__class__ in referring:
                self.references.append(op)
            if op.successors:
                self.successors(op)
            if op.regions:
                self.edges += edges
                self.uses += uses_total
                self.regions(op, only is None)
                return
            if only is not None:
                break
            following = op.next
            if following is None:
                if block is not None and block.last is not op:
                    raise op.error("is the last op of a list whose block has another last op")
                break
            if following.prev is not op or following.parent is not block:
                raise op.error(f"is followed by '{following.name}', whose links are wrong")
            op = following
        self.edges += edges
        self.uses += uses_total
        if only is None and block is not None:
            open.pop(block, None)
            self.end(block)

    def regions(self, op: Operation, resume: bool) -> None:
        """Put the blocks inside an op before what follows it."""
        pending = self.pending
        if resume:
            pending.append(op)
        traits = op.traits
        if ISOLATED in traits:
            pending.append(self.open)
            self.open = {}
        if SYMBOL_TABLE in traits:
            self.unique_symbols(op)
        for region in reversed(op.regions):
            if region.parent is not op:
                raise op.error("has a region that belongs elsewhere")
            pending += reversed(region.blocks)

    def block(self, block: Block) -> None:
        """Begin a block."""
        region = block.parent
        op = block.parent_op
        if region is None or op is None or region.parent is not op:
            raise VerifyError("a block does not belong to the region that holds it")
        for index, argument in enumerate(block.arguments):
            if argument.owner is not block or argument.index != index:
                raise op.error(f"has a block whose argument {index} belongs elsewhere")
            self.uses += argument.num_users
        first = block.first
        if first is None:
            if _needs_terminator(op, region):
                raise op.error("has an empty block: expected at least a terminator")
            return
        if first.prev is not None or first.parent is not block:
            raise first.error("begins a block, but its links are wrong")
        self.ops(first, block, None)

    def end(self, block: Block) -> None:
        """Check the last op of a block."""
        last = block.last
        assert last is not None
        if TERMINATOR in last.traits or not isinstance(last, Op):
            return
        region, op = block.parent, block.parent_op
        assert region is not None and op is not None
        if _needs_terminator(op, region):
            raise last.error(f"ends a block of '{op.name}', but is not a terminator").note(
                f"'{op.name}' op stands here", op.location
            )

    def successors(self, op: Operation) -> None:
        """Check the blocks that a terminator branches to."""
        region = op.parent_region
        if op.next is not None:
            raise op.error("branches, but does not end its block")
        for index, block in enumerate(op.successors):
            if block.parent is not region or region is None:
                raise op.error(f"branches to a block of another region (successor {index})")
            if block is region.blocks[0]:
                raise op.error("branches to the entry block of its region, which may have no predecessors")
            if not isinstance(op, Branches):
                continue
            given = [v.type for v in op.successor_operands(index)]
            expected = [a.type for a in block.arguments]
            if given != expected:
                raise op.error(
                    f"passes ({', '.join(map(str, given))}) to successor {index}, "
                    f"which takes ({', '.join(map(str, expected))})"
                )

    def unique_symbols(self, op: Operation) -> None:
        names: dict[str, Operation] = {}
        for region in op.regions:
            for block in region.blocks:
                for inner in block:
                    name = symbol_name(inner)
                    if name is None:
                        continue
                    if name in names:
                        error = inner.error(f"redefines the symbol @{name}")
                        raise error.note("prior definition here", names[name].location)
                    names[name] = inner

    # Failures, and what is too rare for the fast path.

    def not_dominated(self, op: Operation, value: Value) -> NoReturn:
        index = next(i for i, v in enumerate(op.operands) if v is value)
        error = op.error(f"operand {_operand_name(op, index)} of type {value.type} does not dominate this use")
        owner = value.defining_op
        where = owner.location if owner is not None else None
        if where is None and value.block is not None and value.block.parent_op is not None:
            where = value.block.parent_op.location
        raise error.note("the operand is defined here", where)

    def distant(self, op: Operation, value: Value) -> None:
        """A value of a block that is not open: of another block in a region around, or out of sight."""
        home = value.block
        if home is None or home.parent is None:
            index = next(i for i, v in enumerate(op.operands) if v is value)
            raise op.error(f"operand {_operand_name(op, index)} of type {value.type} is not defined in this IR")
        at: Operation | None = op
        while at is not None and at.parent_region is not home.parent:
            at = at.parent_op
            if at is not None and ISOLATED in at.traits:
                outside = at.parent_region
                while outside is not None and outside is not home.parent:
                    outside = outside.parent.parent_region if outside.parent is not None else None
                if outside is not None:
                    index = next(i for i, v in enumerate(op.operands) if v is value)
                    raise op.error(
                        f"operand {_operand_name(op, index)} of type {value.type} is defined outside of '{at.name}', "
                        "whose regions are isolated from above"
                    ).note("the isolated op stands here", at.location)
                break
        if at is None or at.parent is None or at.parent_region is not home.parent:
            self.not_dominated(op, value)
        if at.parent is home or not self.dominance.block_dominates(home, at.parent):
            self.not_dominated(op, value)

    def bad_uses(self, op: Operation) -> NoReturn:
        for index, value in enumerate(op.operands):
            expected = sum(v is value for v in op.operands)
            if value.uses.get(op, 0) != expected:
                recorded = value.uses.get(op, 0)
                raise op.error(f"operand {_operand_name(op, index)} records {recorded} uses by this op, not {expected}")
        raise op.error("has operands whose use lists are wrong")

    def stale_uses(self) -> None:
        """Find the value that records a use which is none."""
        for op in self.root.walk():
            if op is self.root:
                continue
            values: list[Value] = list(op.results)
            for region in op.regions:
                for block in region.blocks:
                    values += block.arguments
            for value in values:
                for user in value.uses:
                    if not any(v is value for v in user.operands):
                        raise op.error(f"defines a value that records a use by '{user.name}', which does not use it")
                    if not self.root.is_ancestor_of(user):
                        raise op.error(f"defines a value that is used by '{user.name}', which stands outside this IR")


_CHECKS: dict[type[Operation], Any] = {}
_REFERRING: set[type[Operation]] = set()
"""Classes of ops that refer to symbols."""


def _needs_terminator(op: Operation, region: Region) -> bool:
    """Whether the blocks of a region must end in a terminator; unregistered ops with one block need none."""
    return NO_TERMINATOR not in op.traits and (isinstance(op, Op) or len(region.blocks) > 1)


def _operand_name(op: Operation, index: int) -> str:
    """`#0 ('lhs')`."""
    if isinstance(op, Op):
        for number, (name, _) in enumerate(op.named_operands()):
            if number == index:
                return f"#{index} ('{name}')"
    return f"#{index}"
