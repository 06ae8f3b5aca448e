PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PEERS := .venv/peers
PROJECTS := pyproject.toml reproduction/pyproject.toml
LOWEST := .venv-lowest/ready
FOR_LOWEST := tests/unit tests/cli reproduction/tests/data tests/contract/test_samplers.py tests/contract/test_packaging.py \
	tests/networks/test_adapters.py tests/networks/test_modules.py tests/reproducibility/test_resume.py
# Older emitters of XLA, fewer passes and one piece of code per program compile in half of the time. Only the tests are mostly compiling.
# XLA ends a process over a flag that its version does not know.
FLAGS := --xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1 --xla_cpu_parallel_codegen_split_count=1
IS_KNOWN := -c "import jax; jax.devices()" > /dev/null 2>&1
QUICK_TO_COMPILE = $(XLA_FLAGS) $(shell for flag in $(FLAGS); do XLA_FLAGS=$$flag $(BIN)/python $(IS_KNOWN) && echo $$flag; done)
# Python 3.12 measures coverage at no cost; on 3.11 the tests would take a quarter longer.
COVERAGE = $(shell $(BIN)/python -c "import sys; print('--cov' if sys.version_info >= (3, 12) else '')")
# Reading all other modules would take longer than some of these tests.
AS_USERS = $(shell grep -rl --include="test_*.py" as_users tests reproduction/tests)

.PHONY: demo test test-long test-lowest test-faults test-cluster mutants lint format bench clean

demo: $(READY)
	$(BIN)/isotherm demo --out demo

test: lint
	XLA_FLAGS="$(QUICK_TO_COMPILE)" COVERAGE_CORE=sysmon $(BIN)/pytest -n 2 --dist worksteal -m "not long and not as_users" $(COVERAGE)
	$(BIN)/pytest -n 2 --dist worksteal -m "as_users and not long" $(AS_USERS)

test-long: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m long

# The lowest versions of what is declared; releases of that time use names that JAX has deprecated since.
test-lowest: $(LOWEST)
	XLA_FLAGS="$(QUICK_TO_COMPILE)" .venv-lowest/bin/python -m pytest -W ignore::DeprecationWarning -m "not long and not as_users" $(FOR_LOWEST)

# 200 faults at random moments, in five to fifteen minutes: kills, full disks, truncated files and flipped bits.
test-faults: $(READY)
	$(BIN)/python -m tests.faults.campaign

# Real schedulers, started on this machine: installs Slurm and Open MPI where it may.
test-cluster: $(READY)
	$(BIN)/python -m tests.cluster.install
	ISOTHERM_TEST_CLUSTER=1 $(BIN)/pytest -v -rs tests/cluster

mutants: $(READY)
	$(BIN)/python -m tests.mutants.run

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(PEERS)
	$(BIN)/isotherm bench --peers

clean:
	rm -rf .venv .venv-lowest demo

$(READY): $(PROJECTS) constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all]" -e "./reproduction[spreadsheets]" --group test
	touch $(READY)

$(LOWEST): $(PROJECTS) constraints-lowest.txt
	test -x .venv-lowest/bin/python || python3.11 -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e ".[all]" -e "./reproduction[spreadsheets]" hatchling hatch-fancy-pypi-readme pytest xlwt
	touch $(LOWEST)

$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group peers
	touch $(PEERS)
