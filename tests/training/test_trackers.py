"""W&B and MLflow have what metrics.jsonl has, a resumed run goes on in the same run there, and none of them ends a run."""

import contextlib
import importlib.util
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from raysys.errors import UserError
from raysys.storage import Storage
from raysys.training.run_folder import RunFolder
from raysys.training.trackers import Background, Trackers, check_trackers, open_trackers

LINES = [
    {"step": 1, "epoch": 0.0, "train/loss": 3.5, "train/grad_norm": None},
    {"step": 2, "epoch": 0.5, "train/loss": 2.25},
    {"step": 2, "eval/text_to_image_R@1": 0.75},
]
AGAIN = [{"step": 2, "train/loss": 2.25}, {"step": 3, "train/loss": 1.5}]
SETTINGS = {"training": {"seed": 7, "workers": 2}, "data": {"train": ["a", "b"]}, "storage": {"endpoint": "http://store.example:9000"}}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> RunFolder:
    """A run's folder, and trackers that write beside it."""
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "settings.yaml").write_text(yaml.safe_dump(SETTINGS))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return RunFolder(Storage(), str(tmp_path / "shapes"))


def track(folder: RunFolder, names: list[Any], lines: list[dict[str, Any]], resume_step: int = 0, failed: bool = False) -> list[str]:
    """What was told of an attempt that added `lines`."""
    told: list[str] = []
    with contextlib.suppress(KeyError), open_trackers(folder, names, resume_step, told.append) as trackers:
        for line in lines:
            trackers.add(line)
        trackers.flush()
        if failed:
            raise KeyError
    return told


