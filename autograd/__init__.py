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

_PLACES: "dict[str, str]" = {
    "Tensor": "tensor",
    "asarray": "conversion",
    **dict.fromkeys(("jit", "Lowered"), "jitted"),
    **dict.fromkeys(("grad", "value_and_grad", "vjp"), "transforms"),
    "backward": "gradients",
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
    "function": "functions.from_ops",
    "bool": "dtypes",
}  # fmt: skip

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

_CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
_MODULES = ("functions", "optim")
_INNER_MODULES = ("exports", "tensor")


def __getattr__(name: str) -> object:
    if name in _MODULES or name in _INNER_MODULES:
        return import_module(f".{name}", __name__)
    if name in _PLACES:
        module = import_module(f".{_PLACES[name]}", __name__)
        value = getattr(module, "bool_" if name == "bool" else name)
    else:  # a function that an op declares, or that is written by hand
        value = None
        if name == "__all__" or not name.startswith("_"):
            functions = import_module(".functions", __name__)
            if name == "__all__":
                return sorted([*_PLACES, *_CONSTANTS, *_MODULES, *functions.names()])
            value = functions.find(name)
            if value is not None and not functions.is_ours(name):
                return value
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *globals()["__getattr__"]("__all__")})
