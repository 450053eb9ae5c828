# `make demo` and `make test` need Python 3.11 or newer, git and make; all else they install into .venv.
# Tests, demo and coverage run against the installed package, a regular install and no editable one.

PYTHON  ?= python3
WORKERS ?= 2
# How long `make fuzz` looks for inputs that hurt, all targets together.
FUZZ_SECONDS ?= 120
PACK    := golden/autoresearch/workflow.star
VENV    := .venv
PY      := $(VENV)/bin/python -P
PYTEST  := $(PY) -m pytest

# The one list of the package's folders is the table [tool.setuptools.package-dir].
FOLDERS := $(shell sed -n 's/^"crucible\..*" = "\(.*\)"$$/\1/p' pyproject.toml)
# Folders are among the sources: their time changes when a file goes away.
SOURCES := pyproject.toml README.md LICENSE $(shell find $(FOLDERS) -name __pycache__ -prune -o -print)

# The checkout must not answer to an import instead of the installed package.
unexport PYTHONPATH PYTHONHOME

.PHONY: demo test check lint types layers slice torture fuzz golden coverage bench bench-table docs vscode clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

demo: $(VENV)/installed
	$(VENV)/bin/crucible plan compile-workflow --file $(PACK)

test: $(VENV)/installed-dev
	$(PYTEST) -n $(WORKERS)

check: lint types layers test slice fuzz

lint: $(VENV)/installed-dev
	$(PY) -m ruff check
	$(PY) -m ruff format --check

# mypy reads the installed package, where the folders have the names they are imported by; sed turns its places
# into those of the checkout.
types: $(VENV)/installed-dev
	mkdir -p build
	$(PY) -m mypy $(FOLDERS:%=-p crucible.%) >build/types.txt; status=$$?; sed 's#^.*/site-packages/crucible/##' build/types.txt; exit $$status
	$(PY) -m mypy tests

layers: $(VENV)/installed-dev
	$(PYTEST) tests/test_layers.py

# Alone on the machine: these tests kill, swap and wait.
slice: $(VENV)/installed-dev
	$(PYTEST) -m "torture and not whole"

torture: $(VENV)/installed-dev
	$(PYTEST) -m "torture or whole" --timeout 3600

# Its directory is the script's own, never the checkout's root.
fuzz: $(VENV)/installed-dev $(VENV)/atheris
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(VENV)/bin/python tests/fuzzed.py

# pytest-snapshot fails a test whose file it has written: the second run tells whether all is well.
golden: $(VENV)/installed-dev
	-$(PYTEST) -m golden --snapshot-update
	$(PYTEST) -m golden

coverage: $(VENV)/installed-dev
	$(PYTEST) -n $(WORKERS) -m "not whole" --cov --cov-report term-missing

# One run of everything that is measured, as docs/benchmarks.md; PEERS is where other runners are installed.
bench-table: $(VENV)/installed
	$(PY) benchmarks/table.py $(if $(PEERS),--peers $(PEERS))

bench: $(VENV)/installed
	$(PY) benchmarks/run.py
	$(PY) benchmarks/warm.py
	$(PY) benchmarks/editor.py
	$(PY) benchmarks/lint.py
	$(PY) benchmarks/render.py
	$(PY) benchmarks/plan_run.py
	$(PY) benchmarks/loop.py

# The site of the documentation, in build/site; a page that would bring anything from elsewhere fails.
docs: $(VENV)/docs
	rm -rf build/site
	$(PY) -m zensical build --clean --strict
	! grep -rnoE --include='*.html' "(src|srcset)=[\"']?(https?:)?//[^\"' >]*|<link[^>]* href=[\"']?(https?:)?//[^\"' >]*" build/site

# The extension for VS Code, in build/crucible-workflow.vsix; made of a copy, so that node_modules stays out of here.
vscode:
	rm -rf build/vscode
	mkdir -p build
	cp -R editor/vscode build/vscode
	cp LICENSE build/vscode
	cd build/vscode && npm ci --no-audit --no-fund && npm run package -- --out ../crucible-workflow.vsix

clean:
	rm -rf $(VENV) build *.egg-info .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

# setuptools in .venv lets the package be built there, without an environment made anew for each build; the command
# that a recent pip writes starts without `re`.
$(VENV)/made:
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade pip setuptools
	touch $@

# An old build/lib or egg-info would bring deleted modules back.
INSTALL = rm -rf build/lib build/bdist.* *.egg-info && \
	$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation

$(VENV)/installed: $(VENV)/made $(SOURCES)
	$(INSTALL) .
	touch $@

# Where atheris cannot be installed, hypothesis has all the time.
$(VENV)/atheris: $(VENV)/installed-dev
	-test -e $@ || ($(INSTALL) '.[fuzz]')
	touch $@

$(VENV)/docs: $(VENV)/installed
	$(INSTALL) '.[docs]'
	touch $@

$(VENV)/installed-dev: $(VENV)/made $(SOURCES)
	$(INSTALL) '.[dev]'
	touch $@ $(VENV)/installed
