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
`Masked` for a partial that is exactly 0 where a condition does not hold: the mask travels beside the cotangent
(masks.py) and is applied last, so that whatever an untaken branch computes never reaches a gradient.

A mask passes the op that a rule is for by a rule of its own:

    @live(ReduceSum)                      for each operand, where it is live from where the results are
    def _(m, op, mask):
        yield m.reshaped(mask, ..)

An op without one is live everywhere where any element of its results is.  A rule of an op that multiplies the
cotangent by its operands and sums what belongs to different places must itself keep what is dead out of the sum:
`@transpose(.., masked=True)` and `@vjp(.., masked=True)` take and give `Cotangent`s in place of values, and a `Masks`
in place of the builder.

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
    """A partial that is `linear` where `condition` (a tensor of i1) holds and exactly 0 elsewhere.

    `soft`: the condition compares the operand itself with what was taken in its place (relu, maximum, clip), so that
    an operand that is NaN is never dropped; see masks.py."""

    condition: Value
    linear: Linear = ONE
    soft: bool = False


Partial = Linear | Masked | None
PartialsRule = Callable[[TensorBuilder, Any], Iterable[Partial]]
CotangentRule = Callable[..., Iterable[Any]]

PARTIALS: dict[type[Op], PartialsRule] = {}
TRANSPOSES: dict[type[Op], CotangentRule] = {}
VJPS: dict[type[Op], CotangentRule] = {}
LIVE: dict[type[Op], CotangentRule] = {}
CONSTANTS: set[type[Op]] = set()
MASKED: set[type[Op]] = set()


def partials(*classes: type[Op]) -> Callable[[PartialsRule], PartialsRule]:
    """Register the partials of elementwise ops."""

    def register(rule: PartialsRule) -> PartialsRule:
        PARTIALS.update(dict.fromkeys(classes, rule))
        return rule

    return register


def transpose(*classes: type[Op], masked: bool = False) -> Callable[[CotangentRule], CotangentRule]:
    """Register the transposed map of linear ops; `masked`: of `Cotangent`s."""
    return _cotangent_rule(TRANSPOSES, classes, masked)


def vjp(*classes: type[Op], masked: bool = False) -> Callable[[CotangentRule], CotangentRule]:
    """Register the cotangent rule of ops that are neither elementwise nor linear; `masked`: of `Cotangent`s."""
    return _cotangent_rule(VJPS, classes, masked)


def _cotangent_rule(
    table: dict[type[Op], CotangentRule], classes: tuple[type[Op], ...], masked: bool
) -> Callable[[CotangentRule], CotangentRule]:
    def register(rule: CotangentRule) -> CotangentRule:
        table.update(dict.fromkeys(classes, rule))
        if masked:
            MASKED.update(classes)
        return rule

    return register


def live(*classes: type[Op]) -> Callable[[CotangentRule], CotangentRule]:
    """Register how a mask passes ops that are not elementwise."""

    def register(rule: CotangentRule) -> CotangentRule:
        LIVE.update(dict.fromkeys(classes, rule))
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
