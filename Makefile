# Every target builds what it needs in .venv; a second run installs nothing unless the packaging changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
# A process for each processor; each takes tests of the others when it has done its own.
PYTEST := -m pytest -n auto --dist worksteal
# How many times as many cases `make fuzz` draws.
FUZZ ?= 20

# What pip installs beside the package for each purpose.
EXTRAS_demo := demo,opencl
EXTRAS_test := test,demo
EXTRAS_lint := test,demo,dev
EXTRAS_bench := bench,opencl

.PHONY: help demo test fuzz lint ruff pyright import-linter generated stubs bench clean

help:
	@echo "make demo   train a digit classifier (examples/digits.py)"
	@echo "make test   run the test-suite"
	@echo "make fuzz   run the tests that draw their cases, with FUZZ (20) times as many"
	@echo "make lint   ruff, pyright, import-linter, and whether the generated stubs are current"
	@echo "make stubs  write the stubs that follow from op classes"
	@echo "make bench  run benchmarks/"
	@echo "make clean  remove .venv and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS_$*)]'
	@touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/python examples/digits.py

test: $(VENV)/.installed-test
	$(BIN)/python $(PYTEST) $(PYTEST_ARGS)

fuzz: $(VENV)/.installed-test
	NABLAIR_FUZZ=$(FUZZ) $(BIN)/python $(PYTEST) -m fuzz $(PYTEST_ARGS)

lint: ruff pyright import-linter generated

ruff: $(VENV)/.installed-lint
	$(BIN)/ruff check .

pyright: $(VENV)/.installed-lint
	$(BIN)/pyright

import-linter: $(VENV)/.installed-lint
	$(BIN)/lint-imports

generated: $(VENV)/.installed-lint
	$(BIN)/python -m nablair.tools.stubs --check

stubs: $(VENV)/.installed-lint
	$(BIN)/python -m nablair.tools.stubs

bench: $(VENV)/.installed-bench
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
