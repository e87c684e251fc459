# predrain: `make help` lists the targets. Nothing needs to be installed first but make itself: .tools and .venv are made here.
SHELL := /bin/sh
.DEFAULT_GOAL := help
PREDRAIN := .venv/bin/predrain
PY := .venv/bin/python
PORT ?= 8080
ARGS ?=
SEED ?=
HOURS ?=
RANDOM_SEEDS ?= 200
RELEASE ?= pacific
ONLY ?=
CEPH_PACKAGES := ceph-mon ceph-mgr ceph-osd ceph-common ceph-mgr-modules-core libsqlite3-mod-ceph python3-rados \
  python3-ceph-argparse
SERVER_PACKAGES := openjdk-17-jre-headless openssl postgresql-15 prometheus prometheus-alertmanager
JUDGES := systemd sudo python3-ceph-common python3-yaml
export UV_PYTHON_DOWNLOADS := never
export OMP_WAIT_POLICY := PASSIVE

# The folder of source histories: PREDRAIN_DATA names it, else ../shared/data where that is there.
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
	@.tools/bin/uv sync --quiet --frozen --all-extras --compile-bytecode --python .tools/bin/python
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

deb: .tools/.ready $(PAGE)/dist/index.html ## both Debian packages, under dist/
	@deploy/deb/build

docs: .venv/.dev ## the documentation as a site, under dist/docs; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

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

test: lint $(PAGE)/dist/index.html ## every test: a real browser, Kafka, PostgreSQL and, as root, a throw-away Ceph cluster included
	@.ci/apt --optional "the page's tests are skipped" chromium libatomic1
	@.ci/apt --optional "the tutorial is not typed" curl
	@.ci/apt --optional "tests on a real Kafka, PostgreSQL and Prometheus are skipped" --asleep $(SERVER_PACKAGES)
	@.ci/apt --optional "units and specifications are judged less" --asleep $(JUDGES)
	@cd $(PAGE) && $(NODE) npm test --silent
	@.venv/bin/pytest -m "not ceph and not machine" -n 2 --dist loadfile
	@if [ "$$(id -u)" = 0 ] || [ "$${CI:-}" = true ]; then $(MAKE) --no-print-directory test-ceph RELEASE=pacific; \
	  else echo "skipped: tests on a throw-away Ceph cluster, which need root (sudo make test-ceph RELEASE=pacific)"; fi

test-install: .venv/.dev $(PAGE)/dist/index.html ## packages and images, built and started on machines of their own (root, systemd)
	@.ci/apt --asleep systemd-container debootstrap buildah runc python3-ceph-common
	@.venv/bin/pytest -m machine tests/system/install

test-ceph: .venv/.dev ## the tests on a real cluster, as root (RELEASE=pacific|reef|tentacle; ONLY="and core" for the short ones)
	@if [ "$(RELEASE)" = pacific ]; then .ci/apt --asleep $(CEPH_PACKAGES); \
	  else .ci/apt debootstrap && .venv/bin/python -m tests.system.ceph.roots $(RELEASE); fi
	@CEPH_UNDER_TEST=$(RELEASE) .venv/bin/pytest -m "ceph $(ONLY)" -n $(or $(JOBS),3) --dist loadfile tests/system/ceph

bench: .venv/.dev ## rate, memory and ratio to a baseline of the same run (ARGS=--long: the full training too)
	@$(PY) -m tests.bench $(ARGS)

bench-ceph: .venv/.dev ## what clients feel while a disk is drained, put out, or dies: a real cluster, root, 15 minutes (RELEASE=...)
	@if [ "$(RELEASE)" = pacific ]; then .ci/apt --asleep $(CEPH_PACKAGES); \
	  else .ci/apt debootstrap && .venv/bin/python -m tests.system.ceph.roots $(RELEASE); fi
	@$(PY) -m tests.bench.curves --release $(RELEASE) $(ARGS)

bench-forecast: .venv/.dev ## the forecast beside its peers, on months it has not seen
	@$(PY) -m tests.bench.forecast $(ARGS)

bench-rules: .venv/.dev ## how often the rules flag SSDs in service, and SSDs that failed
	@$(PY) -m tests.bench.rules $(ARGS)

train: .venv/.run ## train the bundle that ships, from PREDRAIN_DATA (or ../shared/data)
	@test -n "$(DATA)" || { echo "set PREDRAIN_DATA to the folder that holds drives/*.parquet" >&2; exit 1; }
	$(PREDRAIN) train $(HISTORY) --exclude data/fleets/heldout_serials.txt --out models/bundles/default $(ARGS)

sim: .venv/.dev ## random fault schedules on the simulated cluster (SEED=n replays one, RANDOM_SEEDS=n so many, HOURS=n cluster-hours)
	@if [ -n "$(HOURS)" ]; then $(PY) -m tests.properties.hours $(HOURS) $(ARGS); else \
	  PREDRAIN_SIM_SEED=$(SEED) PREDRAIN_SIM_SEEDS=$(RANDOM_SEEDS) .venv/bin/pytest tests/properties -n 2 --dist loadfile; fi

chaos: .venv/.dev ## brokers, workers, collectors, database killed in turn for ten minutes: nothing is lost (SEED=n, MINUTES=n)
	@.ci/apt --asleep $(SERVER_PACKAGES)
	@$(PY) -m tests.chaos --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10) $(ARGS)

clean: ## remove what was built
	@rm -rf .venv .tools $(PAGE)/node_modules $(PAGE)/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help setup demo deb docs format lint check test test-install test-ceph bench bench-ceph bench-forecast bench-rules train sim chaos clean
