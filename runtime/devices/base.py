"""What every device offers to the compiler driver."""

from __future__ import annotations

from typing import Protocol

from ...ir.dialects.builtin import Module
from ...ir.target import Target
from ...ir.types import TensorType, Type
from ..executable import Executable


class Device(Protocol):
    """A device: its numbers for the passes, the pipeline that brings a tensor-level module to its loop level, and the
    building of an executable from that."""

    name: str
    target: Target
    pipeline: str
    """The named pipeline from tensor level to the loop level of this device."""

    def text(self, module: Module) -> str:
        """The target text of a loop-level module."""
        ...

    def build(
        self, module: Module, entry: str, inputs: tuple[Type, ...], outputs: tuple[TensorType, ...]
    ) -> Executable:
        """An executable from a loop-level module."""
        ...
