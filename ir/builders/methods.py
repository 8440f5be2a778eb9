"""Which op goes by which name: as a method of builders, or as what its class says of itself."""

from __future__ import annotations

from collections.abc import Callable

from ..definition import OPS, Op
from ..dialect import at_level
from ..support.tensor_op import TensorOp


class OpNames:
    """The names that `name_of` gives to op classes, None to those that have none.

    `names`: from them to the names of ops; `scanned`: how many ops were looked at."""

    def __init__(self, name_of: Callable[[type[Op]], str | None]) -> None:
        self.name_of = name_of
        self.names: dict[str, str] = {}
        self.scanned = 0

    def find(self) -> dict[str, str]:
        """Those that are there now; of two of one name that of the dialect that was registered first."""
        dialects = at_level("tensor")
        for dialect in dialects:
            dialect.load()
        if self.scanned != len(OPS):
            ranks = {dialect.name: rank for rank, dialect in enumerate(dialects)}
            for name in sorted(OPS, key=lambda name: ranks.get(name.partition(".")[0], len(ranks))):
                other = self.name_of(OPS[name])
                if other is not None:
                    self.names.setdefault(other, name)
            self.scanned = len(OPS)
        return self.names


_METHODS = OpNames(lambda cls: cls.name.partition(".")[2] if issubclass(cls, TensorOp) else None)


def op_class(method: str) -> type[TensorOp] | None:
    """The class of the ops that a method builds; the whole name of an op does too, as it must where two dialects have
    an op of one name."""
    found = OPS.get(method if "." in method else _METHODS.names.get(method) or _METHODS.find().get(method, ""))
    return found if found is not None and issubclass(found, TensorOp) else None


def method_of(cls: type[Op]) -> str:
    """The method that builds an op: its name without the dialect, or all of it where another op has that."""
    short = cls.name.partition(".")[2]
    return short if op_class(short) is cls else cls.name
