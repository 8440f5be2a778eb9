"""The arguments of a call, taken apart: arrays and numbers are traced, the rest is part of the key of a specialisation,
as are the types of the numbers."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.diagnostics import DTypeError, Error, shown
from ..ir.location import caller_location
from .abstract import AbstractValue, abstract_value
from .context import CONTEXT, device_name
from .dtypes import as_dtype
from .identity import identity
from .pytree import Tree, flatten, unflatten
from .tensor import Tensor

_NUMBERS = frozenset({bool, int, float})
"""The types of the leaves that are numbers; those of subclasses, enumerations say, are part of the key."""


class Static(Tree):
    """What is part of the key: a static argument, or a leaf that is not an array."""

    __slots__ = ()

    def __init__(self, value: object) -> None:
        try:
            super().__init__(Static, identity(value), ())
        except TypeError:
            raise Error(f"a static argument must be hashable, got {value!r}", caller_location()) from None


@dataclass(slots=True)
class Arguments:
    """`leaves`: all of them in order; those with `is_traced`, the arrays, have abstract values in `avals`. `numbers`:
    the Python numbers, and `number_places` where they stand among the leaves. `groups`: the name of each argument that
    is not static, and how many leaves it has. `is_flat`: nothing but positional arrays. `sizes`: what the symbols of
    the abstract values stand for."""

    leaves: list[Any]
    avals: list[AbstractValue]
    key: tuple[Any, ...]
    tree: Tree
    is_traced: list[bool]
    groups: list[tuple[str | None, int]]
    is_flat: bool
    numbers: list[Any]
    number_places: list[int]
    sizes: dict[str, int]
    statics: list[Any]
    """The static arguments."""
    hidden: list[Any] | None = None
    """The hidden inputs that the numbers give, once a specialisation has taken them."""

    @property
    def names(self) -> list[str | None]:
        """A name for each traced leaf, where its argument has no other."""
        names = [name if count == 1 else None for name, count in self.groups for _ in range(count)]
        return [n for n, t in zip(names, self.is_traced, strict=True) if t]

    def donated(self, wanted: frozenset[str]) -> list[Tensor]:
        """The Tensors in arguments of these names."""
        names = [name for name, count in self.groups for _ in range(count)]
        return [v for v, n in zip(self.leaves, names, strict=True) if n in wanted and isinstance(v, Tensor)]

    @property
    def objects(self) -> list[Any]:
        """What of the arguments is part of the key and may hold state: objects, functions, classes of containers."""
        found = [v for v, t in zip(self.leaves, self.is_traced, strict=True) if not t and type(v) not in _NUMBERS]
        found += self.statics
        pending = list(self.tree.children)
        while pending:
            tree = pending.pop()
            if tree.kind is not None and not isinstance(tree, Static):
                found.append(tree.data[0] if tree.kind is defaultdict else tree.kind)
                pending += tree.children
        return found

    @property
    def traced_leaves(self) -> list[Any]:
        """The leaves that are inputs."""
        return [v for v, t in zip(self.leaves, self.is_traced, strict=True) if t]

    def unflatten(self, tensors: Sequence[Tensor], numbers: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments with these in place of the traced leaves and of the numbers."""
        rest = iter(tensors)
        given = [next(rest) if t else v for t, v in zip(self.is_traced, self.leaves, strict=True)]
        for place, number in zip(self.number_places, numbers, strict=True):
            given[place] = number
        leaves, statics = iter(given), iter(self.statics)
        values = [
            next(statics) if isinstance(c, Static) else unflatten(c, [next(leaves) for _ in range(c.size)])
            for c in self.tree.children
        ]
        count, keywords = self.tree.data
        return values[:count], dict(zip(keywords, values[count:], strict=True))


