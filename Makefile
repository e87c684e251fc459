# predrain: `make help` lists the targets. Nothing needs to be installed first but make itself: .tools and .venv are made here.
SHELL := /bin/sh
.DEFAULT_GOAL := help
PREDRAIN := .venv/bin/predrain
PY := .venv/bin/python
PORT ?= 8080
ARGS ?=
PYTHON ?=
SEED ?=
HOURS ?=
MINUTES ?=
RATE ?=
WAY ?=
RANDOM_SEEDS ?= 200
RELEASE ?= pacific
KEY ?=
ONLY ?=
VERSION ?=
DATE ?=
ROOM ?=
CEPH_PACKAGES := ceph-mon ceph-mgr ceph-osd ceph-common ceph-mgr-modules-core libsqlite3-mod-ceph python3-rados \
  python3-ceph-argparse
KAFKA_AND_POSTGRES := openjdk-17-jre-headless openssl postgresql-15
SERVER_PACKAGES := $(KAFKA_AND_POSTGRES) prometheus prometheus-alertmanager
PACKAGERS := binutils apt-utils gnupg rpm createrepo-c dnf
RPM_NEEDS := rpm binutils gcc dpkg-dev libssl-dev libffi-dev libsqlite3-dev zlib1g-dev liblzma-dev
JUDGES := systemd sudo python3-ceph-common python3-yaml man-db mandoc zsh fish
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
	@.ci/apt $(if $(PYTHON),,python3-venv) ca-certificates libgomp1
	@.ci/python $(PYTHON) >/dev/null
	@echo "setting up .tools (uv, node)"
	@.ci/timed set-up "$$(.ci/python $(PYTHON))" -m venv --clear .tools
	@.ci/timed downloads .tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/tools.txt
	@touch $@

# Each step downloads what its locked packages lack in the cache; putting them in place takes a second or two.
UV_SYNC := .ci/timed downloads .tools/bin/uv sync --quiet --frozen --inexact --python .tools/bin/python

.venv/.run: .tools/.ready uv.lock pyproject.toml
	@echo "setting up .venv (locked packages)"
	@$(UV_SYNC) --no-dev --extra service
	@touch $@

# What `make check ROOM=...` needs: the type checkers and quick tests, and neither Dask, MLflow, Matplotlib nor JAX.
.venv/.room: .venv/.run
	@$(UV_SYNC) --extra service --extra collector --extra lab
	@touch $@

.venv/.dev: .venv/.room
	@$(UV_SYNC) --all-extras --all-groups
	@touch $@

$(PAGE)/node_modules/.ready: .tools/.ready $(PAGE)/package-lock.json
	@cd $(PAGE) && $(NODE) $(CURDIR)/.ci/timed downloads npm --prefix $(CURDIR)/$(PAGE) ci --silent --no-audit --no-fund
	@touch $@

$(PAGE)/dist/index.html: $(PAGE)/node_modules/.ready $(PAGE_SOURCES)
	@echo "building the page"
	@$(NODE) .ci/timed set-up npm --prefix $(PAGE) run --silent build >/dev/null
	@touch $@

setup: .venv/.run $(PAGE)/dist/index.html ## the command at .venv/bin/predrain and the page, from locked packages

demo: setup ## a simulated cluster with real drive histories, drained before your eyes (ARGS=--once prints the table)
	@$(PREDRAIN) demo --port $(PORT) $(ARGS)

deb: .tools/.ready $(PAGE)/dist/index.html ## the Debian packages, under dist/
	@.ci/apt binutils
	@deploy/deb/build

deb-bundled: .tools/.ready $(PAGE)/dist/index.html ## Debian packages with a Python of their own, for Ubuntu, under dist/bundled
	@.ci/apt $(RPM_NEEDS)
	@deploy/rpm/interpreter .tools/python-el9
	@BUNDLED_PYTHON="$(CURDIR)/.tools/python-el9" deploy/deb/build dist/bundled

deb-parts: deb ## the size of the Debian packages, and the ten largest parts of each
	@deploy/deb/parts dist/predrain*.deb

rpm: .tools/.ready $(PAGE)/dist/index.html ## the packages for EL9, under dist/rpm
	@.ci/apt $(RPM_NEEDS)
	@deploy/rpm/build

repositories: ## signed apt and yum repositories of the packages in dist/ and dist/rpm, under dist/repository (KEY=name)
	@test -n "$(KEY)" || { echo "name a key of GnuPG: make repositories KEY=releases@example.org" >&2; exit 1; }
	@.ci/apt gnupg apt-utils rpm createrepo-c
	@deploy/repository/build "$(KEY)" dist/repository dist dist/rpm

release: .venv/.run ## one commit and a tag for VERSION=n.n.n, after checks; nothing is pushed (DATE=day; ARGS=--dry-run)
	@test -n "$(VERSION)" || { echo "release: name the version: make release VERSION=0.2.0" >&2; exit 1; }
	@$(PY) -m deploy.release "$(VERSION)" $(if $(DATE),--date "$(DATE)") $(ARGS)

