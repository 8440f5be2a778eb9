"""What is written from op classes: that it is current, and what a plugin gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nablair.tools import stubs

ROOT = Path(__file__).resolve().parents[2]


def test_it_is_current() -> None:
    """In a process of its own: ops that other tests define are none of ours."""
    command = [sys.executable, "-m", "nablair.tools.stubs", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_check_names_what_is_not_current(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stubs, "ROOT", tmp_path)
    monkeypatch.setattr(stubs, "WRITERS", {"a.pyi": lambda: "new", "b.pyi": lambda: "same"})
    (tmp_path / "a.pyi").write_text("old")
    (tmp_path / "b.pyi").write_text("same")
    assert stubs.main(["--check"]) == 1
    assert capsys.readouterr().err.split()[0] == "a.pyi"
    assert (tmp_path / "a.pyi").read_text() == "old"
    assert stubs.main([]) == 0
    assert (tmp_path / "a.pyi").read_text() == "new"
    assert stubs.main(["--check"]) == 0


def test_the_ops_of_a_plugin_have_stubs() -> None:
    command = [sys.executable, "-m", "nablair.tools.stubs", "--plugin", str(ROOT / "docs/programs/plugin.py")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "    def softsign(self, x: Value) -> Value:" in text
    assert "\ndef softsign(x: ArrayLike, /) -> Tensor:" in text
    assert "tanh" not in text
