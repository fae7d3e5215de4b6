# Two commands on a fresh machine: `make demo` runs a whole round on real code, `make test` runs the tests.
# Both make the environment in .venv first. Nothing here needs root.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Most tests wait for processes of their own, so that twice the cores are kept busy; long ones fill a core each.
WORKERS ?= 4
LONG_WORKERS ?= 2
DEMO ?= build/demo
KILLS ?= 200
SEED ?= 1
NEUTRAL := /tmp/roundkit-evidence
POLICY := /tmp/roundkit-policy-evidence
POLICY_EVIDENCE := evidence/knobs/pilots/p-versus-s
WAVES := /tmp/roundkit-waves-evidence
REPORTS := audit_evidence explore_ledger pilot_report policy_report round_report waves_report

# Tests start thousands of processes, and each would compile again what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env demo example test test-slow test-clis test-gpu chaos bench docs docs-links lint format lock evidence \
  policy-evidence waves-evidence dist clean

help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

env: $(READY) ## Make the environment in .venv

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "roundkit needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "this Python cannot make a virtual environment; on Debian or Ubuntu install python3-venv" >&2; exit 2; }
	@# uv first, from the same lock file: it installs the rest several times faster than pip.
	@awk '/^uv==/ {on = 1} on {print} on && !/\\$$/ {exit}' requirements.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(VENV)/uv.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@

demo: $(READY) ## Run a whole round on real code, to an HTML report
	@$(BIN)/roundkit demo --out $(DEMO)

# Fetches two releases of a public package, and takes some thirty minutes.
example: $(READY) ## Replay two releases of a public package, and write docs/example.md anew
	@PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH=tests $(BIN)/python -m worked_example

test: $(READY) ## Run the tests (minutes)
	@$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not clis and not gpu"

test-slow: $(READY) ## Run the long tests (crash loops, whole demo rounds)
	@$(BIN)/python -m pytest -n $(LONG_WORKERS) -m slow

test-clis: $(READY) ## Run the real agents against a stub provider (installs them: some 900 MB in build/clis)
	@PYTHONPATH=tests $(BIN)/python -m clis.install build/clis
	@$(BIN)/python -m pytest -n 0 -m clis tests/clis

test-gpu: $(READY) ## Run the tests of real NVIDIA devices; says so where there is none
	@if $(BIN)/python -c 'import sys; from roundkit.host.devices import platform_named; \
	  cuda = platform_named("cuda"); found = cuda.list(); \
	  print("no NVIDIA device here:", cuda.inspect("GPU-").problem) if not found else print(*found); \
	  sys.exit(not found)'; \
	then $(BIN)/python -m pytest -n 0 -m gpu tests/gpu; fi

chaos: $(READY) ## Kill coordinators and wrappers at random (KILLS, SEED) and count what was lost
	@PYTHONPATH=tests $(BIN)/python -m support.chaos --kills $(KILLS) --seed $(SEED)

bench: $(READY) ## Measure roundkit's own speed and write docs/performance.md anew (ROWS="scope submit" for some)
	@PYTHONPATH=tests $(BIN)/python -m bench --measurement docs/explanation/measurement.md $(ROWS)

docs: $(READY) ## Build the pages into build/docs, offline; a warning or a link that leads nowhere fails
	@$(BIN)/python -m sphinx -q -W --keep-going -n -b html -d build/docs-trees docs build/docs
	@echo build/docs/index.html

docs-links: $(READY) ## Ask whether the pages elsewhere that the docs name are still there (needs a network)
	@$(BIN)/python -m sphinx -q -n -b linkcheck -d build/docs-trees docs build/docs-links

lint: $(READY) ## Check style, types and import directions
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# From 4.25 on, `import jsonschema` builds a parser of IRIs that nothing here asks for: a second for every notebook,
# kernel, report and chart. The lock file holds it back; whoever installs roundkit elsewhere takes what is newest.
lock: $(READY) ## Write the lock file anew from pyproject.toml
	@echo 'jsonschema<4.25' | $(BIN)/uv pip compile --constraint /dev/stdin --quiet --upgrade --universal --python-version 3.11 --generate-hashes --extra cluster --group dev \
	  --custom-compile-command "make lock" pyproject.toml --output-file requirements.lock

# In a neutral folder and with the system's interpreter, so that no author's paths are published.
evidence: $(READY) policy-evidence ## Regenerate the committed evidence (after a change of its format or of a rule)
	@$(BIN)/roundkit demo --python /usr/bin/python3 --out $(NEUTRAL)
	@rm -rf evidence/code-search
	@mkdir -p evidence
	@cp -r $(NEUTRAL)/campaign/evidence/code-search evidence/code-search
	@# Notebooks whose outputs are committed: whatever shows the evidence above.
	@for name in $(REPORTS); do $(BIN)/roundkit notebook $$name --out notebooks/$$name.ipynb || exit 1; done

# Needs two cores, and some five minutes.
policy-evidence: $(READY) ## Regenerate the committed evidence of the policy pilot alone
	@rm -rf $(POLICY)
	@$(BIN)/roundkit pilot example $(POLICY) --python /usr/bin/python3 --repetitions 3
	@$(BIN)/roundkit pilot prepare $(POLICY)/pilot.yaml --out $(POLICY)/pilot
	@$(BIN)/roundkit pilot run $(POLICY)/pilot
	@$(BIN)/roundkit pilot audit $(POLICY)/pilot
	@rm -rf $(POLICY_EVIDENCE) $(POLICY_EVIDENCE).html
	@mkdir -p $(dir $(POLICY_EVIDENCE))
	@cp -r $(POLICY)/pilot $(POLICY_EVIDENCE)
	@$(BIN)/roundkit pilot report $(POLICY_EVIDENCE) --out $(POLICY_EVIDENCE).html

# Needs a C compiler, and some ten minutes: a stub of a provider takes its time.
waves-evidence: $(READY) ## Regenerate the committed wave campaign alone
	@rm -rf $(WAVES)
	@PYTHONPATH=tests $(BIN)/python -m support.waves_evidence $(WAVES)
	@rm -rf evidence/c-functions
	@cp -r $(WAVES)/export evidence/c-functions
	@$(BIN)/roundkit notebook waves_report --out notebooks/waves_report.ipynb

# From a clone, so that nothing but what is committed is built.
dist: $(READY) ## Build wheel and source distribution of the last commit into dist/
	@rm -rf build/dist dist
	@git clone --quiet . build/dist
	@$(BIN)/uv build --quiet --python $(BIN)/python --no-build-isolation --out-dir dist build/dist
	@rm -rf build/dist
	@ls dist

clean: ## Remove the environment and everything that was built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
