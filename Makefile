# make audit: set everything up and run the main job.   make test: set everything up and run the tests.
PYTHON ?= python3
CORPUS ?= snippets
PROCESSES ?= 2
BIN := .venv/bin

.PHONY: setup audit test test-all lint format bench bench-peers docs sbom audit-dependencies test-minimal

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

audit: setup
	$(BIN)/assay audit --corpus $(CORPUS)

test: setup
	$(BIN)/pytest --numprocesses $(PROCESSES) --dist worksteal -m "not slow and not gpu and not cluster"

test-all: .venv/cluster-ready
	$(BIN)/pytest

.venv/cluster-ready: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cluster]"
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# bench and bench-peers write their parts of docs/performance.md.
bench: setup
	$(BIN)/python -m benchmarks

bench-peers: .venv-peers/ready .venv-ferret/ready
	.venv-peers/bin/python -W ignore -m benchmarks.beside

.venv-peers/ready: pyproject.toml constraints.txt benchmarks/peers.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[hf]" -r benchmarks/peers.txt
	.venv-peers/bin/pip install --quiet --disable-pip-version-check --no-deps kronfluence==1.0.1
	touch $@

.venv-ferret/ready: constraints.txt benchmarks/ferret.txt
	test -x .venv-ferret/bin/python || $(PYTHON) -m venv .venv-ferret
	.venv-ferret/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/ferret.txt
	touch $@

# Warnings are errors. GALLERY=1 make docs also runs the examples, which takes some minutes.
docs: .venv/docs-ready
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -d docs/_build/doctrees docs docs/_build/html

.venv/docs-ready: .venv/ready pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# What is installed, as CycloneDX; and which of it has known faults, which asks a service on
# the internet and fails where that cannot be asked.
sbom: setup .venv-release/ready
	mkdir -p dist
	.venv-release/bin/cyclonedx-py environment $(BIN)/python --output-file dist/sbom.json

audit-dependencies: setup .venv-release/ready
	$(BIN)/pip list --format=freeze --exclude-editable --disable-pip-version-check | sed 's/+[^+]*$$//' > .venv-release/installed.txt
	.venv-release/bin/pip-audit --strict --no-deps --disable-pip --requirement .venv-release/installed.txt || { echo \
	"Faults are listed above; or the service that knows them could not be asked, and then nothing is known."; exit 1; }

.venv-release/ready:
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom pip-audit
	touch $@

# A part of the tests with the lowest versions that pyproject.toml allows.
MINIMAL := tests/metrics/test_agreement.py tests/metrics/test_comparisons.py tests/metrics/test_divergence.py \
	tests/metrics/test_erasure.py tests/metrics/test_intervals.py tests/metrics/test_overlap.py tests/metrics/test_paired.py tests/metrics/test_shares.py \
	tests/data/test_files.py tests/data/test_sources.py tests/data/test_subsets.py tests/data/test_text.py \
	tests/models/test_encoders.py tests/models/test_shapes.py tests/models/test_training.py tests/report/test_page.py \
	tests/study/test_folder.py tests/study/test_plans.py tests/test_cli.py

test-minimal: .venv-minimal/ready
	OMP_NUM_THREADS=1 .venv-minimal/bin/pytest --hypothesis-profile=ci -m "not slow and not gpu and not cluster and not browser and not data" $(MINIMAL)

.venv-minimal/ready: pyproject.toml constraints-minimal.txt
	test -x .venv-minimal/bin/python || $(PYTHON) -m venv .venv-minimal
	.venv-minimal/bin/pip install --quiet --disable-pip-version-check -c constraints-minimal.txt -e . beartype httpx hypothesis pytest
	touch $@
