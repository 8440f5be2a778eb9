"""A compiled function: what it takes, what it gives, and one way to run it on every device.

NumPy arrays go in and come out; where they live meanwhile is the device's matter.  Dynamic extents are named by the
symbols of the input types; each call binds them, and one symbol must have one size, a computed extent the one that its
symbols give.  A scalar argument is given as a number or an array without axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.builders.sizes import contradiction, evaluate
from ..ir.diagnostics import DTypeError, ShapeError
from ..ir.types import DYNAMIC, INDEX, MemRefType, ShapedType, TensorType, Type, element_type

if TYPE_CHECKING:
    import numpy as np

    from .entry import TensorClass


class Executable:
    """Base of the executables of all devices."""

    def __init__(self, name: str, device: str, inputs: Sequence[Type], outputs: Sequence[TensorType]) -> None:
        self.name = name
        self.device = device
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.dtypes = tuple(_dtype(t) for t in self.inputs)
        self.output_dtypes = tuple(_dtype(t) for t in self.outputs)
        self.names: tuple[str | None, ...] = ()
        """The names of the inputs, if they are known: an `index` gives its name a size."""

    def run(
        self, arrays: Sequence[np.ndarray[Any, Any]], out: Sequence[np.ndarray[Any, Any]] | None = None
    ) -> list[Any]:
        """Run on arrays; the outputs are new arrays, or `out`.

        ShapeError or DTypeError when an array is not what the function takes (nothing ran then), AllocationError when
        there is no memory for outputs or temporaries.  Inputs that are not
        C-contiguous are copied; outputs must be.
        """
        import numpy as np

        given = [
            a if isinstance(t, ShapedType) else np.asarray(a, dtype=d)
            for a, t, d in zip(arrays, self.inputs, self.dtypes, strict=False)
        ]
        sizes = self.bind([*given, *arrays[len(given) :]])
        ready = [np.ascontiguousarray(a) if not a.flags.c_contiguous else a for a in given]
        results = self.allocate(sizes) if out is None else self.checked_outputs(out, sizes)
        self.execute(ready, results)
        return list(results)

    def bind(self, arrays: Sequence[np.ndarray[Any, Any]]) -> dict[str, int]:
        """Check the inputs; the sizes that they give to the symbols."""
        if len(arrays) != len(self.inputs):
            raise ShapeError(f"{self.name} takes {len(self.inputs)} arrays, got {len(arrays)}")
        sizes: dict[str, int] = {}
        for number, (array, type, dtype) in enumerate(zip(arrays, self.inputs, self.dtypes, strict=True)):
            if array.dtype != dtype:
                raise DTypeError(f"{self.name}: argument {number} must have dtype {dtype}, got {array.dtype}")
            dims = extents(type)
            fits = len(array.shape) == len(dims) and all(
                d == size if isinstance(d, int) else d == "?" or sizes.setdefault(d, size) == size
                for d, size in zip(dims, array.shape, strict=False)
            )
            if not fits:
                bound = f" with {sizes}" if sizes else ""
                raise ShapeError(f"{self.name}: argument {number} must be {type}{bound}, got shape {array.shape}")
            name = self.names[number] if type is INDEX and self.names else None
            if name is not None and (known := sizes.setdefault(name, int(array))) != int(array):
                raise ShapeError(f"{self.name}: '{name}' is a size of {known}, and argument {number} is {int(array)}")
            flags = array.flags
            if isinstance(type, MemRefType) and not (flags.c_contiguous and flags.writeable and flags.aligned):
                raise ShapeError(f"{self.name}: argument {number} is changed in place: a C-contiguous writeable array")
        wrong = contradiction(sizes)
        if wrong is not None:
            raise ShapeError(f"{self.name}: the arguments contradict each other: {wrong}")
        return sizes

    def shapes(self, sizes: dict[str, int]) -> list[tuple[int, ...]]:
        """The shapes of the outputs for given sizes."""
        try:
            return [tuple(evaluate(d, sizes) for d in t.dims) for t in self.outputs]
        except KeyError as unknown:
            raise ShapeError(f"{self.name}: no argument tells the size {unknown} of its results") from None

    def allocate(self, sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
        """New arrays for the outputs."""
        from .memory import shared_memory  # late

        empty = shared_memory().empty
        return [empty(shape, dtype) for shape, dtype in zip(self.shapes(sizes), self.output_dtypes, strict=True)]

    def checked_outputs(self, out: Sequence[np.ndarray[Any, Any]], sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
        """The given outputs, if they fit."""
        for number, (array, shape, dtype) in enumerate(zip(out, self.shapes(sizes), self.output_dtypes, strict=True)):
            flags = array.flags
            if array.dtype != dtype or array.shape != shape or not flags.c_contiguous or not flags.writeable:
                raise ShapeError(
                    f"{self.name}: output {number} must be a writeable C-contiguous array of shape {shape} and dtype "
                    f"{dtype}, got {array.shape} {array.dtype}"
                )
        return list(out)

    def execute(self, inputs: Sequence[np.ndarray[Any, Any]], outputs: Sequence[np.ndarray[Any, Any]]) -> None:
        """Run on contiguous arrays that fit."""
        raise NotImplementedError

    def native_entry(
        self, tensor_class: TensorClass | None, kinds: Sequence[str], abstract_values: Sequence[Any]
    ) -> Any | None:
        """A builtin function `entry(*inputs, *outputs)` (runtime/entry.py), or None on devices that have none."""
        return None


def extents(type: Type) -> tuple[int | str, ...]:
    """The sizes of an argument, symbols by name and `?` where any will do; none for a scalar."""
    if isinstance(type, MemRefType):
        return tuple("?" if d == DYNAMIC else d for d in type.shape)
    return type.dims if isinstance(type, TensorType) else ()


def _dtype(type: Type) -> Any:
    from .entry import numpy_dtype  # late

    return numpy_dtype(str(element_type(type)))


def dynamic_sizes(array: np.ndarray[Any, Any], type: Type) -> list[int]:
    """The sizes of an array's dynamic extents, in order."""
    if not isinstance(type, ShapedType):
        return []
    return [size for size, d in zip(array.shape, type.shape, strict=True) if d == DYNAMIC]
