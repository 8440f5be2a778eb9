"""canonicalize: the simplest of equal forms.

In: any op.  Out: the same op with folds (`Op.fold`) and rules applied until nothing changes, constants shared and at
the start of their region, constants of commutative ops on the right, dead ops gone.

    %0 = arith.constant 2 : i32
    %1 = arith.addi %0, %x : i32
    %2 = arith.addi %1, %0 : i32
        becomes
    %0 = arith.constant 4 : i32
    %2 = arith.addi %x, %0 : i32

What an op equals, given constants, is a fold and stands in its class.  What makes new ops or looks further is a rule
and stands in the module that the dialect's row (`ir.dialect`) names, loaded when an op of the dialect is met (a
plugin's at once: it may rewrite the ops of any dialect).  The driver is `ir.rewriter`; when rules undo each other, it
stops, and the pass warns and names them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from ..ir.definition import Op
from ..ir.diagnostics import PassError
from ..ir.dialect import BUILT_IN, DIALECTS, Dialect
from ..ir.operations import Operation
from ..ir.rewriter import Rule, rewrite_greedily
from ..ir.values import Value
from .manager import Pass

_loaded: dict[Dialect, dict[type[Operation], list[Rule]]] = {}


def rules_for(cls: type[Operation]) -> Sequence[Rule]:
    """The rules for an op class: its dialect's, then those of plugins."""
    if not issubclass(cls, Op):
        return ()
    name = cls.name.partition(".")[0]
    tables = [_rules_of(d) for d in DIALECTS.values() if d.name == name or d.name not in BUILT_IN]
    return [rule for table in tables for rule in table.get(cls, ())]


def all_rules() -> list[Rule]:
    """Every rule, dialect by dialect."""
    return [rule for dialect in DIALECTS.values() for rules in _rules_of(dialect).values() for rule in rules]


def _rules_of(dialect: Dialect) -> dict[type[Operation], list[Rule]]:
    found = _loaded.get(dialect)
    if found is None:
        found = dict[type[Operation], list[Rule]]()
        if dialect.rewrites:
            rules: Sequence[Rule] = import_module(dialect.rewrites).RULES
            for rule in rules:
                found.setdefault(rule.root, []).append(rule)
        _loaded[dialect] = found
    return found


@dataclass
class Canonicalize(Pass):
    """Fold, apply the rules of the dialects, share constants, remove dead ops."""

    name: ClassVar[str] = "canonicalize"
    max_iterations: int = 10
    test_convergence: bool = False
    trace: bool = False

    def run(self, op: Operation) -> None:
        outcome = rewrite_greedily(
            op, rules_for, max_rounds=self.max_iterations, trace=print_rewrite if self.trace else None
        )
        for name, times in outcome.fired.items():
            self.count(name, times)
        if not outcome.converged:
            message = f"canonicalize {outcome}"
            if self.test_convergence:
                raise PassError(message, op.location)
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def print_rewrite(name: str, op: Operation, values: Sequence[Value]) -> None:
    """Show one rewrite on stderr: the rule, the op, and what replaces it."""
    print(f"// {name}", file=sys.stderr)
    print(f"-  {op}", file=sys.stderr)
    for maker in dict.fromkeys(value.defining_op for value in values):
        if maker is not None:
            print(f"+  {maker}", file=sys.stderr)
