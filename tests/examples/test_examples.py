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
DUMP = re.compile(r"^// ==== loss: (\w+) level ====\n(.*?)\n(?=\n// ====|\Z)", re.MULTILINE | re.DOTALL)


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
    plot = tmp_path / "loss.png"
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "15", "--plot", str(plot)])
    assert example("digits").main() == 0
    text = capsys.readouterr().out
    assert accuracy(text) >= 0.95
    assert plot.read_bytes().startswith(b"\x89PNG")
    dumps = dict(DUMP.findall(text))
    assert list(dumps) == ["trace", "tensor", "kernel", "loop"]
    for level, dump in dumps.items():
        module = parse_module(dump)
        verify(module)
        assert print_op(module).rstrip() == dump.rstrip(), level
    assert "define" in text and "__kernel" in text and ".visible .entry" in text
    assert re.search(r"^ptx-sim +agrees", text, re.MULTILINE)


def test_devices_that_disagree_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    digits = example("digits")
    monkeypatch.setattr(digits, "TOLERANCE", -1.0)
    arguments = ["digits.py", "--epochs", "1", "--no-dumps", "--plot", str(tmp_path / "loss.png")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert digits.main() == 1


def test_xor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["xor.py", "--steps", "200"])
    example("xor").main()
    assert accuracy(capsys.readouterr().out) == 1.0
