"""Differentiation of functions: grad, value_and_grad, vjp, with JAX's meaning and signatures.

The function is traced, `passes/autodiff` differentiates the trace, and the result is one op (`call`) of the graph or
trace around it; so transforms compose with each other, with `jit` and with `backward`.  Gradients have the structure,
shape and dtype of the arguments that they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ..ir.builders.tensor import TensorBuilder
from ..ir.diagnostics import DTypeError, Error, ShapeError, shown
from ..ir.dialects.func import Func
from ..ir.location import caller_location
from ..ir.support.shapes import shape_text
from ..passes.autodiff.transform import differentiate, split_at
from .functions.checks import integers
from .functions.elementwise import stop_gradient
from .functions.promotion import as_tensor, operands
from .graph import Callee
from .numbers import of_number
from .pytree import Tree, flatten, unflatten
from .tensor import Tensor, copied
from .trace import Traced, TracedFunction, emit_all, trace_function


class _Differentiated:
    """A function traced as one of the leaves of some of its arguments."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        argnums: Sequence[int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        scalar: bool,
        has_aux: bool,
    ) -> None:
        self.trees: list[Tree] = []
        leaves: list[Any] = []
        for number in argnums:
            if not -len(args) <= number < len(args):
                message = f"{name}: argnums has {number}, but the call has {len(args)} positional arguments"
                raise Error(message, caller_location())
        self.wanted = [n % len(args) for n in argnums]
        places = list(dict.fromkeys(self.wanted))
        self.places = places
        for place in places:
            found, tree = flatten(args[place])
            leaves += found
            self.trees.append(tree)
        self.leaves = [_float_leaf(name, leaf) for leaf in leaves]

        def body(tensors: list[Tensor], _: Sequence[Any]) -> Any:
            rest = iter(tensors)
            given = list(args)
            for place, tree in zip(places, self.trees, strict=True):
                given[place] = unflatten(tree, [next(rest) for _ in range(tree.size)])
            result = function(*given, **kwargs)
            if has_aux and not (isinstance(result, tuple) and len(result) == 2):
                raise Error(f"{name}: with has_aux the function returns (result, auxiliary data)", caller_location())
            self.outputs = flatten(result[0] if has_aux else result)[1].size
            return result

        def finish(results: list[Any]) -> None:
            if scalar:
                if self.outputs != 1:
                    message = f"{name}: the function must return one number, not {self.outputs}"
                    advice = "" if has_aux or self.outputs < 2 else "; has_aux=True lets it return (number, other data)"
                    raise Error(message + advice, caller_location())
                results[0] = _float_leaf(name, results[0], "the result")
                if results[0].shape != ():
                    message = f"{name}: the function must return a 0-d Tensor, got shape {shape_text(results[0].shape)}"
                    raise ShapeError(message, caller_location())
            for i, value in enumerate(results):
                if i < self.outputs:
                    results[i] = as_tensor(value)
                elif isinstance(value, Tensor):
                    results[i] = stop_gradient(value)

        self.outputs = 1
        avals = [v._aval.replace(requires_grad=False) for v in self.leaves]
        self.traced: TracedFunction = trace_function(body, avals, [None] * len(avals), persistent=False, finish=finish)
        self.function = differentiate(self.traced.function, range(len(avals)), "gradient")

    @property
    def operands(self) -> list[Tensor]:
        """What the differentiated function is applied to, before cotangents."""
        return [*self.leaves, *self.traced.captures]

    def seeds(self, function: Func, first: int) -> list[Any]:
        """The arguments of `function`, from number `first` on, that are cotangents of outputs; the rest is erased."""
        floats = [a is not None and a.dtype.is_float for a in self.traced.out_avals]
        kept = sum(floats[: self.outputs])
        for index in reversed(range(first + kept, len(function.arguments))):
            assert not function.arguments[index].users  # what is cut off needs no cotangent
            function.entry.erase_argument(index)
        return function.arguments[first:]

    def result(self, values: Sequence[Tensor]) -> Any:
        """What the function returned, from the results of the traced function; handles that it bound are bound."""
        count = len(self.traced.outputs)
        rest = iter(values[count:])
        for effect in self.traced.effects:
            new = None if effect.value is None else next(rest)
            state = effect.handle._state
            if isinstance(state, Traced) and state.trace.finished:
                continue  # what stood for an argument, which the caller keeps
            if effect.gradient:
                effect.handle.grad = new
            elif new is not None:
                effect.handle._rebind(new)
        found = iter(values[:count])
        constants = zip(self.traced.out_avals, self.traced.constants, strict=True)
        return unflatten(self.traced.out_tree, [c if a is None else next(found) for a, c in constants])

    def gradients(self, values: Sequence[Tensor]) -> list[Any]:
        """The gradients, in the structure of each argument; of one that is named twice there are two."""
        rest = iter(values)
        leaves = {p: [next(rest) for _ in range(t.size)] for p, t in zip(self.places, self.trees, strict=True)}
        trees = dict(zip(self.places, self.trees, strict=True))
        made: list[Any] = []
        for number, place in enumerate(self.wanted):
            is_first = place not in self.wanted[:number]
            made.append(unflatten(trees[place], leaves[place] if is_first else [copied(v) for v in leaves[place]]))
        return made


