"""Creation, shape, slicing and joining, by the names of the Python array API standard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.attributes import scalar_attr
from ...ir.builders.sizes import Size, largest, minus, plus, quotient, times
from ...ir.diagnostics import DTypeError, ShapeError, shown
from ...ir.location import called_function, caller_location
from ...ir.support.shapes import Dims, broadcast, shape_text, tensor_type
from ..abstract import AbstractValue, abstract_value, checked_size
from ..array_like import ArrayLike, DTypeLike, ShapeLike
from ..context import CONTEXT, TraceError, device_name
from ..conversion import asarray
from ..dtypes import DType, as_dtype, bool_, check_fits, float32, float64, int64, uint64
from ..numbers import TracedNumber, of_number
from ..sizes import SymbolicSize, is_size, plain, require, sign, symbolic
from ..tensor import Tensor, copied, make, view
from ..trace import constant, emit, ops
from .checks import extents, flag, integer, integers, normal_axes, normal_axis, one_of, real, sequence, size
from .promotion import as_tensor, cast, common_dtype, is_baked, number, operands, stored
from .public import public


def part(x: Tensor, axis: int, start: Size, count: Size) -> Tensor:
    """The elements from a subscript on along an axis."""
    dims = tuple([count if i == axis else d for i, d in enumerate(x._aval.shape)])
    starts = tuple([start if i == axis else 0 for i in range(x.ndim)])
    return emit("slice", x, starts=starts, steps=(1,) * x.ndim, dims=dims)


def _place(device: str | None) -> str:
    if device is not None:
        return device_name(device)
    return CONTEXT.device if CONTEXT.trace is None else CONTEXT.trace.device


def _aval(name: str, shape: ShapeLike, dtype: DTypeLike, device: str | None) -> AbstractValue:
    known = as_dtype(dtype)
    return abstract_value(known, checked_size(known, extents(shape)), _place(device))


# Creation.


@public
def full(
    shape: ShapeLike, fill_value: ArrayLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """`fill_value` at every point; its own dtype by default.  DTypeError for a number that does not fit the dtype, and
    for an array of a higher kind (bool, integers, floats)."""
    own = of_number(fill_value)
    if own is None or type(fill_value) is TracedNumber:
        value = as_tensor(fill_value, device) if dtype is None else stored(fill_value, as_dtype(dtype), device)
        return broadcast_to(value if device is None else asarray(value, device=device), shape)
    aval = _aval("full", shape, own if dtype is None else dtype, device)
    if CONTEXT.trace is None and not is_baked(fill_value):  # an input, so that another number compiles nothing
        return broadcast_to(number(fill_value, aval.dtype, aval.device), aval.shape)
    return constant(fill_value, aval)


@public
def zeros(shape: ShapeLike, *, dtype: DTypeLike = float32, device: str | None = None) -> Tensor:
    """0 at every point."""
    return constant(0, _aval("zeros", shape, float32 if dtype is None else dtype, device))


@public
def ones(shape: ShapeLike, *, dtype: DTypeLike = float32, device: str | None = None) -> Tensor:
    """1 at every point."""
    return constant(1, _aval("ones", shape, float32 if dtype is None else dtype, device))


@public
def empty(shape: ShapeLike, *, dtype: DTypeLike = float32, device: str | None = None) -> Tensor:
    """A Tensor whose elements nobody reads; they are 0."""
    return zeros(shape, dtype=dtype, device=device)


@public
def full_like(
    x: ArrayLike, /, fill_value: ArrayLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """`fill_value` at every point of the shape of x."""
    x = as_tensor(x)
    wanted, place = x.dtype if dtype is None else dtype, x.device if device is None else device
    return full(x._aval.shape, fill_value, dtype=wanted, device=place)


@public
def zeros_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """0 at every point of the shape of x."""
    return full_like(x, 0, dtype=dtype, device=device)


@public
def ones_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """1 at every point of the shape of x."""
    return full_like(x, 1, dtype=dtype, device=device)


@public
def empty_like(x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A Tensor like x whose elements nobody reads."""
    return zeros_like(x, dtype=dtype, device=device)


