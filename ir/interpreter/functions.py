"""The meaning of `func.call`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .machine import Env, Interpreter, InterpreterError, handler

if TYPE_CHECKING:
    from ..dialects.func import Call


@handler("func.call")
def call(machine: Interpreter, op: Call, env: Env) -> Sequence[object]:
    """Run the callee in an environment of its own."""
    function = machine.functions.get(op.callee)
    if function is None or not function.regions[0].blocks:
        raise InterpreterError(f"'func.call' op calls '@{op.callee}', which has no body", op.location)
    return machine.invoke(function, [env[v] for v in op.operands])
