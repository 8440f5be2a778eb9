"""Recorded ops: what an eager Tensor that has not been computed yet (or must be differentiated) consists of.

A `Node` is one application of a tensor-level op, named by the method of `TensorBuilder` that builds it; a `Lazy` is a
value: an input (no node) or a result of a node.  `replay` turns nodes back into IR, which is the only thing that is
ever done with them; shapes and dtypes are found by the op's own class, once for each combination of operand types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from ..ir.builders.tensor import TensorBuilder
from ..ir.diagnostics import Error, ShapeError
from ..ir.dialects.func import Func
from ..ir.location import Location, caller_location
from ..ir.operations import Block
from ..ir.support.tensor_op import type_of_tensor
from ..ir.types import TensorType
from ..ir.values import Value
from .abstract import AbstractValue

if TYPE_CHECKING:
    from .tensor import Tensor

Properties = tuple[tuple[str, Any], ...]

_order = count()


class Node:
    """An op application. `operands`: a `Lazy` each; `variadic`: the op takes them as one list."""

    __slots__ = ("location", "method", "operands", "order", "properties", "results", "variadic")

    def __init__(
        self, method: str, operands: tuple[Lazy, ...], properties: Properties, variadic: bool, location: Location
    ) -> None:
        self.method = method
        self.operands = operands
        self.properties = properties
        self.variadic = variadic
        self.location = location
        self.order = next(_order)
        self.results: list[ReferenceType[Lazy]] = []

    def signature(self) -> tuple[Any, ...]:
        """What the node is, without its operands; hashable."""
        return self.method, self.variadic, self.properties


class Lazy:
    """A value: `value` its ndarray once it is known, `node` what computes it (None for inputs), `owner` the Tensor that
    shows it."""

    __slots__ = ("__weakref__", "aval", "index", "node", "owner", "value")

    def __init__(self, aval: AbstractValue, value: Any = None, node: Node | None = None, index: int = 0) -> None:
        self.aval = aval
        self.value = value
        self.node = node
        self.index = index
        self.owner: ReferenceType[Any] | None = None

    def live_tensor(self) -> Tensor | None:
        """The Tensor that still shows this value, or None."""
        tensor = None if self.owner is None else self.owner()
        return tensor if tensor is not None and tensor._state is self else None


def ancestors(roots: Iterable[Lazy], through: Any) -> list[Node]:
    """The nodes that compute values, in the order in which they were recorded; `through(lazy)` says whether to go on to
    the node of a value."""
    seen: set[Node] = set()
    pending = [v.node for v in roots if v.node is not None]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        pending += [v.node for v in node.operands if v.node is not None and v.node not in seen and through(v)]
    return sorted(seen, key=lambda n: n.order)


def replay(b: TensorBuilder, signature: tuple[Any, ...], values: Sequence[Value]) -> tuple[Value, ...]:
    """Build a node's op; ShapeError, with its name, for a shape that no tensor has."""
    method, variadic, properties = signature
    if method == "call":
        return inline(b, dict(properties)["function"].function, values)
    build = getattr(b, method)
    try:
        found = build(list(values), **dict(properties)) if variadic else build(*values, **dict(properties))
    except Error:
        raise
    except ValueError as error:
        raise ShapeError(f"{method}: {error}", b.location) from None
    return found if isinstance(found, tuple) else (found,)


class Callee:
    """A function as a property of a node: equal by the digest of its IR."""

    def __init__(self, function: Func) -> None:
        self.function = function

    @cached_property
    def digest(self) -> str:
        """The digest, taken when it is first needed: a call inside a trace is inlined and needs none."""
        from ..ir.digest import digest  # late

        return digest(self.function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def inline(b: TensorBuilder, function: Func, values: Sequence[Value]) -> tuple[Value, ...]:
    """Copy the body of a function of one block to where `b` stands; what it returns."""
    table: dict[Any, Any] = dict(zip(function.arguments, values, strict=True))
    returns = function.returns
    for op in function.entry:
        if op is not returns:
            b.insert(op.clone(table))
    return tuple([table.get(v, v) for v in returns.operands])


def infer(signature: tuple[object, ...], types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """The types of an op's results; ShapeError and DTypeError of the op, at the user's line."""
    block = Block(types)
    b = TensorBuilder(block, location=caller_location())
    return tuple([type_of_tensor(v) for v in replay(b, signature, block.arguments)])
