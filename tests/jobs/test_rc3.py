"""RC³ as a person trains it: pre-training of it and a rival, fine-tuning on tasks, scores in other languages, export."""

import json
from pathlib import Path

import pytest
import yaml

from tests.data.rc3_worlds import SIZE, write_all
from tests.data.task_worlds import write_world
from tests.jobs.calling import job

NETWORK = {"size": 16, "layers": 1, "decoder_layers": 1, "heads": 2, "feed_forward": 32, "vocabulary_size": 400, "max_tokens": 24}
SETTINGS = {
    "data": {
        "languages": ["en", "de", "fr", "ja"],
        "strict": ["strict"],
        "weak": ["weak"],
        "parallel": ["parallel"],
        "tests": {"test": "strict"},
        "image": {"size": 16},
    },
    "model": {"network": {**NETWORK, "regions": 4, "region_size": SIZE, "patch": 8}},
    "training": {"steps": 4, "global_batch": 12, "workers": 2, "zero_stage": 2, "checkpoint_every": 2, "log_every": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rc3")
    write_all(folder / "data")
    write_world(folder / "tasks")
    values = SETTINGS | {"data": SETTINGS["data"] | {"folder": str(folder / "data")}, "run": {"storage": str(folder / "runs")}}
    (folder / "tiny.yaml").write_text(yaml.safe_dump(values))
    return folder


@pytest.fixture(scope="module")
def command(folder, ray_session):
    address = ray_session.get_runtime_context().gcs_address

    def called(program: str, *arguments: str) -> str:
        code, out, err = job(program, *arguments, RAY_ADDRESS=address)
        assert code == 0, err
        return out

    return called


@pytest.fixture(scope="module")
def pretrained(folder, command) -> Path:
    """A run that was stopped after two steps and went on."""
    more = ("--config", str(folder / "tiny.yaml"), "--run.name", "rc3", "--data.strict-visual", "combined")
    command("rc3", *more, "--training.steps", "2")
    assert "resumed at step 2" in command("rc3", *more)
    return folder / "runs/rc3"


@pytest.mark.slow
def test_pretraining_leaves_a_network_that_reads_sentences(pretrained):
    found = {str(path.relative_to(pretrained)) for path in pretrained.rglob("*") if path.is_file()}
    assert {"settings.yaml", "scores.json", "report.html", "export/raysys.json", "export/text/config.json", "export/README.md"} <= found
    lines = [json.loads(line) for line in (pretrained / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if "train/loss" in line]
    assert [line["step"] for line in trained] == [1, 2, 3, 4]
    assert {f"train/loss_{name}" for name in ("mlm", "mclm", "itm", "xtcl", "rxvtcl", "kl")} <= trained[0].keys()
    metrics = json.loads((pretrained / "scores.json").read_text())["results"]["rc3"]["test"]["metrics"]
    assert 0 <= metrics["eval/translation_R@1"] <= 1


@pytest.mark.slow
def test_it_is_fine_tuned_and_scored_in_another_language(folder, command, pretrained, call):
    out = command(
        *("finetune", "xvnli", "--base", str(pretrained), "--run.name", "xvnli", "--run.storage", str(folder / "runs")),
        *("--data.folder", str(folder / "tasks"), "--data.train", "xvnli-train-en", "--data.images", "images", "--visual", "patches"),
        *("--data.tests", "en", "xvnli-test-en", "de", "xvnli-test-de", "--training.steps", "3", "--training.global-batch", "8"),
    )
    assert "accuracy" in out
    results = json.loads((folder / "runs/xvnli/scores.json").read_text())["results"]["xvnli"]
    assert set(results) == {"en", "de"}
    code, out, err = call("evaluate", "--run", str(folder / "runs/xvnli"), "--split", "de")
    assert (code, "accuracy" in out) == (0, True), err
    code, _, err = call("export", "--run", str(folder / "runs/xvnli"), "--out", str(folder / "exported"), "--formats", "onnx")
    assert (code, "fine-tuned on xvnli" in err) == (2, True), err
    code, _, err = call("export", "--run", str(folder / "runs/xvnli"), "--out", str(folder / "exported"))
    assert (code, (folder / "exported/raysys.json").is_file()) == (0, True), err