release-artefacts: .tools/.ready $(PAGE)/dist/index.html ## wheel, source archive, Debian packages, SBOMs and sums, below dist/, signed where KEY=name
	@.ci/apt binutils $(if $(KEY),gnupg)
	@deploy/release/build "" "$(KEY)"

man: .venv/.run ## man pages and completions of bash, zsh and fish, below dist/share
	@.venv/bin/python -m predrain.service.cli.terminal_files dist/share

docs: .venv/.dev ## the documentation as a site, under dist/docs; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

contract: .venv/.dev $(PAGE)/node_modules/.ready ## generate the OpenAPI document and the types of client and page from the REST models
	@$(PY) -m tests.docs.contract

format: .venv/.dev ## rewrite the code in the house's format
	@.venv/bin/ruff format -q . && .venv/bin/ruff check -q --fix .

# The parts of lint and of the quick tests, as `python -m tests.check_runner` runs them side by side.
PARTS := $(PY) -m tests.check_runner
PYTEST := .venv/bin/pytest -n 2 --dist worksteal
# Tests on real servers wait for most of their time: two at once leave a third of the two cores idle.
PYTEST_SYSTEM := .venv/bin/pytest -n 3 --dist worksteal
FORMAT := format='.venv/bin/ruff format --check -q . && .venv/bin/ruff check -q . || { echo "run: make format"; exit 1; }'
LAYERS := layers='.venv/bin/lint-imports --no-logo'
MYPY := mypy='.venv/bin/mypy'
PYRIGHT := basedpyright='.venv/bin/basedpyright --level error'
PROSE := prose='$(PY) -m tests.prose.checker'
PAGE_CHECK := page='cd $(PAGE) && $(NODE) npm run --silent check'
PAGE_TESTS := page-tests='cd $(PAGE) && $(NODE) npm test --silent'
LINT := $(FORMAT) $(LAYERS) $(PROSE) $(MYPY) $(PYRIGHT) $(PAGE_CHECK)
# Benchmarks, chaos and other programs that no test runs name only what exists.
PROGRAMS := programs='.venv/bin/basedpyright -p tests/pyrightconfig.json --level error'

lint: .venv/.dev $(PAGE)/node_modules/.ready ## format, lint, prose, both type checkers, layers
	@$(PARTS) $(LINT)

check: begin-times $(if $(ROOM),.venv/.room,.venv/.dev $(PAGE)/node_modules/.ready) ## lint beside the quick tests (ROOM=actions: one package and those that import it)
	@$(if $(ROOM),$(PY) -m tests.rooms $(ROOM),$(PARTS) --last --minutes 3 quick-tests='$(PYTEST) -m "not slow and not system"' $(LINT))

test: begin-times .venv/.dev $(PAGE)/dist/index.html ## lint, all unit and property tests, and one real part of each kind
	@.ci/apt --optional "the page's tests are skipped" chromium libatomic1
	@.ci/apt --optional "the tutorial is not typed" curl
	@.ci/apt --optional "tests on a real Kafka, PostgreSQL and Prometheus are skipped" --asleep $(SERVER_PACKAGES)
	@if [ "$$(id -u)" = 0 ]; then .ci/apt --asleep $(CEPH_PACKAGES); \
	  else echo "skipped: one drain on a throw-away Ceph cluster, which needs root (sudo make test-ceph)"; fi
	@$(PARTS) --last --minutes 15 tests='$(PYTEST_SYSTEM) -m "not ceph and not machine and not long and (not system or core)"' \
	  $(LINT) $(PROGRAMS) $(PAGE_TESTS) ceph='[ "$$(id -u)" != 0 ] || CEPH_UNDER_TEST=pacific .venv/bin/pytest -m "ceph and core" tests/system/ceph'

test-all: begin-times .venv/.dev $(PAGE)/dist/index.html ## every test but the nightly ones: all real servers, and Ceph of three releases (root)
	@.ci/apt chromium libatomic1 curl debootstrap
	@.ci/apt --asleep $(SERVER_PACKAGES) nginx $(JUDGES) $(PACKAGERS) $(CEPH_PACKAGES)
	@for release in reef tentacle; do .ci/timed downloads $(PY) -m tests.system.ceph.roots $$release || exit 1; done
	@$(PARTS) --last --minutes 60 tests='nice -n 3 $(PYTEST_SYSTEM) --durations=60 -m "not ceph and not machine"' $(LINT) $(PROGRAMS) $(PAGE_TESTS) \
	  ceph='$(call TEST_RELEASE,pacific,); pacific=$$?; $(call TEST_RELEASE,reef, and release); reef=$$?; \
	  $(call TEST_RELEASE,tentacle, and release) && [ "$$pacific$$reef" = 00 ]'

# The tests of one release wait for most of their time, and end last: the others yield the cores to them. A failure in one
# release does not keep the others from running.
TEST_RELEASE = CEPH_UNDER_TEST=$(1) $(CEPH_TESTS) -n 3 -m "ceph$(2)"

