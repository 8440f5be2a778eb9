"""The manifest of targets: the texts that IR can become; names alone, so that reading it imports nothing.

A row is a word of `ir-opt --emit` and a stage of `f.lower(..).as_text`.  A plugin adds one with `register`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..ir.diagnostics import Error, LoweringError, origin
from ..ir.dialect import Level, dialect_of
from ..ir.operations import Operation
from ..ir.types import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable


class TargetText(NamedTuple):
    """A text: its name, who makes it, and what it is made from."""

    name: str
    emitter: str
    """The module whose `emit_module(module)` makes the text of a `builtin.module`; LoweringError where it cannot."""
    pipeline: str
    """The passes, or a named pipeline, that bring a module from the tensor level to where its text can be made."""
    level: Level = "loop"
    """Where it then stands: nothing above may be left."""
    holds: str = ""
    """An op that the module then has, if there is one that it must have."""
    finish: str = ""
    """`module:function`, called with the text and `name=`, where the text is not the end."""
    device: str = ""
    """The device whose numbers `as_text` compiles for and that makes its text; none: the defaults."""

    def text(self, module: Operation) -> str:
        """The text of a module that stands where it can be made."""
        return self.finished(self._call(lambda: import_module(self.emitter).emit_module(module)), self.name)

    def finished(self, text: str, name: str) -> str:
        """What the text becomes in the end; `name` stands in messages."""
        if not self.finish:
            return text
        file, _, function = self.finish.partition(":")
        return self._call(lambda: vars(import_module(file))[function](text, name=name))

    def _call(self, make: Callable[[], Any]) -> str:
        try:
            made: str = make()
        except Error:
            raise
        except Exception as error:
            failure = LoweringError(f"the target '{self.name}' failed: {type(error).__name__}: {error}")
            raise failure.note("raised here", origin(error)) from error
        return made


_ROOT = __name__.partition(".")[0]
TARGETS: Final[dict[str, TargetText]] = {
    row.name: row
    for row in (
        TargetText("llvm", f"{_ROOT}.lowering.llvm.emit", "loop-cpu", device="cpu"),
        TargetText(
            "asm", f"{_ROOT}.lowering.llvm.emit", "loop-cpu", finish=f"{_ROOT}.runtime.native:assembly", device="cpu"
        ),
        TargetText("opencl", f"{_ROOT}.lowering.opencl.emit", "loop-opencl", holds="gpu.module"),
        TargetText("ptx", f"{_ROOT}.lowering.ptx.emit", "loop-cuda", holds="gpu.module", device="ptx-sim"),
    )
}
"""The targets by name."""


def register(target: TargetText) -> None:
    """Make a target known; Error when there is another of its name."""
    known = TARGETS.setdefault(target.name, target)
    if known != target:
        raise Error(f"there is a target '{target.name}' already, whose text {known.emitter} makes")


_HEIGHT: Final[dict[Level, int]] = {"any": 0, "loop": 0, "kernel": 1, "tensor": 2}


def level_of(op: Operation) -> Level:
    """The level that an op belongs to: that of its dialect; an op on tensors stands above the loop level whether or not
    a dialect says so."""
    from ..ir.support.tensor_op import TensorOp  # late

    if isinstance(op, TensorOp):
        return "tensor"
    dialect = dialect_of(op.name)
    if dialect is not None:
        return dialect.level
    return "kernel" if any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)) else "any"


def check_level(module: Operation, target: TargetText) -> None:
    """Refuse what stands above the level of a target, and a module that lacks what it must have."""
    ops = {(op.name, type(op)): op for op in module.walk()}
    path = f" -p {target.pipeline}" if target.pipeline else ""
    for op in ops.values():
        if _HEIGHT[level_of(op)] > _HEIGHT[target.level]:
            message = f"--emit={target.name} takes the {target.level} level, and '{op.name}' is above it; add{path}"
            raise LoweringError(message, op.location)
    if target.holds and all(name != target.holds for name, _ in ops):
        message = f"--emit={target.name} takes {target.holds}, and the module has no {target.holds}; use{path}"
        raise LoweringError(message, module.location)
