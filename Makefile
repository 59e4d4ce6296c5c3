# make demo and make test are the two to know; each does all its own set-up. The rest is for people who work on mluops.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := out/demo
TORCH  := .venv-torch
TRITON := .venv-triton
CLUSTER := .venv-cluster
PYTEST8 := .venv-pytest8
SITE   := .venv-site
GPU_PYTHON ?= python3
GPU_MLUOPS := env PYTHONPATH=".:$$PYTHONPATH" $(GPU_PYTHON) -m mluops_cli
GPU_OUT    := out/gpu
# The folders of the operators that triton has: a run without a judged valid case of an operator is no pass.
TRITON_CASES = $$(env PYTHONPATH=".:$$PYTHONPATH" $(GPU_PYTHON) -c "from mluops_cli.implementations.registry import operators_of; \
  print(*(f'$(GPU_OUT)/cases/{op}' for op in operators_of('triton')))")

# The tests start hundreds of Python processes: a module is compiled once, whatever the caller's environment says.
export PYTHONDONTWRITEBYTECODE :=

WHEEL  := .venv-wheel
PYTHONS := 3.10 3.12 3.13

.PHONY: help install demo test quick test-torch test-triton test-triton-suites test-cluster test-pytest8 test-wheel test-pythons \
	gpu-check test-bounds test-slow test-slow-in-ci coverage check format bench docs site planted faults proto schemas fingerprints browser \
	wheel clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-19s %s\n", $$1, $$2}' Makefile

install: $(STAMP)  ## a virtual environment in .venv with the tool and what its development needs

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: install  ## generate the demo suite of every operator, run it, print the table
	$(BIN)/mluops gen --suite demo --out $(DEMO)/cases
	$(BIN)/mluops run $(DEMO)/cases --out $(DEMO)/results --html $(DEMO)/results/report.html
	@echo "Report: $(DEMO)/results/report.html (and results.jsonl, a line per case)"

check: install  ## lint, format, strict types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install  ## mend lint and format where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check quick  ## lint, types and tests

quick: install  ## the tests alone
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow"

test-torch: $(TORCH)/.installed  ## the tests of --impl torch, with a CPU build of PyTorch in .venv-torch
	$(TORCH)/bin/pytest -q -m "torch and not slow" tests/mluops_cli/implementations tests/mluops_cli/tutorials

$(TORCH)/.installed: pyproject.toml
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

test-triton: $(TRITON)/.installed  ## the tests of --impl triton in its interpreter on the CPU, with Triton in .venv-triton
	$(TRITON)/bin/pytest -q -m "triton and not slow" tests/mluops_cli/implementations/triton

test-triton-suites: $(TRITON)/.installed  ## the small suites of all operators in Triton's interpreter, and the tutorials for it and PyTorch: minutes
	$(TRITON)/bin/pytest -q -m "(triton or torch) and slow" tests/mluops_cli/implementations/triton tests/mluops_cli/tutorials

$(TRITON)/.installed: pyproject.toml
	test -x $(TRITON)/bin/python || $(PYTHON) -m venv $(TRITON)
	$(TRITON)/bin/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'triton==3.9.0'
	$(TRITON)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

gpu-check:  ## on a machine with a GPU: --impl torch and triton, all operators, then a table of their speed (GPU_PYTHON has both)
	timeout 300 $(GPU_MLUOPS) gen --suite demo,boundary,nan_inf,zero_element,network --out $(GPU_OUT)/cases
	timeout 240 $(GPU_MLUOPS) run $(GPU_OUT)/cases --impl torch:device=cuda -j 2 --out $(GPU_OUT)/torch
	timeout 240 $(GPU_MLUOPS) run $(TRITON_CASES) --impl triton -j 2 --out $(GPU_OUT)/triton
	for impl in torch:device=cuda triton; do timeout 240 $(GPU_MLUOPS) run $(TRITON_CASES) --suite network --impl $$impl \
	  --perf --min-time 0.02 --bound off -j 1 --out $(GPU_OUT)/perf-$${impl%%:*} || exit 1; done
	env PYTHONPATH=".:$$PYTHONPATH" $(GPU_PYTHON) -m tools.device_table $(GPU_OUT)/perf-triton $(GPU_OUT)/perf-torch cuda

test-cluster: $(CLUSTER)/.installed  ## the tests of --scheduler, with Dask in .venv-cluster
	$(CLUSTER)/bin/pytest -q -m "cluster and not slow" tests/mluops_cli/execution/cluster

