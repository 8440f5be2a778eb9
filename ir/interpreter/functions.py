"""Calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .machine import Env, Interpreter, InterpreterError, handler


@handler("func.call")
def call(machine: Interpreter, op: Any, env: Env) -> Sequence[Any]:
    """Run the callee in an environment of its own."""
    function = machine.functions.get(op.callee)
    if function is None or not function.regions[0].blocks:
        raise InterpreterError(f"'func.call' op calls '@{op.callee}', which has no body", op.location)
    return machine.invoke(function, [env[v] for v in op.operands])
