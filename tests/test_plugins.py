"""What a file outside of the tree may add: each is written to a temporary folder and loaded as a user would."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nablair.autograd as ag
from nablair.autograd.trace import emit
from nablair.ir.definition import CONSTANT, ELEMENTWISE, OPS
from nablair.ir.diagnostics import Error
from nablair.ir.dialect import DIALECTS
from nablair.ir.interpreter.machine import HANDLERS, Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.lowering.targets import TARGETS, TargetText, register
from nablair.passes.manager import PassManager
from nablair.passes.registry import PASS_CLASSES
from nablair.runtime.compile import compile_function
from nablair.testing import check
from nablair.tools.ir_opt import load_plugin, main

DOCUMENTED = Path(__file__).parent.parent / "docs/programs"
Load = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    """Loads a plugin from a name and a text, once; after the tests what plugins registered is taken out again."""
    tables: list[dict[str, Any]] = [OPS, DIALECTS, PASS_CLASSES, HANDLERS, TARGETS, sys.modules]
    before, path = [set(table) for table in tables], [*sys.path]
    folder = tmp_path_factory.mktemp("plugins")

    def load(name: str, text: str = "") -> Path:
        file = folder / f"{name}.py"
        if not file.exists():
            file.write_text(text or (DOCUMENTED / f"{name}.py").read_text())
        load_plugin(str(file))
        return file

    yield load
    sys.path[:] = path
    for table, known in zip(tables, before, strict=True):
        for key in [key for key in table if key not in known]:
            if "nablair_plugin" in f"{key} {table[key]} {getattr(table[key], '__module__', '')}":
                del table[key]


# The documents show the monoid; here it gets an elementwise op that is made of it.
MONOID = """
from nablair.ir.dialects.elementwise.family import UnaryFloat
"""
MONOID += (DOCUMENTED / "either.py").read_text().replace("chance.", "plugmonoid.")
MONOID += '''

class HalfOf(UnaryFloat):
    """Half of the probability that x or 1/4 happens: its scalar form is the monoid's op itself."""

    name = "plugmonoid.half_of"

    def formula(self, x):
        return 0.5 * (x + 0.25 - 0.25 * x)

    def scalar(self, b, *operands):
        (x,) = operands
        return b.mul(b.value_of(Either, x, b.constant(0.25, x.type)), 0.5)
