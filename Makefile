# `make demo` and `make test` are all a new machine needs; `make setup` is done by both and is quick the second time.

PYTHON := .venv/bin/python

.PHONY: help setup demo test lint format bench cases clean

help:
	@echo "make demo     refactor a released package that we did not write, from start to end"
	@echo "make test     all tests, against a real RabbitMQ"
	@echo "make lint     ruff and mypy"
	@echo "make bench    the measurements, each beside its rival"
	@echo "make cases    refactors from public history, made again and compared (clones in ROLECALL_CASES)"
	@echo "make clean    remove what these made"

setup:
	@sh tools/bootstrap.sh

demo: setup
	@$(PYTHON) -m rolecall.demo

test: setup
	@$(PYTHON) -m pytest -q

lint: setup
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy

format: setup
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .

bench: setup
	@$(PYTHON) -m benchmarks

cases: setup
	@$(PYTHON) -m benchmarks.cases

clean:
	rm -rf .venv .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
