# make audit: set everything up and run the main job.   make test: set everything up and run the tests.
PYTHON ?= python3
CORPUS ?= snippets
PROCESSES ?= 2
BIN := .venv/bin

.PHONY: setup audit test test-all lint format bench

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

audit: setup
	$(BIN)/assay audit --corpus $(CORPUS)

test: setup
	$(BIN)/pytest --numprocesses $(PROCESSES) --dist worksteal -m "not slow and not gpu and not cluster"

test-all: setup
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m benchmarks