'''


def either(x: Any, axis: int | tuple[int, ...]) -> Any:
    return 1.0 - np.prod(1.0 - np.asarray(x, np.float64), axis=axis)


@pytest.mark.parametrize("device", ag.devices())
def test_a_monoid_folds_on_every_device(load: Load, device: str) -> None:
    load("plug_monoid", MONOID)
    x = np.random.default_rng(5).uniform(0, 0.3, (6, 40)).astype(np.float32)
    given = ag.asarray(x, device=device)
    for axes in ((0,), (1,), (0, 1)):

        def fold(v: ag.Tensor, axes: tuple[int, ...] = axes) -> ag.Tensor:
            return emit("reduce_either", v, axes=axes)

        def total(v: ag.Tensor) -> ag.Tensor:
            return ag.sum(fold(v) ** 2)

        expected = either(x, axes)
        np.testing.assert_allclose(np.asarray(fold(given)), expected, rtol=1e-5)
        np.testing.assert_allclose(np.asarray(ag.jit(fold)(given)), expected, rtol=1e-5)
        kept = np.expand_dims(expected, axes)
        gradient = 2 * kept * (1 - kept) / (1 - x.astype(np.float64))
        np.testing.assert_allclose(np.asarray(ag.jit(ag.grad(total))(given)), gradient, rtol=1e-4, atol=1e-5)
        leaf = ag.asarray(given, copy=True)
        leaf.requires_grad = True
        total(leaf).backward()
        np.testing.assert_allclose(np.asarray(leaf.grad), gradient, rtol=1e-4, atol=1e-5)

    def both(v: ag.Tensor) -> tuple[ag.Tensor, ag.Tensor]:
        half = ag.tanh(v)
        return half, emit("reduce_either", half, axes=(0,))

    # The fold of what is stored too is an accumulate.
    text = ag.jit(both).lower(given).as_text("kernel")
    assert device != "cpu" or re.search(r"kernel.accumulate .* by plugmonoid.either", text)
    np.testing.assert_allclose(np.asarray(ag.jit(both)(given)[1]), either(np.tanh(x), 0), rtol=1e-5)


ACCUMULATE = """module {
  func.func @main(%x: tensor<24x40xf32>) -> tensor<40xf32> {
    %0 = kernel.launch (%i, %j) in (24, 40) ins(%x : tensor<24x40xf32>) outs(%0 : tensor<40xf32>) {
      %1 = kernel.load %x[%i, %j]
      kernel.accumulate %1, %0[%j] by plugmonoid.either
    }
    return %0 : tensor<40xf32>
  }
}
"""


def test_a_monoid_accumulates_and_has_text(load: Load) -> None:
    load("plug_monoid", MONOID)
    module = parse_module(ACCUMULATE)
    assert print_op(module) == ACCUMULATE.rstrip()
    assert print_op(parse_module(print_op(module, generic=True))) == ACCUMULATE.rstrip()
    x = np.random.default_rng(6).uniform(0, 0.2, (24, 40)).astype(np.float32)
    expected = either(x, 0)
    np.testing.assert_allclose(Interpreter(module).call("main", [x])[0], expected, rtol=1e-5)
    for device in ag.devices():
        found = compile_function(module, device=device).run([x])
        np.testing.assert_allclose(np.asarray(found[0]), expected, rtol=1e-5)


def test_a_fold_and_an_elementwise_op_of_a_plugin_are_checked(load: Load) -> None:
    load("plug_monoid", MONOID)
    for axes in ((0,), (1, 2)):
        check(OPS["plugmonoid.reduce_either"], shapes=((2, 3, 4),), properties={"axes": axes}, devices=["cpu"])
    check(OPS["plugmonoid.half_of"], shapes=((4, 5),), reference=lambda x: 0.375 * x + 0.125)


def test_scalar_ops_are_vectorized_by_what_they_state(load: Load) -> None:
    load("plug_monoid", MONOID)

    def f(v: ag.Tensor) -> ag.Tensor:
        return emit("half_of", v)

    x = np.linspace(0, 1, 100, dtype=np.float32)
    module = parse_module("""func.func @main(%x: tensor<100xf32>) -> tensor<100xf32> {
      %0 = plugmonoid.half_of %x : tensor<100xf32>
      return %0 : tensor<100xf32>
    }""")
    PassManager.parse("kernel,plan,split-reduce,bufferize,lower-to-loops,apply-schedule").run(module)
    assert "plugmonoid.either" in str(module) and " : vector<" in str(module).split("plugmonoid.either")[1]
    PassManager.parse("expand-math").run(module)
    assert "plugmonoid" not in str(module)
    for device in ag.devices():
        np.testing.assert_allclose(np.asarray(f(ag.asarray(x, device=device))), 0.375 * x + 0.125, rtol=1e-6)


def test_our_scalar_ops_state_it() -> None:
    scalars = [cls for name, cls in OPS.items() if name.partition(".")[0] in ("arith", "math")]
    assert scalars and all(ELEMENTWISE in cls.traits or CONSTANT in cls.traits for cls in scalars)


TARGET = '''
"""A target: each kernel as a line of text, from the kernel level."""
from nablair.ir.diagnostics import LoweringError
from nablair.lowering.targets import TargetText, register

register(TargetText("plug_list", __name__, "kernel", level="kernel"))
register(TargetText("plug_shout", "nablair.lowering.llvm.emit", "loop-cpu", finish=f"{__name__}:shout"))


def emit_module(module):
    lines = []
    for op in module.walk():
        if op.name == "kernel.accumulate":
            raise LoweringError("lists know no accumulates", op.location)
        if op.name == "kernel.launch":
            lines.append(f"launch of {len(list(op.walk())) - 1} ops")
    return "".join(f"{line}\\n" for line in lines) or {}["nothing to list"]


def shout(text, name):
    return text.upper()
