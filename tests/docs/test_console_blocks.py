"""Every `console` block in README.md, CONTRIBUTING.md and docs/ shows what its commands print.

    $ ir-opt docs/programs/chain.mlir -p kernel
    module {
    ..

A command runs in a shell at the root of the repository, with the tools on its path.  After a change of what they print,
`python tests/docs/test_console_blocks.py` writes the blocks anew; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def output(command: str) -> str:
    """What a command prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120
    )
    assert not done.stderr, f"{command}: {done.stderr}"
    return done.stdout.rstrip("\n") + "\n"


def renewed(block: str) -> str:
    """A block with what its commands print now."""
    return "".join(f"{line}\n{output(line[2:])}" for line in block.splitlines() if line.startswith("$ "))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_console_blocks_are_true(path: Path) -> None:
    for block in BLOCK.findall(path.read_text(encoding="utf-8")):
        assert block == renewed(block)


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(
            BLOCK.sub(lambda found: renewed(found[0]), document.read_text(encoding="utf-8")), encoding="utf-8"
        )