test-nightly: test-install test-containers attack bench endure chaos ## what is slow and shown once: machines and images, attacks, benchmarks, faults, seeds of the adversary
	@$(MAKE) sim SEEDS=1000
	@for game in deaths operations pools interruptions; do $(MAKE) sim SEEDS=100 ARGS="--game $$game" || exit 1; done
	@$(MAKE) sim RANDOM_SEEDS=120
	@PREDRAIN_KILL_STRIDE=1 $(PYTEST) tests/actions/test_killed.py tests/actions/test_killed_kept.py

test-install: .venv/.dev $(PAGE)/dist/index.html ## packages and images, built and started on machines of their own; artefacts of two clones (root, systemd)
	@.ci/apt --asleep systemd-container debootstrap buildah runc python3-ceph-common $(PACKAGERS) $(RPM_NEEDS)
	@.venv/bin/pytest -m machine tests/system/install tests/release

test-containers: .venv/.dev ## Compose and cephadm under podman, the manifests on an API server of Kubernetes (root, Go; IMAGES_UNDER_TEST=FOLDER keeps the images)
	@.ci/apt --asleep systemd-container debootstrap buildah runc podman netavark aardvark-dns curl $(KAFKA_AND_POSTGRES)
	@.venv/bin/pytest -m machine tests/system/containers tests/system/kubernetes

CEPH_TESTS := .venv/bin/pytest tests/system/ceph --dist loadfile

test-ceph: .venv/.dev ## the tests on a real cluster, as root (RELEASE=pacific|reef|tentacle; ONLY="and release" for what differs)
	@if [ "$(RELEASE)" = pacific ]; then .ci/apt --asleep $(CEPH_PACKAGES); \
	  else .ci/apt debootstrap && .venv/bin/python -m tests.system.ceph.roots $(RELEASE); fi
	@CEPH_UNDER_TEST=$(RELEASE) $(CEPH_TESTS) -m "ceph $(ONLY)" -n $(or $(JOBS),3)

bench: .venv/.dev ## rate, memory and ratio to a baseline of the same run (ARGS=--long: the full training too)
	@$(PY) -m tests.bench $(ARGS)

bench-growth: .venv/.dev ## what 500 to 50,000 disks take, and where each figure bends, as a table and dist/growth.png (ARGS=--large: 300,000 too)
	@$(PY) -m tests.bench.growth --picture dist/growth.png $(ARGS)

bench-ceph: .venv/.dev ## latency of clients while a disk is drained, put out, or dies: a real cluster, root, 20 minutes (RELEASE=...)
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

sim: .venv/.dev ## simulated clusters: the adversary (SEEDS=n FROM=n), or random fault schedules (SEED=n replays one, RANDOM_SEEDS=n so many, HOURS=n cluster-hours)
	@if [ -n "$(SEEDS)" ]; then $(PY) -m tests.properties.adversary --seeds $(SEEDS) --from $(or $(FROM),0) $(ARGS); \
	elif [ -n "$(HOURS)" ]; then $(PY) -m tests.properties.hours $(HOURS) $(ARGS); else \
	  PREDRAIN_SIM_SEED=$(SEED) PREDRAIN_SIM_SEEDS=$(RANDOM_SEEDS) .venv/bin/pytest tests/properties/test_controller_schedules.py -n 2; fi

chaos: .venv/.dev ## everything killed, frozen and cut off while 1,000 readings a second come, over Kafka and over HTTP (SEED=n, MINUTES=n, RATE=n, WAY=kafka|http)
	@.ci/apt --asleep $(KAFKA_AND_POSTGRES)
	@$(PY) -m tests.chaos --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10) --rate $(or $(RATE),1000) $(if $(WAY),--way $(WAY)) $(ARGS)

endure: .venv/.dev ## 500 readings a second and 50 event streams at one service: memory and descriptors stay flat (MINUTES=n, RATE=n)
	@$(PY) -m tests.endure --minutes $(or $(MINUTES),10) --rate $(or $(RATE),500) $(ARGS)

measure: .venv/.dev ## how the code base stands to its limits: names, lengths, functions a request enters (ARGS=--strict fails on a miss)
	@$(PY) -m tests.measure $(ARGS)

# The times of one run begin here: downloads and set-up are prerequisites of the targets that print them.
begin-times: ## begin to measure what a target takes
	@.ci/timed

attack: .venv/.dev ## attacks on services of their own: what was tried, refused, and got through
	@$(PY) -m tests.attack

clean: ## remove what was built
	@rm -rf .times .times.began .venv .tools $(PAGE)/node_modules $(PAGE)/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: begin-times help setup demo deb deb-bundled deb-parts rpm repositories release release-artefacts man docs contract format lint check test test-all test-nightly test-install test-containers test-ceph bench bench-growth bench-ceph bench-forecast bench-rules train sim chaos endure attack measure clean
