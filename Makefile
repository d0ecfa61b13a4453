# Every target does its own set-up in .venv; nothing has to be installed by hand.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
CLUSTER_STAMP := $(VENV)/.installed-cluster
WARM := muster/__pycache__/.warm
HAS_BROWSER = $(BIN)/python -c 'import sys; from tests.browser.conftest import find_browser; sys.exit(not find_browser())'

.PHONY: setup demo test browser test-slow soak wheel-test lint docs bench bench-record peers clean cluster-test

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	touch $@

$(CLUSTER_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,cluster]'
	touch $@

demo: setup
	$(BIN)/muster demo

# Kernels, compiled ahead whenever a source has changed: the tests' workers would otherwise compile the same ones side
# by side. The stamp lies where they do, so that `make clean` removes both.
$(WARM): $(STAMP) $(shell find muster -name '*.py')
	$(BIN)/muster warmup
	mkdir -p $(@D)
	touch $@

# On all cores.
test: setup $(WARM)
	@$(HAS_BROWSER) || echo 'no browser: tests of the page are skipped (make browser installs one)'
	$(BIN)/python -m pytest -n auto --dist worksteal

# The browser that tests of the page drive; without one they are skipped.
browser: setup
	$(HAS_BROWSER) || (apt-get update --quiet && apt-get install --yes --no-install-recommends chromium)

# The wheel, in an empty environment without torch.
wheel-test: setup
	$(BIN)/python -m pytest -m slow tests/test_wheel.py

# Workers of a Ray cluster on this machine. Ray takes 200 MB, so it is not part of what the other tests need.
cluster-test: $(CLUSTER_STAMP)
	$(BIN)/python -m pytest -m slow tests/learning/test_cluster.py

test-slow: setup
	$(BIN)/python -m pytest -m slow

# Kills, full disks, damaged files, random instances, poisoned worlds, memory: up to two hours, with a record. For its part
# with Ray: make cluster-test first.
soak: setup $(WARM)
	$(BIN)/python -m tests.soak

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, into site/; a broken link or reference is an error. Nothing is fetched.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(BENCH_STAMP)
	$(BIN)/muster bench inference

# One run of the above, kept: the figures as data, and as the tables that people read.
bench-record: $(BENCH_STAMP)
	$(BIN)/muster bench inference --json > benchmarks/inference.json
	$(BIN)/python -m benchmarks.inference_report benchmarks/inference.json > benchmarks/inference.md

# The worlds that `muster bench envs` measures ours against, in an environment of their own.
peers: .venv-peers/.installed

.venv-peers/.installed:
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check 'jumanji==1.1.2' 'pettingzoo[sisl]==1.27.0' \
		'stable-baselines3>=2.4' 'torch==2.13.0' \
		'jaxmarl==0.2.0' 'jax==0.10.2'
	touch $@

clean:
	find . -name __pycache__ -not -path './.venv*/*' -prune -exec rm -rf {} +
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site *.egg-info
