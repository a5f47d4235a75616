"""The right to train a run: one command has it at a time, whatever the machines, the clusters and the storage.

``training.json`` in the run's folder says who trains it, and is written again every few seconds by the command *and* by the first of its
workers. A command that is killed has its workers ended by Ray, but not at once: as long as one of them lives, the file goes on changing.
Another command begins only when it has not changed for a while. Neither atomic creation nor equal clocks are asked of the storage: of two
commands that begin at the same moment, the file names the later one, and the workers of the other find that out before their first step.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal

from raysys.errors import CertainFailure, UserError
from raysys.storage import StorageError
from raysys.training.run_folder import RunFolder

LEASE = "training.json"
"""Name of the file."""
BEAT = 3.0
"""Seconds between renewals."""
SILENCE = 15.0
"""Seconds without a renewal after which the owner and its workers count as dead."""


ORPHANED = 60.0
"""Seconds for which the workers of a dead command may go on."""


class Taken(CertainFailure):
    """Another command trains the run now."""


@dataclass(frozen=True)
class Owner:
    """What the file holds."""

    name: str
    """Of one command, unlike any other."""
    who: str
    """For people: process, machine, since when."""
    machine: str
    """Tells whether `time` is of the reader's own clock: the identity of the running system."""
    time: float
    """Of the last renewal, by the clock of `machine`, in seconds."""
    by: Literal["command", "worker"] = "command"
    """Which of the two renewed it last. Workers outlive a command that is killed, by some seconds."""
    ray_run: str = ""
    """How Ray Train calls the run, which keeps promises to it that outlive a killed command."""


class Lease:
    """The right to train one run, once it was claimed. Picklable: the first worker renews it too.

    Args:
        folder: the run.
        owner: who has the right.
        former: who had it and died.
    """

    def __init__(self, folder: RunFolder, owner: Owner, former: Owner | None = None):
        self.folder, self.owner, self.former = folder, owner, former

    def note(self, ray_run: str) -> None:
        """Note what Ray Train calls the run."""
        self.owner = replace(self.owner, ray_run=ray_run)

    def renew(self, by: Literal["command", "worker"] = "command") -> None:
        """Write the file anew.

        Raises:
            Taken: it names another owner.
        """
        now = read(self.folder)
        if now and now.name != self.owner.name:
            raise Taken(f"the run {self.folder.uri} is now trained by {now.who}: this command had stood still, or began at the same moment")
        self.write(by)

    def write(self, by: Literal["command", "worker"] = "command") -> None:
        """Write the file anew, whoever it names."""
        current = replace(self.owner, machine=_machine(), time=time.time(), by=by)
        self.folder.write_text(LEASE, json.dumps(asdict(current), indent=1))

    def release(self) -> None:
        """Delete the file, if it still names this owner."""
        now = read(self.folder)
        if now and now.name == self.owner.name:
            self.folder.storage.delete(self.folder.path(LEASE))

    @contextlib.contextmanager
    def kept(self, by: Literal["command", "worker"] = "command") -> Iterator[Callable[[], None]]:
        """Renew it in a thread; gives a function that raises :class:`Taken` once another command has taken the run over.

        Raises:
            Taken: it is so at the beginning.
        """
        self.renew(by)
        ended = threading.Event()
        lost: list[Taken] = []

        def keep() -> None:
            while not ended.wait(BEAT) and not lost:
                try:
                    self.renew(by)
                except Taken as taken:
                    lost.append(taken)
                except (StorageError, UserError, OSError):
                    pass  # what cannot be written now may be in two seconds; training itself says what storage lacks

        def check() -> None:
            if lost:
                raise lost[0]

        thread = threading.Thread(target=keep, daemon=True, name="lease")
        thread.start()
        try:
            yield check
        finally:
            ended.set()
            thread.join()


@contextlib.contextmanager
def claimed(folder: RunFolder, tell: Callable[[str], None] = print) -> Iterator[Lease]:
    """Have the right to train a run, inside the block.

    Args:
        folder: the run.
        tell: takes a line for people, where the death of a former owner has to be made sure of.

    Raises:
        UserError: another command trains it.
    """
    former = wait_until_free(folder, tell)
    who = f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%Y-%m-%d %H:%M:%S %Z')}"
    lease = Lease(folder, Owner(uuid.uuid4().hex, who, _machine(), time.time()), former)
    lease.write()
    try:
        with lease.kept():
            yield lease
    finally:
        with contextlib.suppress(StorageError, UserError):  # a file that stays is out of date in a few seconds
            lease.release()


def wait_until_free(folder: RunFolder, tell: Callable[[str], None] = print) -> Owner | None:
    """Return when nobody trains the run; it is free at once where the last command ended by itself.

    Args:
        folder: the run.
        tell: takes a line for people, where the death of a former owner has to be made sure of.

    Returns:
        The owner that died.

    Raises:
        UserError: another command trains it.
    """
    first = read(folder)
    if first is None:
        return None
    age = time.time() - first.time if first.machine == _machine() else 0.0
    left = SILENCE - max(0.0, age)
    if left > 0:
        tell(f"the run was in training by {first.who}; waiting {left:.0f} s at most, to see whether it still is")
    until, last = time.monotonic() + left, first
    longest = time.monotonic() + ORPHANED
    while time.monotonic() < until:
        time.sleep(0.5)
        now = read(folder)
        if now is None:
            return None
        if now != last and now.by == "worker" and time.monotonic() < longest:
            # Its command may be dead, and Ray about to end its workers: silence begins anew.
            until, last = time.monotonic() + SILENCE, now
        elif now != last:
            raise UserError(
                f"the run {folder.uri} is being trained by {now.who}: wait for its end, stop it (Ctrl-C there), "
                "or give this run another --run.name"
            )
    return first


def read(folder: RunFolder) -> Owner | None:
    """Who trains the run; None: nobody, or what the file says cannot be understood."""
    if not folder.storage.exists(folder.path(LEASE)):
        return None
    try:
        values = json.loads(folder.read_text(LEASE))
        return Owner(**{field.name: values[field.name] for field in fields(Owner) if field.name in values})
    except (ValueError, TypeError, UserError):  # UserError: it was deleted just now
        return None


def _machine() -> str:
    """The same for all processes that share a clock, and for no others."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text().strip() if boot.exists() else f"{socket.gethostname()}-{uuid.getnode()}"
