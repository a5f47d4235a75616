"""A profile of some steps is a Chrome trace with operators and phases, and never ends a run."""

import gzip
import json

import pytest
import torch

from raysys.storage import Storage, StorageError
from raysys.training.phases import Phases
from raysys.training.profiling import StepProfiler
from raysys.training.run_folder import RunFolder


def train(folder: RunFolder, total: int, steps: int, skip: int, start: int = 0, fails_at: int | None = None) -> tuple[list[str], Phases]:
    """Some matrix products a step; what was told."""
    told: list[str] = []
    phases = Phases()
    weights = torch.randn(16, 16)
    with StepProfiler(folder, 0, steps, skip, phases, told.append) as profiler:
        for step in range(start, start + total):
            phases.step = step + 1  # as the loop does
            profiler.begin_step()
            if step == fails_at:
                raise ValueError("no more")
            with phases("forward"):
                torch.mm(weights, weights)
            with phases("step"):
                weights.mul(0.5)
    return told, phases


def events(data: bytes) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in json.loads(data)["traceEvents"]:
        if event.get("ph") == "X":
            counts[event["name"]] = counts.get(event["name"], 0) + 1
    return counts


@pytest.mark.parametrize(("total", "taken"), [(9, 3), (5, 2)], ids=["whole", "cut short by the end"])
def test_a_profile_has_the_steps_asked_for(tmp_path, total, taken):
    told, phases = train(RunFolder(Storage(), str(tmp_path)), total, steps=3, skip=3, start=40)
    path = tmp_path / "profile" / "rank-00000.json"
    counts = events(path.read_bytes())
    assert (counts["phase forward"], counts["phase step"], counts["aten::mm"]) == (taken, taken, taken)
    assert told == [f"profile of steps 44 to {43 + taken} on rank 0: {path} (open it in https://ui.perfetto.dev or chrome://tracing)"]
    assert not phases.annotate


def test_a_large_profile_is_compressed_and_reaches_object_storage(object_store, monkeypatch):
    monkeypatch.setattr("raysys.training.profiling._LARGE", 100)
    folder = RunFolder(Storage(), f"{object_store.bucket_uri}/profiled")
    told, _ = train(folder, 4, steps=1, skip=1)
    uri = folder.path("profile", "rank-00000.json.gz")
    assert events(gzip.decompress(folder.storage.read(uri)))["aten::mm"] == 1
    assert told[0].startswith(f"profile of steps 2 to 2 on rank 0: {uri} (")


def test_nothing_is_profiled_unless_asked_for(tmp_path):
    told, _ = train(RunFolder(Storage(), str(tmp_path)), 5, steps=0, skip=0)
    assert told == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_too_short_is_told(tmp_path):
    told, _ = train(RunFolder(Storage(), str(tmp_path)), 5, steps=3, skip=10)
    assert told == ["no profile was taken: training ended before step 11 of this worker group (training.profile_from)"]


def test_an_error_in_training_is_not_hidden_by_its_profile(tmp_path):
    with pytest.raises(ValueError, match="no more"):
        train(RunFolder(Storage(), str(tmp_path)), 5, steps=3, skip=1, fails_at=2)
    assert list(tmp_path.iterdir()) == []


class FullStorage(Storage):
    def upload(self, local_path, uri):
        raise StorageError(f"{uri}: no space left")


def test_a_profile_that_cannot_be_kept_does_not_end_the_run(tmp_path):
    told, _ = train(RunFolder(FullStorage(), str(tmp_path)), 5, steps=1, skip=1)
    assert told == [f"profile of steps 2 to 2 on rank 0 could not be written: {tmp_path}/profile/rank-00000.json: no space left"]
