# make repro   set up, run the pipeline, show what came out
# make test    set up, run the tests            make test-slow   the long ones
# make boundary  prove what may flow where    make replay      train again, compare bit for bit
# make lint    format, style, types, layers     make ui          the runs, at 127.0.0.1:5000
# make bench   our speed beside the usual ways, in one run
# make results docs/results.md from the runs
PYTHON ?= python3
BIN := $(CURDIR)/.venv/bin
export PATH := $(BIN):$(PATH)

.PHONY: repro test test-slow lint ui boundary replay bench results

repro: .venv/installed
	dvc repro
	@echo
	@dvc metrics show
	@echo
	@echo "Next: . .venv/bin/activate   then  dvc plots show | dvc exp run -S model=bengio | make ui"

test: .venv/installed
	pytest -n 2 -m "not slow"

test-slow: .venv/installed
	pytest -m slow

lint: .venv/installed
	ruff check
	ruff format --check
	mypy
	lint-imports

boundary: .venv/installed
	@neural-ngram boundary

replay: .venv/installed
	PYTHONPATH=src python -m neural_ngram.stages.replay

ui: .venv/installed
	mlflow ui --backend-store-uri sqlite:///runs/mlflow.db --host 127.0.0.1 --port 5000 --workers 1

bench: .venv/installed
	PYTHONPATH=src python benchmarks/training.py
	PYTHONPATH=src python benchmarks/ngram.py

results: .venv/installed
	neural-ngram results

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	pip install --quiet --editable '.[dev]' --constraint constraints.txt
	@touch $@
