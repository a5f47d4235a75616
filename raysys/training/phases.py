"""What a worker is doing now, and how long each kind of work takes."""

import itertools
import resource
import time
from collections import defaultdict
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch.autograd.profiler import record_function

from raysys.data.batches import Rows

STARTING = "starting"
"""The phase before the first, and outside of all others in the first step."""
_BESIDE_TRAINING = ("validation", "checkpoint")
_LEFT = "_left_phase"  # attribute of an exception
_KEPT = 2000  # marks; a device has passed the first of so many long before


class Position(NamedTuple):
    """Where a worker is."""

    step: int
    """Global step, from 1 as the metrics count; 0 before the first."""
    phase: str
    """The phases it is in, such as "forward" or "validation, gather"; "between phases" where it is in none."""
    since: float
    """`time.monotonic()` at which the phase was entered."""

    def __str__(self) -> str:
        return f"{f'at step {self.step}' if self.step else 'before the first step'} in phase {self.phase}"


class Phases:
    """The phases of a training step: ``with phases("forward"): …``. May be nested: time counts for the innermost one, but all of a
    validation or checkpoint counts for that.

    On a GPU the host runs ahead of the device, so that the host's clock would give all time to the phase in which it happens to wait.
    There the marks between phases are CUDA events on the current stream: a phase lasts from the moment when the device gets to its
    beginning until the device gets to its end. That is right for the host's work too, since the device gets to an end only after the host
    has put it there: waiting for data counts as far as the device had nothing left to do. Nothing is synchronised before :meth:`take`,
    which waits for the device; it is called where the loss is read anyhow.

    One thread, the training thread, enters phases; :meth:`position`, `moved` and :meth:`tick` are for any thread.

    Args:
        device: on which the worker trains.
    """

    def __init__(self, device: torch.device | None = None):
        self._clock = _DeviceClock() if device is not None and device.type == "cuda" else _HostClock()
        self._device = device
        self._within: list[str] = []
        self._position = Position(0, STARTING, time.monotonic())
        self.annotate = False
        """Name the phases in a profile as well."""
        self.batch: Rows | None = None
        """This worker's share of the step, from when it has been read; the loop sets it."""
        self.samples = 0
        """Samples of the global batches since the last :meth:`take`; the loop adds to it."""
        self.moved = self._position.since
        """`time.monotonic()` of the last sign of progress: a new step, a change of phase, a tick."""
        self.reset()

    def reset(self) -> None:
        """Begin anew to count time, steps and samples."""
        self._marks: list[tuple[str, Any]] = []
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._steps = self.samples = 0
        self._mark()

    def __call__(self, name: str) -> "_Phase":
        """A context manager for the time in which the worker is in phase `name`."""
        return _Phase(self, name)

    @property
    def step(self) -> int:
        """The step that is being done, from 1 as the metrics count; the loop sets it."""
        return self._position.step

    @step.setter
    def step(self, step: int) -> None:
        self._steps += 1
        self.batch = None
        self._place(step)

    def tick(self) -> None:
        """Something moves in a long phase, such as one more batch of validation: the watchdog need not worry."""
        self.moved = time.monotonic()

    def position(self) -> Position:
        """Where the worker is now."""
        return self._position

    def origin(self, error: BaseException) -> Position:
        """Where `error` was raised."""
        return self._position._replace(phase=getattr(error, _LEFT, self._position.phase))

    def take(self) -> dict[str, float]:
        """Metrics since the last call, which then begin anew.

        Returns:
            ``train/seconds_<phase>``: mean of a step. ``train/samples_per_second`` and ``data/wait_fraction`` (of "data"): of the time
            that is neither validation nor checkpoints. ``train/memory_gib``: the peak so far, of tensors on the GPU where there is one,
            else of the process.
        """
        self._mark()
        self._fold()
        seconds = {name: spent for name, spent in self._seconds.items() if name}
        training = max(sum(self._seconds.values()) - sum(seconds.get(name, 0.0) for name in _BESIDE_TRAINING), 1e-9)
        figures = {f"train/seconds_{name}": spent / max(self._steps, 1) for name, spent in seconds.items()}
        figures["train/samples_per_second"] = self.samples / training
        figures["data/wait_fraction"] = seconds.get("data", 0.0) / training
        figures["train/memory_gib"] = self._peak_memory() / 2**30
        self.reset()
        return figures

    def _peak_memory(self) -> int:
        if self._device is not None and self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB

    def _mark(self) -> None:
        """From now on time counts for the phase that is entered last."""
        within = self._within
        name = "" if not within else within[0] if within[0] in _BESIDE_TRAINING else within[-1]
        self._marks.append((name, self._clock.mark()))
        if len(self._marks) > _KEPT:
            self._fold()

    def _fold(self) -> None:
        """Turn all marks but the last into seconds."""
        self._clock.settle(self._marks[-1][1])
        for (name, begun), (_, ended) in itertools.pairwise(self._marks):
            self._seconds[name] += self._clock.seconds(begun, ended)
        del self._marks[:-1]

    def _place(self, step: int) -> None:
        now = time.monotonic()
        self._position = Position(step, ", ".join(self._within) or "between phases", now)  # as a whole, for other threads
        self.moved = now

    def _enter(self, name: str) -> None:
        self._within.append(name)
        self._mark()
        self._place(self._position.step)

    def _leave(self, error: BaseException | None) -> None:
        if error is not None and not hasattr(error, _LEFT):
            setattr(error, _LEFT, self._position.phase)
        self._within.pop()
        self._mark()
        self._place(self._position.step)


class _Phase:
    __slots__ = ("_name", "_phases", "_record")

    def __init__(self, phases: Phases, name: str):
        self._phases, self._name = phases, name

    def __enter__(self) -> None:
        self._record = record_function(f"phase {self._name}") if self._phases.annotate else None
        if self._record:
            self._record.__enter__()
        self._phases._enter(self._name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._phases._leave(error)
        if self._record:
            self._record.__exit__(kind, error, trace)


class _HostClock:
    def mark(self) -> float:
        return time.perf_counter()

    def settle(self, mark: float) -> None:
        """Nothing to wait for."""

    def seconds(self, begun: float, ended: float) -> float:
        return ended - begun


class _DeviceClock:
    def mark(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def settle(self, mark: Any) -> None:
        """Wait until the device is there."""
        mark.synchronize()

    def seconds(self, begun: Any, ended: Any) -> float:
        return begun.elapsed_time(ended) / 1000
