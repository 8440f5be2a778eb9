"""Package discovery: every folder with an `__init__.py` below the root is a sub-package of `nablair`.

pyproject.toml can list packages or find them, but it cannot find them *under a prefix*, and the root of the
repository is itself the package `nablair`. Deriving the list here means that a new room needs no edit anywhere.
"""

from setuptools import find_packages, setup

NOT_SHIPPED = ("tests", "tests.*", "examples", "examples.*", "benchmarks", "benchmarks.*", "docs", "docs.*", "build*")

setup(
    packages=["nablair", *(f"nablair.{name}" for name in find_packages(".", exclude=NOT_SHIPPED))],
    script_name="setup.py",  # under pip it would be pip's own script, and this file would be shipped as a module
)
