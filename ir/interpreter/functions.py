"""Calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .machine import Env, Interpreter, InterpreterError, handler

MAX_DEPTH = 100
"""Calls within calls; beyond it a program is taken to recurse without end."""


@handler("func.call")
def call(machine: Interpreter, op: Any, env: Env) -> Sequence[Any]:
    """Run the callee in an environment of its own."""
    function = machine.functions.get(op.callee)
    if function is None or not function.regions[0].blocks:
        raise InterpreterError(f"'func.call' op calls '@{op.callee}', which has no body", op.location)
    machine.depth += 1
    if machine.depth > MAX_DEPTH:
        raise InterpreterError(f"'func.call' op: more than {MAX_DEPTH} calls within calls", op.location)
    try:
        return machine.run(function.regions[0], [env[v] for v in op.operands], {})
    finally:
        machine.depth -= 1
