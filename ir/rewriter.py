"""Greedy rewriting: folds, rules, dead ops and constants, until nothing changes.

The driver visits every op in text order and, for each, in this order
- removes it when it has no effects and no uses,
- keeps one constant per value and type, at the start of the innermost isolated region,
- folds it (`Op.fold`), making constants for attributes,
- puts the constant of a commutative op on the right,
- tries the rules for its class, in order.
What a change may enable is visited again: users, new ops and definitions that lost their last use at once, users of
users and the ops around when the sweep is done, in another round.  So the work is near-linear in ops plus rewrites.  A
rule may look at the op, its operands, their operands, and the ends of its regions.

Rules that undo each other would never end.  Every op that a rule made knows how many rules led to it; past a limit that
no sound rule set reaches (the number of ops, and some) it is left alone and the rules of its history are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from .attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr, folded_attr
from .builder import Builder
from .definition import COMMUTATIVE, CONSTANT, ISOLATED, Op
from .diagnostics import PassError
from .effects import BY_OP, FIXED, READS, RECURSIVE, effect_kind, is_removable
from .location import Location, fuse
from .operations import Block, Operation, Region, UnregisteredOp
from .registry import lookup
from .types import FloatType, IndexType, IntegerType, ShapedType, TensorType, Type, VectorType
from .values import Value

CONSTANT_OPS: dict[type[Type], str] = {
    TensorType: "array.constant",
    VectorType: "arith.constant",
    FloatType: "arith.constant",
    IntegerType: "arith.constant",
    IndexType: "arith.constant",
}
"""Type class -> the op (with the trait `CONSTANT`) that makes constants of it; plugins add rows."""

TENSOR_CONSTANTS: dict[str, str] = {"arith": "arith.constant", "math": "arith.constant"}
"""Dialect -> the op that makes the tensors which its ops fold to, where that is not the one of `CONSTANT_OPS`."""


class NoConstantError(PassError):
    """A rule wants a constant of a type that has none; it does not apply."""


class Rule:
    """A rewrite of the ops of class `root`.

    `rewrite(op, rewriter)` returns None when it does not apply, the values that replace the op's results (new ops made
    through the rewriter, which stands before `op`), or `CHANGED` when it changed `op` in place.  Whatever it makes
    before it returns None is erased again.  `text` says what it does, as in `x + 0 -> x`.
    """

    __slots__ = ("rewrite", "root", "text")

    def __init__(self, root: type[Op], text: str, rewrite: Callable[[Any, Rewriter], Sequence[Value] | None]) -> None:
        self.root = root
        self.text = text
        self.rewrite = rewrite

    def __str__(self) -> str:
        return f"{self.root.name}: {self.text}"


CHANGED: Final[Sequence[Value]] = []
"""What a rule returns when it changed its op in place."""

RuleSource = Callable[[type[Operation]], Sequence[Rule]]


@dataclass
class Outcome:
    """What a rewrite did: how often each rule fired, and the rules that did not come to rest."""

    changed: bool = False
    converged: bool = True
    fired: dict[str, int] = field(default_factory=dict[str, int])
    cycling: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        if self.converged:
            return "converged"
        return f"did not converge; these rules undo or feed each other: {'; '.join(self.cycling)}"


FOLD: Final = "fold"
DEAD: Final = "remove dead op"
CONSTANTS: Final = "merge or move constant"
ORDER: Final = "constant operand to the right"

# How an op came to be: (number of rules that led to it, the last one, the history of the op that it replaced).
_History = tuple[int, str, Any]


class _ClassFacts:
    """What the driver needs to know of an op class, found once."""

    __slots__ = ("commutative", "constant", "fold", "removable", "rules", "unsure")

    def __init__(self, cls: type[Operation], rules: Sequence[Rule], fold: bool) -> None:
        kind = effect_kind(cls)
        self.unsure = kind in (RECURSIVE, BY_OP)
        self.removable = not cls.traits & FIXED and (kind <= READS or self.unsure)
        self.constant = CONSTANT in cls.traits
        self.fold = fold and issubclass(cls, Op) and cls.fold is not Op.fold and not self.constant
        self.commutative = fold and COMMUTATIVE in cls.traits
        self.rules = tuple(rules)


class Rewriter(Builder):
    """The greedy driver, and the builder that rules get."""

    def __init__(
        self,
        root: Operation,
        rules: RuleSource,
        *,
        fold: bool = True,
        max_rounds: int = 10,
        trace: Callable[[str, Operation, Sequence[Value]], None] | None = None,
    ) -> None:
        super().__init__()
        self.root = root
        self.rules = rules
        self.folding = fold
        self.max_rounds = max_rounds
        self.trace = trace
        self.outcome = Outcome()
        self.facts: dict[type[Operation], _ClassFacts] = {}
        self.known: dict[Value, Attribute] = {}
        self.visited: set[Operation] = set()
        self.work: list[Operation] = []
        self.again: dict[Operation | None, None] = {}
        self.created: list[Operation] = []
        self.gone: set[Operation] = set()  # ops inside erased ops
        self.history: dict[Operation, _History] = {}
        self.max_rewrites = 1000
        self.rewrites = 0
        # Constants of a scope stand in one run at the start of its block; the last of the run, by block.
        self.pool: dict[tuple[Any, ...], Operation] = {}
        self.last_constant: dict[Block, Operation | None] = {}
        self.scopes: dict[Block, Block] = {}

    # For rules.

    def constant_of(self, value: Value) -> Attribute | None:
        """The constant that a value is known to be."""
        return self.known.get(value)

    def constant(self, attribute: Attribute, type: Type) -> Value | None:
        """A constant of `type`, shared within its scope; None when the type has no constants.

        A scalar attribute for a tensor or vector is a splat.
        """
        if isinstance(type, ShapedType) and isinstance(attribute, FloatAttr | IntegerAttr):
            attribute = DenseAttr.splat(type, attribute)
        name = next((n for kind, n in CONSTANT_OPS.items() if isinstance(type, kind)), None)
        if isinstance(type, TensorType) and self.before is not None:
            name = TENSOR_CONSTANTS.get(self.before.name.partition(".")[0], name)
        cls = lookup(name) if name else None
        if cls is None or self.block is None:
            return None
        block = self.scope(self.block)
        key = (block, cls, attribute, type)
        op = self.pool.get(key)
        if op is None:
            op = cls((), (type,), {"value": attribute}, location=self.location)
            self._place(op, block, key)
            self.created.append(op)
            self.visited.add(op)
        return op.results[0]

    def number(self, value: float, type: Type) -> Value:
        """A Python number as a constant of `type`, for a tensor or vector a splat; NoConstantError when it has none."""
        attribute = folded_attr(value, type)
        made = None if attribute is None else self.constant(attribute, type)
        if made is None:
            raise NoConstantError(f"no op makes constants of type {type}", self.location)
        return made

    def insert(self, op: Any) -> Any:
        super().insert(op)
        self.created.append(op)
        return op

    def erase(self, op: Operation) -> None:
        """Erase an op without uses; what defined its operands is looked at again."""
        self.again[op.parent_op] = None
        for value in op.operands:
            if value.num_users == 1:
                owner = value.defining_op
                if owner is not None and owner in self.visited:
                    self.work.append(owner)
        if CONSTANT in op.traits:
            self._forget(op)
        if op.regions:
            for inner in op.walk():
                self.gone.add(inner)
                for value in inner.operands:
                    self.again[value.defining_op] = None
        op.erase()

    def replace(self, op: Operation, values: Sequence[Value]) -> None:
        """Replace an op other than the rule's root; users are looked at again."""
        for old, new in zip(op.results, values, strict=True):
            self._revisit_users(old)
            old.replace_by(new)
        self.erase(op)

    def set_operands(self, op: Operation, values: Sequence[Value]) -> None:
        """Give an op other operands; what defined the old ones is looked at again."""
        for value in op.operands:
            self.again[value.defining_op] = None
        op.set_operands(values)

    def revisit(self, op: Operation) -> None:
        """Look again at an op that the rule changed in place, and at its users."""
        for result in op.results:
            self._revisit_users(result)
        self.again[op.parent_op] = None
        if op in self.visited:
            self.work.append(op)

    def _revisit_users(self, value: Value) -> None:
        visited, work, again = self.visited, self.work, self.again
        for user in value.users:
            if user in visited:
                work.append(user)
                again[user.parent_op] = None
                for result in user.results:
                    for second in result.users:
                        again[second] = None

    def inline_block(self, block: Block, before: Operation, values: Sequence[Value]) -> Sequence[Value]:
        """Move the ops of `block` before an op, with `values` for its arguments; the operands of its terminator.

        The terminator is erased; the block is left empty.
        """
        for argument, value in zip(block.arguments, values, strict=True):
            self._revisit_users(argument)
            argument.replace_by(value)
        end = block.terminator
        results = end.operands
        self.set_operands(end, ())
        end.erase()
        self.gone.add(end)
        for op in block:
            op.move_before(before)
            if CONSTANT in op.traits and op in self.visited:
                self.work.append(op)  # another scope may hold it now
        self.scopes.clear()
        return results

    # The driver.

    def run(self) -> Outcome:
        """Rewrite until nothing changes, or a limit is reached."""
        ops = list(self.root.walk())
        self.max_rewrites = 16 * len(ops) + 1000
        max_history = len(ops) + 64
        visit, visited, work = self._visit, self.visited, self.work
        for _ in range(self.max_rounds):
            self.again = {}
            for op in ops:
                visited.add(op)
                visit(op, max_history)
                while work and self.rewrites <= self.max_rewrites:
                    visit(work.pop(), max_history)
                if self.rewrites > self.max_rewrites:
                    self._give_up(sorted(self.outcome.fired, key=lambda n: -self.outcome.fired[n])[:4])
                    return self.outcome
            ops = [op for op in self.again if op is not None]
            if not ops:
                return self.outcome
        self._give_up(list(self.outcome.fired))
        return self.outcome

    def _give_up(self, names: Sequence[str]) -> None:
        self.outcome.converged = False
        self.outcome.cycling += [n for n in names if n not in self.outcome.cycling and n != CONSTANTS]

    def _count(self, name: str) -> None:
        fired = self.outcome.fired
        fired[name] = fired.get(name, 0) + 1
        self.outcome.changed = True

    def _visit(self, op: Operation, max_history: int) -> None:
        if op.parent is None or op is self.root or op in self.gone:
            return
        cls = type(op)
        facts = self.facts.get(cls)
        if facts is None:
            facts = self.facts[cls] = _ClassFacts(cls, self.rules(cls), self.folding)
        if facts.removable:
            for result in op.results:
                if result.use_list:
                    break
            else:
                if not facts.unsure or is_removable(op):
                    self._count(DEAD)
                    self.rewrites += 1
                    self.erase(op)
                    return
        if facts.constant:
            self._keep_constant(op)
            return
        if facts.fold and self._fold(op):
            return
        if facts.commutative:
            operands = op.operands
            if len(operands) == 2 and operands[0] in self.known and operands[1] not in self.known:
                op.set_operands((operands[1], operands[0]))
                self._count(ORDER)
                self.revisit(op)
                self.rewrites += 1
                return
        if facts.rules:
            self.block, self.before, self.location = op.parent, op, op.location
            for rule in facts.rules:
                try:
                    values = rule.rewrite(op, self)
                except NoConstantError:
                    values = None
                if values is not None:
                    self._accept(rule, op, values, max_history)
                    return
                if self.created:
                    self._undo()
                    self.location = op.location

    def _fold(self, op: Any) -> bool:
        known = self.known
        folded = op.fold([known.get(v) for v in op.operands])
        if folded is None:
            return False
        results = cast("Sequence[Any]", folded if isinstance(folded, list | tuple) else (folded,))
        if len(results) != len(op.results):
            raise PassError(
                f"the fold of {op.name} gave {len(results)} values for {len(op.results)} results", op.location
            )
        self.block, self.before, self.location = op.parent, op, op.location
        values: list[Value] = []
        for item, result in zip(results, op.results):
            value = item if isinstance(item, Value) else self.constant(item, result.type)
            if value is None or value is result:
                self._undo()
                return False
            if value.type is not result.type:
                raise PassError(
                    f"the fold of {op.name} gave a value of type {value.type} for a result of type {result.type}",
                    op.location,
                )
            values.append(value)
        if self.trace is not None:
            self.trace(f"{op.name}: {FOLD}", op, values)
        self.created.clear()
        self._count(FOLD)
        self.rewrites += 1
        self.replace(op, values)
        return True

    def _accept(self, rule: Rule, op: Operation, values: Sequence[Value], max_history: int) -> None:
        created, self.created = self.created, []
        name = str(rule)
        past: _History | None = self.history.get(op)
        generation = 1 if past is None else past[0] + 1
        history = (generation, name, past)
        if generation > max_history:
            self._give_up(_names(history))
            self.gone.update((op, *created))
        if self.trace is not None:
            self.trace(name, op, values)
        self._count(name)
        self.rewrites += 1
        for made in created:
            self.history[made] = history
            self.visited.add(made)
        if values is CHANGED:
            self.history[op] = history
            self.revisit(op)
        else:
            if len(values) != len(op.results):
                raise PassError(
                    f"the rule '{name}' gave {len(values)} values for {len(op.results)} results", op.location
                )
            for value, result in zip(values, op.results):
                if value.type is not result.type:
                    raise PassError(
                        f"the rule '{name}' gave a value of type {value.type} for a result of type {result.type}",
                        op.location,
                    )
            self.replace(op, values)
        self.work += reversed(created)

    def _undo(self) -> None:
        """Erase what a rule or fold made before it gave up."""
        for made in reversed(self.created):
            if made.parent is not None:
                self.erase(made)
        self.created.clear()

    # Constants.

    def scope(self, block: Block) -> Block:
        """The block that keeps the constants for ops of `block`: the entry of the innermost region that is closed."""
        found = self.scopes.get(block)
        if found is not None:
            return found
        chain: list[Block] = []
        at = block
        while True:
            chain.append(at)
            region = at.parent
            holder = region.parent if region is not None else None
            if region is None or holder is None:
                found = at
                break
            if holder is self.root or holder.parent is None or is_closed(holder, region):
                found = region.blocks[0]
                break
            at = holder.parent
        for at in chain:
            self.scopes[at] = found
        return found

    def _keep_constant(self, op: Operation) -> None:
        assert op.parent is not None
        value = op.properties.get("value")
        if value is None:
            return
        block = self.scope(op.parent)
        key = (block, type(op), value, op.results[0].type)
        found = self.pool.get(key)
        if found is op:
            if op.parent is block and op.prev is self.last_constant.get(block):
                self.last_constant[block] = op
            return
        if found is not None:
            self._count(CONSTANTS)
            self.rewrites += 1
            self.replace(op, found.results)
            return
        self._place(op, block, key)

    def _place(self, op: Operation, block: Block, key: tuple[Any, ...]) -> None:
        """Put a constant at the end of the run of constants of its scope."""
        last = self.last_constant.get(block)
        if op.parent is not block or op.prev is not last:
            if op.parent is not None:
                op.detach()
                self._count(CONSTANTS)
            following = block.first if last is None else last.next
            if following is None:
                block.append(op)
            else:
                block.insert_before(op, following)
        self.last_constant[block] = op
        self.pool[key] = op
        self.known[op.results[0]] = op.properties["value"]

    def _forget(self, op: Operation) -> None:
        assert op.parent is not None
        block = self.scope(op.parent)
        key = (block, type(op), op.properties.get("value"), op.results[0].type)
        if self.pool.get(key) is op:
            del self.pool[key]
        if self.last_constant.get(block) is op:
            self.last_constant[block] = op.prev


