# make repro   set up, run the pipeline, show what came out
# make test    set up, run the tests            make test-slow   the long ones
# make boundary  prove what may flow where    make replay      train again, compare bit for bit
# make lint    format, style, types, layers     make ui          the runs, at 127.0.0.1:5000
# make bench   our speed against the usual ways, in one run
# make results docs/results.md from the runs   make literature   these runs, all of them, and test
PYTHON ?= python3
# Each command is called by its path, with .venv first for what it starts itself: GNU make 3.81, the
# one of macOS, looks up a plain command without regard to an exported PATH.
BIN := PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable

.PHONY: repro test test-slow lint ui boundary replay bench results literature

repro: .venv/pipeline
	@$(BIN)/neural-ngram repair
	$(BIN)/dvc repro
	@echo
	@$(BIN)/dvc metrics show
	@$(BIN)/neural-ngram report
	@echo
	@echo "Next: . .venv/bin/activate   then  dvc plots show | dvc exp run -S model=bengio | make ui"

test: .venv/dev
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

test-slow: .venv/dev
	$(BIN)/pytest -m slow

lint: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

boundary: .venv/pipeline
	@$(BIN)/neural-ngram boundary

replay: .venv/pipeline
	PYTHONPATH=src $(BIN)/python -m neural_ngram.stages.replay

ui: .venv/pipeline
	-@$(BIN)/neural-ngram sync
	@echo "The runs: http://127.0.0.1:5000/#/experiments/1/runs?viewStateShareKey=comparison"
	$(BIN)/mlflow ui --backend-store-uri sqlite:///runs/mlflow.db --host 127.0.0.1 --port 5000 --workers 1

bench: .venv/dev
	PYTHONPATH=src $(BIN)/python benchmarks/run.py

results: .venv/pipeline
	$(BIN)/neural-ngram results

# The corpora lie in NEURAL_NGRAM_DATA. Six hours of training; Brown's published figures are on test.
NAMES := makemore makemore_lecture makemore_10_200 makemore_2_500
EWT := ewt_bigram $(addprefix ewt_bigram_,64 16 floor floor_64 floor_16 sentence)
BROWN := bengio_brown $(addprefix bengio_brown_,mlp1 mlp3 mlp5 mlp7)
literature: .venv/pipeline
	@test -d "$$NEURAL_NGRAM_DATA" || { echo "set NEURAL_NGRAM_DATA to the folder of the corpora"; exit 1; }
	$(BIN)/dvc exp run --temp -S experiment=known_source
	set -e; run() { name=$$1; path=$$2; shift 2; $(BIN)/dvc exp run --temp -S experiment=$$name \
	  -S corpus.path="$$NEURAL_NGRAM_DATA/$$path" "$$@"; }; \
	run ch23 bilingual/corpus.json; run toy_gpt toy_gpt/004_analytics.txt; \
	for name in $(NAMES); do run $$name names/names.txt; done; \
	for name in $(EWT); do run $$name ewt; done; \
	for name in $(BROWN); do run $$name brown/brown.jsonl -S evaluation.unseal_test=true; done
	$(BIN)/neural-ngram results

.venv/pipeline: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	@echo 'Installing into .venv: 1.9 GB, some minutes'
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[pipeline]'
	@touch $@

.venv/dev: .venv/pipeline
	@echo 'Installing the tools of development into .venv: 0.5 GB more'
	$(INSTALL) '.[dev]'
	@touch $@