'''
EXP = """func.func @main(%x: tensor<40xf32>) -> tensor<40xf32> {
  %0 = elementwise.exp %x : tensor<40xf32>
  return %0 : tensor<40xf32>
}
"""


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """ir-opt on a text with a plugin."""

    def run(plugin: Path, text: str, *flags: str) -> tuple[int, str, str]:
        (tmp_path / "input.mlir").write_text(text)
        status = main([str(tmp_path / "input.mlir"), f"--load-plugin={plugin}", *flags])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_target_has_its_own_text(load: Load, run: Run) -> None:
    plugin = load("plug_target", TARGET)
    listed = "launch of 4 ops\n"
    assert run(plugin, EXP, "-p", "kernel", "--emit=plug_list") == (0, listed, "")
    assert ag.jit(ag.exp).lower(ag.ones(40)).as_text("plug_list") == listed
    status, out, _ = run(plugin, EXP, "-p", "loop-cpu", "--emit=plug_shout")
    assert status == 0 and "DEFINE VOID" in out
    assert "DEFINE VOID" in ag.jit(ag.exp).lower(ag.ones(40)).as_text("plug_shout")
    status, _, err = run(plugin, EXP, "--emit=plug_list")
    assert status == 1
    assert "--emit=plug_list takes the kernel level, and 'elementwise.exp' is above it; add -p kernel" in err
    assert "mlir, llvm, asm, opencl, ptx, plug_list" in run(plugin, EXP, "--emit=plug_lost")[2]
    with pytest.raises(Error, match="there are: trace, tensor, kernel, loop, llvm, asm, opencl, ptx, plug_list"):
        ag.jit(ag.exp).lower(ag.ones(40)).as_text("plug_lost")
    with pytest.raises(Error, match=r"there is a target 'ptx' already, whose text nablair\.lowering\.ptx\.emit makes"):
        register(TargetText("ptx", __name__, "kernel"))


UNLISTED = """
from nablair.ir.dialects.elementwise.family import UnaryFloat

class Same(UnaryFloat):
    name = "plugnowhere.same"
    def formula(self, x):
        return x
"""


@pytest.mark.parametrize("target", ["llvm", "asm", "opencl", "ptx"])
def test_an_op_without_a_row_of_its_dialect_has_a_level(load: Load, run: Run, target: str) -> None:
    plugin = load("plug_unlisted", UNLISTED)
    status, out, err = run(plugin, EXP.replace("elementwise.exp", "plugnowhere.same"), f"--emit={target}")
    assert (status, out) == (1, "")
    assert f"--emit={target} takes the loop level, and 'plugnowhere.same' is above it; add -p loop-" in err


FAULTY = '''
from dataclasses import dataclass
from typing import ClassVar

from nablair.ir.dialect import Dialect, register
from nablair.ir.dialects.elementwise.family import UnaryFloat
from nablair.ir.interfaces import HasPartials
from nablair.ir.rewrite_rules import rule
from nablair.lowering.targets import TargetText
from nablair.lowering.targets import register as register_target
from nablair.passes.manager import Pass

register(Dialect("plugfault", "tensor", ops=__name__, rewrites=__name__))
register_target(TargetText("plug_fault", __name__, "", level="tensor"))


def emit_module(module):
    raise KeyError("target")  # target


class Faulty(UnaryFloat, HasPartials):
    name = "plugfault.faulty"

    def formula(self, x):
        raise KeyError("evaluate")  # evaluate

    def scalar(self, b, *operands):
        return b.no_such_method(*operands)  # scalar

    def partials(self, b):
        yield lambda t: b.add(t, b.reshape(t, [3]))  # partials


class Untyped(UnaryFloat):
    name = "plugfault.untyped"

    def infer(self):
        raise KeyError("infer")  # infer


class Rewritten(UnaryFloat):
    name = "plugfault.rewritten"


@dataclass
class Fault(Pass):
    """Raises."""

    name: ClassVar[str] = "plugfault"

    def run(self, op):
        raise KeyError("run")  # run


@rule(Rewritten, "faulty")
def refuse(op, rewriter):
    raise KeyError("rewrite")  # rewrite


