"""The front-end: tensors, tracing, transforms, functions and optimizers.

    from nablair import autograd as ag

    @ag.jit
    def loss(w, x, y):
        return ag.mse_loss(ag.tanh(x @ w), y)

    gradient = ag.jit(ag.grad(loss))

Names load when they are first used (PEP 562): importing this package imports neither NumPy nor any other room but the
hooks that make forks safe.
"""

from importlib import import_module

from ..ir import forking as _forking  # noqa: F401  (a fork waits for imports from the first on)

TYPE_CHECKING = False  # as in the root package
if TYPE_CHECKING:
    from typing import Any

    from . import functions, optim
    from .context import TraceError, default_device, devices, no_grad
    from .conversion import asarray
    from .dtypes import (
        DType,
        bfloat16,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from .dtypes import bool_ as bool
    from .functions import (
        abs,
        add,
        all,
        any,
        arange,
        argmax,
        argmin,
        astype,
        bce_with_logits,
        broadcast_arrays,
        broadcast_shapes,
        broadcast_to,
        ceil,
        clip,
        concat,
        cos,
        cross_entropy,
        divide,
        elu,
        empty,
        empty_like,
        equal,
        erf,
        exp,
        expand_dims,
        expm1,
        eye,
        flip,
        floor,
        floor_divide,
        full,
        full_like,
        fused_weighted_bce_smooth_l1_loss,
        gather,
        gelu,
        greater,
        greater_equal,
        index_add,
        isfinite,
        isinf,
        isnan,
        layer_norm,
        leaky_relu,
        less,
        less_equal,
        linspace,
        log,
        log1p,
        log_softmax,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
        logsumexp,
        matmul,
        matrix_transpose,
        max,
        maximum,
        mean,
        min,
        minimum,
        moveaxis,
        mse_loss,
        multiply,
        negative,
        not_equal,
        one_hot,
        ones,
        ones_like,
        outer,
        pad,
        permute_dims,
        positive,
        pow,
        prod,
        reciprocal,
        relu,
        remainder,
        reshape,
        result_type,
        roll,
        round,
        rsqrt,
        scatter_add,
        sigmoid,
        sign,
        silu,
        sin,
        smooth_l1_loss,
        softmax,
        softplus,
        sqrt,
        square,
        squeeze,
        stack,
        std,
        stop_gradient,
        subtract,
        sum,
        take,
        take_along_axis,
        tanh,
        tensordot,
        to_device,
        transpose,
        tril,
        triu,
        trunc,
        unstack,
        var,
        vecdot,
        where,
        zeros,
        zeros_like,
    )
    from .jitted import Lowered, jit
    from .lazy import eager_stats
    from .tensor import Tensor
    from .transforms import grad, value_and_grad, vjp

_FUNCTIONS = (
    "abs", "add", "all", "any", "arange", "argmax", "argmin", "astype", "bce_with_logits", "broadcast_arrays",
    "broadcast_shapes", "broadcast_to", "ceil", "clip", "concat", "cos", "cross_entropy", "divide", "elu", "empty",
    "empty_like", "equal", "erf", "exp", "expand_dims", "expm1", "eye", "flip", "floor", "floor_divide", "full",
    "full_like", "fused_weighted_bce_smooth_l1_loss", "gather", "gelu", "greater", "greater_equal", "index_add",
    "isfinite", "isinf", "isnan", "layer_norm", "leaky_relu", "less", "less_equal", "linspace", "log", "log1p",
    "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "matmul",
    "matrix_transpose", "max", "maximum", "mean", "min", "minimum", "moveaxis", "mse_loss", "multiply", "negative",
    "not_equal", "one_hot", "ones", "ones_like", "outer", "pad", "permute_dims", "positive", "pow", "prod",
    "reciprocal", "relu", "remainder", "reshape", "result_type", "roll", "round", "rsqrt", "scatter_add", "sigmoid",
    "sign", "silu", "sin", "smooth_l1_loss", "softmax", "softplus", "sqrt", "square", "squeeze", "stack", "std",
    "stop_gradient", "subtract", "sum", "take", "take_along_axis", "tanh", "tensordot", "to_device", "transpose",
    "tril", "triu", "trunc", "unstack", "var", "vecdot", "where", "zeros", "zeros_like",
)  # fmt: skip

_PLACES: "dict[str, str]" = {
    **dict.fromkeys(_FUNCTIONS, "functions"),
    "Tensor": "tensor",
    "asarray": "conversion",
    **dict.fromkeys(("jit", "Lowered"), "jitted"),
    **dict.fromkeys(("grad", "value_and_grad", "vjp"), "transforms"),
    **dict.fromkeys(("no_grad", "devices", "default_device"), "context"),
    **dict.fromkeys(
        (
            "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
            "float64", "DType",
        ),
        "dtypes",
    ),
    "TraceError": "context",
    "eager_stats": "lazy",
}  # fmt: skip

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

_MODULES = frozenset({"exports", "functions", "optim", "tensor"})

__all__ = [
    "DType", "Lowered", "Tensor", "TraceError", "abs", "add", "all", "any", "arange", "argmax", "argmin", "asarray",
    "astype", "bce_with_logits", "bfloat16", "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "ceil",
    "clip", "concat", "cos", "cross_entropy", "default_device", "devices", "divide", "e", "eager_stats", "elu",
    "empty", "empty_like", "equal", "erf", "exp", "expand_dims", "expm1", "eye", "flip", "float16", "float32",
    "float64", "floor", "floor_divide", "full", "full_like", "functions", "fused_weighted_bce_smooth_l1_loss",
    "gather", "gelu", "grad", "greater", "greater_equal", "index_add", "inf", "int8", "int16", "int32", "int64",
    "isfinite", "isinf", "isnan", "jit", "layer_norm", "leaky_relu", "less", "less_equal", "linspace", "log", "log1p",
    "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "matmul",
    "matrix_transpose", "max", "maximum", "mean", "min", "minimum", "moveaxis", "mse_loss", "multiply", "nan",
    "negative", "newaxis", "no_grad", "not_equal", "one_hot", "ones", "ones_like", "optim", "outer", "pad",
    "permute_dims", "pi", "positive", "pow", "prod", "reciprocal", "relu", "remainder", "reshape", "result_type",
    "roll", "round", "rsqrt", "scatter_add", "sigmoid", "sign", "silu", "sin", "smooth_l1_loss", "softmax",
    "softplus", "sqrt", "square", "squeeze", "stack", "std", "stop_gradient", "subtract", "sum", "take",
    "take_along_axis", "tanh", "tensordot", "to_device", "transpose", "tril", "triu", "trunc", "uint8", "uint16",
    "uint32", "uint64", "unstack", "value_and_grad", "var", "vecdot", "vjp", "where", "zeros", "zeros_like",
]  # fmt: skip


def __getattr__(name: str) -> "Any":
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name == "bool":
        value = import_module(".dtypes", __name__).bool_
    elif name in _PLACES:
        value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
