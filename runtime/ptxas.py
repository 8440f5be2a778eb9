"""NVIDIA's assembler: find it, run it on PTX text, and read what it says about registers, spills and memory.

It is looked for on PATH, in CUDA_HOME or CUDA_PATH, and in the wheel `nvidia-cuda-nvcc` (`nvidia/cu13/bin/ptxas`),
none of which is needed to run PTX: the driver has an assembler of its own. Here it proves that text is valid without a
GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..ir.diagnostics import DeviceError, LoweringError

_WHEELS = ("nvidia/cu13/bin", "nvidia/cuda_nvcc/bin")
_TIMEOUT_SECONDS = 300
_KERNEL = re.compile(r"Compiling entry function '([\w$.]+)'(.*?)(?=Compiling entry function|\Z)", re.S)
_ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*:\s*(.*)")


@dataclass(frozen=True)
class KernelResources:
    """What one thread (registers, bytes of local memory, of which spills) and one block (bytes, barriers) take."""

    registers: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    constant_bytes: int
    barriers: int

    @property
    def spills(self) -> bool:
        """Whether registers did not suffice."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)


@dataclass(frozen=True)
class Assembly:
    """Machine code (a cubin), the resources of each kernel by name, and the assembler's own words."""

    cubin: bytes
    kernels: dict[str, KernelResources]
    log: str


def find_ptxas() -> Path | None:
    """Path of ptxas, or None where there is none."""
    name = "ptxas.exe" if os.name == "nt" else "ptxas"
    on_path = shutil.which("ptxas")
    places = [Path(on_path)] if on_path else []
    places += [Path(home, "bin", name) for home in map(os.environ.get, ("CUDA_HOME", "CUDA_PATH")) if home]
    places += [Path(folder, wheel, name) for folder in sys.path if folder for wheel in _WHEELS]
    return next((place for place in places if place.is_file() and os.access(place, os.X_OK)), None)


def assemble(ptx: str, arch: str = "sm_80", *, tool: Path | None = None) -> Assembly:
    """Assemble PTX text for an architecture such as "sm_80" or "sm_90a".

    Raises DeviceError where there is no ptxas, and LoweringError with each complaint and the line that it means where
    ptxas refuses the text.
    """
    tool = tool or find_ptxas()
    if tool is None:
        raise DeviceError(
            "no ptxas on PATH, in CUDA_HOME or among the installed packages; `pip install nvidia-cuda-nvcc` has it"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "module.ptx"), Path(folder, "module.cubin")
        source.write_text(ptx, encoding="utf-8")
        command = [str(tool), "-v", f"-arch={arch}", "-o", str(target), str(source)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise DeviceError(f"cannot run {tool}: {fault}") from None
        log = (run.stdout + run.stderr).replace(str(source), "module.ptx")
        if run.returncode:
            raise LoweringError(_refusal(ptx, arch, log))
        return Assembly(target.read_bytes(), parse_resources(log), log)


def parse_resources(log: str) -> dict[str, KernelResources]:
    """Resources of each kernel from the output of `ptxas -v`."""
    kernels = {}
    for name, text in _KERNEL.findall(log):

        def number(pattern: str, text: str = text) -> int:
            match = re.search(pattern, text)
            return int(match[1]) if match else 0

        kernels[name] = KernelResources(
            registers=number(r"Used (\d+) registers"),
            local_bytes=number(r"(\d+) bytes stack frame"),
            spill_store_bytes=number(r"(\d+) bytes spill stores"),
            spill_load_bytes=number(r"(\d+) bytes spill loads"),
            shared_bytes=number(r"(\d+) bytes smem"),
            constant_bytes=sum(int(size) for size in re.findall(r"(\d+) bytes cmem", text)),
            barriers=number(r"used (\d+) barriers"),
        )
    return kernels


def _refusal(ptx: str, arch: str, log: str) -> str:
    lines = ptx.splitlines()
    complaints = []
    for number, message in _ERROR.findall(log):
        at = int(number)
        text = lines[at - 1].strip() if 0 < at <= len(lines) else ""
        complaints.append(f"line {at}: {message.strip()}: `{text}`")
    return f"ptxas refuses this PTX for {arch}: " + ("; ".join(complaints) or log.strip())
