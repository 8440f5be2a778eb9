"""The examples, shortened: what they learn, and that every IR text they print parses back to the same text."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.verifier import verify

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def accuracy(text: str) -> float:
    found = re.search(r"^accuracy ([\d.]+)$", text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def test_digits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plot, folder = tmp_path / "loss.png", tmp_path / "dumps"
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "15", "--plot", str(plot), "--dumps", str(folder)])
    assert example("digits").main() == 0
    text = capsys.readouterr().out
    assert accuracy(text) >= 0.95
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert len(text.splitlines()) <= 50 and max(map(len, text.splitlines())) <= 200
    for level in ("trace", "tensor", "kernel", "loop"):
        dump = (folder / f"loss.{level}.mlir").read_text()
        module = parse_module(dump)
        verify(module)
        assert print_op(module).rstrip() == dump.rstrip(), level
        row = re.search(rf"^  {level} +(\d+) *(\d*)$", text, re.MULTILINE)
        assert row is not None and int(row[1]) == sum(1 for _ in module.walk())
        if level == "kernel":
            assert int(row[2]) == dump.count("kernel.launch") > 0
    assert text.count("kernel.launch") == 1 and str(folder) in text
    assert "define" in (folder / "fused.ll").read_text() and "__kernel" in (folder / "fused.cl").read_text()
    assert ".visible .entry" in (folder / "fused.ptx").read_text()
    assert re.search(r"^cpu +reference", text, re.MULTILINE) and re.search(r"^ptx-sim +agrees", text, re.MULTILINE)
    assert all(path.read_text().endswith("\n") for path in folder.iterdir())


def test_devices_that_disagree_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    digits = example("digits")
    monkeypatch.setattr(digits, "TOLERANCE", -1.0)
    paths = ["--dumps", str(tmp_path), "--plot", str(tmp_path / "loss.png")]
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1", *paths])
    assert digits.main() == 1


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    digits = example("digits")
    monkeypatch.setattr(digits, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["digits.py"])
    assert digits.main() == 1
    assert capsys.readouterr().err == "digits.py needs tqdm and matplotlib: pip install '.[demo]'\n"


def test_xor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["xor.py", "--steps", "200"])
    example("xor").main()
    assert accuracy(capsys.readouterr().out) == 1.0
