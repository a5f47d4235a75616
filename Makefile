# From a fresh clone, `make train` gives a trained encoder and its report, and `make test` checks behaviour.
PYTHON ?= python3
DATA ?= real
# More options for the training jobs, such as ARGS="--training.steps 30"
ARGS ?=

BIN := .venv/bin
CONFIG := jobs/configs/$(DATA).yaml
# What is kept in data/ once it was prepared
real := data/emoji data/tuxpaint
shapes := data/shapes
# For jobs/reproduce.py globetrotter --data real
comparison := data/emoji data/tuxpaint data/dictionaries
# For jobs/reproduce.py grounded --data real, in English and in German
grounded := $(addprefix data/en/,emoji tuxpaint novels senteval concreteness)
grounded-de := $(addprefix data/de/,emoji tuxpaint novels senteval)
# For jobs/reproduce.py grounded --data shapes
grounded-shapes := $(addprefix data/en/,shapes novels senteval concreteness)
# For jobs/reproduce.py rc3 --size tiny, and for --size base
rc3 := $(addprefix data/,shapes_streams shapes_streams-rois shapes_tasks shapes_tasks-rois)
rc3-base := $(rc3) $(addprefix data/,tuxpaint-multilingual tuxpaint-multilingual-rois emoji-multilingual helptexts)

.PHONY: install data train test proofs lint clean
.DELETE_ON_ERROR:

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("raysys needs Python 3.11 or newer; set PYTHON=…" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[baselines,datasets,weights,export,trackers,dev]"
	touch $@

data: $($(DATA):=/.prepared)

data/%/.prepared: | .venv/installed
	$(BIN)/python jobs/prepare.py $* --out data/$*
	touch $@

# With the regions of their pictures: the boxes that the drawn world lists, cells of a grid otherwise
SEVEN := en de fr ja zh-Hans id cs
REGIONS := $(BIN)/python jobs/extract_rois.py --features package:efficientnet-lite0

data/shapes_streams-rois/.prepared: data/shapes_streams/.prepared
	$(REGIONS) --detector boxes --data data/shapes_streams/strict --out data/shapes_streams-rois/strict
	touch $@

data/shapes_tasks-rois/.prepared: data/shapes_tasks/.prepared
	$(REGIONS) --detector boxes --data data/shapes_tasks/images --out data/shapes_tasks-rois/images
	touch $@

data/tuxpaint-multilingual-rois/.prepared: data/tuxpaint-multilingual/.prepared
	$(REGIONS) --detector grid --data data/tuxpaint-multilingual/train --out data/tuxpaint-multilingual-rois/train
	touch $@

# Pictures with texts in several languages each
data/%-multilingual/.prepared: | .venv/installed
	$(BIN)/python jobs/prepare.py $* --multilingual True --out data/$*-multilingual --languages $(SEVEN) --cache data/.cache
	touch $@

data/helptexts/.prepared: | .venv/installed
	$(BIN)/python jobs/prepare.py helptexts --out data/helptexts --languages $(SEVEN) --cache data/.cache
	touch $@

# Data sets in one language alone
data/en/%/.prepared: | .venv/installed
	$(BIN)/python jobs/prepare.py $* --out data/en/$* --languages en --cache data/.cache
	touch $@

data/de/%/.prepared: | .venv/installed
	$(BIN)/python jobs/prepare.py $* --out data/de/$* --languages de --cache data/.cache
	touch $@

# The same run without L_t comes first: the report of the main run shows it beside.
train: install data
	$(BIN)/python jobs/globetrotter.py --config $(CONFIG) --run.name $(DATA)-without-transitive --objective.weights.transitive 0 $(ARGS)
	$(BIN)/python jobs/globetrotter.py --config $(CONFIG) --evaluation.beside $(DATA)-without-transitive $(ARGS)

test: install
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile --durations 10

# Proofs that take long: thousands of damaged inputs, cuts at every byte, interrupted preparations.
proofs: install
	$(BIN)/python -m pytest -m slow --numprocesses 2 --dist loadfile --durations 15

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv data runs
