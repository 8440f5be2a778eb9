"""Passes with one fault each, to see whether the checks of generated programs would find it.

A mutant replaces an attribute of the production code while it is active:

    with find("cse forgets properties").active():
        ..                                             # some check must fail

`check` names the check that is to find it (tests/test_mutants.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest import mock

from nablair.ir.attributes import scalar_attr
from nablair.ir.cotangents import Masked


@dataclass(frozen=True)
class Mutant:
    """One fault: `make(original)` stands in for the attribute `name` of the object `owner` ("module" or "module:Class";
    an entry of a dictionary when `key` is given)."""

    fault: str
    check: str
    owner: str
    name: str
    make: Callable[[Any], Any]
    key: Any = None

    @contextmanager
    def active(self) -> Generator[None]:
        """While the fault is there."""
        module, _, inner = self.owner.partition(":")
        owner: Any = import_module(f"nablair.{module}")
        if inner:
            owner = getattr(owner, inner)
        if self.key is not None:
            table = getattr(owner, self.name)
            with mock.patch.dict(table, {self.key: self.make(table[self.key])}):
                yield
            return
        with mock.patch.object(owner, self.name, self.make(getattr(owner, self.name))):
            yield


def dead_views(original: Any) -> Any:
    """The ops that nothing needs, and the slices."""
    return lambda kept, ops: original(kept, ops) | {op for op in ops if op.name == "array.slice"}


def constant(value: Any) -> Callable[[Any], Any]:
    """A function that always gives `value`, whatever the original does."""
    return lambda original: lambda *args, **keywords: value


def swapped(rule: Any) -> Any:
    """A rule that gives its two partials in the wrong order."""
    return lambda op, b: reversed(list(rule(op, b)))


def negated_mask(rule: Any) -> Any:
    """A rule whose masks let through what they should hold back."""

    def wrong(op: Any, b: Any) -> Any:
        for partial in rule(op, b):
            yield Masked(b.logical_not(partial.condition), partial.linear, partial.soft)

    return wrong


def identity_of(number: float) -> Callable[[Any], Any]:
    """A monoid that starts from another number."""
    return lambda original: classmethod(lambda cls, type: scalar_attr(number, type))


def first_use_only(original: Any) -> Any:
    """Cotangents of which only the first is taken."""

    def wrong(self: Any, value: Any) -> Any:
        parts = self.cotangents.get(value)
        return parts[0] if parts else None

    return wrong


def forward_permutation(original: Any) -> Any:
    """A transpose that goes the other way."""
    return lambda self, subscripts: [subscripts[p] for p in self.permutation]


def without_steps(original: Any) -> Any:
    """A slice that takes neighbours."""
    return lambda self, k, subscripts: [s + start for s, start in zip(subscripts, self.starts, strict=True)]


def mask_of_all_but_one(original: Any) -> Any:
    """A mask that leaves out the last lane in use."""
    from nablair.passes.loops import nest

    return lambda b, left, lanes: original(b, b.index_of(nest.subtract(b, left, 1)), lanes)


def reversed_strides(original: Any) -> Any:
    """The strides of the first axis for the last."""
    return lambda shape: original(shape)[::-1]


def pieces_without_rest(original: Any) -> Any:
    """A range of blocks without the last, partial one."""
    return lambda self, b, extent, block: [p for p in original(self, b, extent, block)][:1]


def one_point(original: Any) -> Any:
    """Copies of a body that all do the first point."""
    return lambda self, starts: original(self, [starts[0]] * len(starts) if starts else starts)


def unguarded(original: Any) -> Any:
    """A guarded load of an inlined value that forgets the fill."""
    from nablair.ir.types import I1

    return lambda b, at, bounds: b.constant(True, I1)


MUTANTS: list[Mutant] = [
    Mutant("cse forgets properties", "tensor", "passes.cse", "_items", constant(())),
    Mutant("x * 2 is x", "tensor", "ir.dialects.elementwise:Mul", "identity", lambda _: 2.0),
    Mutant("dce takes views for dead", "tensor", "passes.dce", "_unneeded", dead_views),
    Mutant("transposes compose the wrong way", "kernel", "ir.dialects.array:Transpose", "view", forward_permutation),
    Mutant("slices forget their steps", "kernel", "ir.dialects.array:Slice", "view", without_steps),
    Mutant("sums start from 1", "kernel", "ir.dialects.arith:AddF", "identity", identity_of(1.0)),
    Mutant("maxima start from 9", "kernel", "ir.dialects.arith:MaximumF", "identity", identity_of(9.0)),
    Mutant("fusion takes guarded loads for plain", "kernel", "passes.fusion.join", "_is_plain", constant(True)),
    Mutant("fusion merges different loads", "kernel", "passes.cse", "_items", constant(())),
    Mutant("fusion forgets guards", "kernel", "passes.fusion.apply", "inside", unguarded),
    Mutant("accumulates start from garbage", "loops", "passes.lower_to_loops:_Lowering", "fill", constant(None)),
    Mutant("the tail's mask misses a lane", "loops", "passes.loops.vectorize", "_mask", mask_of_all_but_one),
    Mutant("gathers use reversed strides", "loops", "passes.loops.vectorize", "row_major", reversed_strides),
    Mutant("tiles lose the rest", "loops", "passes.loops.tile:_Tiler", "pieces", pieces_without_rest),
    Mutant("jammed copies are of one point", "loops", "passes.loops.unroll_jam:_Jam", "run", one_point),
    Mutant("div's partials are swapped", "derivatives", "ir.dialects.elementwise:Div", "partials", swapped),
    Mutant("relu's mask is wrong", "derivatives", "ir.dialects.elementwise:Relu", "partials", negated_mask),
    Mutant(
        "masks are never applied", "derivatives", "ir.builders.masks:Masks", "applied",
        lambda original: lambda self, ct: ct.value,
    ),
    Mutant(
        "one use of a value counts", "derivatives", "passes.autodiff.transform:_Reverse", "gathered", first_use_only
    ),
    Mutant("differences are sums", "cpu", "lowering.llvm.arith", "BINARY", lambda _: "fadd", "arith.subf"),
]  # fmt: skip


def find(fault: str) -> Mutant:
    """A mutant by its fault."""
    return next(m for m in MUTANTS if m.fault == fault)
