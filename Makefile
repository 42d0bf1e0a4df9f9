# Everyday commands. Each installs what it needs: a machine with Python 3.11+, make and git is enough.
#
#   make demo    one prompt at three lengths and a translation, with real models
#   make test    lint, types, tests         make check   lint and types only
#   make bench   speed, and the share of texts that fit, compared with plain generate
#   make docs    update what the docs quote from code and results; build the site in build/site
#   make regression   compare texts, reports and losses with the recorded ones (minutes)
#   make wheel   build the wheel and run the demo with it, without PyTorch     make clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The PyTorch to install. Without a GPU, pip options such as an index of CPU builds go into TORCH_OPTIONS.
TORCH ?= $(shell nvidia-smi >/dev/null 2>&1 && echo torch || echo torch==2.13.0)
TORCH_OPTIONS ?=

.PHONY: help demo test check bench docs regression wheel clean setup
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -8

setup: $(VENV)/.ready

# .base installs what the program needs; .ready adds PyTorch and the tools for development.
$(VENV)/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Lengthwise needs Python 3.11 or newer; {sys.executable} is {v[0]}.{v[1]}. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@test -x $(BIN)/python || { echo "making a Python environment in $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "installing lengthwise and what it needs (a minute or two) ..."
	@$(BIN)/pip install --quiet --editable '.[files,serve]'
	@touch $@

$(VENV)/.ready: $(VENV)/.base
	@$(BIN)/python -c 'import torch' 2>/dev/null || { echo "installing PyTorch (a large download: minutes) ..."; $(BIN)/pip install --quiet $(TORCH_OPTIONS) "$(TORCH)"; }
	@echo "installing the tools for tests, scores and plots (a minute or two) ..."
	@$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	@echo "installing the tools for the site ..."
	@$(BIN)/pip install --quiet --editable '.[docs]'
	@touch $@

demo: $(VENV)/.base
	@echo "writing at three lengths, then translating (the first time, SmolLM2 is fetched: 93 MB) ..."
	@$(BIN)/lengthwise demo

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: check
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations=10

bench: setup
	@$(BIN)/python bench/fit.py
	@$(BIN)/python bench/obey.py

docs: $(VENV)/.docs
	@$(BIN)/python docs/results.py
	@$(BIN)/python docs/make.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "see build/site/index.html"

regression: setup
	@$(BIN)/python tests/regression/record.py --check

wheel: setup
	@rm -rf dist build/clean
	@$(BIN)/pip install --quiet build && $(BIN)/python -m build --quiet --wheel --outdir dist
	@$(PYTHON) -m venv build/clean
	@build/clean/bin/pip install --quiet dist/*.whl
	@cd build && clean/bin/lengthwise --version && clean/bin/lengthwise translate "Save the file." --to it --length 1.0x && clean/bin/lengthwise demo

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
