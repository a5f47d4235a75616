"""Workers that stand still end and say where, whatever they stand in; workers that move are left alone."""

import ctypes
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from raysys.storage import Storage
from raysys.training.gather import gather_rows
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.watchdog import STOOD_STILL, Standstill, Watchdog, verdict
from tests.training.processes import start_ranks

SECONDS = 1.0


class StuckStorage(Storage):
    """Takes for ever to write."""

    def write(self, uri: str, data: bytes) -> None:
        time.sleep(1000)


def wait_for_the_others() -> None:
    gather_rows(torch.ones(2, 3), [2, 2])


def keep_them_waiting(root: str, phases: Phases) -> None:
    """Move until the other rank has lost patience, and come then."""
    while not Path(root, "note-0").exists():
        time.sleep(0.05)
        phases.tick()
    time.sleep(0.2)
    wait_for_the_others()


def read_slowly() -> None:
    time.sleep(1000)


def loop_for_ever() -> None:
    while True:
        pass


def never_let_go() -> None:
    ctypes.PyDLL(None).sleep(1000)  # holds the interpreter's lock


def work(rank: int, root: str, does: list[tuple[str, Any]], storage: Storage) -> None:
    """Come to a standstill in a phase at step 12."""
    with open(f"{root}/stderr-{rank}", "w") as file:
        os.dup2(file.fileno(), 2)
    phases = Phases()
    phase, stand_still = does[rank]

    def tell(note: Standstill) -> None:
        Path(root, f"note-{rank}").write_bytes(pickle.dumps(note))

    def beat() -> None:
        Path(root, f"beat-{rank}").touch()

    with Watchdog(phases, rank, len(does), SECONDS, RunFolder(storage, f"{root}/run"), tell, beat, grace=1.0):
        phases.step = 12
        with phases(phase):
            stand_still(root, phases) if stand_still is keep_them_waiting else stand_still()


GROUPS: dict[str, tuple[list[tuple[str, Any]], Storage]] = {
    "sleeps": ([("gather", wait_for_the_others), ("data", read_slowly)], Storage()),
    "loops": ([("data", loop_for_ever), ("gather", wait_for_the_others)], Storage()),
    "slow": ([("gather", wait_for_the_others), ("data", keep_them_waiting)], Storage()),
    "locked": ([("forward", never_let_go)], Storage()),
    "storage": ([("checkpoint", read_slowly)], StuckStorage()),
}


class Found:
    """What a group left behind."""

    def __init__(self, root: Path, codes: list[int | None]):
        self.root, self.codes = root, codes
        self.notes: list[Standstill] = [pickle.loads(path.read_bytes()) for path in sorted(root.glob("note-*"))]

    def stderr(self, rank: int) -> str:
        return (self.root / f"stderr-{rank}").read_text()


@pytest.fixture(scope="module")
def groups(tmp_path_factory) -> dict[str, Found]:
    """All groups at once, until each has ended by itself."""
    root = tmp_path_factory.mktemp("watchdog")
    started = {}
    for name, (does, storage) in GROUPS.items():
        (root / name / "meet").mkdir(parents=True)
        started[name] = start_ranks(work, len(does), str(root / name / "meet"), str(root / name), does, storage)
    deadline = time.monotonic() + 60
    found = {}
    for name, processes in started.items():
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        found[name] = Found(root / name, [process.exitcode for process in processes])
    return found


@pytest.mark.parametrize(
    ("name", "culprit", "where"), [("sleeps", 1, "in read_slowly"), ("loops", 0, "in loop_for_ever")], ids=["sleeps", "loops"]
)
def test_the_rank_that_holds_up_the_others_is_told_from_those_that_wait(groups, name, culprit, where):
    found = groups[name]
    assert found.codes[culprit] == STOOD_STILL
    assert found.codes[1 - culprit] in (STOOD_STILL, 1), "it may have seen the other one go"
    assert [note.rank for note in found.notes] == [0, 1]
    stuck, waits = found.notes[culprit], found.notes[1 - culprit]
    assert (stuck.step, stuck.phase, stuck.waits) == (12, "data", False)
    assert (waits.step, waits.phase, waits.waits) == (12, "gather", True)
    assert 1.0 < stuck.seconds < 5.0
    assert stuck.where.startswith("test_watchdog.py:")
    assert stuck.where.endswith(where)
    assert f"rank {culprit}: no progress for 1 s at step 12 in phase data (test_watchdog.py:" in str(stuck)
    assert "it does not wait for other ranks: look here first; stacks in " in str(stuck)
    assert str(stuck) in found.stderr(culprit)
    assert "; it waits for other ranks; stacks in " in str(waits)
    assert verdict(found.notes).startswith(f"rank {culprit} stood still for 1 s at step 12 in phase data ({stuck.where}); ")
    assert f"rank {1 - culprit} waited at step 12 in phase gather; stacks in {found.root}/run/watchdog" in verdict(found.notes)


