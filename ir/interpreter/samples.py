"""The samples that op classes declare (`ir.declared`), as arrays and as functions: what their tests start from."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from ..declared import Argument, Sample
from ..definition import Op
from ..numeric import dtype
from ..support.tensor_op import TensorOp
from ..types import I1, FloatType, Type, is_unsigned

if TYPE_CHECKING:
    from ..arrays import Array


def cases(cls: type[TensorOp], sample: Sample) -> Iterator[tuple[Sample, list[Type]]]:
    """What a sample of an op stands for: samples with arguments, and the element types to try each with."""
    for one in sample.spread(len(cls.definition.operands)):
        yield one, one.types(cls.accepts)


def arrays(arguments: Sequence[Argument], element: Type, key: str) -> list[Array]:
    """Random operands, always the same ones for a key; integers and bools where the type has them."""
    import numpy as np

    random = np.random.default_rng(zlib.crc32(key.encode()))

    def array(shape: tuple[int, ...], low: float, high: float, type: Type) -> Array:
        if type is I1:
            return random.integers(0, 2, shape).astype(bool)
        if isinstance(type, FloatType):
            return random.uniform(low, high, shape).astype(dtype(type))
        low = max(low, 0) if is_unsigned(type) else low
        return random.integers(int(low), max(int(high), int(low)) + 1, shape).astype(dtype(type))

    return [array(a.shape, a.low, a.high, a.element or element) for a in arguments]


LIBRARIES = {"np": "numpy", "special": "scipy.special"}
"""What expressions of references may name, and the modules."""


def reference(cls: type[Op], sample: Sample) -> Callable[..., Array | Sequence[Array]]:
    """The function that a sample names, of arrays in the order of the op's operands."""
    if re.fullmatch(r"[\w.]+:\w+", sample.reference):
        module, _, name = sample.reference.partition(":")
        return vars(import_module(module))[name]
    names = [field.name for field in cls.definition.operands]
    code = compile(sample.reference, f"<reference of {cls.name}>", "eval")
    known = {name: declared.default for name, declared in cls.definition.properties.items()} | dict(sample.properties)

    known |= {short: import_module(module) for short, module in LIBRARIES.items() if short in code.co_names}

    def evaluate(*arrays: Array) -> Array | Sequence[Array]:
        return eval(code, {**known, **dict(zip(names, arrays, strict=True))})

    return evaluate
