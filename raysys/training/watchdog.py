"""A worker that stands still is noticed, told of with its stacks, and ended, so that the run goes on from its last checkpoint."""

import contextlib
import faulthandler
import os
import socket
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from raysys.training.phases import Phases, Position
from raysys.training.run_folder import RunFolder

WATCHDOG = "watchdog"
"""Folder beneath the run's with the stacks of workers that stood still."""
STOOD_STILL = 86
"""Exit code of a worker that the watchdog ended."""
GRACE = 5.0
"""Seconds between telling and ending, in which the other ranks tell where they are."""
BEFORE_THE_FIRST_STEP = 3
"""Times as patient until then."""
BEAT = 10.0
"""Seconds between two signs of life."""

_COLLECTIVES = ("/torch/distributed/", "/deepspeed/comm/")
_NEAR = 8  # frames from the innermost one in which a collective is looked for


class Standstill(NamedTuple):
    """What a worker that stands still tells."""

    rank: int
    workers: int
    step: int
    """From 1; 0 before the first."""
    phase: str
    seconds: float
    """Without progress."""
    waits: bool
    """It is inside a collective: it waits for other ranks."""
    where: str
    """The innermost line of Python of the training thread."""
    file: str
    """With the stacks of all threads."""

    @property
    def place(self) -> str:
        """Step and phase, for people."""
        return str(Position(self.step, self.phase, 0.0))

    def __str__(self) -> str:
        does = "it waits for other ranks" if self.waits else "it does not wait for other ranks: look here first"
        return f"rank {self.rank}: no progress for {self.seconds:.0f} s {self.place} ({self.where}); {does}; stacks in {self.file}"


class Watchdog:
    """Context manager around training in one worker: ends the process when nothing moves for `seconds`.

    Progress is what :class:`Phases` calls so: a new step, a change of phase, a tick. A thread looks. It needs the interpreter's lock,
    which a thread inside a collective does not hold. Should the lock never be released, a thread of C ends the process a little later
    and writes the stacks to standard error (of the worker, in Ray's logs), for nothing else can be done then.

    A worker that waits for others inside a collective is given as much time again, for those it waits for may be moving.

    Args:
        phases: of the training thread, which is the one that enters the context.
        rank, workers: of this worker.
        seconds: without progress; 0: the worker is never ended, and only gives signs of life.
        folder: the run, for the stacks.
        tell: called with the :class:`Standstill` before the process ends.
        beat: called every :data:`BEAT` seconds as a sign of life.
        grace: seconds between telling and ending.
    """

    def __init__(
        self,
        phases: Phases,
        rank: int,
        workers: int,
        seconds: float,
        folder: RunFolder,
        tell: Callable[[Standstill], Any],
        beat: Callable[[], Any] | None = None,
        grace: float = GRACE,
    ):
        self.phases, self.rank, self.workers = phases, rank, workers
        self.seconds, self.folder, self.grace = seconds, folder, grace
        self._tell, self._beat = tell, beat
        self._look_every = min(1.0, seconds / 10) if seconds else 1.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")
        self._trainer = 0

    def __enter__(self) -> "Watchdog":
        self._trainer = threading.get_ident()
        self._arm()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join(2 * GRACE)
        if self.seconds:
            faulthandler.cancel_dump_traceback_later()

    def _arm(self) -> None:
        """Put off the end that comes where this thread is kept from running."""
        if self.seconds and sys.__stderr__:
            faulthandler.dump_traceback_later(self.seconds + 2 * self.grace, exit=True, file=sys.__stderr__)

    def _watch(self) -> None:
        next_beat, told, end = 0.0, 0.0, 0.0
        while not self._ended.wait(self._look_every):
            # Models are built, loaded and compiled before the first step.
            seconds = self.seconds * (BEFORE_THE_FIRST_STEP if self.phases.step < 0 else 1)
            now, moved = time.monotonic(), self.phases.moved
            self._arm()
            if self._beat and now >= next_beat:
                with contextlib.suppress(Exception):  # a lost sign of life is no reason to end
                    self._beat()
                next_beat = now + BEAT
            if not seconds or now - moved <= seconds:
                continue
            if told != moved:
                told, end = moved, now + (seconds if self._tell_all().waits else self.grace)
            elif now > end:
                os._exit(STOOD_STILL)

    def _tell_all(self) -> Standstill:
        found, frames = self._look()
        with contextlib.suppress(Exception):
            self._tell(found)
        print(found, file=sys.stderr, flush=True)
        # Storage may be what stands still.
        threading.Thread(target=self._write, args=(found, frames), daemon=True, name="watchdog-stacks").start()
        return found

    def _look(self) -> tuple[Standstill, dict[int, FrameType]]:
        position = self.phases.position()
        frames = sys._current_frames()
        named = {thread.ident for thread in threading.enumerate()}
        # The backward pass of a GPU runs in threads of C++, which Python has not begun.
        suspects = [frames[self._trainer], *(frame for ident, frame in frames.items() if ident not in named)]
        inner = frames[self._trainer]
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        found = Standstill(
            rank=self.rank,
            workers=self.workers,
            step=position.step,
            phase=position.phase,
            seconds=time.monotonic() - self.phases.moved,
            waits=any(_in_collective(frame) for frame in suspects),
            where=f"{os.path.basename(inner.f_code.co_filename)}:{inner.f_lineno} in {inner.f_code.co_name}",
            file=self.folder.path(WATCHDOG, f"{stamp}-rank-{self.rank:04d}.txt"),
        )
        return found, frames

    def _write(self, found: Standstill, frames: dict[int, FrameType]) -> None:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        others = frames.keys() - {self._trainer, threading.get_ident(), self._thread.ident}
        order = [self._trainer, *sorted(others, key=lambda ident: names.get(ident, ""))]
        parts = [f"{found}\nhost {socket.gethostname()}, process {os.getpid()}, {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())}\n"]
        for ident in order:
            title = f"thread {names.get(ident, ident)}" + (" (trains)" if ident == self._trainer else "")
            parts.append(f"{title}\n{''.join(traceback.format_stack(frames[ident]))}")
        try:
            self.folder.storage.write(found.file, "\n".join(parts).encode())
        except Exception as error:
            print(f"{found.file} could not be written: {error}", file=sys.stderr, flush=True)