@pytest.mark.parametrize("name", ["sleeps", "loops"])
def test_the_stacks_of_all_threads_are_kept_the_training_one_first(groups, name):
    for note in groups[name].notes:
        text = Path(note.file).read_text()
        assert text.startswith(str(note))
        training = text.index("thread MainThread (trains)")
        assert text.index("thread ") == training
        assert "stand_still()" in text[training:]
        assert ("gather_rows" in text) == note.waits
        assert note.file.endswith(f"-rank-{note.rank:04d}.txt")


def test_who_waits_for_one_that_moves_is_spared_for_as_long_again(groups):
    assert groups["slow"].codes == [0, 0]
    assert [(note.rank, note.waits) for note in groups["slow"].notes] == [(0, True)]


def test_signs_of_life_are_given(groups):
    assert all((groups[name].root / "beat-0").exists() for name in ("sleeps", "loops", "storage"))


def test_a_process_whose_interpreter_is_locked_ends_too(groups):
    assert groups["locked"].codes == [1]
    assert groups["locked"].notes == []
    assert "in never_let_go" in groups["locked"].stderr(0)


def test_storage_that_stands_still_itself_holds_nothing_up(groups):
    assert groups["storage"].codes == [STOOD_STILL]
    assert groups["storage"].notes[0].place == "at step 12 in phase checkpoint"


def short(phases: Phases, told: list[Standstill], folder: Path, seconds: float = 0.3) -> Watchdog:
    return Watchdog(phases, 0, 1, seconds, RunFolder(Storage(), str(folder)), told.append, grace=1.0)


def test_who_moves_is_left_alone(tmp_path):
    phases, told = Phases(), []
    with short(phases, told, tmp_path), phases("validation"):
        for _ in range(20):
            time.sleep(0.05)
            phases.tick()
    assert told == []


def test_who_moves_again_in_time_is_spared(tmp_path):
    phases, told = Phases(), []
    with short(phases, told, tmp_path), phases("data"):
        while not told:
            time.sleep(0.01)
        phases.tick()
        for _ in range(40):
            time.sleep(0.05)
            phases.tick()
    assert len(told) == 1


def test_nothing_is_watched_on_request(tmp_path):
    phases, told = Phases(), []
    with short(phases, told, tmp_path, seconds=0), phases("data"):
        time.sleep(1.2)
    assert told == []


def note(rank: int, phase: str, waits: bool, step: int = 5, workers: int = 3) -> Standstill:
    return Standstill(rank, workers, step, phase, 600.0, waits, f"{phase}.py:7 in {phase}", f"/run/watchdog/x-rank-{rank:04d}.txt")


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        (
            [note(0, "gather", True), note(1, "data", False), note(2, "gather", True)],
            "rank 1 stood still for 600 s at step 5 in phase data (data.py:7 in data); ranks 0, 2 waited at step 5 in phase gather",
        ),
        (  # on a GPU the host waits where it reads the loss, in no collective
            [note(0, "loss", False), note(1, "loss", False), note(2, "data", False)],
            "rank 2 stood still for 600 s at step 5 in phase data (data.py:7 in data); ranks 0, 1 waited at step 5 in phase loss",
        ),
        (
            [note(0, "gather", True), note(2, "gather", True)],
            "no word from rank 1, for which ranks 0, 2 waited at step 5 in phase gather: the process stands still as a whole",
        ),
        (
            [note(0, "gather", True), note(1, "step", True), note(2, "gather", True)],
            "the ranks wait for each other in different places: rank 0 at step 5 in phase gather (gather.py:7 in gather), rank 1 at",
        ),
        (
            [note(rank, "gather", True) for rank in range(3)],
            "all ranks waited for each other at step 5 in phase gather for 600 s: does the network between them work?",
        ),
        ([note(0, "starting", False, 0, 1)], "rank 0 stood still for 600 s before the first step in phase starting"),
        (
            [note(rank, "data", False, workers=2) for rank in range(2)],
            "rank 0 stood still for 600 s at step 5 in phase data (data.py:7 in data); rank 1 stood still for",
        ),
    ],
)
def test_the_cause_of_a_standstill(notes, told):
    assert verdict(notes).startswith(told)
    assert verdict(notes).endswith("stacks in /run/watchdog")


def test_many_ranks_are_not_listed_one_by_one():
    told = verdict([note(rank, "gather", True, workers=65) for rank in range(64)])
    assert told.startswith("no word from rank 64, for which ranks 0, 1, 2, 3, 4, 5, 6, 7 and 56 more waited at step 5")
