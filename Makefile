# Two commands matter: `make run` and `make test`. Both install what they need and are quick the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WEB := src/portico/doors/pages/.built
SOURCES := $(shell find src -name '*.py')
WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' 2>/dev/null)

HOURS ?= 1
COMMA := ,

LIVE := tests/live/node_modules/.installed
CLIENTS := tests/clients/node_modules/.installed

# What `make test` does, and with PORTICO_TEST_ALL=1 (as .ci/run sets it) what needs root, too. `unit` is the longest; the
# short ones need little and begin while the others still wait for the network.
PARTS := unit check web-test $(if $(PORTICO_TEST_ALL),docs) browser-test $(if $(PORTICO_TEST_ALL),image)
PACKAGES := $(if $(PORTICO_TEST_ALL),packages)
JOBS ?= 4
PART := @bash .ci/part

.PHONY: docs docs-serve image run test quick packages check unit web-test browser-test bench cluster soak dist outdated screenshots pictures clean

# What a step prints is shown when it fails.
QUIET = out=$$(mktemp); "$$@" >"$$out" 2>&1 || { cat "$$out"; rm -f "$$out"; exit 1; }; rm -f "$$out"
quiet = @set -- $(1); $(QUIET)

# The pages and Python's packages come side by side: each mostly waits for a network.
run:
	@$(MAKE) --silent --no-print-directory --jobs=2 $(WEB) $(VENV)/.core $(VENV)/.compiled
	@$(BIN)/portico model offer || true
	@$(BIN)/portico serve $(ARGS)

# Does all that this machine can, and says in the end what it left out; .ci/run leaves nothing out. Its parts run side by
# side, each as soon as what it needs is there: what one prints is shown when it is over, and in the end how each ended.
test:
	@[ -e $(LIVE) ] || echo "The first run downloads about 2 GB (the agents that the tests drive)."
	@echo "This takes about 12 minutes on two cores; \`make quick\` takes under 2."
	@echo "Side by side: $(strip $(PARTS)). Each is shown when it is over."
	@summary=$$(mktemp); code=0; \
	PORTICO_TEST_SUMMARY=$$summary $(MAKE) --silent --no-print-directory --keep-going --jobs=$(JOBS) $(PARTS) || code=1; \
	bash .ci/left-out || code=1; cat "$$summary"; rm -f "$$summary"; exit $$code

# Fast feedback, under 2 minutes on two cores: lint, types, and the tests that need no download, database or browser.
QUICK := $(addprefix tests/,host approvals automation budgets changes chats client files log/test_*.py notices projects queries \
	terminals testing transcripts usage workspace doors/rest test_commands.py test_docs.py test_events.py test_home.py \
	test_imports.py test_limits.py test_names.py test_settings.py test_settings_edit.py test_table.py test_bench.py)
quick: $(VENV)/.dev $(VENV)/.compiled
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -p no:cacheprovider $(wildcard $(QUICK)) $(ARGS)

# Debian's packages that the tests drive.
packages:
	@bash .ci/packages

check: $(VENV)/.dev
	$(PART) $@ sh -c '$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy'

unit: $(VENV)/.dev $(VENV)/.compiled $(VENV)/.collected $(WEB) $(LIVE) $(CLIENTS) $(PACKAGES)
	$(PART) $@ $(BIN)/python .ci/unit.py $(ARGS)

web-test: $(WEB)
	$(PART) $@ npm --prefix web --silent test

browser-test: $(VENV)/.dev $(VENV)/.compiled $(WEB) $(PACKAGES)
	$(PART) $@ sh -c 'if bash web/browser/chromium.sh; then npm --prefix web run --silent test:browser; else test -z "$$PORTICO_TEST_ALL"; fi'

cluster: $(VENV)/.dev $(WEB)
	@$(BIN)/portico cluster up --hosts 3

soak: $(VENV)/.dev $(VENV)/.compiled
	$(BIN)/python -m bench.soak --hours $(HOURS) --out soak

