# Everything a newcomer types. `make` alone lists it.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p))))
CHROMIUM := $(firstword $(foreach c,chromium chromium-browser google-chrome google-chrome-stable,$(shell command -v $(c))))
BIN := .venv/bin
READY := .venv/ready
TORCH := .venv/torch
DEMO := mobilenet-v2 bert-base

N := 2000
SEED := $(shell date +%s)

# A file runs in one process, which builds once what its tests share; files that take long come first (conftest.py).
APART := -n 2 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test test-all slow-tests test-torch torch-functions torch-timing torch-models mutants replay fuzz fuzz-open fuzz-quantised outside exports language-models quantised
.PHONY: compile-times predicted-plans faults first-results odd-values traces open-zoo gpu-zoo kernel-texts on-gpu conformance open-conformance lint format features schema
.PHONY: docs docs-tables clean browser
.DELETE_ON_ERROR:

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1~/p' $(MAKEFILE_LIST) | column -t -s '~' 2>/dev/null \
	|| sed -n 's/^\([a-z-]*\):.*## /  make \1  /p' $(MAKEFILE_LIST)

demo: $(READY) ## compile two networks for this machine, verify them, time them beside onnxruntime
	@mkdir -p demo
	@set -e; for model in $(DEMO); do \
	  echo; echo "== $$model"; \
	  test -f demo/$$model.onnx || $(BIN)/tilec zoo export $$model -o demo/$$model.onnx; \
	  $(BIN)/tilec compile demo/$$model.onnx --device host -o demo/$$model.tilec; \
	  $(BIN)/tilec bench demo/$$model.tilec --against onnxruntime; \
	done

# Tests start many processes: modules are compiled once for all of them, beside their sources, as pip has those of packages.
test: export PYTHONDONTWRITEBYTECODE :=
test: browser $(READY) ## run the tests and check the ledger of features
	$(BIN)/pytest -q $(APART) -m "not slow" --ledger $(ARGS)

test-all: browser $(READY) ## run the slow sweeps too, and draw new random examples
	$(BIN)/pytest -q $(APART) --ledger --hypothesis-profile=anew

slow-tests: export PYTHONDONTWRITEBYTECODE :=
slow-tests: browser $(READY) ## list the tests that take more than 2 CPU seconds and are not marked slow, e.g. ARGS="tests/cli"
	$(BIN)/pytest -q $(APART) -m "not slow" --budget 2 $(ARGS)

browser:
	$(if $(CHROMIUM),,$(error The tests look at the report page in Chromium, which is not on PATH. \
	  Install it, on Debian with `apt-get install chromium`; `.ci/run` does that))
	@:

mutants: $(READY) ## plant the faults of tests/mutants/list.yaml one by one; tests must find each, e.g. ARGS="NAME --jobs 4"
	$(BIN)/python -m tests.mutants $(ARGS)

test-torch: $(TORCH) ## the tests of the backend of torch.compile; installs PyTorch first
	$(BIN)/pytest -q -n 2 tests/torch_backend $(ARGS)

torch-functions: export PYTHONPATH := tests
torch-functions: $(TORCH) ## 500 functions of torch through torch.compile beside eager PyTorch, e.g. ARGS="roll scatter"
	@$(BIN)/python -m torch_backend $(ARGS)

torch-timing: export PYTHONPYCACHEPREFIX := $(CURDIR)/build/bytecode
torch-timing: export PYTHONDONTWRITEBYTECODE :=
torch-timing: $(TORCH) ## time modules through torch.compile beside inductor and OpenVINO, e.g. ARGS="bert --peers inductor"
	$(BIN)/python -m pip install -q --disable-pip-version-check openvino
	@$(BIN)/python -m tests.torch_backend.timing $(ARGS)

torch-models: $(TORCH) ## models of packages through torch.compile, judged by eager PyTorch, e.g. ARGS="bert --types bf16"
	@$(BIN)/python -m tests.torch_models $(ARGS)

replay: $(READY) ## show what a change alters in the plans of small networks; UPDATE=1 accepts it
	$(BIN)/pytest -q -n 2 --tb=short tests/replay $(if $(UPDATE),--update-golden)

fuzz: $(READY) ## compile and verify N=2000 random models (SEED=...), and compare them with a judge of their own
	PYTHONPATH=.:tests $(BIN)/python -m fuzz $(N) $(SEED)

fuzz-open: $(READY) ## compile N=2000 random models with open sizes once each, and compare them with the judge at six sizes
	PYTHONPATH=.:tests $(BIN)/python -m fuzz.open_sizes $(N) $(SEED)

fuzz-quantised: $(READY) ## the same with N=2000 random quantised models, bit by bit
	PYTHONPATH=.:tests $(BIN)/python -m quantised.fuzz $(N) $(SEED)

