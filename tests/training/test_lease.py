import json
import pickle
import time
from dataclasses import asdict

import pytest

from raysys.errors import UserError
from raysys.storage import Storage
from raysys.training import lease
from raysys.training.lease import LEASE, Lease, Owner, Taken, claimed, read, wait_until_free
from raysys.training.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    return RunFolder(Storage(), str(tmp_path / "run"))


@pytest.fixture
def quick(monkeypatch):
    """The same protocol with shorter times."""
    monkeypatch.setattr(lease, "BEAT", 0.2)
    monkeypatch.setattr(lease, "SILENCE", 2.0)


def leave(folder: RunFolder, **changes: object) -> Owner:
    """What a command that was killed leaves behind."""
    owner = Owner(**{"name": "other", "who": "process 7 on attic", "machine": lease._machine(), "time": time.time(), **changes})  # type: ignore[arg-type]
    folder.write_text(LEASE, json.dumps(asdict(owner)))
    return owner


def waited(folder: RunFolder) -> tuple[float, list[str]]:
    told: list[str] = []
    begun = time.monotonic()
    wait_until_free(folder, told.append)
    return time.monotonic() - begun, told


def test_a_run_is_claimed_and_given_back(folder, quick):
    with claimed(folder) as mine:
        first = read(folder)
        assert first is not None
        assert first.name == mine.owner.name
        time.sleep(0.5)
        assert read(folder).time > first.time, "renewed by itself"
    assert read(folder) is None
    assert waited(folder) == (pytest.approx(0.0, abs=0.2), [])


def test_given_back_after_an_error_too(folder):
    with pytest.raises(ValueError, match="octarine"), claimed(folder):
        raise ValueError("octarine")
    assert read(folder) is None


def test_a_run_in_training_is_refused_by_name(folder, quick):
    told: list[str] = []
    with claimed(folder) as mine:
        with pytest.raises(UserError, match=rf"^the run {folder.uri} is being trained by {mine.owner.who}: wait for its end, stop it"):
            wait_until_free(folder, told.append)
        assert read(folder).name == mine.owner.name
    assert told == [f"the run was in training by {mine.owner.who}; waiting 2 s at most, to see whether it still is"]


def test_who_is_silent_for_long_enough_is_dead(folder, quick):
    leave(folder, time=time.time() - 10)
    assert waited(folder)[0] < 0.2, "by the clock of this machine, it was silent for long enough"
    leave(folder)
    assert waited(folder)[0] == pytest.approx(2.0, abs=0.9)
    leave(folder, machine="attic", time=time.time() - 10)
    assert waited(folder)[0] == pytest.approx(2.0, abs=0.9), "clocks of two machines are not compared"
    leave(folder, time=time.time() + 1e6)
    assert waited(folder)[0] == pytest.approx(2.0, abs=0.9), "nor is a clock trusted that was set back"


def test_the_run_of_a_dead_command_is_taken_over(folder, quick):
    dead = leave(folder)
    with claimed(folder) as mine:
        assert mine.former == dead
        mine.note("run-7")
        time.sleep(0.5)
        assert read(folder).ray_run == "run-7", "for whoever has to clear up after this command"
        assert read(folder).name == mine.owner.name
    assert read(folder) is None


def test_a_later_version_may_say_more(folder):
    owner = leave(folder)
    folder.write_text(LEASE, json.dumps({**asdict(owner), "mood": "octarine"}))
    assert read(folder) == owner


def test_what_cannot_be_understood_keeps_nobody_out(folder):
    for text in ("", "{", "[]", '{"name": "x"}'):
        folder.write_text(LEASE, text)
        assert read(folder) is None


def test_whoever_is_named_last_has_it(folder, quick):
    one, other = (Lease(folder, Owner(name, f"process of {name}", lease._machine(), 0.0)) for name in ("one", "other"))
    with one.kept() as check:
        check()
        folder.write_text(LEASE, json.dumps(asdict(other.owner)))  # both began at once, and no storage could have told them
        time.sleep(0.7)
        with pytest.raises(Taken, match=r"is now trained by process of other: this command had stood still, or began"):
            check()
    one.release()
    assert read(folder).name == "other", "nobody deletes what names another"
    with pytest.raises(Taken, match="process of other"), one.kept():
        pass
    other.release()
    assert read(folder) is None


def test_a_worker_keeps_it_for_a_command_that_is_dead(folder, quick):
    with claimed(folder) as mine:
        at_worker = pickle.loads(pickle.dumps(mine))
    with at_worker.kept() as check, pytest.raises(UserError, match="is being trained by process"):
        wait_until_free(folder, lambda text: None)
    check()


def test_storage_that_fails_for_a_while_takes_nothing_away(folder, quick, monkeypatch):
    with claimed(folder) as mine, mine.kept() as check:
        folder.storage.delete(folder.uri, recursive=True)
        (blocker := folder.storage).write(folder.uri, b"a file where the folder was")
        time.sleep(0.5)
        blocker.delete(folder.uri)
        time.sleep(0.5)
        assert read(folder).name == mine.owner.name
        check()