$(CLUSTER)/.installed: pyproject.toml
	test -x $(CLUSTER)/bin/python || $(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,cluster]'
	touch $@

test-pytest8: $(PYTEST8)/.installed  ## the tests of the pytest plug-in with the oldest pytest that it supports, in .venv-pytest8
	$(PYTEST8)/bin/pytest -q tests/mluops_cli/pytest_plugin

$(PYTEST8)/.installed: pyproject.toml
	test -x $(PYTEST8)/bin/python || $(PYTHON) -m venv $(PYTEST8)
	$(PYTEST8)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 'pytest==8.2.*'
	touch $@

test-wheel:  ## the tests against the built wheel, in .venv-wheel, away from the checkout's source
	rm -rf $(WHEEL) out/wheel && mkdir -p out/wheel
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check build
	$(WHEEL)/bin/python -m build --wheel --outdir out/wheel .
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls $(CURDIR)/out/wheel/*.whl)[dev]"
	cp -r $(filter-out schemas generators cases mluops_cli out dist,$(wildcard *)) out/wheel/
	test ! -d ../shared || ln -sfn ../../shared out/shared
	cd out/wheel && $(CURDIR)/$(WHEEL)/bin/pytest -q -n 2 --dist loadfile -m "not slow and not checkout"

test-pythons:  ## the tests with the other Python versions of the classifiers, as far as they are on the machine
	@for version in $(PYTHONS); do \
	  python=$$(PYENV_VERSION=$$version python$$version -c 'import sys; print(sys.executable)' 2>/dev/null) || \
	    { echo "Python $$version is not on this machine"; continue; }; \
	  $(MAKE) --no-print-directory quick PYTHON=$$python VENV=.venv-$$version || exit 1; \
	done

coverage: install  ## lines and branches that the tests reach, worker processes included
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow" --cov --cov-report=term

test-bounds: install  ## right kernels stay within the error bounds: thousands of random cases
	$(BIN)/pytest -q -n 2 -m slow tests/generators/error_bounds

test-slow: install  ## the heavy checks: protobuf versions, large tensors, network scale
	$(BIN)/pytest -q -n 2 -m slow

test-slow-in-ci: install  ## those of them that take no more than a minute
	$(BIN)/pytest -q -n 2 -m "slow and not long"

bench: install  ## speed, as ratios against a plain copy, a raw file or another library in the same run
	$(BIN)/python -m benchmarks
	test ! -x $(TORCH)/bin/python || $(TORCH)/bin/python -m benchmarks references

proto: install  ## rebuild the descriptor of the case file's schema
	$(BIN)/python -m tools.build_descriptor

docs: install  ## docs/operators, then the pictures of the README (those need Chromium: make browser)
	$(BIN)/mluops docs --out docs/operators
	$(BIN)/python docs/pictures.py

site: $(SITE)/.installed  ## the documentation site in out/site, with Sphinx in .venv-site; a warning is an error
	rm -rf out/site
	$(SITE)/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs/site -d out/site-trees --fresh-env . out/site
	@echo "Site: out/site/index.html"

$(SITE)/.installed: pyproject.toml
	test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[site]'
	touch $@

browser:  ## Debian: Chromium, its driver and xmllint, for the tests of the HTML and JUnit reports (as root)
	apt-get update
	apt-get install -y --no-install-recommends chromium chromium-driver libxml2-utils fonts-noto-cjk

schemas: install  ## rebuild the JSON Schemas from the models
	$(BIN)/python -m tools.spec_schema
	$(BIN)/python -m tools.result_schemas

fingerprints: install  ## tests/fingerprints.json: what the bundled cases hold
	$(BIN)/python -m tools.fingerprints

planted: install  ## how long mluops fuzz takes to find each planted fault; up to 80 minutes
	$(BIN)/python -m tests.planted.measure

faults: install  ## docs/faults.md: which case catches which faulty implementation, what the mutants of tiled say
	$(BIN)/python -m tests.faulty.catalogue
	$(BIN)/python -m tests.faulty.mutants out/mutants

wheel: install  ## build the wheel into dist/
	$(BIN)/python -m build --wheel --outdir dist .

clean:  ## remove what make made: the environment, demo output, caches
	rm -rf $(VENV) $(CLUSTER) $(SITE) $(TORCH) $(TRITON) $(WHEEL) $(PYTHONS:%=.venv-%) out dist .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
