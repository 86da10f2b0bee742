# Everything is installed into .venv, with the versions of constraints.txt; nothing else is touched.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo lint test check soak bench console clean

VENV := .venv
BIN := $(VENV)/bin

# What each target needs beyond the core, as extras of pyproject.toml.
DEMO_EXTRAS := sigma,spark,text
TEST_EXTRAS := avro,client,connect,dev,feeds,kafka,lab,live,postgres,search,server,sigma,spark,spatial,text
BENCH_EXTRAS := avro,client,feeds,lab,live,search,server,sigma,spark,text

# Two processes, which share two cores well: much of a test on Spark is waiting. If one of them
# crashes, the run ends: with a new process in its place, pytest-xdist can wait for ever.
IN_PARALLEL := -n 2 --dist loadfile --max-worker-restart 0

# How many times more examples `make check` draws for each property than `make test`: as many as
# leave it within an hour on two cores.
CHECK_EFFORT := 10

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed-demo ## install it and see it work, on Spark too
	$(BIN)/tamis demo

lint: $(VENV)/installed-test ## lint, format check and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: $(VENV)/installed-test ## run the tests
	$(BIN)/python -m pytest $(IN_PARALLEL)

check: lint ## lint, and all tests but soaks with more examples; within an hour on two cores
	TAMIS_EFFORT=$(CHECK_EFFORT) $(BIN)/python -m pytest $(IN_PARALLEL) -m 'not soak'

# One after the other: what is killed, and clusters, want the machine for themselves.
soak: $(VENV)/installed-test ## kills, soaks and clusters, before a release
	$(BIN)/python -m pytest -m soak -o faulthandler_timeout=14400

bench: $(VENV)/installed-bench ## run the benchmarks (BENCH="name …" to choose)
	$(BIN)/python -m benchmarks $(BENCH)

# Only after a change of console/: the result is committed.
console: ## rebuild the files of the console; needs Node.js and npm
	console/build.sh

clean: ## remove the environment, caches and build products (benchmark results stay)
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf artifacts console/node_modules derby.log metastore_db spark-warehouse
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/installed-demo: EXTRAS := $(DEMO_EXTRAS)
$(VENV)/installed-test: EXTRAS := $(TEST_EXTRAS)
$(VENV)/installed-bench: EXTRAS := $(BENCH_EXTRAS)

# Build backends (ours, and setuptools for PySpark, which comes as source) are installed first and
# used without isolation: an isolated build would fetch its own, and pip versions differ in
# whether constraints reach it.
$(VENV)/installed-demo $(VENV)/installed-test $(VENV)/installed-bench: Makefile pyproject.toml constraints.txt | $(VENV)/created
	@rm -f $@
	$(BIN)/python -m pip install --quiet --constraint constraints.txt editables hatchling setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.$(if $(EXTRAS),[$(EXTRAS)])'
	@touch $@

# PYTHON=/path/to/python chooses the interpreter; otherwise the first one that runs and is new enough.
$(VENV)/created:
	@for python in $(or $(PYTHON),python3.11 python3 python3.13 python3.12); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "$$python -m venv $(VENV)"; \
			"$$python" -m venv --clear $(VENV) && touch $@; exit; \
		fi; \
	done; \
	echo "Tamis needs Python 3.11 or newer; install it or name it: make PYTHON=/path/to/python" >&2; exit 1
