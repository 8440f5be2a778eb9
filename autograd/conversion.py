"""What becomes a Tensor: arrays, buffers, nested lists, numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import autograd as ag  # whose functions need what stands here: they are found when they are called
from ..ir.diagnostics import DTypeError, Error, ShapeError, shown
from ..ir.dialects.elementwise.cast import convert
from ..ir.location import called_function, caller_location
from .abstract import abstract_value
from .array_like import DTypeLike
from .context import CONTEXT, device_name
from .dtypes import DType, as_dtype, check_fits, element, fits, float32, int64
from .numbers import TracedNumber, of_number
from .tensor import Tensor, copied, make
from .trace import is_traced
from .watched import Watched


def asarray(
    obj: object, *, dtype: DTypeLike | None = None, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """A Tensor from a Tensor, an ndarray, anything with a buffer, `__array__` or `__dlpack__`, or nested lists.

    Copies unless `copy` is False; then arrays that are C-contiguous and of a known dtype are shared, and must not be
    written to.  Python floats become float32, integers int64; with another `dtype` they must fit it, while arrays are
    cast as by `astype`.  DTypeError for dtypes that there are not, and for numbers that do not fit.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if CONTEXT.trace is not None and _is_stand_in(obj):
        obj = CONTEXT.trace.array(obj)  # an input, as where it is an operand
    if isinstance(obj, Tensor):
        found = obj if copy is False else copied(obj)
        found = found if wanted is None or wanted is obj.dtype else ag.astype(found, wanted)
        return found if device is None or device == found.device else ag.to_device(found, device)
    if device is not None:
        place = device_name(device)
    else:
        place = CONTEXT.device if CONTEXT.trace is None else CONTEXT.trace.device
    if isinstance(obj, list | tuple) and any([_has_history(p) for p in _parts(obj)]):
        rows = [asarray(p) if isinstance(p, list | tuple) else p for p in obj]
        return asarray(ag.stack(rows), dtype=wanted, device=device, copy=False)
    given = of_number(obj)
    if given is not None:
        known = wanted or given
        if type(obj) is TracedNumber:
            return obj.tensor(known, place)
        value = element(obj, known)
        if CONTEXT.trace is not None:
            CONTEXT.trace.note_made(value)
        return make(abstract_value(known, (), place), value)
    try:
        array = _ndarray(obj, wanted)
    except Error:
        raise
    except Exception as error:  # nested lists of other than one shape; whatever an object's own method raises
        message = f"{called_function()}: {shown(obj)} is not an array: {str(error).partition('.')[0]}"
        raise (ShapeError if isinstance(obj, list | tuple) else DTypeError)(message, caller_location()) from None
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise DTypeError(f"{called_function()}: {shown(obj)} is not an array of numbers", caller_location())
    known = wanted or as_dtype(array.dtype)
    if array.dtype != known.numpy:
        array = _converted(array, known)
    elif not array.flags.c_contiguous or not array.flags.aligned or not array.dtype.isnative:
        array = np.array(array, known.numpy, order="C")
    elif copy is not False and (isinstance(obj, np.ndarray) or not array.flags.owndata):
        array = array.copy()
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    if CONTEXT.trace is not None:
        CONTEXT.trace.note_made(array)
    return make(abstract_value(known, array.shape, place), array)


def _is_stand_in(obj: object) -> bool:
    return type(obj) is Watched


def _ndarray(obj: Any, wanted: DType | None) -> Any:
    if isinstance(obj, np.ndarray | np.generic):
        return np.asarray(obj)
    if not isinstance(obj, list | tuple):
        if not hasattr(obj, "__array__") and hasattr(obj, "__dlpack__"):
            return np.from_dlpack(obj)
        return np.asarray(obj)
    if any(isinstance(part, Tensor) for part in _parts(obj)):
        obj = _plain(obj)
    array = np.asarray(obj)
    if array.dtype.kind in "iub" and wanted is None and array.dtype != np.uint64:
        return array
    if array.dtype.kind in "Ouf" and not _holds_arrays(obj):
        if not array.size:
            return array.astype((wanted or float32).numpy)
        # Integers that int64 does not hold: NumPy makes objects of them, uint64, or with others floats.
        target = wanted or (float32 if any(type(p) is float for p in _parts(obj)) else int64)
        if array.dtype.kind != "f" or not target.is_float:
            _check_all(obj, array, target)
        if array.dtype.kind == "O":
            array = np.array(obj, np.float64 if target.is_float else target.numpy)
        elif wanted is None:
            array = array.astype(target.numpy)
        return array
    if wanted is not None:
        _check_all(obj, array, wanted)
    return array


def _check_all(obj: Any, array: Any, dtype: DType) -> None:
    """DTypeError for a Python number in nested lists, seen by NumPy as this array, that does not fit a dtype."""
    if dtype.is_float and array.dtype.kind in "iubf":
        return
    if array.dtype.kind in "iubf" and array.size:
        low, high = array.min(), array.max()  # NaN comes out of both
        whole = array.dtype.kind != "f" or bool((np.trunc(array) == array).all())
        if whole and fits(low.item(), dtype) and fits(high.item(), dtype):
            return
    for part in _parts(obj):
        if of_number(part) is not None:
            check_fits(part, dtype)


def _parts(obj: Any) -> Iterator[Any]:
    for part in obj:
        if isinstance(part, list | tuple):
            yield from _parts(part)
        else:
            yield part


def _has_history(part: object) -> bool:
    """Whether a part of nested lists is a Tensor of a trace, or one that is recorded for `backward`."""
    return isinstance(part, Tensor) and (is_traced((part,)) or ag.exports.is_recorded(part))


def _plain(obj: Any) -> Any:
    return [_plain(p) if isinstance(p, list | tuple) else p.numpy() if isinstance(p, Tensor) else p for p in obj]


def _holds_arrays(obj: object) -> bool:
    return any(isinstance(part, np.ndarray | np.generic) for part in _parts(obj))


def _converted(array: Any, dtype: DType) -> Any:
    """An array in another dtype, by the meaning of `ag.astype`."""
    with np.errstate(all="ignore"):
        if array.dtype.kind in "biuf" or array.dtype.name == "bfloat16":
            return np.array(convert(array, as_dtype(array.dtype).element, dtype.element), order="C")
    raise DTypeError(f"no dtype for arrays of {array.dtype}", caller_location())
