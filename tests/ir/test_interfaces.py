"""Interfaces: what an op states, by its bases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nablair
from nablair.ir import interfaces
from nablair.ir.definition import OPS, Op, operand, result
from nablair.ir.dialect import DIALECTS, at_level
from nablair.ir.interfaces import Interface
from nablair.ir.registry import load_dialect
from nablair.ir.support.tensor_op import TensorOp

ROOT = Path(nablair.__file__).parent
INTERFACES = [c for c in vars(interfaces).values() if isinstance(c, type) and Interface in c.__bases__]
MEMBERS = {name for c in INTERFACES for name in c.members}


def test_the_interfaces_are_mixins_without_state() -> None:
    assert len(INTERFACES) > 8
    for interface in INTERFACES:
        assert vars(interface)["__slots__"] == () and interface.__doc__, interface


@pytest.mark.parametrize("interface", [c for c in INTERFACES if c.members], ids=lambda c: c.__name__)
def test_a_class_that_lacks_a_member_of_an_interface_is_refused(interface: type[Interface]) -> None:
    body = {"name": "interfacetest.lacking", "x": operand(), "result": result()}
    with pytest.raises(TypeError, match=rf"interfacetest.lacking does not define {interface.__name__}\.") as found:
        type("Lacking", (Op, interface), dict(body))
    assert all(f"{interface.__name__}.{name}" in str(found.value) for name in interface.members)
    assert "interfacetest.lacking" not in OPS
    members = {name: lambda self: None for name in interface.members}
    type("Family", (Op, interface), {})  # a family without a name may leave members to its ops
    try:
        assert issubclass(type("Whole", (Op, interface), body | members), interface)
    finally:
        OPS.pop("interfacetest.lacking", None)


def families() -> list[type[Op]]:
    """The nameless bases that leave members to their ops."""
    for dialect in list(DIALECTS):
        load_dialect(dialect)
    found: dict[type[Op], None] = {}
    pending: list[type[Op]] = [Op]
    while pending:
        pending += (subclasses := [c for c in pending.pop().__subclasses__() if c not in found])
        found.update(dict.fromkeys(subclasses))
    return [c for c in found if c.members and c.__module__.startswith("nablair.")]


def test_a_class_that_lacks_a_member_of_its_family_is_refused() -> None:
    assert len(families()) > 8
    for family in families():
        asked = rf"interfacetest\.lacking does not define .*{family.__name__}\.{family.members[0]}"
        with pytest.raises(TypeError, match=asked):
            type("Lacking", (family,), {"name": "interfacetest.lacking"})


def test_an_op_that_defines_a_member_states_the_interface() -> None:
    """A member alone would never be asked for."""
    for dialect in list(DIALECTS):
        load_dialect(dialect)
    ours = [c for c in OPS.values() if c.__module__.startswith("nablair.")]
    assert len(ours) > 200
    for interface in INTERFACES:
        for cls in ours:
            defined = [n for n in interface.members if callable(getattr(cls, n, None))]
            assert not defined or issubclass(cls, interface), f"{cls.name} defines {defined} of {interface.__name__}"


def test_an_op_has_one_kernel_form_and_one_derivative_at_most() -> None:
    forms = (interfaces.PointForm, interfaces.ViewForm, interfaces.ScatterForm, interfaces.Expands)
    with_masks = (interfaces.IsLinear, interfaces.HasVjp)
    rules = (*with_masks, interfaces.HasPartials, interfaces.HasMaskedVjp, interfaces.NoDerivative)
    for dialect in at_level("tensor"):
        dialect.load()
    ours = [c for c in OPS.values() if issubclass(c, TensorOp) and c.__module__.startswith("nablair.")]
    assert len(ours) > 70
    for cls in ours:
        # A constant is an array as it is, an extent an index value.
        expected = 0 if cls.name in ("array.constant", "array.dim") else 1
        assert sum(issubclass(cls, form) for form in forms) == expected, cls.name
        assert sum(issubclass(cls, rule) for rule in rules) <= 1, cls.name
        assert not issubclass(cls, interfaces.MovesMasks) or issubclass(cls, with_masks), cls.name
        assert issubclass(cls, (*rules, interfaces.Expands)), cls.name


def asked_by_name(path: Path) -> Iterator[str]:
    """Where a file asks an object for a member of an interface by its name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id in ("getattr", "hasattr") and isinstance(node.args[1], ast.Constant):
            if node.args[1].value in MEMBERS | {"implied_terminator", "outer_properties", "closed_regions", "traits"}:
                yield f"{path}:{node.lineno}"


def test_no_code_asks_an_op_for_a_capability_by_name(tmp_path: Path) -> None:
    asking = tmp_path / "asking.py"
    asking.write_text("def f(op): return hasattr(op, 'expand') and getattr(op, 'name')")
    assert len(list(asked_by_name(asking))) == 1
    rooms = ("ir", "passes", "lowering", "autograd", "tools", "runtime")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 200
    assert [site for path in files for site in asked_by_name(path)] == []
