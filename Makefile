# predrain: `make help` lists the targets. Nothing needs to be installed first but make itself: .tools and .venv are made here.
SHELL := /bin/sh
.DEFAULT_GOAL := help
PREDRAIN := .venv/bin/predrain
PY := .venv/bin/python
PORT ?= 8080
ARGS ?=
SEED ?=
RANDOM_SEEDS ?= 200
export UV_PYTHON_DOWNLOADS := never
export OMP_WAIT_POLICY := PASSIVE

# ../shared/data is where this project's makers keep the source histories; PREDRAIN_DATA names it elsewhere.
DATA := $(or $(PREDRAIN_DATA),$(wildcard ../shared/data))
HISTORY := $(addprefix $(DATA)/drives/,st4000dm000_2018h1_daily.parquet fleet_2013_2016q1_changes.parquet fleet_2013_2016q1_drives.parquet)
PAGE := service/page
PAGE_SOURCES := $(shell find $(PAGE)/src $(PAGE)/index.html $(PAGE)/package-lock.json $(PAGE)/vite.config.ts $(PAGE)/tsconfig.json 2>/dev/null)
NODE := PATH="$(CURDIR)/.tools/bin:$$PATH"

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

.tools/.ready: .ci/tools.txt
	@.ci/apt python3-venv ca-certificates libgomp1
	@python3 -c 'import sys; sys.exit(not (3, 11, 2) <= sys.version_info[:3] < (3, 12))' || \
	  { echo "predrain needs Python 3.11 (Debian 12's python3); this is $$(python3 --version)" >&2; exit 1; }
	@echo "setting up .tools (uv, node)"
	@python3 -m venv --clear .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/tools.txt
	@touch $@

.venv/.run: .tools/.ready uv.lock pyproject.toml
	@echo "setting up .venv (locked packages)"
	@.tools/bin/uv sync --quiet --frozen --inexact --no-dev --extra service --python .tools/bin/python
	@touch $@

.venv/.dev: .venv/.run
	@.tools/bin/uv sync --quiet --frozen --all-extras --python .tools/bin/python
	@touch $@

$(PAGE)/node_modules/.ready: .tools/.ready $(PAGE)/package-lock.json
	@cd $(PAGE) && $(NODE) npm ci --silent --no-audit --no-fund
	@touch $@

$(PAGE)/dist/index.html: $(PAGE)/node_modules/.ready $(PAGE_SOURCES)
	@echo "building the page"
	@cd $(PAGE) && $(NODE) npm run --silent build >/dev/null
	@touch $@

setup: .venv/.run $(PAGE)/dist/index.html ## the command at .venv/bin/predrain and the page, from locked packages

demo: setup ## a simulated cluster with real drive histories, drained before your eyes (ARGS=--once prints the table)
	@$(PREDRAIN) demo --port $(PORT) $(ARGS)

format: .venv/.dev ## rewrite the code in the house's format
	@.venv/bin/ruff format -q . && .venv/bin/ruff check -q --fix .

lint: .venv/.dev $(PAGE)/node_modules/.ready ## format, lint, both type checkers, layers
	@.venv/bin/ruff format --check -q . || { echo "run: make format"; exit 1; }
	@.venv/bin/ruff check -q .
	@.venv/bin/lint-imports --no-logo >.lint-imports.txt 2>&1 || { cat .lint-imports.txt; rm -f .lint-imports.txt; exit 1; }; rm -f .lint-imports.txt
	@.venv/bin/mypy
	@.venv/bin/basedpyright --level error
	@cd $(PAGE) && $(NODE) npm run --silent check

check: lint ## lint, then unit and property tests; under two minutes
	@.venv/bin/pytest -m "not slow and not system" -n 2 --dist loadfile

test: lint $(PAGE)/dist/index.html ## every test, a real browser included
	@.ci/apt --optional "the page's tests are skipped" chromium libatomic1
	@cd $(PAGE) && $(NODE) npm test --silent
	@.venv/bin/pytest -n 2 --dist loadfile

bench: .venv/.dev ## rate, memory and ratio to a baseline of the same run (ARGS=--long: the full training too)
	@$(PY) -m tests.bench $(ARGS)

bench-forecast: .venv/.dev ## the forecast beside its peers, on months it has not seen
	@$(PY) -m tests.bench.forecast $(ARGS)

bench-rules: .venv/.dev ## how often the rules flag SSDs in service, and SSDs that failed
	@$(PY) -m tests.bench.rules $(ARGS)

train: .venv/.run ## train the bundle that ships, from PREDRAIN_DATA (or ../shared/data)
	@test -n "$(DATA)" || { echo "set PREDRAIN_DATA to the folder that holds drives/*.parquet" >&2; exit 1; }
	$(PREDRAIN) train $(HISTORY) --exclude data/fleets/heldout_serials.txt --out models/bundles/default $(ARGS)

sim: .venv/.dev ## random fault schedules on the simulated cluster (SEED=n replays one, RANDOM_SEEDS=n tries so many)
	@PREDRAIN_SIM_SEED=$(SEED) PREDRAIN_SIM_SEEDS=$(RANDOM_SEEDS) .venv/bin/pytest tests/properties -n 2 --dist loadfile

clean: ## remove what was built
	@rm -rf .venv .tools $(PAGE)/node_modules $(PAGE)/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help setup demo format lint check test bench bench-forecast bench-rules train sim clean
