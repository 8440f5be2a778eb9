"""What NumPy and others get of a Tensor.

NumPy's functions that have one of ours of the same meaning become ours (`np.exp(x)` is `ag.exp(x)`, `np.add(a, x)` and
`a + x` for an ndarray a are `ag.add(a, x)`), so that they work in traced functions and are recorded for `backward`.
All others compute with the values, and give ndarrays.  Where that would end a history, for a Tensor that requires a
gradient, it is an error, as in PyTorch: `x.detach()` says that it is meant.  What is exported cannot be written to,
or is a copy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from .. import autograd as ag  # whose functions need what stands here: they are found when they are called
from ..ir.diagnostics import DTypeError, Error, shown
from ..ir.location import caller_location
from .context import CONTEXT, TraceError
from .tensor import Tensor
from .trace import Traced


class ExportError(Error, BufferError, ValueError):
    """Memory of a Tensor asked for in a way that there is not."""


def is_recorded(tensor: Tensor) -> bool:
    """Whether a computation outside of this library would lose a part of a gradient."""
    return tensor._aval.requires_grad and CONTEXT.records_gradients


def check_readable(tensor: Tensor, reader: str) -> None:
    """Refuse that a reader who records nothing gets a Tensor that requires a gradient."""
    if is_recorded(tensor):
        message = f"{reader}: a Tensor that requires a gradient would lose its history"
        raise DTypeError(f"{message}; give x.detach(), or use ag.no_grad()", caller_location())


@cache
def _universal(name: str) -> Callable[..., Any] | None:
    """The function of ours for a universal function of NumPy's: that of the same name, but for some."""
    others = {"power": ag.pow, "absolute": ag.abs, "rint": ag.round}
    return others.get(name) or ag.functions.find(name)


def _var(a: Any, axis: Any = None, *, ddof: float = 0, correction: float = 0, keepdims: bool = False) -> Any:
    return ag.var(a, axis=axis, correction=ddof or correction, keepdims=keepdims)


def _std(a: Any, axis: Any = None, *, ddof: float = 0, correction: float = 0, keepdims: bool = False) -> Any:
    return ag.std(a, axis=axis, correction=ddof or correction, keepdims=keepdims)


