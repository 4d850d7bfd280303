# `make help` lists the targets. Only Debian's packages and PyPI are needed (test-kafka: Maven too); nothing is left running.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-from-lock
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
APT := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get

.DEFAULT_GOAL := help
.PHONY: bench help setup servers demo run check test test-fast test-kafka lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv from the lock file (all others start with it)

$(STAMP): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "msgexchange needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "installing python3-venv"; $(APT) update -q && $(APT) install -q -y --no-install-recommends python3-venv; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@touch $@

$(BIN)/promtool: $(STAMP) # out of Debian's package, whose server is not wanted here
	@rm -rf $(VENV)/prometheus && mkdir -p $(VENV)/prometheus
	@cd $(VENV)/prometheus && { apt-get download -q prometheus || { $(APT) update -q && apt-get download -q prometheus; } \
		&& dpkg-deb -x prometheus_*.deb . && mv usr/bin/promtool ../bin/promtool; }
	@rm -rf $(VENV)/prometheus && touch $@

servers: $(BIN)/promtool ## install the programs the tests start (MariaDB, libfaketime, promtool; PostgreSQL and the broker come with .venv)
	@{ [ -x /usr/sbin/mariadbd ] && [ -x /usr/bin/my_print_defaults ]; } || { echo "installing MariaDB's programs"; \
		$(APT) update -q && $(APT) install -q -y --no-install-recommends mariadb-server-core mariadb-client-core; }
	@{ [ -x /usr/sbin/mariadbd ] && [ -x /usr/bin/my_print_defaults ]; } \
		|| { echo "no mariadbd or my_print_defaults: install mariadb-server-core and mariadb-client-core"; exit 1; }
	@ls /usr/lib*/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || { echo "installing libfaketime"; \
		$(APT) update -q && $(APT) install -q -y --no-install-recommends libfaketime; }

demo: setup ## a real day of flights through the whole pipeline in about a minute, then it keeps serving
	$(BIN)/python run.py demo $(ARGS)

run: setup ## serve with the embedded profile, or ARGS="--config FILE"
	$(BIN)/python run.py $(ARGS)

check: setup ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup servers ## every test, with real servers started for it
	$(BIN)/pytest $(ARGS)

test-fast: setup $(BIN)/promtool ## units and contracts that need no server, under a minute
	$(BIN)/pytest -q -m "not postgres and not mysql and not kafka and not process and not apache_kafka" $(ARGS)

test-kafka: setup servers ## exactly-once delivery on Apache Kafka itself (needs Java 17 and Maven)
	$(BIN)/pytest -m apache_kafka $(ARGS)

bench: setup servers ## speed beside floors measured in the same run, on servers of its own
	$(BIN)/python run.py bench $(ARGS)

lock: ## renew requirements.lock from setup.cfg (needs uv)
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		--extra test setup.cfg -o requirements.lock

clean: ## remove .venv, caches and the demo's data
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache msgexchange-data
