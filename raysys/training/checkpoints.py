"""The checkpoints of a run: written by all workers beside training, complete or not there at all, read by any number of workers.

A checkpoint is a folder ``checkpoints/step-00000200`` with a file of tensors and an index from every rank and, written last,
``complete.json``. One without ``complete.json`` was cut short and is never used. ``checkpoints/latest`` names the newest for people and
other programs; here the marks alone count.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

from raysys.errors import RunFailed, UserError
from raysys.storage import StorageError, join
from raysys.training.checkpoint_files import CheckpointReader, Damaged
from raysys.training.checkpoint_mark import MARK, CheckpointState, Found, Mark, best_scored, survey
from raysys.training.checkpoint_writer import WAIT_SECONDS, CheckpointWriter
from raysys.training.engine_state import EngineState
from raysys.training.run_folder import RunFolder

__all__ = ["CheckpointState", "Checkpoints"]

_log = logging.getLogger(__name__)
_told: set[str] = set()


class Checkpoints:
    """The checkpoints of one run. Picklable; what is being written stays behind.

    Args:
        folder: the run.
        keep: latest checkpoints that are kept, besides the best one.
        wait_seconds: for how long rank 0 waits for the other ranks' files once its own is written.
    """

    def __init__(self, folder: RunFolder, keep: int, wait_seconds: float = WAIT_SECONDS):
        self.folder = folder
        self.keep = keep
        self.wait_seconds = wait_seconds
        self._writer = CheckpointWriter(folder.storage, wait_seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        return Checkpoints, (self.folder, self.keep, self.wait_seconds)

    def uri(self, step: int) -> str:
        """Folder of the checkpoint after `step` steps."""
        return join(self.folder.checkpoints, f"step-{step:08d}")

    def survey(self) -> list[Found]:
        """All checkpoints, usable or not, by step."""
        return survey(self.folder.storage, self.folder.checkpoints)

    def all(self) -> list[CheckpointState]:
        """Checkpoints that can be used, oldest first."""
        return [one.mark.state for one in self.survey() if one.mark and not one.fault]

    def latest(self, warn: bool = True) -> CheckpointState | None:
        """The checkpoint to resume from; a warning is logged, where `warn`, for each newer one that cannot be used.

        Raises:
            UserError: there are complete checkpoints, and none of them can be used.
        """
        found = self.survey()
        usable = [one.mark.state for one in found if one.mark and not one.fault]
        latest = usable[-1] if usable else None
        skipped = [one for one in found if one.fault and (latest is None or one.step > latest.step)]
        unusable = [one for one in skipped if MARK in one.files]
        if latest is None and unusable:
            raise UserError(
                f"no checkpoint of the run {self.folder.uri} can be used; of {unusable[-1].uri}, the latest, {unusable[-1].fault} "
                f"(python jobs/checkpoints.py verify tells more): delete {self.folder.checkpoints} to train from the beginning"
            )
        for one in skipped if warn else ():
            _warn(f"the checkpoint {one.uri} is skipped: {one.fault}")
        return latest

    def best(self) -> CheckpointState | None:
        """The checkpoint with the best score (the later of equals); the latest where none has a score."""
        return best_scored(self.all()) or self.latest()

    def next_step(self) -> int:
        """The step at which training goes on."""
        latest = self.latest(warn=False)
        return latest.step if latest else 0

    def check_resumable(self, fingerprint: str) -> None:
        """Raise UserError where the latest checkpoint is of other data; workers and ZeRO stage may differ."""
        latest = self.latest()
        if latest and latest.fingerprint != fingerprint:
            raise UserError(
                f"the run {self.folder.uri} was trained on other data than data.train now holds (fingerprint {latest.fingerprint}, now "
                f"{fingerprint}): give the new run another --run.name"
            )

    def save(self, state: EngineState, what: CheckpointState, tick: Callable[[], object] = lambda: None) -> None:
        """Copy the state and write it in the background; called by every rank. Waits first for the checkpoint before.

        Args:
            state: the engine's.
            what: to remember beside it.
            tick: called now and then while waiting.

        Raises:
            RunFailed, UserError: the checkpoint before could not be written.
        """
        assert state.workers == what.workers
        self._writer.wait(tick)
        self._writer.begin(state, what, self.uri(what.step), then=self.prune)

    def wait(self, tick: Callable[[], object] = lambda: None) -> None:
        """Return when what was begun is written: on rank 0 the whole checkpoint, elsewhere this rank's part; calls `tick` meanwhile.

        Raises:
            RunFailed, UserError: it could not be written.
        """
        self._writer.wait(tick)

    @contextlib.contextmanager
    def kept(self, seconds: float = 10.0) -> Iterator[None]:
        """Around training: where it fails, what was begun is given so long to be written, and is not lost."""
        try:
            yield
        except BaseException:
            self._writer.settle(seconds)
            raise

    def check(self) -> None:
        """Raise what has gone wrong in the background so far; takes no time, so that it can be asked at every step."""
        self._writer.check()

    def load(self, state: EngineState, tick: Callable[[], object] = lambda: None) -> CheckpointState | None:
        """Bring an engine to the latest checkpoint, if there is one; called by every rank.

        Each rank reads what it holds, and so checks it; together they check every byte that is used.

        Returns:
            What was loaded: training goes on at its step. None: training begins.

        Raises:
            UserError: the checkpoint does not hold exactly what this engine needs.
            RunFailed: bytes of it have changed. It is marked as damaged then: the next attempt uses the one before.
        """
        # Rank 0 decides for all; to the plan of the data it has told the same, since a checkpoint once marked stays so.
        latest = self.latest() if state.rank == 0 else None
        step = state.agree(latest.step if latest else 0)
        if step == 0:
            return None
        with self.reading(step) as reader:
            average = self._check_whole(reader, state)
            reader.read(state.held(average), tick)
        state.progress = reader.extras
        if state.ema_decay is not None and not average:
            state.restart_average()
            if state.rank == 0:
                _warn(f"the checkpoint {self.uri(step)} has no average of the weights: it begins at the weights of step {step}")
        state.refresh()
        state.engine.global_steps = step
        return reader.state

    @contextlib.contextmanager
    def reading(self, step: int) -> Iterator[CheckpointReader]:
        """The checkpoint of `step`, open for reading; where its bytes have changed, it is marked as damaged.

        Raises:
            RunFailed: bytes have changed.
        """
        storage, uri = self.folder.storage, self.uri(step)
        mark = Mark.read(storage, uri)
        try:
            yield CheckpointReader(storage, uri, mark)
        except Damaged as damage:
            with contextlib.suppress(StorageError, UserError):  # one may read what one may not write
                storage.write(join(uri, mark.damage), str(damage).encode())
            raise RunFailed(f"the checkpoint {uri} is damaged ({damage}); marked so, and the next attempt uses the one before") from None

    def _check_whole(self, reader: CheckpointReader, state: EngineState) -> bool:
        """Raise UserError for all that is missing, of another form or unexpected; returns whether there is an average to be read."""
        stored, expected = reader.stored, state.expected()
        has, wants = (any(key.startswith("ema/") for key in keys) for keys in (stored, expected))
        if has != wants:  # the average was switched on or off since
            stored = {key: one for key, one in stored.items() if not key.startswith("ema/")}
            expected = {key: one for key, one in expected.items() if not key.startswith("ema/")}
        faults = [f"{key} is missing" for key in expected.keys() - stored.keys()]
        faults += [f"{key} is unexpected" for key in stored.keys() - expected.keys()]
        for key in expected.keys() & stored.keys():
            shape, dtype = expected[key]
            if (stored[key].shape, stored[key].dtype) != (shape, dtype):
                faults.append(f"{key} is {stored[key].dtype} {list(stored[key].shape)} instead of {dtype} {list(shape)}")
            elif gap := stored[key].gap():
                faults.append(f"{key}: {gap}")
        counted = reader.extras.get("adam_steps", {})
        faults += [f"the number of Adam's steps of {name} is missing" for name in state.progress["adam_steps"] if name not in counted]
        if "loss_scale" in state.progress and "loss_scale" not in reader.extras:
            faults.append("the loss scale is missing")
        if faults:
            more = f" and {len(faults) - 3} more" if len(faults) > 3 else ""
            raise UserError(
                f"the checkpoint {self.uri(reader.state.step)} is not what this training needs: {'; '.join(sorted(faults)[:3])}{more}."
                " Resume with the settings that it was trained with, or give the new run another --run.name"
            )
        return has and wants

    def prune(self, keep: int | None = None) -> list[str]:
        """Delete all but the latest `keep` checkpoints and the best one, and what was cut short or damaged before the latest.

        Returns:
            The folders that were deleted.
        """
        storage, found = self.folder.storage, self.survey()
        usable = [one.mark.state for one in found if one.mark and not one.fault]
        if not usable:
            return []
        best = best_scored(usable) or usable[-1]
        kept = {state.step for state in usable[-(keep or self.keep) :]} | {best.step}
        gone = [one for one in found if one.step not in kept and one.step <= usable[-1].step]
        for one in gone:
            # The mark goes first: a deletion that is cut short must not leave a folder that looks complete.
            storage.delete(join(one.uri, MARK))
            storage.delete(one.uri, recursive=True)
        return [one.uri for one in gone]


def _warn(text: str) -> None:
    """Log a warning, once in a process: checkpoints are looked at often."""
    if text not in _told:
        _told.add(text)
        _log.warning("%s", text)
