# The two commands that a fresh machine needs: `make demo` and `make test`. Both install what they
# lack: Python packages into .venv (pinned by requirements.lock), and as root Debian's packages.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# JupyterLab starts as root only when it is told to.
AS_ROOT := $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)

.PHONY: help demo test cluster docs bench bench-runner bench-server soak lint audit lab pictures wheel lock clean

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: ## Run the example notebook as a job on this machine; the last line is the result's path
	@scripts/install demo
	@mkdir -p demo && cp -r examples/digits demo/
	@cd demo/digits && ../../.venv/bin/jupyter-to-job submit digits.ipynb -f small -p epochs 5 --wait

test: ## Pass every test, end to end: terminal, browser, real cluster
	@scripts/test

cluster: ## Boot a real Kubernetes cluster with pretend GPUs, until Ctrl-C; prints its kubeconfig (root)
	@scripts/cluster

docs: ## Build the documentation site into docs/_build/html
	@scripts/install dev
	@.venv/bin/python -m sphinx -q -W --keep-going -b html -c docs . docs/_build/html

bench: ## Measure everything beside its peers, the short tables (about fifteen minutes)
	@scripts/install dev && scripts/install peer
	@missed=0; .venv/bin/python -m benchmarks.cli || missed=1; \
	  .venv/bin/python -m benchmarks.runner --quick || missed=1; \
	  .venv/bin/python -m benchmarks.server --quick || missed=1; exit $$missed

bench-runner: ## Measure the runner beside papermill and its kin in full (an hour; ARGS="--only lines")
	@scripts/install dev
	@.venv/bin/python -m benchmarks.runner $(ARGS)

bench-server: ## Measure the server beside jupyter-scheduler in full (25 minutes; ARGS="--quick")
	@scripts/install dev && scripts/install peer
	@.venv/bin/python -m benchmarks.server $(ARGS)

soak: ## Kill, fill up and damage everything thirty times each (over an hour)
	@scripts/install dev
	@scripts/soak

lint: ## Check format, types, layers and the front end's style
	@scripts/install dev
	@scripts/lint

audit: ## Check licences, and known vulnerabilities (needs the internet)
	@scripts/install dev
	@scripts/audit

lab: ## Open JupyterLab with the button on the demo notebook (ARGS=--no-browser: print its URL)
	@scripts/install lab
	@mkdir -p demo && cp -r examples/digits demo/
	@scripts/python-version .venv-lab/bin/python demo/digits/digits.ipynb
	@cd demo && ../.venv-lab/bin/jupyter lab $(AS_ROOT) --LabApp.default_url=/lab/tree/digits/digits.ipynb $(ARGS)

pictures: ## Make the README's pictures anew, after the browser tests
	@.venv/bin/python -m tests.ui.pictures

wheel: ## Build the wheel, front end included, into dist/
	@scripts/install wheel

lock: ## Resolve all dependencies anew into requirements.lock
	@scripts/lock

clean: ## Remove everything that was built or installed here
	rm -rf .venv .venv-lab .venv-oldest .venv-together .venv-peer .venv-tools dist demo docs/_build node_modules labextension/lib jupyter_to_job/labextension
