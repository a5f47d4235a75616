"""Exports as a run stores them: whole, with a card that knows the data and, once there are any, the scores."""

import json
import uuid

import numpy as np
import pytest

from raysys.errors import RunFailed, UserError
from raysys.runs.card import data_facts, update_card
from raysys.runs.export import FORMATS, is_export, load_export, store
from raysys.runs.run import SavedRun, open_folder
from raysys.runs.settings import GlobetrotterSettings
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage, join
from raysys.systems.export import agreement
from raysys.systems.export.agreement import SENTENCES
from tests.data.worlds import load
from tests.shards.tars import picture
from tests.systems.export.encoders import make

METRICS = {"eval/translation_R@1": 0.25}
RESULTS = {"tiny": {"test": {"items": 4, "metrics": METRICS, "chance": METRICS}}}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make("text-only", tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two data sets: captions in German or English, licences in one of them."""
    folder = tmp_path_factory.mktemp("data")
    for name, fields in {"one": {"licence": "CC0-1.0"}, "two": {}}.items():
        captions = [{"de": ["eins", "zwei"]}, {"en": ["one"]}, {"de": ["drei"], "en": ["three"], "fr": ["trois"]}]
        metadata = [{"captions": each, "alignment": "strict"} | fields for each in captions]
        samples = (Sample("train", f"s{n}", picture(n), "png", each) for n, each in enumerate(metadata))
        write_shards(samples, str(folder / name), 1, Storage())
        load([str(folder / name)])  # which leaves a manifest there, as training does
    return folder


@pytest.fixture(params=["local", "s3"])
def run(request, data, tmp_path):
    """A run without checkpoints: its encoder comes from elsewhere."""
    storage = str(tmp_path / "runs")
    if request.param == "s3":
        storage = join(request.getfixturevalue("object_store").bucket_uri, uuid.uuid4().hex)
    wanted = {
        "run": {"name": "tiny", "storage": storage},
        "data": {"folder": str(data), "train": ["one", "two"], "languages": ["de", "en"]},
    }
    settings = GlobetrotterSettings.model_validate(wanted)
    folder = open_folder(Storage(), join(storage, "tiny"))
    folder.save_settings(settings)
    return SavedRun(settings, folder)


def card(run: SavedRun) -> str:
    return run.folder.read_text("export/README.md")


def test_the_data_s_samples_captions_and_licences_are_counted(run):
    one, two = data_facts(run)
    assert (one.name, two.name) == ("one", "two")
    for facts in (one, two):
        assert facts.samples == {"de": 2, "en": 2}
        assert facts.captions == {"de": 3, "en": 2}
    assert (one.licences, two.licences) == (("CC0-1.0",), ())


def test_a_stored_export_is_whole_and_told_in_lines(run, encoder):
    lines: list[str] = []
    to = run.folder.path("export")
    store(run, encoder, to, ("transformers", "sentence-transformers"), lines.append)
    assert lines[0].startswith(f"exported step 3 to {to} in ")
    assert [line.split(" (")[0] for line in lines[1:]] == [f"  transformers: {to}", f"  sentence-transformers: {to}/sentence-transformers"]
    assert all("largest difference from the trained encoder" in line for line in lines[1:])
    np.testing.assert_array_equal(load_export(run.folder.storage, to).encode_texts(SENTENCES), encoder.encode_texts(SENTENCES))
    for part in ("| de | 2 / 3 | 2 / 3 |", "one: CC0-1.0", "| global batch | 440 |", "### sentence-transformers", "Not scored yet."):
        assert part in card(run)
    assert "license: cc0-1.0" in card(run)

    # Another export to the same place leaves no format of the old weights behind.
    store(run, encoder, to, ("transformers",), lines.append)
    assert not run.folder.storage.exists(join(to, "sentence-transformers", "modules.json"))
    assert "### sentence-transformers" not in card(run)


def test_folders_of_a_person_are_left_alone(run, encoder):
    run.folder.write_text("mine/onnx/notes.txt", "mine")
    store(run, encoder, run.folder.path("mine"), FORMATS[:1])
    assert run.folder.read_text("mine/onnx/notes.txt") == "mine"


def test_scores_of_the_exported_step_reach_the_card(run, encoder):
    update_card(run)  # without export there is no card, and nothing to do
    store(run, encoder, run.folder.path("export"), FORMATS[:1])
    for step, shown in ((2, False), (3, True)):
        run.folder.write_text("scores.json", json.dumps({"step": step, "data": {}, "results": RESULTS}))
        update_card(run)
        assert ("  tiny     .250" in card(run)) == shown
    store(run, encoder, run.folder.path("export"), FORMATS[:1])
    assert "  tiny     .250" in card(run), "a run that was scored before it is exported again"


def test_data_that_has_moved_away_is_no_hindrance(run, encoder, tmp_path):
    data = run.settings.data.model_copy(update={"folder": str(tmp_path / "gone")})
    moved = SavedRun(run.settings.model_copy(update={"data": data}), run.folder)
    assert data_facts(moved) == []
    store(moved, encoder, run.folder.path("export"), FORMATS[:1])
    assert "The data were not at hand" in card(run)


@pytest.mark.parametrize("format_", FORMATS)
def test_what_differs_is_not_stored(run, encoder, monkeypatch, format_):
    monkeypatch.setattr(agreement, "TOLERANCE", -1.0)
    with pytest.raises(RunFailed, match="the export is not usable"):
        store(run, encoder, run.folder.path("export"), [format_])
    assert not is_export(run.folder.storage, run.folder.path("export"))


def test_a_package_that_is_missing_is_named_and_nothing_is_stored(run, encoder, monkeypatch):
    found = agreement.importlib.util.find_spec
    monkeypatch.setattr(agreement.importlib.util, "find_spec", lambda name: None if name == "onnxscript" else found(name))
    with pytest.raises(UserError, match=r"the format onnx needs the package onnxscript: pip install 'raysys\[export\]'"):
        store(run, encoder, run.folder.path("export"), ["onnx"])
    assert not is_export(run.folder.storage, run.folder.path("export"))
