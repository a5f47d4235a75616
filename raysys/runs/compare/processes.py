"""Many runs with one command: each in a process of its own, all on one Ray, finished ones left alone.

Nothing here knows what the runs train.
"""

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from raysys.errors import INTERRUPTED
from raysys.storage import Storage, is_remote
from raysys.training.resources import check_address, needed_cpus
from raysys.training.settings import RaySettings, TrainingSettings

Log = Callable[[str], None]
PATIENCE = 60.0
"""Seconds that a process has after Ctrl-C to end by itself: to stop its workers, and to say how many steps are kept."""
_TAIL_BYTES = 20_000


@dataclass(frozen=True)
class Row:
    """One run."""

    name: str
    """For people."""
    command: Sequence[str]
    """What trains and scores it, or goes on with it."""
    log: str
    """File, local or s3://, for what the command prints. Lines are added to one that is there on this machine."""
    after: str = ""
    """Name of the run that has to be done before; one that is not among those to be run counts as done."""


@dataclass(frozen=True)
class Failed:
    """A run that did not end well."""

    row: Row
    code: int
    """Exit code of its command; negative: the signal that ended it."""
    tail: str
    """The end of its output."""

    def __str__(self) -> str:
        how = f"killed by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        lines = "\n".join(f"    {line}" for line in self.tail.splitlines())
        return f"{self.row.name} ({how}), {self.row.log}" + (f"\n{lines}" if lines else "")


def run_rows(rows: Sequence[Row], parallel: int, environment: Mapping[str, str], storage: Storage, log: Log = print) -> list[Failed]:
    """Run the commands, at most `parallel` at a time; one that fails stops none but those that come after it, which are not begun.

    Args:
        rows: in the order to begin them, as far as none waits for another.
        parallel: how many at a time.
        environment: variables of the processes, besides those of this one.
        storage: the door to logs that are not local.
        log: takes a line for people.

    Returns:
        Those that failed, in the order in which they did.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM; every process was told so and has ended.
    """
    waiting, running, failed, done = list(rows), list[_Process](), list[Failed](), 0
    with tempfile.TemporaryDirectory(prefix="raysys-logs-") as scratch, _terminated_is_interrupted():
        try:
            while waiting or running:
                while len(running) < parallel and (row := _ready(waiting, running)) is not None:
                    waiting.remove(row)
                    running.append(_Process(row, environment, storage, scratch))
                time.sleep(0.1)
                for process in [process for process in running if process.poll() is not None]:
                    running.remove(process)
                    done += 1
                    fault = process.finish()
                    failed += [fault] if fault else []
                    waiting = _without(waiting, process.row.name) if fault else waiting
                    how = f"failed after {process.seconds:.0f} s, {process.row.log}" if fault else f"done in {process.seconds:.0f} s"
                    log(f"{done}/{len(rows)} {process.row.name}: {how}")
        finally:
            _stop(running)
            for process in running:
                process.finish()
    return failed


def _ready(waiting: Sequence[Row], running: Sequence["_Process"]) -> Row | None:
    """The first that waits for none that is still to be done."""
    pending = {row.name for row in waiting} | {process.row.name for process in running}
    return next((row for row in waiting if row.after not in pending), None)


def _without(waiting: Sequence[Row], failed: str) -> list[Row]:
    """Those that come neither after a run that failed nor after one that comes after it."""
    left = [row for row in waiting if row.after != failed]
    for row in waiting:
        left = _without(left, row.name) if row.after == failed else left
    return left


class _Process:
    """A command that was started."""

    def __init__(self, row: Row, environment: Mapping[str, str], storage: Storage, scratch: str):
        self.row, self.storage, self.started = row, storage, time.monotonic()
        self.path = Path(scratch, f"{id(self)}.log") if is_remote(row.log) else Path(row.log)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.output: BinaryIO = self.path.open("ab")
        self.output.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} $ {shlex.join(row.command)}\n".encode())
        self.output.flush()
        self.begins = self.output.tell()
        self.process = subprocess.Popen(
            row.command,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            # Ctrl-C on a terminal reaches this process alone, which passes it on once.
            start_new_session=True,
        )

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def poll(self) -> int | None:
        return self.process.poll()

    def signal(self, number: int) -> None:
        """Of a process that has ended but was not waited for, the id is still its own."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def finish(self) -> Failed | None:
        """Close and store the log of a process that has ended."""
        self.output.close()
        if is_remote(self.row.log):
            self.storage.upload(self.path, self.row.log)
        code = self.process.returncode
        return Failed(self.row, code, self._tail()) if code else None

    def _tail(self, lines: int = 8) -> str:
        with self.path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(self.begins, end - _TAIL_BYTES))
            said = file.read().decode("utf-8", "replace").splitlines()
        return "\n".join([line for line in said if line.strip()][-lines:])


def _stop(running: Sequence[_Process]) -> None:
    """Ctrl-C for every process; those that do not heed it are ended."""
    for number, patience in ((signal.SIGINT, PATIENCE), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        for process in running:
            process.signal(number)
        deadline = time.monotonic() + patience
        while any(process.poll() is None for process in running) and time.monotonic() < deadline:
            time.sleep(0.1)


@contextlib.contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """SIGTERM, by which a submitted job is stopped, raises KeyboardInterrupt: the processes must not outlive this one."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def fitting(training: TrainingSettings, rows: int, cpus: int, gpus: int) -> int:
    """How many runs of these settings have room side by side: at least one, at most `rows`."""
    room = cpus // needed_cpus(training)
    if training.gpu:
        room = min(room, gpus // training.min_workers)
    return max(1, min(room, rows))


def resources(training: TrainingSettings, settings: RaySettings) -> tuple[int, int]:
    """(CPUs, GPUs) of the cluster at RAY_ADDRESS, or else of this machine, or as many CPUs as `settings` lend to a local Ray.

    Raises:
        UserError: nothing answers at RAY_ADDRESS.
    """
    if address := os.environ.get("RAY_ADDRESS"):
        import ray

        check_address(address)
        connected = ray.is_initialized()
        if not connected:
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        found = ray.cluster_resources()
        if not connected:
            ray.shutdown()
        return int(found.get("CPU", 0)), int(found.get("GPU", 0))
    gpus = 0
    if training.gpu:
        import torch

        gpus = torch.cuda.device_count()
    return settings.cpus or os.cpu_count() or 1, gpus


@contextlib.contextmanager
def shared_ray(training: TrainingSettings, settings: RaySettings, parallel: int) -> Iterator[dict[str, str]]:
    """One Ray for all runs: the cluster at RAY_ADDRESS, or a local one with room for `parallel` runs that ends with the block.

    Gives the variables by which processes find it.
    """
    if address := os.environ.get("RAY_ADDRESS"):
        yield {"RAY_ADDRESS": address}
        return
    import ray

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # it is ours alone, on the loopback interface
    cpus = max(settings.cpus or os.cpu_count() or 1, parallel * needed_cpus(training))
    ray.init("local", num_cpus=cpus, include_dashboard=settings.dashboard, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, "RAY_AUTH_MODE": os.environ["RAY_AUTH_MODE"]}
    finally:
        ray.shutdown()


def explain(failed: Sequence[Failed]) -> str:
    """The runs that failed, with the end of what each of them said."""
    count = "one run" if len(failed) == 1 else f"{len(failed)} runs"
    stopped = " (interrupted from outside)" if any(one.code == INTERRUPTED for one in failed) else ""
    return f"{count} did not end well{stopped}; the same command tries again:\n" + "\n".join(f"  {one}" for one in failed)
