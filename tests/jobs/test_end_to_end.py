"""From pictures in tars to scores, as a person does it: train, stop, go on, score, export, look."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from transformers import AutoModel, AutoTokenizer

from raysys.data.tokenizer import load_tokenizer
from raysys.runs.run import load_run
from raysys.systems.encoder import Encoder
from tests.jobs.calling import ROOT, Jobs, environment, job
from tests.shards.tars import picture

SENTENCES = ("a red circle", "ein roter Kreis", "两个蓝色的正方形")
SETTINGS = {
    "run": {"name": "tiny"},
    "data": {
        "train": ["shapes/train"],
        "validation": ["shapes/validation"],
        "tests": {"test-seen": "shapes/test-seen", "test-unseen": "shapes/test-unseen"},
        "image": {"size": 32},
    },
    "model": {
        "image": {"backbone": "resnet-10-narrow"},
        "text": {"hidden_size": 64, "layers": 1, "heads": 2, "intermediate_size": 64, "vocabulary_size": 600, "max_tokens": 40},
    },
    "training": {"steps": 8, "global_batch": 48, "learning_rate": 0.002, "checkpoint_every": 4, "log_every": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Holds shards of shapes in data/, a settings file, and what the tests of this module leave behind."""
    folder = tmp_path_factory.mktemp("end-to-end")
    code, out, err = job("prepare", "shapes", "--out", str(folder / "data/shapes"), "--samples", "600", "--shards", "2")
    assert code == 0, err
    assert "train: 442 samples in 2 shards" in out
    settings = SETTINGS | {
        "data": SETTINGS["data"] | {"folder": str(folder / "data")},
        "run": SETTINGS["run"] | {"storage": str(folder / "runs")},
    }
    (folder / "tiny.yaml").write_text(yaml.safe_dump(settings))
    return folder


@pytest.fixture(scope="module")
def cluster(ray_session) -> str:
    """Address of the running Ray."""
    return ray_session.get_runtime_context().gcs_address


@pytest.fixture(scope="module")
def stopped(folder, cluster, ray_session) -> tuple[int, str, str]:
    """Exit code and output of a run that got Ctrl-C after its first checkpoint; nothing of it goes on."""
    command = [sys.executable, str(ROOT / "jobs/globetrotter.py"), "--config", str(folder / "tiny.yaml"), "--training.steps", "5000"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(RAY_ADDRESS=cluster), start_new_session=True
    )
    mark = folder / "runs/tiny/checkpoints/step-00000004/complete.json"
    deadline = time.monotonic() + 400
    while not mark.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert mark.exists(), process.communicate(timeout=30)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert not _alive(process.pid)
    deadline = time.monotonic() + 60
    while ray_session.available_resources().get("CPU") != 4 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert ray_session.available_resources()["CPU"] == 4, "workers of the stopped run go on"
    return process.returncode, out, err


