# Two commands do everything, set-up included: make book, make test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
FRESH := _build/book
export PATH := $(abspath $(BIN)):$(PATH)
# Small networks gain nothing from threads, and lose tenfold when something else runs beside them.
export OMP_NUM_THREADS ?= 1
# As many chapters at a time as there are cores, the cells of one in their order.
CHAPTERS := -q -o addopts= -n auto --dist loadfile --nbval-current-env --nbval-cell-timeout=600
AGAIN := nsatp peacepact  # whose cells run once more in `make strict`
BUILD := jupyter-book build --path-output . --warningiserror --keep-going --quiet

.PHONY: book notebooks html browse lab figures test units chapters strict lint bench clean help
.DEFAULT_GOAL := help

help:  ## show these lines
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

$(READY): pyproject.toml book/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Installing into $(VENV): PyTorch and the book's tools, 2 GB, or 7 GB with CUDA;" \
		"3 to 15 minutes without a word"
	@$(PYTHON) -m venv $(VENV)
	@$(if $(TORCH_INDEX),$(BIN)/python -m pip install -q torch torchvision --index-url $(TORCH_INDEX))
	@$(BIN)/python -m pip install -q $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e '.[all]' -e 'book[lab]'
	@touch $@

book: $(READY)  ## run every notebook on the embedded images into _build, then build the book there
	dnnbook notebooks --into $(FRESH)/notebooks
	@for part in _config.yml _toc.yml book sweeps; do ln -sfn "$(CURDIR)/$$part" $(FRESH)/$$part; done
	$(BUILD) $(FRESH)
	@echo "The book: file://$(abspath _build/html/index.html)"

notebooks: $(READY)  ## run every notebook and keep its outputs, for a commit
	dnnbook notebooks

html: $(READY)  ## build the book from the committed outputs
	$(BUILD) .
	@echo "The book: file://$(abspath _build/html/index.html)"

browse: $(READY)  ## read every page of the built book in Chromium: errors, links, figures, themes
	python -m pytest -q tests/browser

lab: $(READY)  ## open the book in JupyterLab, in a folder of your own: make lab LAB=~/course
	dnnbook lab $(if $(LAB),"$(LAB)")

figures: $(READY)  ## every figure of the book as SVG and PNG, for slides
	dnnbook figures --out _build/figures

units: $(READY)  ## the tests of the code alone
	python -m pytest -n auto --timeout 600

test: units $(if $(MADE),strict,chapters)  ## units, then chapters; after make book, MADE=1: strict

chapters: $(READY)  ## run the notebooks again: their marked cells against the committed outputs
	TQDM_DISABLE=1 python -m pytest $(CHAPTERS) --nbval-lax notebooks

strict: $(READY)  ## the notebooks that `make book` made: against the committed; and run again
	@test -d $(FRESH)/notebooks || { echo "first: make book"; exit 1; }
	DNNLIB_FRESH="$(abspath $(FRESH)/notebooks)" python -m pytest tests/book/test_fresh.py
	rm -rf $(FRESH)/again
	python tests/book/again.py $(FRESH)/notebooks $(FRESH)/again $(AGAIN)
	TQDM_DISABLE=1 python -m pytest $(CHAPTERS) --nbval $(FRESH)/again

lint: $(READY)  ## types, and the style of code, prose and pages
	ruff check
	mypy
	python -m pytest -n auto tests/style

bench: $(READY)  ## speed against simpler ways, as ratios in one run, and their goals
	@for file in benchmarks/bench_*.py; do TQDM_DISABLE=1 python $$file || exit 1; done
	@python benchmarks/goals.py

clean:  ## remove what was built, but not your notebooks in _build/lab, the environment or the cache
	find _build -mindepth 1 -maxdepth 1 ! -name lab -exec rm -rf {} + 2>/dev/null || true
	rm -rf runs .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