def counted(shape: Dims, dtype: DType, axis: int, device: str | None) -> Tensor:
    """The place along an axis, at every point of a shape."""
    before = CONTEXT.device
    CONTEXT.device = _place(device)
    try:
        return emit("iota", type=tensor_type(shape, dtype.element), axis=axis)
    finally:
        CONTEXT.device = before


@public
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """start, start + step, .. before stop; of Python integers int64, of floats float32 by default."""
    given = (0, start, step) if stop is None else (start, stop, step)
    arrays = tuple([n if of_number(n) else as_tensor(n) for n in given])
    known = common_dtype(arrays) if dtype is None else as_dtype(dtype)
    given = [n if isinstance(n, np.generic) else a for n, a in zip(given, arrays, strict=True)]
    first, end, by = [_number("arange", n) for n in given]
    if any(map(is_size, (first, end, by))):
        return _counted(first, end, by, known)
    if by == 0:
        raise ShapeError("arange: the step is 0", caller_location())
    try:
        count = (end - first) / by if float in map(type, (first, end, by)) else -((first - end) // by)
        count = max(math.ceil(count), 0)
    except (OverflowError, ValueError):
        raise ShapeError(f"arange: no number of steps of {by} from {first} to {end}", caller_location()) from None
    counting = known if known.bits == 64 or known is float32 else (float32 if known.is_float else int64)
    shape = checked_size(counting, (count,))
    if not known.is_float:
        # The numbers between the first and the last fit where these do.
        for n in (first, first + (count - 1) * by) if count else ():
            check_fits(n, known)
        if count > 1 and type(by) is float:
            check_fits(by, int64)
        first, by = int(first), int(by)
        by -= (by >= 2**63) << 64  # sums wrap, so this step leads to the same
    made = counted(shape, counting, 0, device)
    if by != 1 and count > 1:
        made = ops.mul(*operands(made, by % 2**64 if counting is uint64 else by, dtype=counting))
    if first != 0 and count:
        made = ops.add(*operands(made, first, dtype=counting))
    return cast(made, known)


def _counted(first: object, end: object, by: object, known: DType) -> Tensor:
    """`arange` where limits are symbolic sizes."""
    if not isinstance(by, int) or any(isinstance(n, float) for n in (first, end)):
        message = f"arange: with symbolic sizes all limits must be integers, got {first}, {end} and {by}"
        raise DTypeError(message, caller_location())
    if by == 0:
        raise ShapeError("arange: the step is 0", caller_location())
    length = minus(plain(end), plain(first)) if by > 0 else minus(plain(first), plain(end))
    count = quotient(plus(length, abs(by) - 1), abs(by))
    count = count if sign(count) == 1 else largest(count, 0)
    counting = known if known.is_integer else int64
    last = plus(plain(first), times(minus(count, 1), by))
    top = (1 << (counting.bits - (counting.kind == "int"))) - 1
    require(minus(top, last), DTypeError, f"arange: {last} does not fit {counting}")
    made = emit("iota", type=tensor_type((count,), counting.element), axis=0)
    made = made if by == 1 else ops.mul(*operands(made, by, dtype=counting))
    return cast(made if first == 0 else ops.add(*operands(made, first, dtype=counting)), known)


def _number(name: str, value: Any) -> Any:
    """A Python number, or that in an array of no axes, or a symbolic size."""
    if type(value) is SymbolicSize:
        return value
    if isinstance(value, Tensor | np.generic):
        value = value.item()
    if type(value) is TracedNumber or of_number(value) in (None, bool_):
        float(value)
        raise DTypeError(f"{name}: needs integers or floats, got {value!r}", caller_location())
    return value


@public
def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers from start to stop at equal distances; integers are rounded down."""
    if is_size(num):
        message = f"linspace: the number of points must be a number, but {plain(num)} is a symbol with dynamic=True"
        raise TraceError(message, caller_location())
    count = integer("num", num)
    steps = count - 1 if flag("endpoint", endpoint) else count
    known = as_dtype(float32 if dtype is None else dtype)
    checked_size(float64, extents(count))
    first, last = real("start", start), real("stop", stop)
    wide = np.linspace(first, last, count, endpoint=endpoint) if steps else np.full((count,), first)
    if not known.is_float:
        wide = np.floor(wide)
        for n in (wide.min(), wide.max()) if count else ():
            check_fits(n.item(), known)
    return asarray(wide, dtype=known, device=device)


@public
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DTypeLike = float32, device: str | None = None
) -> Tensor:
    """1 on the k-th diagonal, 0 elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    shape = extents((n_rows, columns))
    checked_size(int64, shape)
    k = _diagonal(k, shape)
    row, column = (counted(shape, int64, axis, device) for axis in (0, 1))
    return cast(column == row + k, as_dtype(dtype))


def _diagonal(k: object, shape: Dims) -> int:
    """The number of a diagonal; farther off than the matrix there is none either."""
    rows, columns = [d if isinstance(d, int) else 1 << 62 for d in shape]
    return min(max(integer("k", k), -rows), columns)


def _triangle(x: ArrayLike, k: int, lower: bool) -> Tensor:
    x, name = as_tensor(x), "tril" if lower else "triu"
    if x.ndim < 2:
        raise ShapeError(f"{name}: needs two axes, got shape {shape_text(x._aval.shape)}", caller_location())
    shape = extents(x._aval.shape[-2:])
    k = _diagonal(k, shape)
    row, column = (counted(shape, int64, axis, x.device) for axis in (0, 1))
    kept = column <= row + k if lower else column >= row + k
    return ops.where(kept, *operands(x, 0, dtype=x.dtype))


@public
def tril(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, 0 above the k-th diagonal."""
    return _triangle(x, k, lower=True)


@public
def triu(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, 0 below the k-th diagonal."""
    return _triangle(x, k, lower=False)


# Shape.


@public
def reshape(x: ArrayLike, /, shape: ShapeLike, *, copy: bool | None = None) -> Tensor:
    """The elements in row-major order under another shape; one extent may be -1."""
    x = as_tensor(x)
    given = [shape] if hasattr(shape, "__index__") else sequence("the shape", shape)
    dims: list[Size] = [size("an extent of the shape", d) for d in given]
    message = f"reshape: shape {shape_text(x._aval.shape)} cannot become {shape_text(dims)}"
    unknown = [i for i, d in enumerate(dims) if d == -1]
    total, rest = times(*x._aval.shape), times(*[d for d in dims if d != -1])
    if len(unknown) > 1 or (unknown and rest == 0) or any(isinstance(d, int) and d < -1 for d in dims):
        raise ShapeError(message, caller_location())
    if unknown:
        dims[unknown[0]] = quotient(total, rest)
    require(minus(total, times(*dims)), ShapeError, message, is_zero=True)
    made = copied(x) if tuple(dims) == x._aval.shape else emit("reshape", x, dims=tuple(dims))
    return made if copy is not None and flag("copy", copy) else view(made, x)


@public
def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> Tensor:
    """Axis i of the result is axis axes[i] of x."""
    x = as_tensor(x)
    order = normal_axes(sequence("axes", axes), x.ndim)
    if len(order) != x.ndim:
        message = f"{called_function()}: axes {order} must name each axis of shape {shape_text(x._aval.shape)} once"
        raise ShapeError(message, caller_location())
    made = copied(x) if order == tuple(range(x.ndim)) else ops.transpose(x, permutation=order)
    return view(made, x)


@public
def transpose(x: ArrayLike, /, axes: Sequence[int] | None = None) -> Tensor:
    """`permute_dims`; without axes the order is reversed."""
    x = as_tensor(x)
    return permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


@public
def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """The last two axes exchanged."""
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: needs two axes, got shape {shape_text(x._aval.shape)}", caller_location())
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@public
def moveaxis(x: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Axes moved to other places; the rest stay in order."""
    x = as_tensor(x)
    sources, targets = (normal_axes(integers("axis", a), x.ndim) for a in (source, destination))
    if len(sources) != len(targets):
        raise ShapeError(f"moveaxis: {len(sources)} axes for {len(targets)} places", caller_location())
    order = [a for a in range(x.ndim) if a not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permute_dims(x, order)


@public
def broadcast_to(x: ArrayLike, /, shape: ShapeLike) -> Tensor:
    """x repeated to a shape, by NumPy's rule."""
    x = as_tensor(x)
    target = checked_size(x.dtype, extents(shape))
    if x._aval.shape == target:
        return view(copied(x), x)
    if x.ndim > len(target) or broadcast(x._aval.shape, target) != target:
        shapes = f"shape {shape_text(x._aval.shape)} does not broadcast to {shape_text(target)}"
        raise ShapeError(f"{called_function()}: {shapes}", caller_location())
    return view(emit("broadcast", x, dims=target, axes=tuple(range(len(target) - x.ndim, len(target)))), x)


@public
def broadcast_shapes(*shapes: Dims) -> Dims:
    """The shape that all broadcast to; ShapeError when there is none."""
    given = [sequence("a shape", s) for s in shapes]
    known = [tuple([size("an extent", d) for d in s]) for s in given]
    found = broadcast(*known)
    if found is None or any(isinstance(d, int) and d < 0 for d in found):
        message = f"shapes {', '.join(map(shape_text, known))} do not broadcast"
        raise ShapeError(f"{called_function()}: {message}", caller_location())
    return found


@public
def broadcast_arrays(*arrays: ArrayLike) -> list[Tensor]:
    """All repeated to their common shape."""
    tensors = [as_tensor(a) for a in arrays]
    target = broadcast_shapes(*[t._aval.shape for t in tensors])
    return [broadcast_to(t, target) for t in tensors]


@public
def expand_dims(x: ArrayLike, /, *, axis: int | tuple[int, ...] = 0) -> Tensor:
    """New axes of extent 1 at the places `axis` of the result."""
    x = as_tensor(x)
    places = integers("axis", axis)
    new = normal_axes(places, x.ndim + len(places))
    rest = iter(x._aval.shape)
    return reshape(x, [1 if i in new else next(rest) for i in range(x.ndim + len(new))])


@public
def squeeze(x: ArrayLike, /, axis: int | tuple[int, ...]) -> Tensor:
    """Axes of extent 1 removed."""
    x = as_tensor(x)
    axes = normal_axes(axis, x.ndim)
    if any(x._aval.shape[a] != 1 for a in axes):
        message = f"squeeze: axes {axes} of shape {shape_text(x._aval.shape)} are not all of extent 1"
        raise ShapeError(message, caller_location())
    return reshape(x, [d for i, d in enumerate(x._aval.shape) if i not in axes])


def flatten_axes(x: Tensor) -> Tensor:
    """All elements along one axis."""
    return reshape(x, (x.size,))


@public
def flip(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements in reverse order along axes, all by default."""
    x = as_tensor(x)
    axes = normal_axes(axis, x.ndim)
    return x[tuple([slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim)])]


@public
def roll(x: ArrayLike, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements moved on by `shift` places, those that fall off at the end coming in at the front."""
    x = as_tensor(x)
    shifts = integers("shift", shift)
    if axis is None:
        return reshape(roll(flatten_axes(x), (sum(shifts),), axis=0), x._aval.shape, copy=True)
    places = [normal_axis(a, x.ndim) for a in integers("axis", axis)]
    if 1 not in (len(shifts), len(places)) and len(shifts) != len(places):
        raise ShapeError(f"roll: {len(shifts)} shifts along {len(places)} axes", caller_location())
    count = max(len(shifts), len(places)) if shifts and places else 0
    x = copied(x)
    for amount, place in zip(shifts * (count // max(len(shifts), 1)), places * (count // max(len(places), 1))):
        extent = x._aval.shape[place]
        cut: Size = plain(-amount % symbolic(extent)) if extent else 0
        if cut:
            x = concat([part(x, place, cut, minus(extent, cut)), part(x, place, 0, cut)], axis=place)
    return x


# Joining and padding.


@public
def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Tensor:
    """One after another along an axis; None: of the flattened arrays."""
    given = sequence("the arrays", arrays)
    if not given:
        raise ShapeError("concat: needs at least one array", caller_location())
    tensors = operands(*given)
    if axis is None:
        tensors, axis = [flatten_axes(t) for t in tensors], 0
    place = normal_axis(axis, tensors[0].ndim)
    total = plus(*[t._aval.shape[place] for t in tensors if t.ndim > place])
    dims = tuple([total if i == place else d for i, d in enumerate(tensors[0]._aval.shape)])
    return emit("concat", *tensors, variadic=True, axis=place, dims=dims)


@public
def stack(arrays: Sequence[ArrayLike], /, *, axis: int = 0) -> Tensor:
    """Along a new axis."""
    given = sequence("the arrays", arrays)
    if not given:
        raise ShapeError("stack: needs at least one array", caller_location())
    tensors = operands(*given)
    if any(t._aval.shape != tensors[0]._aval.shape for t in tensors):
        shapes = ", ".join(dict.fromkeys(shape_text(t._aval.shape) for t in tensors))
        raise ShapeError(f"stack: the shapes must be equal, got {shapes}", caller_location())
    place = normal_axis(axis, tensors[0].ndim + 1)
    return concat([expand_dims(t, axis=place) for t in tensors], axis=place)


@public
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    x = as_tensor(x)
    place = normal_axis(axis, x.ndim)
    before = (slice(None),) * place
    count = x._aval.shape[place]
    if not isinstance(count, int):
        raise ShapeError(f"unstack: the number of slices along axis {place} is the symbol {count}", caller_location())
    return tuple([x[(*before, i)] for i in range(count)])


@public
def pad(x: ArrayLike, pad_width: Any, mode: str = "constant", constant_values: float = 0) -> Tensor:
    """x with a margin, as `numpy.pad` with the mode "constant"; `pad_width`: n, (before, after), or a pair an axis."""
    x = as_tensor(x)
    one_of("the mode", mode, "constant")
    message = f"pad: {shown(pad_width)} are no widths for shape {shape_text(x._aval.shape)}"
    try:
        given = np.asarray(pad_width, object)
        widths: list[list[Any]] = np.broadcast_to(given, (x.ndim, 2)).tolist()
    except (TypeError, ValueError):
        raise ShapeError(message, caller_location()) from None
    if any(isinstance(w, bool) or not (is_size(w) or hasattr(w, "__index__")) for pair in widths for w in pair):
        raise DTypeError(message, caller_location())
    margins = [[size("a width", w) for w in pair] for pair in widths]
    for width in (w for pair in margins for w in pair):
        require(width, ShapeError, f"pad: negative width in {shown(pad_width)}")
    dims = tuple([plus(d, *pair) for d, pair in zip(x._aval.shape, margins, strict=True)])
    checked_size(x.dtype, dims)
    low = tuple([before for before, _ in margins])

    def padded(values: Tensor, value: Any) -> Tensor:
        return emit("pad", values, low=low, value=scalar_attr(value, values.dtype.element), dims=dims)

    if of_number(constant_values) is None or type(constant_values) is TracedNumber:
        margin = stored(constant_values, x.dtype, x.device)
        inside = full(x._aval.shape, True, device=x.device)
        return ops.where(padded(inside, False), padded(x, 0), margin)
    check_fits(constant_values, x.dtype)
    return padded(x, constant_values)


# Dtypes.


@public
def result_type(*given: object) -> DType:
    """The dtype that Tensors, arrays, dtypes and Python numbers are promoted to."""

    def stand_in(dtype: DType) -> Tensor:
        return make(abstract_value(dtype, ()), None)

    if not given:
        raise DTypeError("result_type: needs at least one argument", caller_location())
    arrays = [g.dtype if isinstance(g, np.ndarray | np.generic) else g for g in given]
    return common_dtype(
        tuple([g if isinstance(g, Tensor) or of_number(g) is not None else stand_in(as_dtype(g)) for g in arrays])
    )