def records(path: Path) -> Iterator[Any]:
    """The records of a W&B file: a log of LevelDB (blocks of 32 KiB; fragments with checksum, length and type) of protobufs."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, whole = path.read_bytes(), b""
    place = 7  # the header
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # full, last
            record = Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def wandb_attempts(folder: RunFolder) -> list[dict[str, Any]]:
    """Id, settings, and values by name as [(step, value)] of each attempt."""
    attempts = []
    for path in sorted(Path(folder.uri).glob("wandb/offline-run-*/run-*.wandb"), key=lambda path: path.stat().st_mtime_ns):
        found: dict[str, Any] = {"config": {}, "values": {}, "exit": None}
        for record in records(path):
            if record.HasField("run"):
                found |= {"id": record.run.run_id, "name": record.run.display_name, "project": record.run.project}
                found["config"] |= {item.key: yaml.safe_load(item.value_json) for item in record.run.config.update}
            for item in record.history.item if record.HasField("history") else []:
                name = item.key or "/".join(item.nested_key)
                if not name.startswith("_"):
                    found["values"].setdefault(name, []).append((record.history.step.num, yaml.safe_load(item.value_json)))
            if record.HasField("exit"):
                found["exit"] = record.exit.exit_code
        attempts.append(found)
    return attempts


def test_weights_and_biases_has_the_metrics_and_the_settings_but_those_of_storage(folder):
    assert track(folder, ["wandb"], LINES) == []
    (attempt,) = wandb_attempts(folder)
    assert attempt["values"] == {"epoch": [(1, 0.0), (2, 0.5)], "train/loss": [(1, 3.5), (2, 2.25)], "eval/text_to_image_R@1": [(2, 0.75)]}
    assert (attempt["name"], attempt["project"], attempt["exit"]) == ("shapes", "raysys", 0)
    assert {name: value for name, value in attempt["config"].items() if name != "_wandb"} == {
        name: SETTINGS[name] for name in ("training", "data")
    }
    kept = b"".join(path.read_bytes() for path in Path(folder.uri, "wandb").rglob("*") if path.is_file())
    assert b"store.example" not in kept

    time.sleep(1)  # attempts are kept by the second
    assert track(folder, ["wandb"], AGAIN, resume_step=1, failed=True) == []
    resumed = wandb_attempts(folder)[-1]
    assert resumed["id"] == attempt["id"] == folder.read_text("trackers/wandb").strip()
    assert (3, 1.5) in resumed["values"]["train/loss"]
    assert resumed["exit"] == 1

    track(folder, ["wandb"], LINES[:1])
    assert wandb_attempts(folder)[-1]["id"] != attempt["id"], "what begins anew is another run"


def mlflow_run(folder: RunFolder) -> Any:
    from mlflow import MlflowClient

    return MlflowClient().get_run(folder.read_text("trackers/mlflow").strip())


def mlflow_history(folder: RunFolder, name: str) -> list[tuple[int, float]]:
    from mlflow import MlflowClient

    return [(metric.step, metric.value) for metric in MlflowClient().get_metric_history(mlflow_run(folder).info.run_id, name)]


def test_mlflow_has_the_metrics_and_the_settings_but_those_of_storage(folder):
    assert track(folder, ["mlflow"], LINES) == []
    run = mlflow_run(folder)
    assert mlflow_history(folder, "train/loss") == [(1, 3.5), (2, 2.25)]
    assert mlflow_history(folder, "eval/text_to_image_R_1") == [(2, 0.75)]
    assert set(run.data.metrics) == {"epoch", "train/loss", "eval/text_to_image_R_1"}
    assert run.data.params == {"training.seed": "7", "training.workers": "2", "data.train": "['a', 'b']"}
    assert (run.info.run_name, run.info.status) == ("shapes", "FINISHED")

    assert track(folder, ["mlflow"], AGAIN, resume_step=1, failed=True) == []
    assert mlflow_run(folder).info.run_id == run.info.run_id
    assert mlflow_history(folder, "train/loss") == [(1, 3.5), (2, 2.25), (2, 2.25), (3, 1.5)]
    assert mlflow_run(folder).info.status == "FAILED"


def test_tensorboard_is_always_there(folder):
    assert track(folder, [], LINES) == []
    found = EventAccumulator(folder.path("tensorboard"))
    found.Reload()
    assert [(event.step, event.value) for event in found.Scalars("train/loss")] == [(1, 3.5), (2, 2.25)]
    assert not (Path(folder.uri) / "trackers").exists()


def test_a_server_that_is_down_is_told_once_and_holds_up_nothing(folder, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://someone:password-of-theirs@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    began = time.monotonic()
    told: list[str] = []
    with open_trackers(folder, ["mlflow"], 0, told.append) as trackers:
        for line in LINES:
            trackers.add(line)
        assert time.monotonic() - began < 1
    assert len(told) == 1
    assert told[0].startswith("mlflow does not work: ")
    assert told[0].endswith("; training goes on, metrics.jsonl has everything")
    assert "password-of-theirs" not in told[0]
    assert not Path(folder.uri, "trackers").exists()


class Slow:
    """Never comes back."""

    def add(self, line: dict[str, Any]) -> None:
        time.sleep(1000)


class Broken(Slow):
    """Cannot even end."""

    def close(self, failed: bool = False) -> None:
        raise OSError("second")


class Late:
    """Can be reached at the third attempt."""

    def __init__(self, attempts: list[int], kept: list[int]):
        attempts.append(1)
        if len(attempts) < 3:
            raise ConnectionError("refused")
        self.kept = kept

    def add(self, line: dict[str, Any]) -> None:
        self.kept.append(line["step"])

    def flush(self) -> None: ...

    def close(self, failed: bool = False) -> None:
        self.kept.append(-1)


def test_a_server_that_never_answers_does_not_keep_a_run_from_ending():
    told: list[str] = []
    tracker = Background("slow", Slow, told.append, patience=0.2)  # type: ignore[arg-type]
    began = time.monotonic()
    for step in range(5):
        tracker.add({"step": step})
    tracker.close()
    assert time.monotonic() - began < 1.5
    assert told == ["slow does not work: it had not taken everything 0 s after the end; training goes on, metrics.jsonl has everything"]


def test_a_run_that_failed_waits_less_for_it():
    tracker = Background("slow", Slow, lambda text: None, patience=6.0)  # type: ignore[arg-type]
    tracker.add({"step": 1})
    began = time.monotonic()
    with pytest.raises(ValueError, match="first"), Trackers([Broken(), tracker]):  # type: ignore[list-item]
        raise ValueError("first")
    assert 0.9 < time.monotonic() - began < 4


def test_a_server_that_comes_back_is_used_again():
    told: list[str] = []
    attempts: list[int] = []
    kept: list[int] = []
    tracker = Background("late", lambda: Late(attempts, kept), told.append)
    for step in range(5):
        tracker.add({"step": step})
    tracker.close()
    assert kept == [2, 3, 4, -1]
    assert told == ["late does not work: refused; training goes on, metrics.jsonl has everything"]


@pytest.mark.parametrize(
    ("names", "missing", "address", "message"),
    [
        (["wandb"], "wandb", "http://x", r"^training\.trackers: wandb is not installed: pip install 'raysys\[trackers\]'"),
        (["wandb", "mlflow"], "mlflow", "http://x", r"^training\.trackers: mlflow is not installed"),
        (["mlflow"], "", "", r"^training\.trackers: mlflow writes to the server in MLFLOW_TRACKING_URI, which is not set"),
    ],
)
def test_what_cannot_be_is_refused_beforehand(monkeypatch, names, missing, address, message):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with pytest.raises(UserError, match=message):
        check_trackers(names)


def test_trackers_that_can_be_are_let_pass(folder):
    check_trackers(["wandb", "mlflow"])
    check_trackers([])
