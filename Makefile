# The commands: demo, test, slow, lint, bench, soak, docs, dist, dist-check. Everything runs in its own virtual environment.

PYTHON  ?= python3
VENV    ?= .venv
MINUTES ?= 30
BIN     := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# A test of `make soak` may take as long as it takes.
UNLIMITED := -o faulthandler_timeout=0

.PHONY: demo test slow lint style types quick bench soak docs site web pictures dist dist-check clean

demo: $(VENV)/.installed            ## set up, and show an agent at work with the example vault
	@$(BIN)/python docs/demo.py

test: $(VENV)/.installed-dev style  ## set up, then every check but the slow tests
	@$(MAKE) --no-print-directory -j 2 types quick

quick: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow' --hypothesis-profile quick

slow: $(VENV)/.installed-dev        ## the tests that `make test` leaves out, and the property tests with all their examples
	@$(BIN)/python -m pytest -n auto --dist worksteal -m slow
	@$(BIN)/python -m pytest -n auto --dist worksteal tests/property

lint: style types                   ## style, types, and the dependencies between packages

style: $(VENV)/.installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(VENV)/.installed           ## print the figures that docs/performance.md quotes
	@$(BIN)/python bench/run.py
	@$(BIN)/python bench/scale.py 10000
	@$(BIN)/python bench/scale.py 100000

soak: $(VENV)/.installed-dev        ## the long runs: planted faults, kills, power cuts, damages, MINUTES (30) of everything at once, requests of every kind, the protocol's own suite, a million passages
	@$(BIN)/python bench/seeded_bugs.py
	@$(BIN)/python -m pytest $(UNLIMITED) tests/crash
	@$(BIN)/python -m pytest $(UNLIMITED) tests/property --hypothesis-profile soak
	@PROOF=long $(BIN)/python -m pytest $(UNLIMITED) tests/hostile
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'schemathesis>=4,<5'
	@$(BIN)/python bench/rest_fuzz.py
	@$(BIN)/python bench/conformance.py
	@$(BIN)/python bench/network.py
	@$(BIN)/python bench/idle.py
	@$(BIN)/python bench/crash.py --kills 2000
	@$(BIN)/python bench/power_cuts.py --cuts 100
	@ROUNDS=300 KILLS=100 $(BIN)/python -m pytest $(UNLIMITED) tests/store/test_syncing.py
	@KILLS=200 WRITES=200 CUTS=1000 $(BIN)/python -m pytest $(UNLIMITED) tests/index/postgres/test_crashes.py tests/index/postgres/test_away.py tests/index/postgres/test_many_servers.py
	@$(BIN)/python bench/cold_starts.py
	@$(BIN)/python bench/corruptions.py --rounds 1500
	@$(BIN)/python bench/chaos.py --minutes $(MINUTES)
	@$(BIN)/python bench/scale.py 1000000

dist: $(VENV)/.installed-dev        ## write what is handed out into dist/: wheel, source, the bundle for Claude Desktop
	@rm -rf dist
	@$(BIN)/python bundles/build.py > /dev/null
	@ls dist

dist-check: dist                    ## try it as its users get it: pip, pipx, uvx, the bundle's own command line
	@$(BIN)/python bench/dist.py

docs: $(VENV)/.installed-dev        ## write the generated pages again, and build the site into build/site
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/generate_tools.py
	@$(BIN)/python docs/generate_reference.py
	@$(BIN)/python -m simplemem.web.openapi > docs/openapi.json
	@$(MAKE) --no-print-directory site

pictures: $(VENV)/.installed-dev    ## make the pictures of the README and the site, from the real program and Chromium
	@$(BIN)/python docs/pictures.py

web:                                ## build the vendored parts of the web page again; needs Node 20
	@cd assets && npm ci --silent && npm run --silent build

site: $(VENV)/.installed-dev        ## build the documentation into build/site; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

$(VENV)/.installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
