"""The pass manager: pipeline text, options, nesting, errors, restoring the input, instrumentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

from nablair.ir.attributes import StringAttr
from nablair.ir.definition import NO_TERMINATOR, Op, region
from nablair.ir.diagnostics import LoweringError, PassError, VerifyError
from nablair.ir.operations import Block, Operation, Region
from nablair.passes.manager import Instrumentation, Nest, Pass, PassManager


class Holder(Op):
    """An op with one region, as a stand-in for modules and functions."""

    traits = frozenset({NO_TERMINATOR})

    body = region()


class ModuleOp(Holder):
    name = "test_manager.module"


class FunctionOp(Holder):
    name = "test_manager.func"


class Leaf(Op):
    name = "test_manager.leaf"

    def verify_(self) -> None:
        if "bad" in self.attributes:
            raise self.error("must not be bad")


@dataclass
class Mark(Pass):
    """Set an attribute on every leaf."""

    name: ClassVar = "test-mark"
    value: str = "marked"
    times: int = 1
    deep: bool = False
    scale: float | None = None
    sizes: tuple[int, ...] = ()
    ops: tuple[str, ...] = ()
    order: Literal["up", "down"] = "up"

    def run(self, op: Operation) -> None:
        for inner in list(op.walk()):
            if inner.name == "test_manager.leaf":
                inner.attributes["mark"] = StringAttr(self.value)
                self.count("marked")


@dataclass
class OnFunctions(Mark):
    name: ClassVar = "test-on-functions"
    anchor: ClassVar = "test_manager.func"


@dataclass
class Fail(Pass):
    """Damage the IR, then raise."""

    name: ClassVar = "test-fail"
    kind: str = "ValueError"

    def run(self, op: Operation) -> None:
        for inner in list(op.walk())[1:]:
            inner.attributes["damaged"] = StringAttr("yes")
        op.regions[0].entry.append(Leaf())
        if self.kind == "LoweringError":
            raise LoweringError("no such instruction")
        raise ValueError("boom")


@dataclass
class Break(Pass):
    """Leave invalid IR."""

    name: ClassVar = "test-break"

    def run(self, op: Operation) -> None:
        for inner in op.walk():
            if isinstance(inner, Leaf):
                inner.attributes["bad"] = StringAttr("yes")


def module(functions: int = 2) -> Operation:
    """A module of functions with one leaf each."""
    outer = Block()
    for _ in range(functions):
        block = Block()
        block.append(Leaf())
        outer.append(FunctionOp(regions=[Region([block])]))
    return ModuleOp(regions=[Region([outer])])


def manager(text: str, **settings: object) -> PassManager:
    made = PassManager.parse(text, verify_each=False, **settings)
    made.anchor = "test_manager.module"
    return made


def marks(op: Operation) -> list[str]:
    return [str(inner.attributes.get("mark")) for inner in op.walk() if isinstance(inner, Leaf)]


def test_options_are_read_from_text_by_their_types():
    text = "test-mark{value='a b' times=0x10 deep scale=2.5 sizes=1,-2 ops=x.y,z order=down}"
    (mark,) = PassManager.parse(text).passes
    assert mark == Mark("a b", 16, True, 2.5, (1, -2), ("x.y", "z"), "down")


def test_text_round_trips():
    text = (
        'builtin.module(test-mark,a.b(test-mark{value=x deep=true},c.d(test-mark{sizes=1,2})),test-mark{value="a b"})'
    )
    assert str(PassManager.parse(text)) == text


def test_an_outer_builtin_module_is_optional():
    assert str(PassManager.parse(" test-mark , test-mark ")) == str(
        PassManager.parse("builtin.module(test-mark,test-mark)")
    )
    assert PassManager.parse("").passes == []


def test_nesting_a_thousand_deep():
    made = PassManager.parse("a.b(" * 5000 + "test-mark" + ")" * 5000)
    assert sum(1 for _ in made.all_passes()) == 1


def test_a_named_pipeline_expands(monkeypatch: pytest.MonkeyPatch):
    from nablair.passes import pipelines

    monkeypatch.setitem(pipelines.PIPELINES, "twice", "test-mark,test-mark")
    assert str(PassManager.parse("twice,test-mark")) == "builtin.module(test-mark,test-mark,test-mark)"
    monkeypatch.setitem(pipelines.PIPELINES, "twice", "test-mark,twice")
    with pytest.raises(PassError, match="'twice' contains itself"):
        PassManager.parse("twice")


def test_a_pass_is_registered_without_being_imported(monkeypatch: pytest.MonkeyPatch):
    from nablair.passes import registry

    monkeypatch.setitem(registry.PASSES, "test-lazy", "")  # taken out again after the test
    registry.register_pass("test-lazy", "no.such.module")
    assert "test-lazy" in registry.pass_names()
    with pytest.raises(ModuleNotFoundError, match="no"):
        registry.lookup("test-lazy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test-mrak", "unknown pass 'test-mrak'; did you mean 'test-mark'"),
        ("nothing-like-it", "known: .*canonicalize"),
        ("test-mark{tims=3}", "pass 'test-mark' has no option 'tims'; did you mean 'times'.* known: value, times"),
        ("test-mark{times=x}", "option 'times' of pass 'test-mark' takes an integer; got 'x'"),
        ("test-mark{deep=maybe}", "takes true or false; got 'maybe'"),
        ("test-mark{order=left}", "is one of up, down; got 'left'"),
        ("test-mark{times=1", "expected '}' to close the options"),
        ("a.b(test-mark", r"expected '\)' to close 'a.b\(' at column 14"),
        ("test-mark)", r"expected ',' or the end, found '\)' at column 10"),
        ("test-mark,", "expected the name of a pass at column 11"),
    ],
)
def test_malformed_text_is_explained(text: str, message: str):
    with pytest.raises(PassError, match=message):
        PassManager.parse(text)


def test_passes_run_in_place_and_count():
    op = module()
    made = manager("test-mark{value=x}")
    made.run(op)
    assert marks(op) == ['"x"', '"x"']
    assert next(made.all_passes()).statistics == {"marked": 2}


def test_a_pass_runs_on_the_ops_that_it_is_anchored_to():
    op = module()
    seen: list[str] = []

    class Watch(Instrumentation):
        def before(self, pass_: Pass, op: Operation) -> None:
            seen.append(op.name)

    manager("test-on-functions", instrumentations=[Watch()]).run(op)
    assert seen == ["test_manager.func"] * 2
    seen.clear()
    manager("test_manager.func(test-mark),test_manager.none(test-fail)", instrumentations=[Watch()]).run(op)
    assert seen == ["test_manager.func"] * 2


def test_a_pass_on_the_wrong_op_is_refused():
    inner = Nest("test_manager.func", [Nest("test_manager.leaf", [OnFunctions()])])
    with pytest.raises(PassError, match=r"'test-on-functions' runs on test_manager.func, not on test_manager.leaf"):
        PassManager([inner], "test_manager.module", verify_each=False).run(module())


def test_a_failing_pass_is_named_and_the_input_restored():
    op = module()
    with pytest.raises(PassError, match=r"pass 'test-fail' failed on test_manager.module: ValueError: boom") as caught:
        manager("test-mark,test-fail").run(op)
    assert isinstance(caught.value.__cause__, ValueError)
    assert marks(op) == ["None", "None"]
    assert not any("damaged" in inner.attributes for inner in op.walk())
    assert all(inner.parent_op is not None for inner in list(op.walk())[1:])


def test_an_error_of_ours_keeps_its_class_and_names_the_pass():
    with pytest.raises(LoweringError, match="no such instruction") as caught:
        manager("test-fail{kind=LoweringError}").run(module())
    assert [n.message for n in caught.value.notes] == ["in pass 'test-fail{kind=LoweringError}'"]


def test_verify_each_names_the_pass_that_broke_the_ir():
    pytest.importorskip("nablair.ir.verifier")
    op = module()
    with pytest.raises(PassError, match=r"invalid after pass 'test-break': .*must not be bad") as caught:
        PassManager([Mark(), Break(), Mark()], "test_manager.module").run(op)
    assert isinstance(caught.value.__cause__, VerifyError)
    assert marks(op) == ["None", "None"]


def test_a_reproducer_holds_input_and_pipeline(tmp_path):
    pytest.importorskip("nablair.ir.printer")
    path = tmp_path / "crash.mlir"
    op = module()
    before = str(op)
    with pytest.raises(PassError) as caught:
        manager("test-mark,test-fail", reproducer=str(path)).run(op)
    text = path.read_text()
    assert "--pass-pipeline='test_manager.module(test-mark,test-fail)'" in text.splitlines()[0]
    assert "ValueError: boom" in text and before in text
    assert any(str(path) in n.message for n in caught.value.notes)
