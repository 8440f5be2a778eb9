"""Functions that can fail while they run: they return a status, which their callers hand on.

A function that allocates memory or asserts something, or calls one that does, returns an i32: 0 where it ran to its
end, else the status of what went wrong (a function with a result returns both).  At a failure it frees what it had
allocated and returns at once; a loop over tasks leaves the status in its context for the thread that started it.  So
each call knows of its own failure, whatever other threads do, and nothing leaks.

    %3 = call ptr @aligned_alloc(i64 64, i64 256)
    %4 = icmp ne ptr %3, null
    br i1 %4, label %ok5, label %failed5
    ..
    failed5:
      call void @free(ptr %1)                 ; allocated before, and not freed yet
      ret i32 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...ir.dialects import cf, func, memref
from ...ir.operations import Operation

OUT_OF_MEMORY = 1
"""The status of a function that found no memory for a temporary."""
FIRST_ASSERTION = 2


def can_fail(op: Operation, functions: frozenset[str]) -> bool:
    """Whether something inside an op can fail; `functions` are those that can."""
    return any(
        isinstance(inner, memref.Alloc | cf.Assert) or (isinstance(inner, func.Call) and inner.callee in functions)
        for inner in op.walk()
    )


def assertions(module: Operation) -> list[cf.Assert]:
    """The assertions of a module; the status of the n-th that fails is `FIRST_ASSERTION` + n."""
    return [op for op in module.walk() if isinstance(op, cf.Assert)]


def fallible(module: Operation) -> frozenset[str]:
    """The names of the functions that can fail."""
    callers: dict[str, list[str]] = {}
    pending: list[str] = []
    for function in module.regions[0].blocks[0]:
        if not isinstance(function, func.Func):
            continue
        if can_fail(function, frozenset()):
            pending.append(function.sym_name)
        for op in function.walk():
            if isinstance(op, func.Call):
                callers.setdefault(op.callee, []).append(function.sym_name)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += callers.get(name, ())
    return frozenset(found)


@dataclass(frozen=True)
class Facts:
    """What the emission of a function must know of its module: the functions that return a status, those that are
    declared only, and the status of each assertion."""

    fallible: frozenset[str] = frozenset()
    undefined: frozenset[str] = frozenset()
    statuses: Mapping[Operation, int] = field(default_factory=dict[Operation, int])


def facts_of(module: Operation) -> Facts:
    """The facts of a module."""
    functions = [op for op in module.regions[0].blocks[0] if isinstance(op, func.Func)]
    undefined = frozenset(f.sym_name for f in functions if f.is_declaration)
    statuses: dict[Operation, int] = {op: FIRST_ASSERTION + number for number, op in enumerate(assertions(module))}
    return Facts(fallible(module), undefined, statuses)


def returned(type: str, fails: bool) -> str:
    """What a function with a result of this LLVM type (or void) returns."""
    return type if not fails else "i32" if type == "void" else f"{{ {type}, i32 }}"


def leaving(type: str) -> Callable[[str], list[str]]:
    """How a function with a result of this type returns a status other than 0."""
    if type == "void":
        return lambda status: [f"ret i32 {status}"]
    whole = returned(type, True)
    return lambda status: [f"ret {whole} {{ {type} zeroinitializer, i32 {status} }}"]


class Failures:
    """How the function under construction fails: what it must free, and the blocks that return a status.

    `leave(status)` gives the instructions that return it; None in a function that cannot fail.
    """

    def __init__(self, leave: Callable[[str], list[str]] | None) -> None:
        self.leave = leave
        self.live: list[str] = []
        """Addresses that are allocated and not freed yet, on every path to here."""
        self.blocks: list[str] = []

    def block(self, label: str, status: str) -> None:
        """Add the block of a failure at this point."""
        assert self.leave is not None
        frees = [f"call void @free(ptr {pointer})" for pointer in reversed(self.live)]
        self.blocks += [f"{label}:", *(f"  {line}" for line in [*frees, *self.leave(status)])]
