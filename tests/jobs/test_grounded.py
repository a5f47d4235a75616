"""Grounded systems from books and captioned pictures to scores, as a person trains them: those that others stand on, then the others."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from raysys.evaluation.grounded_page.examples import FILE, Examples
from raysys.runs.export import export, make_encoder
from raysys.runs.networks import saved_tokenizer
from raysys.runs.run import load_run
from raysys.systems.encoder import Encoder
from tests.data.grounded_worlds import write_documents, write_pictures
from tests.jobs.calling import Jobs, job
from tests.shards.tars import picture

SENTENCES = ["A dog runs over the hill.", "two red circles", "A dog runs over the hill."]
SETTINGS = {
    "data": {"text": ["text"], "captions": ["pictures"], "tests": {"test": "pictures"}, "image": {"size": 32}},
    "model": {
        "image": {"backbone": "resnet-10-narrow"},
        "text": {"word_size": 16, "size": 32, "vocabulary_size": 300},
        "space": {"size": 8, "hidden": 16},
    },
    "training": {"steps": 6, "global_batch": 16, "learning_rate": 0.01, "checkpoint_every": 3, "log_every": 1},
    "evaluation": {"neighbours": 3},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Books and pictures in data/, and a settings file."""
    folder = tmp_path_factory.mktemp("grounded")
    write_documents(folder / "data/text")
    write_pictures(folder / "data/pictures")
    settings = SETTINGS | {
        "data": SETTINGS["data"] | {"folder": str(folder / "data")},
        "run": {"storage": str(folder / "runs")},
    }
    (folder / "tiny.yaml").write_text(yaml.safe_dump(settings))
    return folder


@pytest.fixture(scope="module")
def train(folder, ray_session):
    """Trains a system by the command, and returns (exit code, stdout, stderr)."""
    address = ray_session.get_runtime_context().gcs_address

    def trained(system: str, *more: str) -> tuple[int, str, str]:
        return job("grounded", "--config", str(folder / "tiny.yaml"), "--system", system, "--run.name", system, *more, RAY_ADDRESS=address)

    return trained


@pytest.fixture(scope="module")
def t(folder, train) -> Path:
    """A run of t, trained to its end."""
    code, out, err = train("t")
    assert code == 0, err
    assert "triples of sentences" in out
    return folder / "runs/t"


@pytest.fixture(scope="module")
def t_cp_g(folder, train, t) -> Path:
    """A run of t-cp-g that began with the encoder of t; it was stopped after its third step and went on."""
    code, _, err = train("t-cp-g", "--model.base", "t", "--training.steps", "3")
    assert code == 0, err
    code, out, err = train("t-cp-g", "--model.base", "t")
    assert code == 0, err
    assert "resumed at step 3" in out
    return folder / "runs/t-cp-g"


def metrics_of(run: Path, split: str = "test") -> dict[str, float]:
    results = json.loads((run / "scores.json").read_text())["results"]
    return results[list(results)[-1]][split]["metrics"]


@pytest.mark.slow
def test_a_run_is_scored_and_shows_examples(t_cp_g):
    found = metrics_of(t_cp_g)
    assert {"eval/mNNO", "eval/rho_vis", "eval/C_inter", "eval/C_intra", "eval/mNNO_text"} <= found.keys()
    assert all(np.isfinite(value) for value in found.values())
    examples = Examples.loads((t_cp_g / FILE).read_text())
    assert (examples.step, examples.space) == (6, "grounded")
    assert examples.pictures[0].picture.startswith(b"\x89PNG")
    assert "<html" in (t_cp_g / "report.html").read_text()


