# On a fresh machine with python3, pip and make: `make demo` and `make test` do everything.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all campaign check docs dist bench bench-full clean

demo: .venv/app
	$(BIN)/cvxnmf demo

# A process for each core, with one thread of BLAS: more would wait for each other. Bytecode is kept for the processes that tests start.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

# About three minutes on two cores: all but the tests marked slow.
test: .venv/test
	$(PYTEST) -m "not slow"

# Those marked slow too: larger sizes, more random cases, Dask workers in processes, the site.
test-all: .venv/test
	$(PYTEST)

# Random attacks, each for a minute; SECONDS=3600 for an hour of each.
campaign: .venv/test
	cd tests && ../$(BIN)/python -m campaigns --seconds $(or $(SECONDS),60)

check: .venv/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, warnings as errors: build/docs/index.html. The gallery's examples are run.
docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

# The archives for PyPI, checked: dist/
dist: .venv/dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

# Some minutes on two cores: benchmarks/RESULTS.md
bench: .venv/bench
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.figures

# The slow cases too, and peers in environments of their own: benchmarks/RESULTS-full.md
bench-full: .venv/bench
	$(BIN)/python -m benchmarks --full

clean:
	rm -rf .venv build dist docs/api docs/gallery

.venv/made:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "hatchling>=1.26" editables
	touch $@

# One stamp per extra, made anew when the project's metadata change. Bytecode on all cores: pip would take one, and half of its time.
# Without isolation nothing is installed twice: an editable installation is built without the packages that compile.
.venv/app .venv/test .venv/check .venv/docs .venv/dist .venv/bench: .venv/%: .venv/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-build-isolation --editable ".[app,$*]"
	-$(BIN)/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1
	touch $@