RULES = (refuse,)
'''
FAULTS = {
    "run": ("elementwise.exp", ["--plugfault"], "KeyError: 'run'"),
    "rewrite": ("plugfault.rewritten", ["--canonicalize"], "KeyError: 'rewrite'"),
    "scalar": ("plugfault.faulty", ["-p", "kernel"], "no_such_method"),
    "partials": ("plugfault.faulty", ["-p", "autodiff"], "array.reshape"),
    "infer": ("plugfault.untyped", [], "op is malformed: 'infer'"),
    "target": ("elementwise.exp", ["--emit=plug_fault"], "the target 'plug_fault' failed: KeyError: 'target'"),
}


@pytest.mark.parametrize("place", FAULTS)
def test_a_fault_of_a_plugin_shows_its_line(load: Load, run: Run, place: str) -> None:
    plugin = load("plug_fault", FAULTY)
    op, flags, reason = FAULTS[place]
    text = EXP.replace("elementwise.exp", op)
    line = 1 + next(i for i, line in enumerate(FAULTY.splitlines()) if line.endswith(f"# {place}"))
    status, out, err = run(plugin, text, *flags)
    assert (status, out) == (1, "") and reason in err
    assert f"{plugin}:{line}:1: note: raised" in err and "Traceback" not in err
    _, _, err = run(plugin, text, *flags, "--traceback")
    assert "Traceback" in err and f'File "{plugin}", line {line}, in' in err


def test_a_fault_of_a_meaning_shows_its_line(load: Load) -> None:
    plugin = load("plug_fault", FAULTY)
    module = parse_module(EXP.replace("elementwise.exp", "plugfault.faulty"))
    line = 1 + next(i for i, line in enumerate(FAULTY.splitlines()) if line.endswith("# evaluate"))
    with pytest.raises(Error, match=f"{plugin}:{line}:1: note: raised from here"):
        Interpreter(module).call("main", [np.zeros(40, np.float32)])


def test_an_op_with_a_region_has_meaning_lowering_derivative_and_rules(load: Load, run: Run) -> None:
    plugin = load("repeat")
    text = (DOCUMENTED / "repeat.mlir").read_text()
    module = parse_module(text)
    assert print_op(parse_module(print_op(module))) == print_op(module)
    assert print_op(parse_module(print_op(module, generic=True))) == print_op(module)
    x = np.array([0.5, 1.0, 2.0, 9.0], np.float32)
    first = (x + 1) / 2
    expected = (first + x / first) / 2
    np.testing.assert_allclose(Interpreter(module).call("main", [x])[0], expected, rtol=1e-6)
    for device in ag.devices():
        found = compile_function(module, device=device).run([x])
        np.testing.assert_allclose(np.asarray(found[0]), expected, rtol=1e-6)
    double = parse_module(text.replace("f32", "f64"))
    wide = x.astype(np.float64)
    PassManager.parse("autodiff").run(double)
    machine = Interpreter(double)
    (_, gradient), step = machine.call("main_vjp", [wide, np.ones(4)]), 1e-6
    (high,), (low,) = (machine.call("main", [wide + s]) for s in (step, -step))
    np.testing.assert_allclose(gradient, (high - low) / (2 * step), rtol=1e-8)
    status, out, _ = run(plugin, text.replace("count = 2", "count = 0"), "--canonicalize")
    assert status == 0 and "repeat.times" not in out and "return %a" in out
    status, _, err = run(plugin, text.replace("count = 2", "count = -1"))
    assert status == 1 and "'repeat.times' op needs a count of 0 or more, got -1" in err


LOWERED = '''
from dataclasses import dataclass
from typing import ClassVar

from nablair.ir.builders.scalar import ScalarBuilder
from nablair.ir.definition import FLOAT, RECURSIVE_EFFECTS, TERMINATOR, Op, integer, operand, region, result
from nablair.ir.dialect import Dialect, register
from nablair.ir.dialects import scf
from nablair.passes.manager import Pass

register(Dialect("plugloop", "loop", ops=__name__))


class Yield(Op):
    name = "plugloop.yield"
    traits = frozenset({TERMINATOR})
    value = operand(FLOAT)
    assembly = "$value attr-dict `:` type($value)"


class Power(Op):
    """x after `count` trips through the body."""

    name = "plugloop.power"
    traits = frozenset({RECURSIVE_EFFECTS})
    x = operand(FLOAT)
    count = integer()
    body = region()
    result = result(FLOAT)
    assembly = "$x $body attr-dict `:` type($result)"

    def infer(self):
        return [self.x.type]


@dataclass
class Lower(Pass):
    """Make loops of powers."""

    name: ClassVar[str] = "lower-plugloop"

    def run(self, op):
        for found in list(op.walk()):
            if isinstance(found, Power):
                b = ScalarBuilder(before=found, location=found.location)
                zero, one, end = map(b.index_constant, (0, 1, found.count))
                loop = scf.For.build(b, zero, end, one, [found.x])
                table = {found.body.block.arguments[0]: loop.carried[0]}
                with b.at(loop.body.block):
                    for inner in found.body.block:
                        if inner is not found.body.block.terminator:
                            b.insert(inner.clone(table))
                    (value,) = found.body.block.terminator.operands
                    b.create(scf.Yield, [table.get(value, value)])
                found.replace_by(list(loop.results))
