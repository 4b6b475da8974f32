# Set-up, checks and the main job; needs only Python 3.10 or newer with pip, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: run test nightly attack gpu check lint types options docs clean

# torch is asked for in its pinned version first: any other request may pull several GB.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[cpu]"
	touch $@

$(VENV)/.developing: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt \
		--group test --group lint --group docs --group benchmark
	touch $@

run: $(VENV)/.installed
	$(BIN)/dlprof run torch numpy --shape 4096x4096

# The folders with long tests come first, so that no process is left alone with one at the end.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder

# Where this is set, each of the processes that tests start would compile dlprof anew.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.developing
	$(PYTEST) -m "not cuda and not nightly"

# The frameworks' CUDA builds for the simulated device: 11 GB. TensorFlow comes last and without its
# extra, which wants another NCCL than torch. CUDA_PYTHON= leaves them out.
CUDA_VENV ?= .venv-cuda
CUDA_PYTHON ?= $(abspath $(CUDA_VENV))/bin/python
$(abspath $(CUDA_VENV))/bin/python:
	$(PYTHON) -m venv $(CUDA_VENV)
	$@ -m pip install --quiet torch==2.10.0 "jax[cuda12]==0.10.2" cupy-cuda12x==14.2.0 \
		"numba-cuda[cu12]==0.30.4"
	$@ -m pip install --quiet tensorflow==2.21.0

# Gates of equal and of slower code go on where the night before stopped: all of them take hours.
GATES ?= gates.jsonl
GATE_HOURS ?= 1
nightly: export PYTHONDONTWRITEBYTECODE :=
nightly: $(VENV)/.developing $(CUDA_PYTHON)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group nightly
	DLPROF_CUDA_PYTHON=$(CUDA_PYTHON) HYPOTHESIS_PROFILE=nightly \
		DLPROF_ATTACK_SEED=$(SEED) DLPROF_ATTACK_CASES=2000 \
		$(PYTEST) -m "not cuda"
	$(BIN)/python benchmarks/gate.py --file $(GATES) --tools dlprof --hours $(GATE_HOURS)
	-$(BIN)/python benchmarks/gate.py --file $(GATES) --table

# Other hostile cases each time. pytest prints the seed: SEED=... runs the same again.
SEED ?= $(shell date +%s)
attack: export PYTHONDONTWRITEBYTECODE :=
attack: $(VENV)/.developing
	DLPROF_ATTACK_SEED=$(SEED) DLPROF_ATTACK_CASES=2000 \
		$(BIN)/python -m pytest tests/attack -n 2 --dist worksteal

# Runs in whatever environment PYTHON has: a CUDA machine may be without a package index.
# DEVICE=simulated is a rehearsal without a GPU. Each call takes less than ten minutes. What follows
# them needs no GPU: the same verdicts on the simulated device, and a table of both.
gpu: DEVICE ?= cuda
gpu:
	$(PYTHON) benchmarks/cuda_suite.py found --device $(DEVICE) --part 1
	$(PYTHON) benchmarks/cuda_suite.py found --device $(DEVICE) --part 2
	$(PYTHON) benchmarks/cuda_suite.py found/simulated --device simulated --only loaded
	$(PYTHON) benchmarks/verdicts.py --beside found/loaded.json found/simulated/loaded.json \
		> found/beside.md

lint: $(VENV)/.developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(VENV)/.developing
	$(BIN)/mypy

check: lint types test

options: $(VENV)/.installed
	$(BIN)/dlprof list options > docs/options.md
	for name in session trace; do $(BIN)/dlprof list --schema $$name > docs/schema/$$name.json; done

docs: $(VENV)/.developing
	$(BIN)/sphinx-build --fail-on-warning --keep-going docs docs/_build/html

clean:
	rm -rf $(VENV) docs/_build build dist *.egg-info
