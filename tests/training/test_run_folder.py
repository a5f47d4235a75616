"""What a run's folder keeps, and which changes of settings a resumed run may make."""

import json
import math

import pytest

from raysys.errors import UserError
from raysys.runs.settings import GlobetrotterSettings
from raysys.storage import Storage
from raysys.training.run_folder import MetricsLog, RunFolder


def settings(**parts: dict) -> GlobetrotterSettings:
    values = {
        "run": {"name": "one"},
        "data": {"train": ["emoji/train"], "languages": ["de", "en"], "tests": {"unseen": "emoji/test-unseen"}},
        "training": {"seed": 1, "global_batch": 64, "steps": 10},
    }
    return GlobetrotterSettings.model_validate({key: {**values.get(key, {}), **parts.get(key, {})} for key in {**values, **parts}})


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    return RunFolder(Storage(), str(tmp_path / "runs" / "one"))


def test_settings_come_back_as_they_were(folder):
    assert not folder.exists()
    given = settings(model={"image": {"backbone": "resnet-10-narrow", "frozen": True}}, objective={"weights": {"cloze": 0.25}})
    folder.save_settings(given)
    assert folder.exists()
    assert folder.load_settings(GlobetrotterSettings) == given
    folder.save_settings(settings())
    assert folder.load_settings(GlobetrotterSettings) == settings()


def test_where_no_run_is_a_person_is_told(folder):
    with pytest.raises(UserError, match=r"no run at .*/runs/one: there is no settings\.yaml"):
        folder.load_settings(GlobetrotterSettings)
    folder.write_text("settings.yaml", "data: {train: [a], colour: red}\n")
    with pytest.raises(UserError, match=r"runs/one/settings\.yaml: unknown setting 'data\.colour'"):
        folder.load_settings(GlobetrotterSettings)


@pytest.mark.parametrize(
    ("changed", "key", "old", "new"),
    [
        ({"training": {"seed": 2}}, "training.seed", "1", "2"),
        ({"training": {"global_batch": 65}}, "training.global_batch", "64", "65"),
        ({"training": {"precision": "bf16"}}, "training.precision", "'fp32'", "'bf16'"),
        ({"model": {"text": {"layers": 5}}}, "model.text.layers", "4", "5"),
        ({"model": {"image": {"frozen": True}}}, "model.image.frozen", "False", "True"),
        ({"objective": {"weights": {"transitive": 0}}}, "objective.weights.transitive", "1.0", "0.0"),
        ({"objective": {"transitive": "product"}}, "objective.transitive", "'rescaled'", "'product'"),
        ({"data": {"languages": ["de"]}}, "data.languages", r"\['de', 'en'\]", r"\['de'\]"),
        ({"data": {"train": ["emoji/train", "more"]}}, "data.train", r"\['emoji/train'\]", r"\['emoji/train', 'more'\]"),
        ({"data": {"image": {"size": 64}}}, "data.image.size", "224", "64"),
        ({"data": {"last_batch": "keep"}}, "data.last_batch", "'drop'", "'keep'"),
        ({"data": {"window_steps": 3}}, "data.window_steps", "16", "3"),
        ({"training": {"weight_decay": 0.5}}, "training.weight_decay", "0.01", "0.5"),
        ({"training": {"learning_rate_factors": {"text": 0.5}}}, "training.learning_rate_factors.text", "None", "0.5"),
    ],
)
def test_what_was_trained_so_far_must_not_change(folder, changed, key, old, new):
    folder.save_settings(settings())
    with pytest.raises(UserError, match=rf"trained with {key} = {old}, now asked for {new}: .*another --run\.name"):
        folder.check_resumable(settings(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"training": {"steps": 20, "workers": 3, "log_every": 1, "checkpoint_every": 5, "keep_checkpoints": 7, "max_failures": 0}},
        {"training": {"clip_norm": 0.5, "schedule": "cosine", "warmup_steps": 7}},
        {"data": {"decode": "cluster", "decode_threads": 4, "tests": {}, "validation": ["emoji/validation"]}},
        {"data": {"on_bad_sample": "skip", "max_bad_fraction": 0.2}},
        {"evaluation": {"untrained": False}, "ray": {"cpus": 8}},
    ],
)
def test_everything_else_may_change(folder, changed):
    folder.save_settings(settings())
    folder.check_resumable(settings(**changed))


def test_metrics_are_one_object_a_line_in_order(folder):
    assert folder.metrics() == []
    log = MetricsLog(folder, 0)
    assert log.add(1, {"train/loss": 2.5, "note": "x"}) == {"step": 1, "train/loss": 2.5, "note": "x"}
    log.add(2, {"train/loss": 1.5, "train/grad_norm": None})
    assert folder.metrics() == [], "written when a checkpoint is, so that the two always agree"
    log.flush()
    assert folder.metrics() == [{"step": 1, "train/loss": 2.5, "note": "x"}, {"step": 2, "train/loss": 1.5, "train/grad_norm": None}]
    assert len(folder.read_text("metrics.jsonl").splitlines()) == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null(folder, value):
    log = MetricsLog(folder, 0)
    assert log.add(1, {"train/loss": value}) == {"step": 1, "train/loss": None}
    log.flush()
    text = folder.read_text("metrics.jsonl")
    assert json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")) == {"step": 1, "train/loss": None}


def test_a_resumed_run_drops_the_lines_of_steps_that_are_done_again(folder):
    log = MetricsLog(folder, 0)
    for step in range(1, 7):
        log.add(step, {"train/loss": 10.0 - step})
    log.add(4, {"eval/score": 0.5})
    log.flush()
    again = MetricsLog(folder, 4)
    assert [line["step"] for line in again.lines] == [1, 2, 3, 4, 4]
    again.add(5, {"train/loss": 0.0})
    again.flush()
    assert [(line["step"], line.get("train/loss")) for line in folder.metrics()] == [(1, 9), (2, 8), (3, 7), (4, 6), (4, None), (5, 0)]
    assert MetricsLog(folder, 0).lines == []
