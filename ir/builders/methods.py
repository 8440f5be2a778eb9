"""Which tensor-level op goes by which name of a method."""

from __future__ import annotations

from ..definition import OPS
from ..dialect import at_level
from ..registry import load_dialect
from ..support.tensor_op import TensorOp


class _Methods:
    """Which op a method builds: `names` of methods -> names of ops; `scanned`: how many ops were looked at."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.scanned = 0

    def find(self) -> dict[str, str]:
        """The names, with the ops that were defined since."""
        if self.scanned != len(OPS):
            ranks = {dialect.name: rank for rank, dialect in enumerate(at_level("tensor"))}
            for dialect in ranks:
                load_dialect(dialect)
            for name in sorted(OPS, key=lambda name: ranks.get(name.partition(".")[0], len(ranks))):
                if issubclass(OPS[name], TensorOp):
                    self.names.setdefault(name.partition(".")[2], name)
            self.scanned = len(OPS)
        return self.names


_METHODS = _Methods()


def op_class(method: str) -> type[TensorOp] | None:
    """The class of the ops that a method builds; the whole name of an op does too, as it must where two dialects have
    an op of one name."""
    found = OPS.get(method if "." in method else _METHODS.names.get(method) or _METHODS.find().get(method, ""))
    return found if found is not None and issubclass(found, TensorOp) else None