'''
POWER = """func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = plugloop.power %0 {
    ^bb0(%v: f32):
      %2 = arith.mulf %v, %v : f32
      plugloop.yield %2 : f32
    } {count = 3} : f32
    memref.store %1, %y[%i] : memref<8xf32>
  }
  return
}
"""


def test_a_region_op_at_the_loop_level_is_lowered_by_a_pass(load: Load, run: Run) -> None:
    plugin = load("plug_loop", LOWERED)
    status, out, err = run(plugin, POWER, "-p", "lower-plugloop,canonicalize")
    assert (status, err) == (0, "") and "plugloop" not in out
    x, y = np.linspace(-1, 1, 8, dtype=np.float32), np.zeros(8, np.float32)
    Interpreter(parse_module(out)).call("main", [x, y])
    np.testing.assert_allclose(y, x**8, rtol=1e-5)
    status, text, err = run(plugin, POWER, "-p", "lower-plugloop", "--emit=llvm")
    assert (status, err) == (0, "") and "fmul float" in text
    assert "no emission for 'plugloop.power'" in run(plugin, POWER, "--emit=llvm")[2]


RULES = """
from nablair.ir.dialect import Dialect, register
from nablair.ir.dialects import elementwise
from nablair.ir.rewrite_rules import captures, table, term

register(Dialect("plugrules", "any", ops=__name__, rewrites=__name__))

(x,) = captures("x")
sin, neg = term(elementwise.Sin), term(elementwise.Neg)
RULES = table((sin(neg(x)), neg(sin(x)), "odd"),)
"""


def test_an_op_that_is_defined_anew_is_read_as_the_new_one(load: Load) -> None:
    load("plug_unlisted", UNLISTED)
    text = EXP.replace("elementwise.exp", "plugnowhere.same")
    for form in (text, print_op(parse_module(text), generic=True)):
        old = OPS["plugnowhere.same"]
        assert any(type(op) is old for op in parse_module(form).walk())
        anew: dict[str, Any] = {"__name__": "nablair_plugin_anew"}
        exec(UNLISTED, anew)
        assert anew["Same"] is not old and any(type(op) is anew["Same"] for op in parse_module(form).walk())


ANEW = """
from nablair.ir.dialects.elementwise.family import UnaryFloat
from nablair.ir.interfaces import HasPartials

class Scaled(UnaryFloat, HasPartials):
    name = "plugscaled.scaled"
    def formula(self, x):
        return FACTOR * x
    def scalar(self, b, *operands):
        return b.mul(operands[0], FACTOR)
    def partials(self, b):
        yield lambda t: b.mul(t, FACTOR)
"""


@pytest.mark.parametrize("device", ag.devices())
def test_nothing_of_an_op_that_is_defined_anew_stays(load: Load, device: str) -> None:
    """As when a cell of a notebook is run again: whatever was compiled with the former class is not used any more."""
    load("plug_unlisted", UNLISTED)

    def f(v: ag.Tensor) -> ag.Tensor:
        return ag.sum(emit("plugscaled.scaled", v) * 2.0)

    x = ag.asarray(np.ones(3, np.float32), device=device)
    jitted, gradient = ag.jit(f), ag.jit(ag.grad(f))
    for factor in (2.0, 3.0, 5.0):
        exec(ANEW.replace("FACTOR", str(factor)), {"__name__": "nablair_plugin_anew"})
        assert float(f(x)) == float(jitted(x)) == float(ag.jit(f)(x)) == 6 * factor
        leaf = ag.asarray(x, copy=True)
        leaf.requires_grad = True
        f(leaf).backward()
        for found in (gradient(x), ag.grad(f)(x), leaf.grad):
            np.testing.assert_array_equal(np.asarray(found), np.full(3, 2 * factor, np.float32))


def test_rules_for_an_op_of_ours_stand_beside_ours(load: Load, run: Run) -> None:
    text = EXP.replace("%0 = elementwise.exp %x", "%n = elementwise.neg %x : tensor<40xf32>\n  %0 = elementwise.sin %n")
    plugin = load("plug_rules", RULES)
    _, out, _ = run(plugin, text, "--canonicalize")
    assert out.index("elementwise.sin %x") < out.index("elementwise.neg")
    shown = run(plugin, text, "--list-patterns")[1]
    assert "elementwise.sin: odd" in shown and "-x * -y -> x * y" in shown
