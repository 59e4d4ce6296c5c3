# make demo and make test are the two to know; each does all its own set-up. The rest is for people who work on mluops.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := out/demo

.PHONY: help install demo test test-torch test-slow check format bench docs faults proto schemas browser wheel clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

install: $(STAMP)  ## a virtual environment in .venv with the tool and what its development needs

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: install  ## generate the demo suite of every operator, run it, print the table
	$(BIN)/mluops gen --suite demo --out $(DEMO)/cases
	$(BIN)/mluops run $(DEMO)/cases --out $(DEMO)/results
	@echo "Report: $(DEMO)/results/summary.json (and results.jsonl, a line per case)"

check: install  ## lint, format and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install  ## mend lint and format where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check  ## lint, types and tests
	$(BIN)/pytest -q -n 2 -m "not slow"

test-slow: install  ## the heavy checks: protobuf versions, large tensors, network scale
	$(BIN)/pytest -q -m slow

bench: install  ## speed, as ratios against a plain copy, a raw file or another library in the same run
	$(BIN)/python -m benchmarks

proto: install  ## rebuild the descriptor of the case file's schema
	$(BIN)/python -m schemas.build

docs: install  ## the pictures of the README (needs Chromium: make browser)
	$(BIN)/python docs/pictures.py

browser:  ## Debian: Chromium, its driver and xmllint, for the tests of the HTML and JUnit reports (as root)
	apt-get update
	apt-get install -y --no-install-recommends chromium chromium-driver libxml2-utils fonts-noto-cjk

schemas: install  ## rebuild the JSON Schemas from the models
	$(BIN)/python -m generators.spec_schema
	$(BIN)/python -m mluops_cli.reports.schemas

faults: install  ## docs/faults.md: which case catches which faulty implementation
	$(BIN)/python -m tests.faulty.catalogue

wheel: install  ## build the wheel into dist/
	$(BIN)/python -m build --wheel --outdir dist .

clean:  ## remove what make made: the environment, demo output, caches
	rm -rf $(VENV) out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
