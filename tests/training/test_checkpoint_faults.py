"""What happens to checkpoints: kept and deleted, cut short, damaged, mixed with others, not what is needed."""

import contextlib
import json
import logging
import os
import re
import shutil
import signal
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from raysys.errors import RunFailed, UserError
from raysys.storage import Storage, StorageSettings, join
from raysys.training.checkpoint_files import CheckpointReader, Piece, file_name, index_of
from raysys.training.checkpoint_mark import CheckpointState, Mark
from raysys.training.checkpoint_writer import Snapshot
from raysys.training.checkpoints import Checkpoints
from raysys.training.engine_state import EngineState
from raysys.training.export import load_weights
from raysys.training.run_folder import RunFolder
from tests.training.engines import Network, full_state, let_go, make, train
from tests.training.processes import run_ranks

DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "gone": lambda data: None,
    "flipped at the beginning": lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
    "flipped in the middle": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 16]) + data[len(data) // 2 + 1 :],
    "flipped at the end": lambda data: data[:-3] + bytes([data[-3] ^ 128]) + data[-2:],
}
CHANGES = {
    "a weight": ("weight/first.weight is missing", lambda pieces, extras: pieces.pop("weight/first.weight")),
    "a first moment": ("exp_avg/scale is missing", lambda pieces, extras: pieces.pop("exp_avg/scale")),
    "a second moment": ("exp_avg_sq/back.weight is missing", lambda pieces, extras: pieces.pop("exp_avg_sq/back.weight")),
    "a frozen weight": ("weight/frozen.bias is missing", lambda pieces, extras: pieces.pop("weight/frozen.bias")),
    "a buffer": ("buffer/ring is missing", lambda pieces, extras: pieces.pop("buffer/ring")),
    "a count": ("the number of Adam's steps of unused is missing", lambda pieces, extras: extras["adam_steps"].pop("unused")),
    "part of an average": ("ema/norm.bias is missing", lambda pieces, extras: pieces.pop("ema/norm.bias")),
    "half a tensor": ("weight/back.weight: 45 of 91 elements are there", lambda pieces, extras: halve(pieces, "weight/back.weight")),
    "one too many": ("weight/stranger is unexpected", lambda pieces, extras: stranger(pieces, "weight/stranger", (3,))),
    "another shape": (
        r"weight/first.weight is torch.float32 \[7, 13\] instead of torch.float32 \[13, 7\]",
        lambda pieces, extras: stranger(pieces, "weight/first.weight", (7, 13)),
    ),
    "another dtype": ("buffer/ring is torch.float16", lambda pieces, extras: pieces.update({"buffer/ring": halved(pieces["buffer/ring"])})),
}


