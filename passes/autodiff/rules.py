"""The registry of derivative rules.

A rule stands in the twin module of the dialect that defines the op:

    @partials(Tanh)                       an elementwise op: for each operand, how a change of it changes the result
    def _(b, op):
        yield lambda t: b.mul(t, b.sub(1.0, b.mul(op.result, op.result)))

    @transpose(Transpose)                 an op that is linear in its float operands: the transposed map
    def _(b, op, ct):
        yield b.transpose(ct, permutation=inverse(op.permutation))

    @vjp(ReduceMax)                       any other op: cotangents of the operands from those of the results
    def _(b, op, ct): ...

A partial is linear in `t`; so the forward derivative of the result is the sum of the partials of the operands'
tangents, and the cotangent of an operand is its partial of the result's cotangent.  `ONE` stands for the identity;
`Masked` for a partial that is exactly 0 where a condition does not hold: the mask travels with the cotangent and is
applied where cotangents are accumulated, so that whatever an untaken branch computes never reaches a gradient.

None in place of a partial or cotangent means that there is none (integers, masks); a rule of an op of several results
gets None for those that nothing depends on.  An op without a rule that has an
expansion is differentiated through the expansion; `constant(..)` names the ops whose derivative is 0 everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from ...ir.definition import Op
from ...ir.dialects.tensor_builder import TensorBuilder
from ...ir.values import Value

Linear = Callable[[Value], Value]


def _identity(t: Value) -> Value:
    return t


ONE: Final[Linear] = _identity
"""The partial of an operand that is passed through."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A partial that is `linear` where `condition` (a tensor of i1) holds and exactly 0 elsewhere."""

    condition: Value
    linear: Linear = ONE


Partial = Linear | Masked | None
PartialsRule = Callable[[TensorBuilder, Any], Iterable[Partial]]
CotangentRule = Callable[..., Iterable[Value | None]]

PARTIALS: dict[type[Op], PartialsRule] = {}
TRANSPOSES: dict[type[Op], CotangentRule] = {}
VJPS: dict[type[Op], CotangentRule] = {}
CONSTANTS: set[type[Op]] = set()
MOVES: set[type[Op]] = set()


def partials(*classes: type[Op]) -> Callable[[PartialsRule], PartialsRule]:
    """Register the partials of elementwise ops."""

    def register(rule: PartialsRule) -> PartialsRule:
        PARTIALS.update(dict.fromkeys(classes, rule))
        return rule

    return register


def transpose(*classes: type[Op], moves: bool = False) -> Callable[[CotangentRule], CotangentRule]:
    """Register the transposed map of linear ops; `moves`: it moves elements and no more, so that masks take it too."""

    def register(rule: CotangentRule) -> CotangentRule:
        TRANSPOSES.update(dict.fromkeys(classes, rule))
        if moves:
            MOVES.update(classes)
        return rule

    return register


def vjp(*classes: type[Op]) -> Callable[[CotangentRule], CotangentRule]:
    """Register the cotangent rule of ops that are neither elementwise nor linear."""

    def register(rule: CotangentRule) -> CotangentRule:
        VJPS.update(dict.fromkeys(classes, rule))
        return rule

    return register


def constant(*classes: type[Op]) -> None:
    """Say that the derivative of ops is 0 wherever it exists."""
    CONSTANTS.update(classes)


def has_rule(cls: type[Any]) -> bool:
    """Whether an op is differentiated by a rule of its own."""
    return cls in PARTIALS or cls in TRANSPOSES or cls in VJPS or cls in CONSTANTS


def load_rules() -> None:
    """Import the twin modules, which register the rules."""
    from . import array, elementwise, linalg, loss  # noqa: F401  # pyright: ignore[reportUnusedImport]
