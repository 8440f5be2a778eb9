"""Settings for the whole test-suite: reproducible examples, and OpenCL caches that outlive no run."""

import os
import shutil
import tempfile

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci")

# Read by pocl and pyopencl when they are first imported, so this stands before any test module.
_POCL_CACHE = tempfile.mkdtemp(prefix="nablair-pocl-")
os.environ["POCL_CACHE_DIR"] = _POCL_CACHE
os.environ["PYOPENCL_NO_CACHE"] = "1"


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_POCL_CACHE, ignore_errors=True)