def is_closed(holder: Operation, region: Region) -> bool:
    """Whether a region of an op uses nothing from outside and must stay so."""
    if ISOLATED in holder.traits or isinstance(holder, UnregisteredOp):
        return True
    return isinstance(holder, Op) and any(getattr(holder, name) is region for name in holder.closed_regions)


def _names(history: _History | None, steps: int = 64) -> list[str]:
    """The different rules of the last steps of a history, oldest first."""
    names: dict[str, None] = {}
    while history is not None and steps:
        names[history[1]] = None
        history = history[2]
        steps -= 1
    return list(reversed(names))


def by_class(rules: Iterable[Rule]) -> RuleSource:
    """A source of rules from a plain collection."""
    table: dict[type[Operation], list[Rule]] = {}
    for rule in rules:
        table.setdefault(rule.root, []).append(rule)
    return lambda cls: table.get(cls, ())


def rewrite_greedily(root: Operation, rules: Iterable[Rule] | RuleSource = (), **settings: Any) -> Outcome:
    """Rewrite all ops inside `root`; `rules` as a collection or as a function from op class to its rules.

    Settings: `fold` (also fold and order operands), `max_rounds`, `trace(rule, op, values)` called before each rewrite.
    """
    source = rules if callable(rules) else by_class(rules)
    return Rewriter(root, source, **settings).run()


def location_of(ops: Sequence[Operation]) -> Location:
    """The fused location of ops that a rewrite replaces."""
    return fuse([op.location for op in ops])
