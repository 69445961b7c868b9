# One word per job. Every target makes .venv and installs what it needs, once.
# Other versions: make test PYTHON=python3.13 VENV=.venv-newest CONSTRAINTS=constraints-newest.txt
PYTHON ?= python3
PEERS_PYTHON ?= python3.13
VENV = .venv
CONSTRAINTS = constraints.txt
EXTRAS = all,dev
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint $(CONSTRAINTS)
PINNED := pyproject.toml $(CONSTRAINTS)
WITHOUT_TORCH := shap,shapiq,polars,stream,skops,onnx,report,dev

.PHONY: help demo test test-slow test-processors test-engines test-newest test-lowest test-all attack mutants check dist bench bench-peers bench-page \
	reproduce docs clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 12

demo: $(VENV)/.base  ## explain a small model and draw demo.png (no torch needed)
	$(BIN)/weightedshap demo

test: $(VENV)/.full  ## the tests, without the slow ones
	$(BIN)/python -m pytest -n 2 -m "not slow and not attack"

test-slow: $(VENV)/.full  ## only the slow tests
	$(BIN)/python -m pytest -m slow || [ $$? -eq 5 ]  # 5: there are none

# OpenBLAS and numba choose their loops by the processor. Prescott and "generic" know no instructions
# that every processor has not had for twenty years; Haswell stands for AMD and for Intel without AVX-512.
NUMERICAL := tests/estimators tests/evaluation $(patsubst %,tests/games/test_%.py,anchored correction distilled gaussian \
	imputation network_batches neural_surrogate tree_surrogate) $(patsubst %,tests/trees/test_%.py,background ensembles \
	kernels many_players path_dependent quadrature)
test-processors: $(VENV)/.full  ## numerical tests with the loops that OpenBLAS and numba take on other processors
	OPENBLAS_CORETYPE=Haswell $(BIN)/python -m pytest -n 2 -q -m "not slow and not attack and not engines" $(NUMERICAL)
	OPENBLAS_CORETYPE=Prescott NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= \
		$(BIN)/python -m pytest -n 2 -q -m "not slow and not attack and not engines" $(NUMERICAL)

test-engines: $(VENV)/.engines  ## the tests on Dask, Ray and Spark (Java 17), each started once; none is skipped
	WEIGHTEDSHAP_ENGINES=1 $(BIN)/python -m pytest -m engines tests/engines

test-newest:  ## the tests on Python 3.13 (PEERS_PYTHON) with the newest of everything, without torch
	$(MAKE) --no-print-directory test PYTHON="$(PEERS_PYTHON)" VENV=.venv-newest CONSTRAINTS=constraints-newest.txt EXTRAS=$(WITHOUT_TORCH)

test-lowest:  ## the tests on the lowest versions that pyproject.toml allows, without torch
	$(MAKE) --no-print-directory test VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt EXTRAS=$(WITHOUT_TORCH)

test-all: $(VENV)/.full  ## all tests
	$(BIN)/python -m pytest -n 2

attack: $(VENV)/.full  ## damaged files, hostile calls and odd models by the thousand (half an hour)
	$(BIN)/python -m pytest -n 2 -q -m attack tests/attacks

mutants: $(VENV)/.full  ## 400 small faults put into the code, one by one: do the tests notice? (hours, goes on where it stopped)
	$(BIN)/python -m tests.mutants.run

check: $(VENV)/.full  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

dist: $(VENV)/.full  ## sdist and wheel into dist/; the wheel runs the README and the demo in an environment of its own
	rm -rf dist build/wheel
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip --disable-pip-version-check install --quiet --constraint $(CONSTRAINTS) dist/*.whl
	cd build/wheel && bin/python -I -W error ../../.ci/wheel.py && bin/weightedshap demo --rows 5
	@ls dist

bench: $(VENV)/.full  ## speed and memory of estimators and tree games (the paper's data in WEIGHTEDSHAP_DATA)
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/trees.py

bench-peers: .venv-peers/.ready  ## beside the newest peers, on Python 3.13 (PEERS_PYTHON): an hour or more, goes on where it stopped
	for group in whole surrogate cold end_to_end memory path interventional page; do \
		OMP_NUM_THREADS=1 .venv-peers/bin/python benchmarks/peers.py $$group || exit 1; done

bench-page: $(VENV)/.full  ## docs/benchmarks.md and docs/honest-rankings.md from the runs kept in results/
	$(BIN)/python benchmarks/page.py

reproduce: $(VENV)/.full  ## redo the paper: hours (the data in WEIGHTEDSHAP_DATA, else from OpenML)
	$(BIN)/weightedshap reproduce all

docs: $(VENV)/.docs  ## the documentation as a site, in site/; runs every example of the gallery
	rm -rf docs/reference/generated site  # a name that is gone leaves no page behind
	$(BIN)/python -m sphinx -b html -d build/doctrees --fail-on-warning --keep-going --nitpicky --quiet docs site
	$(BIN)/python docs/check_links.py site

clean:  ## remove .venv and everything that was built
	rm -rf $(VENV) .venv-peers .venv-newest .venv-lowest build dist site docs/auto_examples docs/images/drawn docs/reference/generated \
		docs/reference/used demo.png .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(PINNED) | $(BIN)/python
	@echo "Installing weightedshap into $(VENV) …"
	$(PIP) --editable .
	@touch $@

$(VENV)/.full: $(PINNED) | $(BIN)/python
	@echo "Installing weightedshap, its extras and the tools for tests into $(VENV) (a few minutes) …"
	$(PIP) --editable ".[$(EXTRAS)]"
	@touch $@ $(VENV)/.base

$(VENV)/.engines: $(VENV)/.full
	@echo "Installing Dask, Ray and Spark into $(VENV) (two minutes) …"
	$(PIP) --editable ".[engines]"
	@touch $@

.venv-peers/.ready: pyproject.toml
	$(PEERS_PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade --editable . shap shapiq woodelf-explainer xgboost-cpu
	@touch $@

$(VENV)/.docs: $(VENV)/.full
	@echo "Installing the tools for the documentation into $(VENV) …"
	$(PIP) --editable ".[docs]"
	@touch $@
