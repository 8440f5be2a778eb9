"""What registers do across basic blocks: which are assigned before every use, and which live in one block only.

A register that is assigned on every path before each use needs no check at run time; only the others carry a mask of
the lanes that have assigned them. A register whose whole life is in one block needs no merging of masked lanes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .faults import PtxSyntaxError
from .parser import Instruction, Kernel

_NO_RESULT = frozenset(
    ("st", "red", "bar", "barrier", "bra", "cp", "membar", "fence", "ret", "exit", "trap", "prefetch", "prefetchu",
     "nanosleep", "griddepcontrol", "discard")
)  # fmt: skip
_NAMES = re.compile(r"(?<![\w$%.])[A-Za-z_$%][\w$.]*")


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions first to last (exclusive), then the terminator's kind; `target` is a block number for "bra"."""

    first: int
    last: int
    kind: str
    terminator: Instruction | None = None
    target: int = -1


def terminator_kind(instruction: Instruction) -> str | None:
    """What ends a block: "bra", "ret", "bar", "trap", or None for an instruction that does not."""
    opcode = instruction.opcode
    if opcode in ("bar", "barrier"):
        return None if "warp" in instruction.modifiers else "bar"
    return {"bra": "bra", "ret": "ret", "exit": "ret", "trap": "trap"}.get(opcode)


def blocks_of(kernel: Kernel) -> list[Block]:
    """Cut the instructions into basic blocks, in the order of the text."""
    count = len(kernel.instructions)
    leaders = {0, *kernel.labels.values()}
    leaders |= {i + 1 for i, one in enumerate(kernel.instructions) if terminator_kind(one)}
    starts = sorted(leader for leader in leaders if leader < count)
    number = {start: i for i, start in enumerate(starts)}
    number[count] = len(starts)
    blocks = []
    for start, end in zip(starts, [*starts[1:], count]):
        last = kernel.instructions[end - 1]
        kind = terminator_kind(last)
        if kind is None:
            blocks.append(Block(start, end, "fall"))
            continue
        target = -1
        if kind == "bar" and ("sync" not in last.modifiers or not all(operand.isdigit() for operand in last.operands)):
            raise PtxSyntaxError(
                "of the barriers only bar.sync with constant operands is supported", last.line, last.text
            )
        if kind == "bra":
            label = last.operands[0] if last.operands else ""
            if label not in kernel.labels:
                raise PtxSyntaxError(f"no label `{label}`", last.line, last.text)
            target = number[kernel.labels[label]]
        blocks.append(Block(start, end - 1, kind, last, target))
    return blocks


def registers_in(kernel: Kernel, texts: Iterable[str]) -> list[str]:
    return [name for text in texts for name in _NAMES.findall(text) if name in kernel.registers]


def results_and_uses(kernel: Kernel, instruction: Instruction) -> tuple[list[str], list[str]]:
    """Registers that an instruction writes, and those that it reads (its guard included)."""
    operands = instruction.operands
    written = operands[:1] if instruction.opcode not in _NO_RESULT else ()
    uses = registers_in(kernel, operands[len(written) :])
    if instruction.guard is not None:
        uses.append(instruction.guard)
    return registers_in(kernel, written), uses


@dataclass(frozen=True)
class Registers:
    """`tracked` may be read unassigned; `local` never leave their block."""

    tracked: frozenset[str]
    local: frozenset[str]


def classify(kernel: Kernel, blocks: list[Block]) -> Registers:
    """Definite assignment by forward data flow over the blocks; sets of registers are the bits of integers."""
    bit = {name: 1 << i for i, name in enumerate(kernel.registers)}
    facts = [results_and_uses(kernel, one) for one in kernel.instructions]
    spans = [range(block.first, block.last + (block.terminator is not None)) for block in blocks]
    assigned = []
    for span in spans:
        here = 0
        for i in span:
            if kernel.instructions[i].guard is None:
                for name in facts[i][0]:
                    here |= bit[name]
        assigned.append(here)
    everything = (1 << len(bit)) - 1
    entering = [everything] * len(blocks)
    if blocks:
        entering[0] = 0
    work = [0]
    reached = {0}
    while work:
        number = work.pop()
        leaving = entering[number] | assigned[number]
        for successor in _successors(blocks, number):
            joined = entering[successor] & leaving
            if joined != entering[successor] or successor not in reached:
                entering[successor] = joined
                reached.add(successor)
                work.append(successor)
    tracked: set[str] = set()
    home: dict[str, int] = {}
    shared: set[str] = set()
    for number, span in enumerate(spans):
        known = entering[number]
        seen_here: set[str] = set()
        for i in span:
            results, uses = facts[i]
            for name in uses:
                if not known & bit[name] and number in reached:
                    tracked.add(name)
                if name not in seen_here:
                    shared.add(name)
            for name in results:
                if kernel.instructions[i].guard is None:
                    known |= bit[name]
                else:
                    shared.add(name)
                seen_here.add(name)
                if home.setdefault(name, number) != number:
                    shared.add(name)
    return Registers(frozenset(tracked), frozenset(home.keys() - shared - tracked))


def _successors(blocks: list[Block], number: int) -> list[int]:
    block = blocks[number]
    guarded = block.terminator is not None and block.terminator.guard is not None
    targets = []
    if block.kind == "bra":
        targets.append(block.target)
    if block.kind in ("fall", "bar") or guarded:
        targets.append(number + 1)
    return [target for target in targets if target < len(blocks)]
