"""A method for each tensor-level op.

`op_methods.pyi`, which `tools/stubs.py` writes, says which there are and what they take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ..support.tensor_op import TensorOp
from .methods import op_class

V = TypeVar("V")


class OpMethods(Generic[V]):
    """Every tensor-level op as a method, a plugin's too, by its name without the dialect (of two with one name that
    whose dialect was registered first), its operands in the order of its fields, its properties keywords.

    `V` is what stands for a tensor; `apply` says what is done with the op."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        cls = None if name.startswith("__") else op_class(name)
        if cls is None:
            raise AttributeError(f"no tensor-level op has the name '{name}'")

        def build(*operands: Any, **properties: Any) -> Any:
            return self.apply(cls, *operands, **properties)

        return build

    def apply(self, cls: type[TensorOp], *operands: Any, **properties: Any) -> Any:
        """Apply an op: its result, or the tuple of its results."""
        raise NotImplementedError