outside: $(READY) ## compile and verify the ONNX files that packages on PyPI ship, e.g. ARGS="magika silero-vad"
	$(BIN)/python -m tests.outside $(ARGS)

exports: $(READY) ## compile and run small models that PyTorch exports with open sizes, e.g. ARGS="bert crnn-old"
	@$(BIN)/python -m tests.exports $(ARGS)

language-models: $(READY) ## decode small language models in the forms of their exporters, e.g. ARGS="qwen3.int4 llama"
	@$(BIN)/python -m tests.language_models $(ARGS)

compile-times: export PYTHONPYCACHEPREFIX := $(CURDIR)/build/bytecode
compile-times: export PYTHONDONTWRITEBYTECODE :=
compile-times: $(READY) ## processor seconds of compilations, cold and again, e.g. ARGS="bert-base equal-1000 --device a100"
	@$(BIN)/python -m tests.compile_times $(ARGS)

predicted-plans: $(READY) ## predicted times of the zoo's plans beside those of another checkout, e.g. ARGS="../old bert-base a100"
	@$(BIN)/python -m tests.predicted_plans $(ARGS)

quantised: $(READY) ## compile and verify small models in the forms of onnxruntime's quantiser, e.g. ARGS="bert-base qdq"
	PYTHONPATH=.:tests $(BIN)/python -m quantised $(ARGS)

first-results: export PYTHONPYCACHEPREFIX := $(CURDIR)/build/bytecode
first-results: export PYTHONDONTWRITEBYTECODE :=
first-results: $(READY) ## time programs up to their first result beside onnxruntime's, e.g. ARGS="mobilenet-v2 --compiled"
	@$(BIN)/python -m tests.first_results $(ARGS)

faults: $(READY) ## kill, interrupt and starve compilations, e.g. ARGS="kills --kills 20"; as root for small disks
	$(BIN)/python -m tests.faults $(ARGS)

odd-values: $(READY) ## give every option of every verb odd values on plans of five kinds, e.g. ARGS="gpu verify"
	PYTHONPATH=.:tests $(BIN)/python -m cli.odd_values $(ARGS)

traces: $(READY) ## sizes never compiled for, beside onnxruntime and OpenVINO, e.g. ARGS="bert-base --static 4"
	@$(BIN)/python -m tests.traces $(ARGS)

gpu-zoo: $(READY) ## compile the zoo for four GPUs in five types, e.g. ARGS="verify bert-base h100 f16": registers, spills, verdicts
	@PYTHONPATH=.:tests $(BIN)/python -m tests.gpu_zoo $(ARGS)

kernel-texts: $(READY) ## the text of GPU kernels of golden and other plans against a folder of them, e.g. ARGS="../texts a/2-plan.json"
	@PYTHONPATH=.:tests $(BIN)/python -m tests.kernel_texts $(ARGS)

on-gpu: $(READY) ## check and time kernels and models on the GPU of this machine, e.g. ARGS="softmax f16"; --list says what
	@$(BIN)/python -m tests.on_gpu.run build/on-gpu-plans $(ARGS)

open-zoo: $(READY) ## compile the zoo with open sizes for host, a100 and ipu-mk2, e.g. ARGS="bert-base a100"
	@$(BIN)/python -m tests.open_zoo $(ARGS)

conformance: $(READY) ## run ONNX's own backend cases, e.g. ARGS="-k conv --only-failed --against onnxruntime"
	$(BIN)/python -m tests.conformance $(ARGS)

open-conformance: $(READY) ## the same cases with every size open, compiled once and run at five sizes, e.g. ARGS="-k grid --import-only"
	$(BIN)/python -m tests.open_conformance $(ARGS)

lint: $(READY) ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

features: $(READY) ## print every feature of the catalogue, its status and the number of its tests
	@$(BIN)/pytest -q --features

schema: $(READY) ## write the JSON Schemas that editors check devices/, recipes/ and types/ with
	$(BIN)/tilec schema device > devices/device.schema.json
	$(BIN)/tilec schema recipe > recipes/recipe.schema.json
	$(BIN)/tilec schema type > types/type.schema.json

docs: $(READY) ## refresh what is generated in docs/, and build it as a site in site/
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python -m docs.reference
	$(BIN)/mkdocs build --strict --quiet

docs-tables: $(READY) ## plan anew for the tables and examples of docs/, e.g. ARGS="figure-2 diff"; all take an hour
	PYTHONPATH=. $(BIN)/python -m docs.planned $(ARGS)
	$(if $(ARGS),,PYTHONPATH=. $(BIN)/python -m docs.traffic)

clean: ## remove what the other targets made
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	$(if $(PYTHON),,$(error tilec needs Python 3.11 or newer on PATH))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tilec needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(TORCH): $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[torch]'
	@touch $@
