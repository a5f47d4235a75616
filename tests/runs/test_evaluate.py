"""Scoring a run with all that can be asked for: words, languages held out, centring, and pretrained encoders beside."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.evaluation.centring import centred, language_means
from raysys.evaluation.scores import encode_items, score
from raysys.runs.describe import describe
from raysys.runs.evaluate import check_evaluation, evaluate_run, load_items, load_split
from raysys.runs.run import SavedRun, open_folder, open_run
from raysys.runs.settings import GlobetrotterSettings
from raysys.runs.words import training_texts
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage, join
from raysys.systems.encoder import Encoder
from raysys.systems.export.sentence_transformers_export import export_sentence_transformers
from tests.data.worlds import load
from tests.shards.tars import picture
from tests.systems.export.encoders import make

NOUNS = {"de": ["Hund", "Katze", "Haus", "Baum"], "en": ["dog", "cat", "house", "tree"], "ru": ["пёс", "кот", "дом", "лес"]}
COLOURS = {"de": ["rot", "blau", "grün"], "en": ["red", "blue", "green"], "ru": ["алый", "синий", "зелёный"]}
FRENCH = ["chien", "chat", "maison", "arbre"]
REFERENCE = "reference"


def captions(number: int) -> dict[str, list[str]]:
    return {language: [f"{NOUNS[language][number % 4]} {COLOURS[language][number // 4 % 3]}"] for language in NOUNS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Training data in one language a sample, tests in all and in French, a dictionary."""
    folder = tmp_path_factory.mktemp("data")
    languages = list(NOUNS)
    splits = {
        "train": [{languages[n % 3]: captions(n)[languages[n % 3]]} for n in range(36)],
        "test": [captions(n) | {"fr": [FRENCH[n % 4]]} for n in range(12)],
        "texts": [captions(n) for n in range(12)],
    }
    for split, of_samples in splits.items():
        shown = [None if split == "texts" else picture(n) for n in range(len(of_samples))]
        samples = (Sample(split, f"s{n}", shown[n], "png", {"captions": said}) for n, said in enumerate(of_samples))
        write_shards(samples, str(folder / split), 1, Storage())
        load([str(folder / split)])
    (folder / "dictionaries").mkdir()
    entries = sorted(zip(NOUNS["en"], [noun.lower() for noun in NOUNS["de"]], strict=True))
    (folder / "dictionaries/en-de.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in entries))
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Encoder:
    encoder = make("transformer", tmp_path_factory.mktemp("network"))
    encoder.info["languages"] = list(NOUNS)
    return encoder


@pytest.fixture
def run(folder, tmp_path):
    def made(name: str = "tiny", **evaluation) -> SavedRun:
        settings = {
            "run": {"name": name, "storage": str(tmp_path / "runs")},
            "data": {"folder": str(folder), "train": ["train"], "languages": list(NOUNS), "tests": {"test": "test", "texts": "texts"}},
            "evaluation": {"untrained": False, **evaluation},
        }
        opened = open_folder(Storage(), join(settings["run"]["storage"], name))
        opened.save_settings(checked := GlobetrotterSettings.model_validate(settings))
        return SavedRun(checked, opened)

    return made


def results_of(run: SavedRun, encoder: Encoder, log=lambda line: None) -> dict:
    evaluate_run(run, encoder.tokenizer, encoder, log)
    return json.loads(run.folder.read_text("scores.json"))["results"]


def test_words_are_scored_by_parallel_captions_and_by_dictionaries(run, encoder):
    lines: list[str] = []
    found = results_of(run(words={"dictionaries": "dictionaries", "least_pairs": 100}), encoder, lines.append)["tiny"]["words"]
    assert found["words"]["vocabulary"] == {"de": 7, "en": 7, "ru": 7}
    assert found["words"]["word_translation_dictionary"]["de-en"]["pairs"] == 4
    # 7 words, and the 10 nearest are looked at: all are found, by chance too
    for name in ("word_translation_R@10", "word_translation_dictionary_R@10"):
        assert found["metrics"][f"eval/{name}"] == found["chance"][f"eval/{name}"] == 1
    assert "mutual nearest neighbours" in found["procrustes"]["error"]
    assert found["procrustes"]["error"] in lines


def test_languages_held_out_are_scored_apart(run, encoder):
    with_french, without = (results_of(run(f"run-{n}", held_out=held), encoder)[f"run-{n}"] for n, held in enumerate((["fr"], [])))
    assert with_french["test"]["languages"] == ["de", "en", "ru", "fr"]
    assert with_french["test"]["held_out"] == ["fr"]
    assert without["test"]["languages"] == ["de", "en", "ru"]
    for name, value in without["test"]["metrics"].items():
        assert with_french["test"]["metrics"][name] == pytest.approx(value), name
    assert {"eval/transfer_R@1_from_held_out", "eval/transfer_R@1_to_held_out"} <= with_french["test"]["metrics"].keys()


def test_centring_takes_the_means_of_the_training_captions(run, encoder):
    given = run(centred=True)
    found = results_of(given, encoder)["tiny"]["test"]
    texts = training_texts(given)
    assert {language: len(said) for language, said in texts.items()} == {"de": 12, "en": 12, "ru": 12}
    items = load_items(load_split(given, "test"), encoder.preprocess.settings, given.folder)
    expected = score(centred(encode_items(encoder, items), language_means(encoder, texts)))
    assert found["metrics"] == pytest.approx(expected["metrics"])
    assert found["centred"] == {"de": "given", "en": "given", "ru": "given"}


def test_a_split_of_texts_alone_is_scored_without_pictures(run, encoder):
    found = results_of(run(), encoder)["tiny"]["texts"]
    assert found["lacking"]["image"] == 12
    assert "eval/sentence_translation" in found["metrics"]
    assert not any("image" in name for name in found["metrics"])


def test_a_pretrained_encoder_stands_beside_and_is_scored_once_for_all_runs(run, encoder, tmp_path):
    """The reference is the same encoder in another format, so that its scores are known."""
    export_sentence_transformers(encoder, tmp_path / REFERENCE)
    name = str(tmp_path / REFERENCE)
    first = results_of(run("first", references=[name]), encoder)
    assert list(first) == [name, "first"]
    for metric, value in first[name]["test"]["metrics"].items():
        if "image" not in metric:
            assert first["first"]["test"]["metrics"][metric] == pytest.approx(value, abs=1e-3), metric
    (kept,) = (tmp_path / "runs/references").iterdir()
    spoilt = json.loads(kept.read_text())
    spoilt["test"]["metrics"]["eval/sentence_translation"] = 0.123
    kept.write_text(json.dumps(spoilt))
    second = results_of(run("second", references=[name]), encoder)
    assert second[name]["test"]["metrics"]["eval/sentence_translation"] == 0.123


@pytest.mark.parametrize(
    ("evaluation", "reason"),
    [
        ({"words": {"dictionaries": "nowhere"}}, "nowhere does not exist; python jobs/prepare.py dictionaries"),
        ({"references": ["package:other"]}, "there is no reference package:other"),
    ],
)
def test_what_cannot_be_scored_is_said_before_training(run, evaluation, reason):
    with pytest.raises(UserError, match=reason):
        check_evaluation(run(**evaluation))


def test_without_the_training_data_no_words_are_asked(run, encoder, folder):
    given = run()
    moved = given.settings.model_copy(update={"data": given.settings.data.model_copy(update={"train": ("elsewhere",)})})
    found = results_of(SavedRun(moved, given.folder), encoder)["tiny"]
    assert found.keys() == {"test", "texts"}
    assert np.isfinite(list(found["test"]["metrics"].values())).all()


def settings_of(folder: Path, tmp_path: Path, **more) -> GlobetrotterSettings:
    data = {"folder": str(folder), "train": ["train"], "tests": {"test": "test"}} | more.pop("data", {})
    run = {"name": "tiny", "storage": str(tmp_path)}
    training = {"global_batch": 8, "workers": 1}
    return GlobetrotterSettings.model_validate({"run": run, "data": data, "training": training, "ray": {"cpus": 4}, **more})


def test_languages_held_out_are_not_trained_on(folder, tmp_path):
    found = open_run(settings_of(folder, tmp_path, evaluation={"held_out": ["RU", "fr"]}), lambda line: None)
    assert found.samples.languages == found.settings.data.languages == ("de", "en")
    assert len(found.samples) == 24
    check_evaluation(found)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"data": {"languages": ["de", "ru"]}, "evaluation": {"held_out": ["ru"]}}, "ru cannot be held out and be in data.languages"),
        ({"data": {"tests": {"words": "test"}}}, "give this test split another name"),
        ({"system": "supervised", "objective": {"weights": {"transitive": 0}}}, "learns translations by this loss"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(folder, tmp_path, given, reason):
    with pytest.raises(ValueError, match=reason):
        settings_of(folder, tmp_path, **given)


def test_a_held_out_language_without_tests_is_said_before_training(folder, tmp_path):
    found = open_run(settings_of(folder, tmp_path, evaluation={"held_out": ["cs"]}), lambda line: None)
    with pytest.raises(UserError, match="no test split has a caption in cs"):
        check_evaluation(found)


@pytest.mark.parametrize(("system", "idle"), [("muve", "objective.margin, objective.hardness"), ("globetrotter", None)])
def test_settings_that_a_system_does_not_read_are_named(folder, tmp_path, system, idle):
    objective = {"margin": 0.2, "hardness": 0.1, "temperature": {"image_caption": 0.2}}
    lines = describe(open_run(settings_of(folder, tmp_path, system=system, objective=objective), lambda line: None))
    assert [line for line in lines if "without effect" in line] == ([f"without effect on the system {system}: {idle}"] if idle else [])


def test_a_run_of_one_system_is_not_resumed_as_another(folder, tmp_path):
    found = open_run(settings_of(folder, tmp_path), lambda line: None)
    found.folder.save_settings(found.settings)
    with pytest.raises(UserError, match="system = 'globetrotter', now asked for 'muve'"):
        found.folder.check_resumable(settings_of(folder, tmp_path, system="muve"))


def test_words_elsewhere_are_the_same_words_and_other_words_are_not_compared(run, encoder, folder, tmp_path):

    shutil.copytree(folder / "dictionaries", tmp_path / "dictionaries")
    prints = []
    for name, place in (("one", "dictionaries"), ("two", str(tmp_path / "dictionaries"))):
        given = run(name, words={"dictionaries": place})
        results_of(given, encoder)
        prints.append(json.loads(given.folder.read_text("scores.json"))["data"]["words"])
    assert prints[0] == prints[1]
    (tmp_path / "dictionaries/en-de.tsv").write_text("dog\thund\n")
    beside = results_of(run("three", words={"dictionaries": str(tmp_path / "dictionaries")}, beside=["one"]), encoder)
    assert beside["one"].keys() == {"test", "texts"}
    assert beside["three"].keys() == {"test", "texts", "words"}
