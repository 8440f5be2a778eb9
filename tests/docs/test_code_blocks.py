"""Every Python code block in README.md and docs/ runs and prints what it says.

The blocks of one document share a namespace and run in order. A block that cannot run here is preceded by
`<!-- skip: next "why" -->`.
"""

from pathlib import Path
from unittest import SkipTest

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_run(path: Path) -> None:
    document = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()]).parse(path)
    for example in document.examples():
        try:
            example.evaluate()
        except SkipTest:
            continue