bench: $(VENV)/.dev $(VENV)/.compiled
	$(BIN)/python -m bench

# The wheel is made of the sdist, as an installer would do it; both carry the pages. A second wheel has only the client.
dist: $(VENV)/.dev $(WEB)
	@rm -rf dist
	$(call quiet,$(BIN)/python -m hatchling build --target sdist --directory dist)
	$(call quiet,$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz)
	$(call quiet,$(BIN)/python -m tools.client_wheel dist)
	@ls dist/*

# The documentation as a site, in site/; a broken link is an error.
docs: $(VENV)/.docs
	$(PART) $@ $(BIN)/zensical build --strict

# The same in a browser, with search.
docs-serve: $(VENV)/.docs
	$(BIN)/zensical serve

# Two at once would break each other: where everything is done, it comes with the test tools.
$(VENV)/.docs: pyproject.toml $(VENV)/bin/pip $(if $(PORTICO_TEST_ALL),$(VENV)/.dev)
	@[ $@ -nt pyproject.toml ] || echo "Installing what builds the documentation into $(VENV) ..."
	@[ $@ -nt pyproject.toml ] || $(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# The images of Dockerfile and Dockerfile.agents, built and started without an image registry; needs root. In CI with the
# Node of the agents that the tests drive, else with the machine's.
image: $(VENV)/.dev $(WEB) $(PACKAGES) $(if $(PORTICO_TEST_ALL),$(LIVE))
	$(PART) $@ bash tests/image/build.sh

# Exit code 1 when a library that we name has a newer release: for a schedule.
outdated: $(VENV)/.dev web/node_modules/.installed $(LIVE)
	@$(BIN)/python .ci/outdated.py

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit("Portico needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml $(VENV)/bin/pip
	@echo "Installing Portico into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/bin/pip
	@echo "Installing Portico and its test tools into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev$(if $(PORTICO_TEST_ALL),$(COMMA)docs)]'
	@touch $@ $(VENV)/.core $(if $(PORTICO_TEST_ALL),$(VENV)/.docs)

# Python does not write its bytecode everywhere; without it every start compiles everything again, half a second each.
$(VENV)/.compiled: $(SOURCES) | $(VENV)/bin/pip
	@$(BIN)/python -m compileall -q src
	@touch $@

# pytest rewrites what it imports and may not write it down either: each of its processes would do that again, for ten
# seconds. Once is enough, those that change later are few.
$(VENV)/.collected: | $(VENV)/.dev $(VENV)/.compiled
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -q >/dev/null || true # the run itself says why
	@touch $@

$(LIVE): tests/live/package.json tests/live/package-lock.json
	bash tests/live/install.sh
	touch $@

# The conformance suite of MCP and the generators of clients.
$(CLIENTS): tests/clients/package.json tests/clients/package-lock.json
	$(call quiet,npm --prefix tests/clients ci --no-audit --no-fund --ignore-scripts --loglevel=error)
	@touch $@

screenshots: $(VENV)/.core $(WEB)
	cd web && npm run screenshots

# The pictures of the documentation's first page and of the guide: scenes of browser tests.
pictures: $(VENV)/.core $(WEB)
	cd web && npm run --silent pictures

web/node_modules/.installed: web/package.json web/package-lock.json
	@command -v npm >/dev/null || { echo "The web pages are built with Node 20.19 or newer, and npm is not on the PATH: install Node, then try again." >&2; exit 1; }
	@echo "Getting what builds the web pages ..."
	$(call quiet,npm --prefix web ci --no-audit --no-fund --loglevel=error)
	@touch $@

$(WEB): web/node_modules/.installed $(WEB_SOURCES)
	@echo "Building the web pages ..."
	$(call quiet,npm --prefix web run --silent build)
	@touch $@

clean:
	rm -rf $(VENV) web/node_modules src/portico/doors/pages .mypy_cache .ruff_cache .hypothesis dist site