def _alive(session: int) -> list[str]:
    """Processes of a session that have not ended."""
    listed = subprocess.run(["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in listed if line.split()[0] == str(session) and not line.split()[1].startswith("Z")]


@pytest.fixture(scope="module")
def trained(folder, cluster, stopped) -> str:
    """Output of the same command again, to a last step that is near."""
    last = load_run(str(folder / "runs/tiny")).checkpoint("latest").step + 4
    code, out, err = job("globetrotter", "--config", str(folder / "tiny.yaml"), "--training.steps", str(last), RAY_ADDRESS=cluster)
    assert code == 0, err
    return out


@pytest.fixture
def run(folder, trained) -> Path:
    return folder / "runs/tiny"


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(stopped):
    code, out, err = stopped
    assert code == 130, err
    assert err == "interrupted\n"
    assert "steps are kept: the same command goes on from there" in out


def test_the_same_command_goes_on_and_ends_with_scores(trained, run):
    state = load_run(str(run)).checkpoint("latest")
    assert f"resumed at step {state.step - 4}" in trained
    assert f"step {state.step}/{state.step}" in trained
    for part in ("first step after", "validation recall", "test-seen", "test-unseen", "chance", "untrained", "tiny", "R@1"):
        assert part in trained


def test_what_a_run_leaves_behind(run):
    found = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    assert {"settings.yaml", "metrics.jsonl", "scores.json", "report.html", "tokenizer/tokenizer.json", "export/raysys.json"} <= found
    assert {"export/heads.safetensors", "export/text/model.safetensors", "export/image/model.safetensors"} <= found
    states = load_run(str(run)).checkpoints.all()
    assert states[-1].step - states[-2].step == 4
    assert all(state.score is not None for state in states)
    assert all((state.workers, state.zero_stage) == (2, 1) for state in states)
    page = (run / "report.html").read_text()
    assert "tiny" in page
    assert "<script" not in page


def test_metrics_are_json_lines_without_a_gap(run):
    def refuse(literal):
        raise AssertionError(f"{literal} is no JSON")

    lines = [json.loads(line, parse_constant=refuse) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = load_run(str(run)).checkpoint("latest").step
    trained = [line for line in lines if "train/loss" in line]
    scored = [line for line in lines if "eval/validation_mean_recall" in line]
    assert [line["step"] for line in trained] == list(range(1, last + 1))
    assert [line["step"] for line in scored] == list(range(4, last + 1, 4))
    terms = {f"train/loss_{term}" for term in ("transitive", "image", "image_caption", "cloze")}
    names = {"train/loss", "train/grad_norm", "train/lr", "train/samples_per_second", "data/wait_fraction", "epoch"} | terms
    for line in trained:
        assert names <= line.keys()
        assert line["train/loss"] == pytest.approx(sum(line[term] for term in terms), rel=1e-4)
        assert 0 <= line["data/wait_fraction"] <= 1
    assert trained[-1]["train/loss"] < trained[0]["train/loss"]


def test_the_export_is_the_best_checkpoint_and_loads_with_transformers_alone(run, trained):
    saved = load_run(str(run))
    encoder = Encoder.load(run / "export")
    assert encoder.info["step"] == saved.checkpoint("best").step
    assert f"exported step {encoder.info['step']} to {run}/export" in trained
    assert len(encoder.info["languages"]) == 12
    text, tokenizer = AutoModel.from_pretrained(run / "export/text"), AutoTokenizer.from_pretrained(run / "export/text")
    for name, value in encoder.system.text.bert.state_dict().items():
        assert torch.equal(value, text.state_dict()[name])
    assert AutoModel.from_pretrained(run / "export/image") is not None
    sentences = list(SENTENCES)
    assert tokenizer(sentences)["input_ids"] == load_tokenizer(run / "tokenizer")(sentences)["input_ids"]
    vectors = encoder.encode_texts(sentences)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_scores_stand_beside_those_of_the_untrained(run):
    scores = json.loads((run / "scores.json").read_text())
    assert list(scores["results"]) == ["untrained", "tiny"]
    assert scores["step"] == load_run(str(run)).checkpoint("best").step
    for result in scores["results"].values():
        assert set(result) == {"test-seen", "test-unseen", "words"}
        assert result.pop("words")["metrics"]["eval/word_translation_R@10"] > 0
        for split in result.values():
            assert split["items"] == 60
            assert 0 <= split["metrics"]["eval/translation_R@1"] <= 1
            assert split["chance"]["eval/translation_R@1"] < 0.05


def test_evaluating_again_gives_the_same_scores_and_keeps_those_of_other_splits(call: Jobs, folder, run):
    before = json.loads((run / "scores.json").read_text())
    code, out, err = call("evaluate", "--run", str(run), "--split", "test-unseen", f"held-out={folder}/data/shapes/test-seen")
    assert (code, err) == (0, "")
    for part in ("test-unseen  (unseen concepts)", "held-out", "chance", "untrained", f"scores: {run}/scores.json"):
        assert part in out
    assert "\ntest-seen" not in out
    after = json.loads((run / "scores.json").read_text())
    assert list(after["results"]) == ["untrained", "tiny"]
    for system, result in before["results"].items():
        scores = after["results"][system]
        assert scores["test-seen"] == result["test-seen"]
        # Encoded anew, where the last bit may turn out otherwise and with it a tie.
        for again, first in (("test-unseen", "test-unseen"), ("held-out", "test-seen")):
            assert scores[again]["metrics"] == pytest.approx(result[first]["metrics"], abs=0.02)
            assert scores[again]["chance"] == result[first]["chance"]
    assert after["data"]["held-out"] == before["data"]["test-seen"]


def test_evaluating_with_the_data_elsewhere(call: Jobs, folder, run, tmp_path, monkeypatch):
    (tmp_path / "moved").symlink_to(folder / "data")
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("evaluate", "--run", str(run), "--data", "moved", "--split", "test-seen")
    assert code == 0
    assert "test-seen" in out
    for arguments, message in [
        (["--data", "nowhere"], "the folder nowhere of the run's data is not here: say with --data where the splits lie"),
        (["--split", "test"], "no such split in the run's data.tests; the run has test-seen, test-unseen; give others as NAME=FOLDER"),
        (["--split", "x="], "expected NAME or NAME=FOLDER"),
        (["--split", f"x={tmp_path}/none"], f"{tmp_path}/none does not exist"),
    ]:
        code, _, err = call("evaluate", "--run", str(run), *arguments)
        assert code == 2
        assert message in err
        assert err.startswith("error: ")


@pytest.mark.parametrize("step", ["best", "latest", "number"])
def test_exporting_a_checkpoint(call: Jobs, run, tmp_path, step):
    saved = load_run(str(run))
    state = saved.checkpoints.all()[-2] if step == "number" else saved.checkpoint(step)
    out_folder = tmp_path / "out"
    formats = ("--formats", "all") if step == "latest" else ()
    arguments = ("--out", str(out_folder), "--step", str(state.step) if step == "number" else step, *formats)
    code, out, err = call("export", "--run", str(run), *arguments)
    assert (code, err) == (0, "")
    assert ("onnx: " in out) == ("sentence-transformers: " in out) == (out_folder / "onnx/text.onnx").exists() == bool(formats)
    assert f'data_fingerprint": "{state.fingerprint}' in (out_folder / "raysys.json").read_text()
    assert f"Fingerprint of the data: `{state.fingerprint}`" in (out_folder / "README.md").read_text()
    assert f"exported step {state.step} to {out_folder}" in out
    encoder = Encoder.load(out_folder)
    assert encoder.info["step"] == state.step
    assert encoder.info["data_fingerprint"] == state.fingerprint
    if step == "best":
        again = Encoder.load(run / "export")
        assert all(torch.equal(value, again.system.state_dict()[name]) for name, value in encoder.system.state_dict().items())


def test_exporting_what_is_not_there(call: Jobs, run, tmp_path):
    code, _, err = call("export", "--run", str(run), "--out", str(tmp_path / "x"), "--step", "3")
    assert code == 2
    assert "has no usable checkpoint of step 3; there are " in err
    (tmp_path / "file").write_text("")
    code, _, err = call("export", "--run", str(run), "--out", str(tmp_path / "file" / "x"))
    assert code == 2
    assert err.startswith("error: ")


def test_a_look_at_sentences_and_pictures_needs_no_ray(run, tmp_path, without_ray):
    (tmp_path / "one.png").write_bytes(picture(1))
    (tmp_path / "two.webp").write_bytes(picture(2, kind="WEBP"))
    images = [str(tmp_path / name) for name in ("one.png", "two.webp")]
    code, out, err = job("embed", "--run", str(run), "--text", *SENTENCES, "--image", *images, **without_ray)
    assert (code, err) == (0, "")
    for part in (*SENTENCES, "one.png", "sentence and sentence", "image and sentence", "image and image", "1.000", "nearest"):
        assert part in out


def test_vectors_as_json_of_an_export_or_a_run(call: Jobs, run, tmp_path):
    (tmp_path / "one.png").write_bytes(picture(1))
    arguments = ("--text", *SENTENCES, "--image", str(tmp_path / "one.png"), "--json")
    code, out, err = call("embed", "--run", str(run / "export"), *arguments)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    encoder = Encoder.load(run / "export")
    assert [row["text"] for row in answer["texts"]] == list(SENTENCES)
    assert np.allclose([row["text_vector"] for row in answer["texts"]], encoder.encode_texts(SENTENCES), atol=1e-6)
    assert np.allclose([row["caption_vector"] for row in answer["texts"]], encoder.encode_captions_for_images(SENTENCES), atol=1e-6)
    assert np.allclose(answer["images"][0]["image_vector"], encoder.encode_images([picture(1)])[0], atol=1e-6)

    # A run without an export answers from its best checkpoint and stays as it is.
    os.symlink(run / "checkpoints", tmp_path / "checkpoints")
    os.symlink(run / "tokenizer", tmp_path / "tokenizer")
    (tmp_path / "settings.yaml").write_bytes((run / "settings.yaml").read_bytes())
    again = json.loads(call("embed", "--run", str(tmp_path), *arguments)[1])
    for kind, name in (("texts", "text_vector"), ("texts", "caption_vector"), ("images", "image_vector")):
        assert np.allclose([row[name] for row in again[kind]], [row[name] for row in answer[kind]], atol=1e-5)
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize("name", ["evaluate", "export", "embed"])
def test_runs_that_are_not_there_or_have_nothing_yet(call: Jobs, folder, run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    more = {"evaluate": [], "export": ["--out", str(tmp_path / "x")], "embed": ["--text", "x"]}[name]
    code, _, err = call(name, "--run", "huge", *more)
    assert code == 2
    assert f"there is no run huge: no settings.yaml in {folder}/huge; runs in runs: tiny" in err
    code, _, err = call(name, "--run", str(tmp_path / "none"), *more)
    assert code == 2
    assert f"there are no runs in {tmp_path}" in err
    (tmp_path / "new").mkdir()
    (tmp_path / "new/settings.yaml").write_bytes((run / "settings.yaml").read_bytes())
    code, _, err = call(name, "--run", str(tmp_path / "new"), *more)
    assert code == 2
    assert f"the run {tmp_path}/new has no checkpoint yet" in err
    assert f"python jobs/globetrotter.py --config {tmp_path}/new/settings.yaml" in err
    assert call(name, "--help")[0] == 0


def test_what_cannot_be_looked_at(call: Jobs, folder, run, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    (tmp_path / "text.png").write_text("no picture")
    for arguments, message in [
        ([], 'give sentences with --text "…" "…", or files with --image'),
        (["--text", "a", " "], "a sentence needs at least one visible character"),
        (["--image", str(tmp_path / "none.png")], "none.png does not exist"),
        (["--image", str(tmp_path / "text.png")], f"--image: {tmp_path}/text.png"),
    ]:
        code, _, err = call("embed", "--run", "tiny", *arguments)
        assert code == 2
        assert message in err
        assert err.startswith("error: ")
        assert err.count("\n") == 1