def _float_leaf(name: str, leaf: object, what: str = "what is differentiated") -> Tensor:
    try:
        tensor = as_tensor(leaf)
    except (Error, TypeError, ValueError):
        raise DTypeError(f"{name}: {what} must be float arrays, got {shown(leaf)}", caller_location()) from None
    if not tensor.dtype.is_float:
        raise DTypeError(f"{name}: {what} must be of floats, got {tensor.dtype}", caller_location())
    return tensor


def call(function: Func, operands: Sequence[Tensor]) -> list[Tensor]:
    """The results of a function of IR, as one op."""
    function.update_type()
    return emit_all(("call", False, (("function", Callee(function)),)), operands)


def value_and_grad(
    fun: Callable[..., object], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives `(fun(..), gradients)`.

    `fun` returns a 0-d float Tensor (with `has_aux` a pair of it and other data, which is passed on).  `argnums`: the
    positional arguments to differentiate by, negative ones counted from the end; an integer gives one gradient, a
    sequence a tuple of them.
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux)


def _callable(name: str, fun: object) -> Any:
    if not callable(fun):
        raise DTypeError(f"{name}: needs a function, got {shown(fun)}", caller_location())
    return fun


def _value_and_grad(name: str, fun: Any, argnums: Any, has_aux: bool) -> Callable[..., Any]:
    is_one = hasattr(argnums, "__index__")
    numbers = integers("argnums", argnums)

    @wraps(_callable(name, fun))
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        made = _Differentiated(name, fun, numbers, args, kwargs, True, has_aux)
        function, operands = made.function, made.operands
        (seed,) = made.seeds(function, len(operands))
        first = function.entry.first
        b = TensorBuilder(function.entry, first, function.location)
        seed.replace_by(b.constant(1.0, seed.type))
        function.entry.erase_argument(seed.index)
        count = len(function.returns.operands) - len(made.leaves)
        results = call(function, operands)
        gradients = made.gradients(results[count:])
        return made.result(results[:count]), gradients[0] if is_one else tuple(gradients)

    return value_and_gradient


def grad(fun: Callable[..., object], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradients of `fun` (with `has_aux`: a pair of them and the auxiliary data); see
    `value_and_grad`."""
    both = _value_and_grad("grad", fun, argnums, has_aux)

    @wraps(fun)
    def gradient(*args: object, **kwargs: object) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def vjp(fun: Callable[..., object], *primals: object, has_aux: bool = False) -> Any:
    """`(fun(*primals), vjp_fun)`, with `has_aux` the auxiliary data third.

    `vjp_fun(cotangent)` takes a cotangent of the structure of the result and gives a tuple of those of the primals; it
    may be called any number of times.
    """
    made = _Differentiated("vjp", _callable("vjp", fun), range(len(primals)), primals, {}, False, has_aux)
    forward, backward = split_at(made.function, made.traced.function, "vjp")
    count = len(made.traced.function.returns.operands)
    values = call(forward, made.operands)
    residuals = values[count:]
    made.seeds(backward, len(residuals))
    result = made.result(values[:count])
    out = result[0] if has_aux else result
    shapes, out_tree = flatten(out)

    def vjp_fun(cotangent: object) -> tuple[Any, ...]:
        given, tree = flatten(cotangent)
        if tree != out_tree:
            raise Error(f"vjp: the cotangent must have the structure {out_tree}, got {tree}", caller_location())
        seeds: list[Tensor] = []
        for value, like in zip(given, shapes, strict=True):
            if not like.dtype.is_float:
                continue
            (seed,) = operands(value, dtype=like.dtype) if of_number(value) else [as_tensor(value)]
            if seed.shape != like.shape or seed.dtype is not like.dtype:
                message = f"vjp: the cotangent of {like._aval} must be like it, got {seed._aval}"
                raise ShapeError(message, caller_location())
            seeds.append(seed)
        return tuple(made.gradients(call(backward, [*residuals, *seeds])))

    return (out, vjp_fun, result[1]) if has_aux else (out, vjp_fun)
