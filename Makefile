# The two commands that a fresh machine needs: `make demo` and `make test`. Both install what they
# lack: Python packages into .venv (pinned by requirements.lock), and as root Debian's packages.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

.PHONY: help demo test bench soak lint audit lab wheel lock clean

help: ## Say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

demo: ## Run the example notebook as a job on this machine; the last line is the result's path
	@scripts/install demo
	@mkdir -p demo && cp -r examples/digits demo/
	@cd demo/digits && ../../.venv/bin/jupyter-to-job submit digits.ipynb -f small -p epochs 5 --wait

test: ## Pass every test, end to end: terminal, browser, real cluster
	@scripts/test

bench: ## Measure the command line beside papermill (about five minutes)
	@scripts/install dev
	@.venv/bin/python -m benchmarks.cli

soak: ## Kill, fill up and damage everything thirty times each (about 25 minutes)
	@scripts/install dev
	@scripts/soak

lint: ## Check format, types, layers and the front end's style
	@scripts/install dev
	@scripts/lint

audit: ## Check licences, and known vulnerabilities (needs the internet)
	@scripts/install dev
	@scripts/audit

lab: ## Open JupyterLab with the button on the demo notebook
	@scripts/install lab
	@mkdir -p demo && cp -r examples/digits demo/
	@cd demo && ../.venv-lab/bin/jupyter lab digits/digits.ipynb

wheel: ## Build the wheel, front end included, into dist/
	@scripts/install wheel

lock: ## Resolve all dependencies anew into requirements.lock
	@scripts/lock

clean: ## Remove everything that was built or installed here
	rm -rf .venv .venv-lab .venv-tools dist demo node_modules labextension/lib jupyter_to_job/labextension
