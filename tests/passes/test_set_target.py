"""set-target: the kind of a device and any of its numbers."""

import pytest

from nablair.ir.diagnostics import PassError
from nablair.ir.operations import Operation
from nablair.ir.parser import parse_module
from nablair.ir.target import DEFAULTS, NUMBERS, Target
from nablair.passes.manager import PassManager


def ran(pipeline: str, head: str = "") -> Operation:
    module = parse_module(f"module {head} {{ func.func private @f() }}")
    PassManager.parse(pipeline).run(module)
    return module


OPENCL = 'attributes {nablair.target = {kind = "opencl", grain = 7}}'


@pytest.mark.parametrize(
    ("pipeline", "head", "expected"),
    [
        ("set-target{kind=cuda}", "", {"kind": "cuda"}),
        ("set-target{kind=cuda}", OPENCL, {"kind": "cuda"}),
        ("set-target{kind=opencl}", OPENCL, {"kind": "opencl", "grain": 7}),
        ("set-target{warp=64}", OPENCL, {"kind": "opencl", "grain": 7, "warp": 64}),
        ("set-target{kind=opencl grain=9}", OPENCL, {"kind": "opencl", "grain": 9}),
        ("set-target{vector-bits=512 features=avx512f,fma}", "", {"vector_bits": 512, "features": ("avx512f", "fma")}),
        ("set-target", "", {}),
    ],
)
def test_what_is_given_replaces_what_stands_there(pipeline: str, head: str, expected: dict[str, object]) -> None:
    target = Target.of(ran(pipeline, head))
    base = DEFAULTS[str(expected.get("kind", "cpu"))]
    assert {n: getattr(target, n) for n in NUMBERS} == {n: getattr(base, n) for n in NUMBERS} | expected


def test_every_number_is_an_option_and_the_text_says_those_that_are_given() -> None:
    for name in NUMBERS:
        value = {"kind": "cuda", "features": "a,b"}.get(name, "12345")
        text = f"set-target{{{name.replace('_', '-')}={value}}}"
        (pass_,) = PassManager.parse(text).passes
        assert str(pass_) == text
        assert str(getattr(Target.of(ran(text)), name)).strip("()").replace("'", "").replace(", ", ",") == value


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("set-target{kind=gpu}", "pass 'set-target' has the kind 'gpu'; there are cpu, opencl, cuda"),
        ("set-target{l22=5}", "has no option 'l22'; did you mean 'l2'"),
        ("set-target{l2=many}", "option 'l2' of pass 'set-target' takes an integer; got 'many'"),
        ("set-target{vector-bits=0}", "pass 'set-target' has vector_bits = 0; it is an integer from 1 up"),
    ],
)
def test_what_is_no_number_of_a_target_is_refused(pipeline: str, message: str) -> None:
    with pytest.raises(PassError, match=message):
        ran(pipeline)


def test_a_number_reaches_the_passes_behind_it() -> None:
    program = """
        func.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {
          %y = elementwise.tanh %x : tensor<64xf32>
          return %y : tensor<64xf32>
        }
    """
    for bits, lanes in ((128, 4), (512, 16)):
        module = parse_module(program)
        PassManager.parse(f"set-target{{vector-bits={bits}}},loop-cpu").run(module)
        assert f"vector<{lanes}xf32>" in str(module)
