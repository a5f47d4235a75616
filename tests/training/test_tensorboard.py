"""Events are what metrics.jsonl says, and a resumed run hides what it does again."""

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from raysys.storage import Storage
from raysys.training.run_folder import RunFolder
from raysys.training.tensorboard import EventLog


def scalars(folder, name):
    events = EventAccumulator(folder)
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


def test_events_are_the_metrics(tmp_path):
    folder = RunFolder(Storage(), str(tmp_path))
    log = EventLog(folder, 0)
    for step in range(1, 6):
        log.add({"step": step, "train/loss": 10.0 - step, "train/grad_norm": None})
    log.flush()
    assert scalars(str(tmp_path / "tensorboard"), "train/loss") == [(step, 10.0 - step) for step in range(1, 6)]

    resumed = EventLog(folder, 3)
    resumed.add({"step": 4, "train/loss": 1.5})
    resumed.flush()
    assert scalars(str(tmp_path / "tensorboard"), "train/loss") == [(1, 9.0), (2, 8.0), (3, 7.0), (4, 1.5)]


def test_events_reach_object_storage(object_store):
    storage = Storage()
    folder = RunFolder(storage, f"{object_store.bucket_uri}/events")
    log = EventLog(folder, 0)
    log.add({"step": 1, "train/loss": 2.0})
    log.flush()
    assert [entry.size > 0 for entry in storage.list(folder.path("tensorboard"))] == [True]