def _reduction(function: Callable[..., object], *options: str) -> Callable[..., object]:
    def reduce(a: object, axis: object = None, **given: object) -> object:
        return function(a, axis=axis, **given)

    parameters = [
        inspect.Parameter("a", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("axis", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
        *[inspect.Parameter(o, inspect.Parameter.KEYWORD_ONLY, default=None) for o in options],
    ]
    reduce.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return reduce


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """NumPy's other functions, by name, with the parameters of NumPy's that ours have."""
    return {
        "sum": _reduction(ag.sum, "dtype", "keepdims"),
        "prod": _reduction(ag.prod, "dtype", "keepdims"),
        **{n: _reduction(getattr(ag, n), "keepdims") for n in ("mean", "max", "min", "any", "all", "argmax", "argmin")},
        "amax": _reduction(ag.max, "keepdims"),
        "amin": _reduction(ag.min, "keepdims"),
        "var": _var,
        "std": _std,
        "reshape": lambda a, shape: ag.reshape(a, shape),
        "transpose": lambda a, axes=None: ag.transpose(a, axes),
        "moveaxis": lambda a, source, destination: ag.moveaxis(a, source, destination),
        "broadcast_to": lambda array, shape: ag.broadcast_to(array, shape),
        "expand_dims": lambda a, axis: ag.expand_dims(a, axis=axis),
        "squeeze": lambda a, axis: ag.squeeze(a, axis=axis),
        "flip": lambda m, axis=None: ag.flip(m, axis=axis),
        "roll": lambda a, shift, axis=None: ag.roll(a, shift, axis=axis),
        "concatenate": lambda arrays, axis=0: ag.concat(arrays, axis=axis),
        "stack": lambda arrays, axis=0: ag.stack(arrays, axis=axis),
        "where": lambda condition, x, y: ag.where(condition, x, y),
        "clip": lambda a, a_min=None, a_max=None: ag.clip(a, a_min, a_max),
        "take": lambda a, indices, axis=None: ag.take(a, indices, axis=axis),
        "take_along_axis": lambda arr, indices, axis: ag.take_along_axis(arr, indices, axis=axis),
        "tensordot": lambda a, b, axes=2: ag.tensordot(a, b, axes=axes),
        "outer": lambda a, b: ag.outer(a, b),
        "tril": lambda m, k=0: ag.tril(m, k=k),
        "triu": lambda m, k=0: ag.triu(m, k=k),
        "zeros_like": lambda a, dtype=None: ag.zeros_like(a, dtype=dtype),
        "ones_like": lambda a, dtype=None: ag.ones_like(a, dtype=dtype),
        "full_like": lambda a, fill_value, dtype=None: ag.full_like(a, fill_value, dtype=dtype),
    }


@cache
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)


def apply_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """`Tensor.__array_ufunc__`."""
    name = f"np.{ufunc.__name__}"
    if method == "__call__" and not options:
        ours = _universal(ufunc.__name__)
        if ours is not None:
            return ours(*inputs)
    else:
        name += f"(.., {', '.join(options)})" if method == "__call__" else f".{method}"
    given, named = _values(name, inputs), _values(name, dict(options))
    return getattr(ufunc, method)(*given, **named)


def apply_function(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """`Tensor.__array_function__`."""
    ours = _functions().get(function.__name__) if function.__module__ == "numpy" else None
    if ours is not None:
        try:
            _signature(ours).bind(*args, **options)
        except TypeError:
            pass  # an option of NumPy's that ours lacks
        else:
            return ours(*args, **options)
    name = f"np.{function.__name__}"
    return function(*_values(name, args), **_values(name, dict(options)))


def _values(name: str, given: Any) -> Any:
    """Arguments with ndarrays in place of Tensors."""
    if isinstance(given, Tensor):
        if isinstance(given._state, Traced) and not given._state.trace.finished:
            message = f"{name}: there is no such function of a Tensor while a function is traced"
            raise TraceError(f"{message}; write it with functions of ag", caller_location())
        check_readable(given, name)
        return given.numpy()
    if type(given) in (list, tuple):
        return type(given)([_values(name, v) for v in given])
    if type(given) is dict:
        return {k: _values(name, v) for k, v in given.items()}
    return given


def as_ndarray(tensor: Tensor, dtype: Any, copy: bool | None) -> Any:
    """`Tensor.__array__`: read-only where it is not a copy."""
    check_readable(tensor, "np.asarray")
    view = tensor.numpy()
    if dtype is not None and view.dtype != dtype:
        if copy is False:
            raise ExportError(f"an array of {dtype} from a Tensor of {tensor.dtype} needs a copy", caller_location())
        return view.astype(dtype)
    return view.copy() if copy else view


def as_dlpack(tensor: Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """`Tensor.__dlpack__` of the array API standard 2024.12: without a copy only for consumers of DLPack 1.0, which
    says that memory is read-only."""
    check_readable(tensor, "__dlpack__")
    if stream is not None or (dl_device is not None and tuple(dl_device) != tensor.__dlpack_device__()):
        wanted = f"stream={shown(stream)}, dl_device={shown(dl_device)}"
        message = f"__dlpack__: the memory lies on the CPU, which has no streams, got {wanted}"
        raise ExportError(message, caller_location())
    view = tensor.numpy()
    try:
        if not copy and max_version is not None and tuple(max_version) >= (1, 0):
            return view.__dlpack__(max_version=max_version)
        if copy is False:
            message = "__dlpack__: a consumer of DLPack before 1.0 cannot be told that memory is read-only"
            raise ExportError(f"{message}; it needs a copy", caller_location())
        return view.copy().__dlpack__()
    except (BufferError, TypeError) as error:
        if isinstance(error, Error):
            raise
        message = f"__dlpack__: a Tensor of {tensor.dtype} cannot be exported: {error}"
        raise ExportError(message, caller_location()) from None
