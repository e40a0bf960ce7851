# Everything runs in .venv, which is made on first use and made anew when pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
QUIET_LINT := build/lint

.PHONY: help quickstart test lint docs bench clean sandbox

help:
	@echo "make quickstart   install, fetch the embedded Engine's weights, run the main job"
	@echo "make test         run the tests"
	@echo "make lint         format, style, types, and the direction of imports"
	@echo "make docs         write docs/cli.md from the commands' own help"
	@echo "make bench        run the benchmarks in tests/bench, which print ratios"
	@echo "make clean        remove what the others made, runs/ excepted"

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "CODA needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.embedded: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) -e '.[embedded]'
	@touch $@

$(VENV)/.dev: $(VENV)/.embedded
	$(PIP) -e '.[dev]'
	@touch $@

sandbox:
	@command -v bwrap > /dev/null || echo "bubblewrap is not installed, so programs that the model writes will not run: apt-get install bubblewrap"

quickstart: $(VENV)/.embedded sandbox
	$(BIN)/coda engine pull
	$(BIN)/coda quickstart

test: $(VENV)/.dev sandbox
	$(BIN)/coda engine pull
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# mypy and import-linter do not see through the mapping of folders to packages, so both look at an installed copy.
lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf $(QUIET_LINT)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(QUIET_LINT) .
	cd $(QUIET_LINT) && MYPYPATH=. $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p coda
	cd $(QUIET_LINT) && PYTHONPATH=. $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/pyproject.toml
	$(BIN)/python -m coda.cli.docs --check docs/cli.md

docs: $(VENV)/.dev
	$(BIN)/python -m coda.cli.docs docs/cli.md

bench: $(VENV)/.dev
	@for file in tests/bench/bench_*.py; do echo "== $$file"; PYTHONPATH=tests/support $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
