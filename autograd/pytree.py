"""Pytrees: nested dicts, lists, tuples, named tuples, dataclasses and None, taken apart into leaves and put together.

    leaves, tree = flatten({"w": w, "b": [b1, b2]})      [b1, b2, w], a `Tree`
    unflatten(tree, leaves)                              the same structure with these leaves

Everything else is a leaf.  Dicts are taken in the order of their sorted keys (of insertion where keys do not compare).
`Tree` compares and hashes by structure: it is part of the keys of compiled functions.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from .identity import identity

_DICTS = (dict, OrderedDict, defaultdict)
_STRINGS = frozenset({str})


class Tree:
    """The structure of a pytree: `kind` is None for a leaf, else the container's type; `data` its keys or fields."""

    __slots__ = ("_hash", "_key", "children", "data", "kind", "size")

    def __init__(self, kind: type | None, data: Any, children: tuple[Tree, ...]) -> None:
        self.kind = kind
        self.data = data
        self.children = children
        self.size = 1 if kind is None else sum([c.size for c in children])
        # Keys that are equal, as 1 and True, are not the same to the function.
        self._key = data if kind not in _DICTS or _STRINGS.issuperset(map(type, data)) else identity(data)
        self._hash = hash((kind, self._key, children))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tree):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.kind is other.kind
            and self._key == other._key
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return str(unflatten(self, ["*"] * self.size))


LEAF = Tree(None, None, ())
_NONE = Tree(type(None), None, ())


@lru_cache(maxsize=1024)
def _is_container(kind: type) -> bool:
    """Whether values of a type are taken apart."""
    if issubclass(kind, tuple):
        return kind is tuple or hasattr(kind, "_fields")
    return kind is list or kind in _DICTS or hasattr(kind, "__dataclass_fields__")


def _children(node: Any) -> tuple[Any, list[object]]:
    """The data and the children of a container."""
    kind = type(node)
    if kind is tuple or kind is list:
        return len(node), list(node)
    if kind in _DICTS:
        try:
            keys = tuple(sorted(node))
        except TypeError:
            keys = tuple(node)
        data = (node.default_factory, keys) if kind is defaultdict else keys
        return data, [node[k] for k in keys]
    if issubclass(kind, tuple):
        return len(node), list(node)
    names = tuple(f.name for f in dataclasses.fields(node))
    return names, [getattr(node, n) for n in names]


def flatten(node: object) -> tuple[list[Any], Tree]:
    """The leaves in order, and the structure."""
    leaves: list[Any] = []
    return leaves, _flatten(node, leaves)


def _flatten(node: object, leaves: list[Any]) -> Tree:
    if node is None:
        return _NONE
    kind = type(node)
    if not _is_container(kind):
        leaves.append(node)
        return LEAF
    data, children = _children(node)
    return Tree(kind, data, tuple([_flatten(child, leaves) for child in children]))


def unflatten(tree: Tree, leaves: Iterable[object]) -> Any:
    """The structure with these leaves, as many as it has."""
    rest = iter(leaves)
    made = _unflatten(tree, rest)
    if next(rest, LEAF) is not LEAF:
        raise ValueError(f"more leaves than the structure has: {tree.size}")
    return made


def _unflatten(tree: Tree, leaves: Iterator[object]) -> Any:
    kind = tree.kind
    if kind is None:
        return next(leaves)
    if kind is type(None):
        return None
    children = [_unflatten(child, leaves) for child in tree.children]
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if kind is defaultdict:
        factory, keys = tree.data
        return defaultdict(factory, zip(keys, children, strict=True))
    if kind in (dict, OrderedDict):
        return kind(zip(tree.data, children, strict=True))
    if issubclass(kind, tuple):
        return kind._make(children)  # pyright: ignore[reportAttributeAccessIssue]
    # A dataclass is rebuilt without its constructor, which may compute or check what the leaves are not.
    made = object.__new__(kind)
    for name, child in zip(tree.data, children, strict=True):
        object.__setattr__(made, name, child)
    return made