def _in_collective(frame: FrameType | None) -> bool:
    for _ in range(_NEAR):
        if frame is None:
            return False
        if any(part in frame.f_code.co_filename for part in _COLLECTIVES):
            return True
        frame = frame.f_back
    return False


def verdict(notes: Sequence[Standstill]) -> str:
    """Which rank held up the others, in a sentence, from what the workers of one group told.

    A rank that does not wait in a collective is the cause. Where several do not (the host waits for a GPU without being in a
    collective), it is the rank that is elsewhere than the most; where all wait, it is a rank without a word, or else their network.
    """
    latest = {note.rank: note for note in notes}
    silent = sorted(set(range(next(iter(latest.values())).workers)) - latest.keys())
    held_up = [note for note in latest.values() if not note.waits]
    places = Counter(note.place for note in held_up)
    rarest = min(places.values(), default=0)
    causes = [note for note in held_up if len(places) == 1 or places[note.place] == rarest]
    others = [note for note in latest.values() if note not in causes]
    waiting = f"{_ranks([note.rank for note in others])} waited {others[0].place}" if others else ""
    stacks = f"stacks in {next(iter(latest.values())).file.rpartition('/')[0]}"
    if causes:
        told = "; ".join(f"rank {note.rank} stood still for {note.seconds:.0f} s {note.place} ({note.where})" for note in causes)
        return "; ".join(part for part in (told, waiting, stacks) if part)
    if silent:
        return f"no word from {_ranks(silent)}, for which {waiting}: the process stands still as a whole, or its node does; {stacks}"
    if len({note.place for note in others}) > 1:
        told = ", ".join(f"rank {note.rank} {note.place} ({note.where})" for note in others)
        return f"the ranks wait for each other in different places: {told}; {stacks}"
    return f"all ranks waited for each other {others[0].place} for {others[0].seconds:.0f} s: does the network between them work? {stacks}"


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, sorted(ranks)[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}"
