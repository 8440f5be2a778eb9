"""`nablair.testing.check`: what it passes, and that it finds each kind of fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nablair.ir.definition import OPS, Sample
from nablair.ir.diagnostics import Error
from nablair.ir.dialects import arith, array, elementwise, linalg
from nablair.ir.dialects.elementwise.family import UnaryFloat
from nablair.ir.interfaces import HasPartials
from nablair.testing import CheckFailed, check


@pytest.mark.parametrize("cls", [elementwise.Tanh, elementwise.LogicalNot, linalg.ReduceMean], ids=lambda cls: cls.name)
def test_ops_of_ours_pass(cls: Any) -> None:
    check(cls, cls.samples[:1])


def test_shapes_and_a_reference_may_be_given() -> None:
    check(elementwise.Mul, shapes=((3, 1), (2,)), reference=np.multiply, devices=["cpu"])
    check(linalg.ReduceMax, shapes=((3, 4),), properties={"axes": (1,)}, devices=["cpu"])
    with pytest.raises(CheckFailed, match=r"elementwise\.mul on f32 operands of shapes .* is wrong: result 0 of"):
        check(elementwise.Mul, shapes=((3, 1), (2,)), reference=np.add, devices=["cpu"])
    with pytest.raises(CheckFailed, match=r"do not broadcast"):
        check(elementwise.Mul, shapes=((3,), (2,)))


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(Error, match="needs the class of a tensor-level op, got"):
        check(arith.AddF)
    with pytest.raises(Error, match=r"array\.slice has no samples; declare `samples`, or give the shapes"):
        check(array.Slice, [])


class Cubed(UnaryFloat, HasPartials):
    """x * x * x, written in ways that each may be wrong."""

    name = "checktest.cubed"
    samples = (Sample("x ** 3", low=0.5, high=1.5),)
    wrong = ""

    def formula(self, x: Any) -> Any:
        return x * x if self.wrong == "meaning" else x * x * x

    def evaluate(self, x: Any) -> Any:
        found = super().evaluate(x)
        return found[..., None] if self.wrong == "shape" else found

    def scalar(self, b: Any, *operands: Any) -> Any:
        (x,) = operands
        square = b.mul(x, x)
        if self.wrong == "lowering":
            raise KeyError("lowering")
        return b.mul(square, b.add(x, 0.01) if self.wrong == "scalar" else x)

    def partials(self, b: Any) -> Any:
        square = b.mul(self.x, self.x)
        if self.wrong == "no derivative":
            raise KeyError("partials")
        if self.wrong == "second":
            square = b.apply(Stop, square)
        yield lambda t: b.mul(t, b.mul(square, 2.0 if self.wrong == "first" else 3.0))


FAULTS = {
    "": None,
    "meaning": "is wrong: result 0 of the interpreter at",
    "shape": r"by infer, and by evaluate an array of float32 with shape \(4, 5, 1\)",
    "scalar": "is wrong: result 0 of (an eager|a compiled) call on cpu at",
    "lowering": "fails in (an eager|a compiled) call on cpu: .*KeyError: 'lowering'",
    "first": r"has a wrong first derivative: for operand 0 at \[0, 0\] it is",
    "second": r"has a wrong second derivative: for operand 0 at",
    "no derivative": "has no first derivative: .*KeyError: 'partials'",
}


class Stop(UnaryFloat, HasPartials):
    """x, which says that nothing depends on it."""

    name = "checktest.stop"

    def formula(self, x: Any) -> Any:
        return x

    def scalar(self, b: Any, *operands: Any) -> Any:
        return operands[0]

    def partials(self, b: Any) -> Any:
        yield None


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Any:
    yield
    for name in ("checktest.cubed", "checktest.stop"):
        OPS.pop(name, None)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_kind_of_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from nablair.runtime.compile import clear_cache

    monkeypatch.setattr(Cubed, "wrong", fault)
    clear_cache()
    message = FAULTS[fault]
    if message is None:
        check(Cubed)
        return
    with pytest.raises(CheckFailed, match=f"(?s)checktest.cubed on f(32|64) operands of shapes .* {message}") as caught:
        check(Cubed, devices=["cpu"])
    assert "test_testing.py" in str(caught.value)