def halve(pieces: dict[str, Piece], key: str) -> None:
    pieces[key] = pieces[key].part(0, pieces[key].values.numel() // 2)


def stranger(pieces: dict[str, Piece], key: str, shape: tuple[int, ...]) -> None:
    pieces[key] = Piece(key, shape, 0, torch.zeros(torch.Size(shape).numel()))


def halved(piece: Piece) -> Piece:
    return replace(piece, values=piece.values.half())


def at(root: Path, name: str, keep: int = 2, wait_seconds: float = 60) -> Checkpoints:
    return Checkpoints(RunFolder(Storage(), str(root / name)), keep, wait_seconds)


def state_of(step: int, workers: int = 1, score: float | None = None) -> CheckpointState:
    return CheckpointState(step, "abc", workers, 1, score)


def save(checkpoints: Checkpoints, state: EngineState, step: int, score: float | None = None) -> None:
    checkpoints.save(state, state_of(step, state.workers, score))
    checkpoints.wait()


def rewrite(checkpoints: Checkpoints, step: int, change: Callable[[dict[str, Piece], dict[str, Any]], object]) -> None:
    """Change what a checkpoint holds; all its checksums are right afterwards."""
    storage, uri = checkpoints.folder.storage, checkpoints.uri(step)
    mark = Mark.read(storage, uri)
    reader = CheckpointReader(storage, uri, mark)
    pieces = {
        key: Piece(key, one.shape, 0, torch.empty(torch.Size(one.shape).numel(), dtype=one.dtype)) for key, one in reader.stored.items()
    }
    reader.read(pieces.values())
    change(pieces, reader.extras)
    name = file_name(0, 1, mark.writing)
    Snapshot(list(pieces.values()), reader.extras).write(storage, join(uri, name))
    index = storage.read(join(uri, index_of(name)))
    files = {name: (storage.size(join(uri, name)), None), index_of(name): (len(index), zlib.crc32(index))}
    replace(mark, files=files).write(storage, uri)  # type: ignore[arg-type]


def by_two(rank: int, root: Path) -> dict[int, dict[str, Tensor]]:
    """Two checkpoints of two workers; what a cut attempt leaves; and rank 0 left alone."""
    engine = make(stage=1)
    engine.train()
    state = EngineState(engine)
    found = {}
    for step in (2, 4):
        train(engine, step - 2, step)
        save(at(root, "two"), state, step)
        save(at(root, "stale"), state, step)
        found[step] = full_state(engine)
    dist.barrier()
    # Rank 1's files go elsewhere; in their place lie those of an attempt before, and rank 0 must not take them.
    alone = at(root, "stale" if rank == 0 else "elsewhere", wait_seconds=0.5)
    if rank == 0:
        Path(alone.uri(4), "complete.json").unlink()
        with pytest.raises(RunFailed, match=r"step-00000004 is not complete 0.5 s after .*: nothing has come from rank 1$"):
            save(alone, state, 4)
        assert alone.next_step() == 2
    else:
        save(alone, state, 4)
    let_go(engine)
    return found


def by_one(rank: int, root: Path, store: RunFolder) -> dict[str, Any]:
    """All that takes an engine and one worker."""
    engine = make(stage=1, seed=8)
    engine.train()
    state = EngineState(engine, 0.9)
    found: dict[str, Any] = {"damaged": damaged(root, EngineState(engine)), "changed": changed(root, engine, state)}
    found["kept"] = {str(place.folder.uri): keep_some(place, state) for place in (at(root, "kept"), Checkpoints(store, 2))}
    save(Checkpoints(RunFolder(store.storage, f"{store.uri}-loaded"), 2), state, 1)
    expected = full_state(engine)
    train(engine, 0, 1, state)
    Checkpoints(RunFolder(store.storage, f"{store.uri}-loaded"), 2).load(state)
    assert all(tensor.equal(expected[name]) for name, tensor in full_state(engine).items())
    save(at(root, "stale"), state, 4)
    found["stale"] = Mark.read(Storage(), at(root, "stale").uri(4)).files
    assert list(CheckpointReader(Storage(), at(root, "stale").uri(4), Mark.read(Storage(), at(root, "stale").uri(4))).faults()) == []
    refused(root, state)
    averages_begin(root, engine, state)
    let_go(engine)
    found["killed"] = killed(root)
    return found


def damaged(root: Path, state: EngineState) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Each file of the latest checkpoint damaged in each way; attempts to load go on until one succeeds."""
    found = {}
    names = sorted(file.name for file in Path(at(root, "two").uri(4)).iterdir())
    assert len(names) == 5
    for number, (name, way) in enumerate((name, way) for name in names for way in DAMAGES):
        folder = f"damaged-{number}"
        shutil.copytree(root / "two", root / folder)
        checkpoints = at(root, folder)
        path = Path(checkpoints.uri(4), name)
        data = DAMAGES[way](path.read_bytes())
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
        asked = checkpoints.next_step()
        if asked == 4:  # only reading shows it
            named = rf"step-00000004 is damaged \({name.partition('.')[0]}"
            with pytest.raises(RunFailed, match=named):
                checkpoints.load(state)
            asked = checkpoints.next_step()
        loaded = checkpoints.load(state)
        assert loaded is not None
        assert asked == loaded.step, "the plan of the data and the weights agree"
        found[name, way] = full_state(state.engine) | {"step": torch.tensor(loaded.step)}
        shutil.rmtree(root / folder)
    return found


def changed(root: Path, engine: Any, state: EngineState) -> dict[str, str]:
    found = {}
    for name, (_, change) in CHANGES.items():
        checkpoints = at(root, f"changed-{name}")
        save(checkpoints, state, 3)
        rewrite(checkpoints, 3, change)
        try:
            checkpoints.load(state)
        except UserError as error:
            found[name] = str(error)
    return found


def keep_some(checkpoints: Checkpoints, state: EngineState) -> list[Any]:
    assert checkpoints.all() == []
    assert checkpoints.latest() is checkpoints.best() is None
    assert checkpoints.next_step() == 0
    assert checkpoints.load(state) is None
    checkpoints.check_resumable("anything")
    checkpoints.folder.storage.write(join(checkpoints.uri(1), "rank-00000-of-00001-0.safetensors"), b"half")
    assert checkpoints.next_step() == 0, "nothing was complete yet"
    for step, score in ((1, 0.3), (2, 0.9), (3, 0.1), (4, 0.9), (5, None), (6, 0.8)):
        save(checkpoints, state, step, score)
    checkpoints.check_resumable("abc")
    with pytest.raises(UserError, match=r"was trained on other data .*fingerprint abc, now xyz.*another --run.name"):
        checkpoints.check_resumable("xyz")
    assert checkpoints.latest() == state_of(6, 1, 0.8)
    assert checkpoints.best() == state_of(4, 1, 0.9), "the later of two that are equally good"
    told = json.loads(checkpoints.folder.read_text("checkpoints/latest"))
    assert told == {"step": 6, "folder": "step-00000006"}
    checkpoints.folder.storage.write(join(checkpoints.uri(9), "rank-00000-of-00001-0.safetensors"), b"half")
    assert checkpoints.next_step() == 6
    return [one.step for one in checkpoints.survey()]


def refused(root: Path, state: EngineState) -> None:
    """What cannot be written is the run's error, at the next look."""
    checkpoints = at(root, "refused")
    checkpoints.folder.storage.write(str(root / "refused" / "checkpoints" / "step-00000001"), b"a file in the way")
    checkpoints.save(state, state_of(1))
    error: Exception | None = None
    deadline = time.monotonic() + 20
    while error is None and time.monotonic() < deadline:
        try:
            checkpoints.check()
        except RunFailed as caught:
            error = caught
    assert "step-00000001: File exists" in str(error)
    checkpoints.wait()


def averages_begin(root: Path, engine: Any, state: EngineState) -> None:
    """A run that had no average is given one, which begins at its weights; one that had goes on without."""
    checkpoints = at(root, "without")
    save(checkpoints, EngineState(engine), 1)
    expected = full_state(engine)
    train(engine, 0, 1, state)
    checkpoints.load(state)
    with state.averaged():
        assert all(tensor.equal(expected[name]) for name, tensor in full_state(engine).items())
    save(at(root, "with"), state, 1)
    at(root, "with").load(EngineState(engine))
    assert all(tensor.equal(expected[name]) for name, tensor in full_state(engine).items())


def killed(root: Path) -> list[int]:
    """SIGKILL at many moments of a save: the step of the checkpoint that is used afterwards, which is checked to be right."""
    engine = make(stage=1, wide=20_000)
    engine.train()
    state = EngineState(engine)
    found = []

    def attempt(name: str, step: int) -> None:
        checkpoints = at(root, name)
        checkpoints.save(state, state_of(step))
        checkpoints.wait()

    attempt("killed", 2)
    expected = {2: full_state(engine)}
    train(engine, 0, 1)
    expected[4] = full_state(engine)
    started = time.monotonic()
    attempt("timed", 4)
    seconds = time.monotonic() - started
    for number in range(16):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                attempt("killed", 4)
            os._exit(0)
        time.sleep(seconds * 1.5 * number / 15)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        train(engine, 1, 2)
        loaded = at(root, "killed").load(state)
        assert loaded is not None
        for name, tensor in full_state(engine).items():
            assert tensor.equal(expected[loaded.step][name]), f"attempt {number}: {name}"
        found.append(loaded.step)
        if loaded.step == 4:
            shutil.rmtree(at(root, "killed").uri(4))
        at(root, "timed").load(state)
    let_go(engine)
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def two(root) -> dict[int, dict[str, Tensor]]:
    return run_ranks(by_two, 2, root)[0]


@pytest.fixture(scope="module")
def one(two, root, object_store) -> dict[str, Any]:
    store = RunFolder(Storage(StorageSettings(endpoint=object_store.endpoint)), f"{object_store.bucket_uri}/runs/faults")
    return run_ranks(by_one, 1, root, store)[0]


def test_with_any_file_damaged_the_checkpoint_before_is_used(two, one):
    assert len(one["damaged"]) == 5 * len(DAMAGES)
    for case, found in one["damaged"].items():
        assert int(found.pop("step")) == 2, case
        for name, tensor in two[2].items():
            assert found[name].equal(tensor), f"{case}: {name}"
    assert not two[2]["weight/back.weight"].equal(two[4]["weight/back.weight"])


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_that_is_not_what_is_needed_is_refused_by_name(one, change):
    assert re.search(CHANGES[change][0], one["changed"][change])
    assert "step-00000003 is not what this training needs" in one["changed"][change]


def test_the_latest_and_the_best_are_kept(one):
    assert len(one["kept"]) == 2
    for found in one["kept"].values():
        assert found == [4, 5, 6, 9], "9 is being written, or was cut short"


def test_files_of_another_attempt_are_never_mixed_in(one):
    assert [name.partition("-of-")[2][:5] for name in one["stale"]] == ["00001", "00001"]


def test_killed_at_any_moment_of_writing_a_right_checkpoint_is_left(one):
    assert len(one["killed"]) == 16
    assert set(one["killed"]) <= {2, 4}, "cut or not, as the machine's speed will have it"


def test_without_any_checkpoint_that_can_be_used_nothing_begins_anew(two, root, caplog):
    shutil.copytree(root / "two", root / "all-damaged")
    checkpoints = at(root, "all-damaged")
    for step in (2, 4):
        next(Path(checkpoints.uri(step)).glob("*.safetensors")).write_bytes(b"")
        if step == 2:
            assert checkpoints.next_step() == 4
    with pytest.raises(UserError, match=r"no checkpoint of the run .* can be used; of .*step-00000004, the latest, .*has 0 bytes"):
        checkpoints.next_step()
    with pytest.raises(UserError, match="can be used"):
        checkpoints.best()


def test_what_is_skipped_is_told_once(two, root, caplog):
    shutil.copytree(root / "two", root / "told")
    checkpoints = at(root, "told")
    Path(checkpoints.uri(4), "complete.json").unlink()
    with caplog.at_level(logging.WARNING):
        assert [checkpoints.next_step() for _ in range(3)] == [2, 2, 2]
        assert not caplog.records, "who only asks for the step is told nothing"
        assert [checkpoints.latest().step for _ in range(3)] == [2, 2, 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"the checkpoint {checkpoints.uri(4)} is skipped: it has no complete.json: writing it was cut short, or goes on"
    ]


def test_weights_of_another_network_are_refused(two, root):
    checkpoints = at(root, "two")
    with pytest.raises(
        UserError, match=r"step-00000004 does not fit the run's settings: .*weight/first.weight is \[13, 7\], here \[14, 7\]"
    ):
        load_weights(Network(wide=14), checkpoints, state_of(4))
    with pytest.raises(UserError, match=r"missing \['weight/0.bias', 'weight/0.weight'\], unexpected \['buffer/open'"):
        load_weights(torch.nn.Sequential(torch.nn.Linear(2, 2)), checkpoints, state_of(4))


def test_exporting_a_damaged_checkpoint_marks_it(two, root):
    shutil.copytree(root / "two", root / "exported")
    checkpoints = at(root, "exported")
    path = next(Path(checkpoints.uri(4)).glob("*.safetensors"))
    path.write_bytes(DAMAGES["flipped at the end"](path.read_bytes()) or b"")
    with pytest.raises(RunFailed, match="step-00000004 is damaged"):
        load_weights(Network(), checkpoints, state_of(4))
    assert [state.step for state in checkpoints.all()] == [2]