@pytest.mark.slow
def test_all_losses_are_followed_over_the_steps_without_a_gap(t_cp_g):
    lines = [json.loads(line) for line in (t_cp_g / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "train/loss" in line]
    assert steps == list(range(1, 7))
    assert {"train/loss_text", "train/loss_cluster", "train/loss_perceptual"} <= lines[0].keys()


@pytest.mark.slow
def test_the_base_gives_tokenizer_and_first_weights(t, t_cp_g, folder, train):
    assert (t / "tokenizer/tokenizer.json").read_bytes() == (t_cp_g / "tokenizer/tokenizer.json").read_bytes()
    code, out, err = train("c-id", "--model.base", "t", "--training.steps", "1", "--training.learning-rate", "1e-12")
    assert code == 0, err
    assert "triples" not in out
    same, base = (Encoder.load(folder / "runs" / name / "export") for name in ("c-id", "t"))
    np.testing.assert_allclose(same.encode_texts(SENTENCES), base.encode_texts(SENTENCES), atol=1e-5)


@pytest.mark.slow
def test_an_exported_encoder_reads_words_of_a_larger_vocabulary(t, folder, call: Jobs):
    known = {"document": 1.0, "sentence": 2.0, "goes": 3.0, "on": 4.0, "zebra": 2.5}
    lines = [f"{word} {value} {value * value} {number % 2}" for number, (word, value) in enumerate(known.items())]
    (folder / "data/large.txt").write_text("\n".join(lines) + "\n")
    run = load_run(str(t))
    text = run.settings.model.text.model_copy(update={"expansion": "large.txt"})
    settings = run.settings.model_copy(update={"model": run.settings.model.model_copy(update={"text": text})})
    lines = []
    encoder = export(dataclasses.replace(run, settings=settings), saved_tokenizer(run), lines.append, to=str(folder / "large"))
    plain, larger = Encoder.load(t / "export"), Encoder.load(folder / "large")
    assert any("1 of them from large.txt" in line for line in lines)
    both = ["sentence zebra", "sentence quagga"]
    assert np.abs(np.diff(plain.encode_texts(both), axis=0)).max() == 0
    assert np.abs(np.diff(larger.encode_texts(both), axis=0)).max() > 1e-6
    np.testing.assert_allclose(larger.encode_texts(["document sentence"]), plain.encode_texts(["document sentence"]), atol=1e-6)
    np.testing.assert_allclose(larger.encode_texts(both), encoder.encode_texts(both), atol=1e-6)


@pytest.mark.slow
def test_sequential_is_computed_at_once_and_needs_its_base_no_more(t, train, folder):
    code, out, err = train("seq", "--model.base", "t")
    assert code == 0, err
    assert "starting Ray" not in out
    vectors = Encoder.load(folder / "runs/seq/export").encode_in_space(SENTENCES, "text")
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    assert metrics_of(folder / "runs/seq")["eval/mNNO"] >= 0
    (folder / "runs/t").rename(folder / "runs/elsewhere")
    try:
        run = load_run(str(folder / "runs/seq"))
        again = make_encoder(run, saved_tokenizer(run), None)
        np.testing.assert_allclose(again.encode_in_space(SENTENCES, "text"), vectors, atol=1e-6)
    finally:
        (folder / "runs/elsewhere").rename(folder / "runs/t")


@pytest.mark.slow
def test_ground_sent_puts_a_grounded_vector_beside_that_of_its_base(train, folder):
    code, _, err = train("t-half")
    assert code == 0, err
    code, _, err = train("gs-both", "--model.base", str(folder / "runs/t-half"))
    assert code == 0, err
    both, half = (Encoder.load(folder / "runs" / name / "export") for name in ("gs-both", "t-half"))
    vectors = both.encode_in_space(SENTENCES, "text")
    np.testing.assert_allclose(vectors[:, 16:], half.encode_in_space(SENTENCES, "text"), atol=1e-5)


@pytest.mark.slow
def test_pictures_are_encoded_by_systems_that_lead_sentences_to_them(train, folder, call: Jobs):
    code, _, err = train("cm", "--training.steps", "2")
    assert code == 0, err
    encoder = Encoder.load(folder / "runs/cm/export")
    images, captions = encoder.encode_images([picture(0), picture(1)]), encoder.encode_captions_for_images(SENTENCES)
    assert images.shape[1] == captions.shape[1]
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1, atol=1e-5)
    code, out, err = call("evaluate", "--run", str(folder / "runs/cm"))
    assert code == 0, err
    assert "mNNO" in out


@pytest.mark.parametrize(
    ("system", "more", "said"),
    [
        ("seq", (), "model.base: the system seq stands on a trained run of the system t"),
        ("gs-img", ("--model.base", "nothing"), "there is no run"),
        ("t-cp-g", ("--data.text",), "data.text: the system t-cp-g learns from ordered sentences"),
        ("c-g", ("--data.captions",), "data.captions: the system c-g learns from captioned pictures"),
        ("t", ("--data.language", "fr"), "three neighbouring sentences in fr"),
        ("cp-g", ("--evaluation.senteval", "nowhere"), "evaluation.senteval: nothing lies in"),
        ("cp-g", ("--model.image.frozen", "False"), "never trained"),
    ],
)
def test_mistakes_are_told_before_anything_starts(call: Jobs, folder, system, more, said):
    code, out, err = call("grounded", "--config", str(folder / "tiny.yaml"), "--system", system, "--run.name", "mistake", *more)
    assert code == 2, out
    assert said in err
    assert "Traceback" not in err
    assert not (folder / "runs/mistake").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "more", "said"),
    [
        ("gs-img", (), "needs a run of the system t-half"),
        ("c-g", ("--model.text.size", "64"), "model.text.size: 64 here and 32 in the run"),
        ("c-g", ("--model.base", "t-cp-g"), "is one of t-cp-g"),
    ],
)
def test_a_base_that_does_not_fit_is_refused(call: Jobs, folder, t, t_cp_g, system, more, said):
    code, out, err = call(
        "grounded", "--config", str(folder / "tiny.yaml"), "--system", system, "--run.name", "mistake", "--model.base", "t", *more
    )
    assert code == 2, out
    assert said in err
    assert not (folder / "runs/mistake").exists()


def test_a_dry_run_tells_plan_and_needs(call: Jobs, folder):
    code, out, err = call("grounded", "--config", str(folder / "tiny.yaml"), "--run.name", "dry", "--dry-run")
    assert code == 0, err
    assert "in an epoch the samples of each are seen so often: triples" in out
    assert "ZeRO 3" in out
