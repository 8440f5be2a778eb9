"""Front-end functions made from what ops declare: they are what one would have written by hand."""

from __future__ import annotations

import copy
import inspect
import pickle
import traceback
from typing import Any

import numpy as np
import pytest

from nablair import autograd as ag
from nablair.autograd.functions.from_ops import declaring, source
from nablair.ir.declared import Api
from nablair.ir.diagnostics import DTypeError, Error, ShapeError
from nablair.ir.dialects import linalg
from nablair.ir.dialects.elementwise.family import UnaryFloat

NAMES = sorted(declaring())
SIGNATURES = {
    "tanh": "(x: 'ArrayLike', /) -> 'Tensor'",
    "add": "(x1: 'ArrayLike', x2: 'ArrayLike', /) -> 'Tensor'",
    "where": "(condition: 'ArrayLike', x1: 'ArrayLike', x2: 'ArrayLike', /) -> 'Tensor'",
    "sum": "(x: 'ArrayLike', /, *, axis: 'Axis' = None, dtype: 'DTypeLike | None' = None, keepdims: 'bool' = False)"
    " -> 'Tensor'",
    "argmax": "(x: 'ArrayLike', /, *, axis: 'int | None' = None, keepdims: 'bool' = False) -> 'Tensor'",
    "softmax": "(x: 'ArrayLike', /, axis: 'int' = -1) -> 'Tensor'",
    "matmul": "(x1: 'ArrayLike', x2: 'ArrayLike', /, *, preferred_element_type: 'DTypeLike | None' = None) -> 'Tensor'",
    "smooth_l1_loss": "(prediction: 'ArrayLike', target: 'ArrayLike', beta: 'float' = 1.0, reduction: 'str' = 'mean')"
    " -> 'Tensor'",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    assert str(inspect.signature(getattr(ag, name))) == SIGNATURES[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_an_ordinary_one(name: str) -> None:
    function = getattr(ag, name)
    assert function is getattr(ag, name) is ag.function(declaring()[name])
    assert (function.__name__, function.__qualname__) == (name, name)
    assert function.__module__ == "nablair.autograd.functions.declared"
    assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
    assert inspect.getsource(function) == source(declaring()[name])
    assert len(inspect.getdoc(function) or "") > 10
    assert name in ag.__all__ and name in dir(ag)


def failing() -> list[Any]:
    x = np.ones((2, 3), np.float32)
    return [
        (lambda: ag.add(x, x[:, :2]), ShapeError, "add: shapes (2, 3) and (2, 2) do not broadcast"),
        (lambda: ag.maximum(x, x[:1, :2]), ShapeError, "maximum: shapes"),
        (lambda: ag.sum(x, axis=2), ShapeError, "sum: axis 2 is out of range for 2 dimensions"),
        (lambda: ag.argmax(x, axis=1.5), DTypeError, "argmax: axis must be an integer, got 1.5"),  # type: ignore
        (lambda: ag.mean(x, keepdims=1), DTypeError, "mean: keepdims must be True or False, got 1"),  # type: ignore
        (lambda: ag.logical_and(x, x), DTypeError, "logical_and: needs bools, got float32"),
        (lambda: ag.where(x, x, x), DTypeError, "where: needs bools, got float32"),
        (lambda: ag.mse_loss(x, x, "most"), Error, "mse_loss: reduction must be 'mean' or 'sum' or 'none', got 'most'"),
        (lambda: ag.smooth_l1_loss(x, x, "a"), DTypeError, "smooth_l1_loss: beta must be a number, got 'a'"),  # type: ignore
    ]


@pytest.mark.parametrize("number", range(len(failing())))
def test_errors_name_the_function_and_the_line_of_the_caller(number: int) -> None:
    function, error, message = failing()[number]
    with pytest.raises(error) as caught:
        function()
    assert message in caught.value.message
    place = caught.value.location.file_position()
    assert (place.file, place.line) == (__file__, function.__code__.co_firstlineno)


def test_wrong_arguments_are_pythons_own_error() -> None:
    with pytest.raises(TypeError, match=r"tanh\(\) got some positional-only arguments passed as keyword"):
        ag.tanh(x=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"sum\(\) takes 1 positional argument but 2"):
        ag.sum(1.0, 0)  # type: ignore[call-arg]


def test_a_traceback_shows_the_source() -> None:
    with pytest.raises(DTypeError) as caught:
        ag.logical_not(1.0)
    text = "".join(traceback.format_exception(caught.value))
    assert "return emit('logical_not', *bool_operands('logical_not', x))" in text


def test_a_declaration_that_does_not_fit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unnamed(UnaryFloat):
        """Not in any table."""

    Unnamed.name = "declared.unnamed"
    with pytest.raises(Error, match=r"declared\.unnamed declares no function"):
        ag.function(Unnamed)
    monkeypatch.setattr(Unnamed, "api", Api("unnamed", keywords=("slope",)))
    with pytest.raises(Error, match=r"declares the parameter 'slope' of ag\.unnamed, and has no such property"):
        ag.function(Unnamed)
    monkeypatch.setattr(linalg.LayerNorm, "api", Api("norm"))
    with pytest.raises(Error, match=r"layer_norm declares a function and takes operands that may be absent"):
        ag.function(linalg.LayerNorm)
    with pytest.raises(Error, match="function: needs the class of an op, got 'tanh'"):
        ag.function("tanh")  # type: ignore[arg-type]
