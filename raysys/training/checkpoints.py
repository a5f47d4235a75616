"""Checkpoints: written by all workers, complete or not there at all.

A checkpoint is a folder ``checkpoints/step-00000200`` with DeepSpeed's files and, written last, ``complete.json``. One
without ``complete.json`` was cut short and is never used.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from raysys.errors import UserError
from raysys.storage import join
from raysys.training.run_folder import RunFolder

_NAME = re.compile(r"step-(\d{8,})$")


@dataclass(frozen=True)
class CheckpointState:
    """What `complete.json` says: where training stood, and what it takes to go on."""

    step: int
    """Steps that were done; training resumes at this one."""
    fingerprint: str
    """Of the training data."""
    workers: int
    """Training processes that wrote it."""
    zero_stage: int
    """DeepSpeed ZeRO stage."""
    score: float | None
    """On the validation data; greater is better."""


class Checkpoints:
    """The checkpoints of one run. Picklable."""

    def __init__(self, folder: RunFolder, keep: int):
        self.folder = folder
        self.keep = keep

    def uri(self, step: int) -> str:
        """Folder of the checkpoint after `step` steps."""
        return join(self.folder.checkpoints, f"step-{step:08d}")

    def all(self) -> list[CheckpointState]:
        """Complete checkpoints, oldest first."""
        storage = self.folder.storage
        if not storage.exists(self.folder.checkpoints):
            return []
        marks = storage.list(self.folder.checkpoints, suffix="complete.json")
        return sorted((CheckpointState(**json.loads(storage.read(mark.uri))) for mark in marks), key=lambda state: state.step)

    def latest(self) -> CheckpointState | None:
        """The checkpoint to resume from."""
        return max(self.all(), key=lambda state: state.step, default=None)

    def best(self) -> CheckpointState | None:
        """The checkpoint with the best score (the later of equals); the latest where none has a score."""
        scored = [state for state in self.all() if state.score is not None]
        return max(scored, key=lambda state: (state.score, state.step), default=None) or self.latest()

    def next_step(self) -> int:
        """The step at which training goes on."""
        latest = self.latest()
        return latest.step if latest else 0

    def check_resumable(self, fingerprint: str, workers: int, zero_stage: int) -> None:
        """Raise UserError where the latest checkpoint does not fit the run that wants to resume from it."""
        latest = self.latest()
        if latest is None:
            return
        if latest.fingerprint != fingerprint:
            raise UserError(
                f"the run {self.folder.uri} was trained on other data than data.train now holds (fingerprint {latest.fingerprint}, now "
                f"{fingerprint}): give the new run another --run.name"
            )
        written = (latest.workers, latest.zero_stage)
        if written != (workers, zero_stage) and (latest.zero_stage, zero_stage) != (0, 0):
            raise UserError(
                f"the latest checkpoint of {self.folder.uri} was written by {latest.workers} workers with ZeRO {latest.zero_stage}: "
                f"resume with --training.workers {latest.workers} --training.zero-stage {latest.zero_stage} "
                f"(asked for {workers} and {zero_stage}), or give the new run another --run.name"
            )

    def save(self, engine: Any, state: CheckpointState, rank: int, barrier: Callable[[], None]) -> None:
        """Write a checkpoint; called by every rank.

        Args:
            engine: the DeepSpeed engine.
            state: what to remember beside the engine's state.
            rank: of the caller.
            barrier: returns when all ranks have called it.
        """
        uri = self.uri(state.step)
        if self.folder.is_remote:
            with tempfile.TemporaryDirectory(prefix="raysys-checkpoint-") as scratch:
                tag = Path(scratch, uri.rsplit("/", 1)[1])
                tag.mkdir()
                engine.save_checkpoint(scratch, tag=tag.name, save_latest=False)
                for file in sorted(tag.iterdir()):
                    self.folder.storage.upload(str(file), join(uri, file.name))
        else:
            Path(uri).mkdir(parents=True, exist_ok=True)
            engine.save_checkpoint(str(Path(uri).parent), tag=Path(uri).name, save_latest=False)
        barrier()
        if rank == 0:
            self.folder.storage.write(join(uri, "complete.json"), json.dumps(asdict(state)).encode())
            self.prune()
        barrier()

    def load(self, engine: Any) -> int:
        """Bring the engine to the latest checkpoint, if there is one; called by every rank.

        Returns:
            The step at which training goes on.
        """
        latest = self.latest()
        if latest is None:
            return 0
        with self.local(latest) as path:
            loaded, _ = engine.load_checkpoint(str(path.parent), tag=path.name)
        if loaded is None:
            raise UserError(f"the checkpoint {self.uri(latest.step)} cannot be loaded: delete its folder to resume from the one before")
        return latest.step

    def local(self, state: CheckpointState) -> "_LocalCopy":
        """Context manager: the checkpoint's folder on this machine's disk, as a Path."""
        return _LocalCopy(self, state)

    def prune(self) -> None:
        """Delete all but the latest `keep` checkpoints and the best one, and what was cut short before the latest."""
        states = self.all()
        best = self.best()
        kept = {state.step for state in states[-self.keep :]} | ({best.step} if best else set())
        latest = states[-1].step if states else 0
        names = {re.sub(r"/[^/]*$", "", entry.uri) for entry in self.folder.storage.list(self.folder.checkpoints)}
        for name in sorted(names):
            match = _NAME.search(name)
            if match and int(match[1]) not in kept and int(match[1]) <= latest:
                # The mark goes first: a deletion that is cut short must not leave a folder that looks complete.
                if self.folder.storage.exists(join(name, "complete.json")):
                    self.folder.storage.delete(join(name, "complete.json"))
                self.folder.storage.delete(name, recursive=True)


class _LocalCopy:
    def __init__(self, checkpoints: Checkpoints, state: CheckpointState):
        self.checkpoints = checkpoints
        self.uri = checkpoints.uri(state.step)
        self.scratch: str | None = None

    def __enter__(self) -> Path:
        folder = self.checkpoints.folder
        if not folder.is_remote:
            return Path(self.uri)
        self.scratch = tempfile.mkdtemp(prefix="raysys-checkpoint-")
        path = Path(self.scratch, self.uri.rsplit("/", 1)[1])
        path.mkdir()
        for entry in folder.storage.list(self.uri):
            folder.storage.download(entry.uri, str(path / entry.uri.rsplit("/", 1)[1]))
        return path

    def __exit__(self, *_: object) -> None:
        if self.scratch:
            shutil.rmtree(self.scratch)