def _names(what: str, given: object) -> frozenset[str]:
    """One name or several."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(n, str) for n in names):
        raise DTypeError(f"jit: {what} must be a name or several, got {shown(given)}", caller_location())
    return frozenset(names)


class Parameters:
    """The parameters of a function and what `jit` was told of them."""

    def __init__(
        self,
        function: Callable[..., object],
        static: str | Sequence[str],
        donated: str | Sequence[str],
        device: str | None,
        dynamic: bool,
    ) -> None:
        if not callable(function):
            raise DTypeError(f"jit: needs a function, got {shown(function)}", caller_location())
        self.static, self.donated = _names("static_argnames", static), _names("donate_argnames", donated)
        self.device = None if device is None else device_name(device)
        self.dynamic = dynamic
        try:
            found = inspect.signature(function).parameters
        except (TypeError, ValueError):
            found = {}
        self.names = [n for n, p in found.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in found.values())
        unknown = sorted(n for n in self.static | self.donated if n not in found and not takes_any)
        if unknown:
            raise Error(f"jit: the function has no parameter '{unknown[0]}'", caller_location())
        self.takes_out = "out" in found

    def flatten(self, args: tuple[object, ...], kwargs: dict[str, Any], static_sizes: bool = False) -> Arguments:
        """The arguments of a call; `static_sizes`: with numbers for sizes, whatever `dynamic` says."""
        groups: list[tuple[str | None, int]] = []
        leaves: list[Any] = []
        trees: list[Tree] = []
        statics: list[Any] = []
        is_flat = not kwargs
        known = self.names
        given: list[tuple[str | None, Any]] = [(known[i] if i < len(known) else None, v) for i, v in enumerate(args)]
        if kwargs:
            given += sorted(kwargs.items())
        for name, value in given:
            if name in self.static:
                trees.append(Static(value))
                statics.append(value)
                is_flat = False
                continue
            found, tree = flatten(value)
            is_flat = is_flat and tree.kind is None
            trees.append(tree)
            leaves += found
            groups.append((name, tree.size))
        tree = Tree(tuple, (len(args), tuple(sorted(kwargs))), tuple(trees))
        symbols: dict[Any, str] = {}
        avals, keys, is_traced, places = self._abstract(leaves, symbols, self.dynamic and not static_sizes)
        numbers = [leaves[i] for i in places]
        key = (tree, tuple(keys), CONTEXT.records_gradients, self.device or CONTEXT.device)
        is_flat = is_flat and all(is_traced)
        sizes = {name: extent for extent, name in symbols.items()}
        return Arguments(leaves, avals, key, tree, is_traced, groups, is_flat, numbers, places, sizes, statics)

    def _abstract(
        self, leaves: Sequence[object], symbols: dict[Any, str], dynamic: bool
    ) -> tuple[list[AbstractValue], list[Any], list[bool], list[int]]:
        """The abstract values of those leaves that are traced; all keys; which are traced; where the numbers are."""
        avals: list[AbstractValue] = []
        keys: list[Any] = []
        is_traced: list[bool] = []
        places: list[int] = []
        place = self.device or CONTEXT.device
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                leaf._check_readable()
                aval = leaf._aval
                if self.device is not None and aval.device != place:
                    aval = abstract_value(aval.dtype, aval.shape, place, aval.requires_grad)
            elif isinstance(leaf, np.ndarray | np.generic):
                aval = abstract_value(as_dtype(leaf.dtype), leaf.shape, place)
            else:
                if type(leaf) in _NUMBERS:
                    places.append(len(is_traced))
                    keys.append(type(leaf))
                else:
                    keys.append(Static(leaf))
                is_traced.append(False)
                continue
            if dynamic:
                dims = tuple([d if d in (0, 1) else symbols.setdefault(d, f"n{len(symbols)}") for d in aval.shape])
                aval = abstract_value(aval.dtype, dims, aval.device, aval.requires_grad)
            is_traced.append(True)
            avals.append(aval)
            keys.append((aval, type(leaf)))
        return avals, keys, is_traced, places
