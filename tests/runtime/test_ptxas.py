"""ptxas is found, its figures are read, and what it refuses is told with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from nablair.ir.diagnostics import DeviceError, LoweringError
from nablair.runtime.ptxas import assemble, find_ptxas, parse_resources

from .ptx_kernels import MODULES, kernel

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")

LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
    40 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 40 bytes cumulative stack size, 19456 bytes smem, 388 bytes cmem[0]
ptxas info    : Compiling entry function 'second' for 'sm_80'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 364 bytes cmem[0], 8 bytes cmem[2]
"""


def test_figures_are_read_per_kernel():
    kernels = parse_resources(LOG)
    first, second = kernels["first"], kernels["second"]
    assert (first.registers, first.local_bytes, first.spill_store_bytes, first.spill_load_bytes) == (255, 40, 24, 32)
    assert (first.shared_bytes, first.constant_bytes, first.barriers, first.spills) == (19456, 388, 1, True)
    assert (second.registers, second.shared_bytes, second.constant_bytes, second.spills) == (10, 0, 372, False)


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", MODULES)
def test_every_kernel_of_the_tests_assembles_without_spills(name, arch):
    assembly = assemble(MODULES[name], arch)
    assert assembly.cubin[:4] == b"\x7fELF"
    (resources,) = assembly.kernels.values()
    assert resources.registers > 0 and not resources.spills


@needs_ptxas
def test_shared_memory_is_reported():
    assert assemble(MODULES["tree"]).kernels["tree"].shared_bytes == 1024


@needs_ptxas
def test_refused_text_is_told_with_its_line():
    text = kernel("k", "u32 n", "    ld.param.u32 %r1, [n];\n    frobnicate.s32 %r1;\n    ret;")
    number = next(i for i, line in enumerate(text.splitlines(), 1) if "frobnicate" in line)
    with pytest.raises(LoweringError, match=rf"sm_80: line {number}: .*frobnicate.*`frobnicate.s32 %r1;`"):
        assemble(text)


@needs_ptxas
def test_an_unknown_architecture_is_told():
    with pytest.raises(LoweringError, match="sm_10"):
        assemble(MODULES["scale"], "sm_10")


def test_search_order_and_absence(monkeypatch, tmp_path):
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.path", [])
    assert find_ptxas() is None
    with pytest.raises(DeviceError, match="nvidia-cuda-nvcc"):
        assemble(MODULES["scale"])

    def tool(folder: str) -> Path:
        path = tmp_path / folder / "ptxas"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
        return path

    wheel = tool("site/nvidia/cu13/bin")
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    assert find_ptxas() == wheel
    home = tool("cuda/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert find_ptxas() == home
    on_path = tool("path")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_ptxas() == on_path
