"""How contenders are timed: side by side in one run, in turns, with the CPU time of all their processes."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import dataclass

import psutil

Contender = Callable[[], AbstractContextManager[Iterator[Sized]]]
"""Opens one way of making batches: an endless iterator whose items have the length of their batch; closed after each round."""


@dataclass(frozen=True)
class Throughput:
    """What one contender did in one round at steady state."""

    samples: int
    """Samples delivered while the clock ran."""
    seconds: float
    """Wall-clock time for them."""
    cpu_seconds: float
    """CPU time, user and system, of this process and all its descendants in that time."""
    first_batch_seconds: float
    """From opening to the first batch, outside the time above."""

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.seconds

    @property
    def cpu_per_thousand(self) -> float:
        """CPU seconds per 1 000 samples."""
        return 1000 * self.cpu_seconds / self.samples


def cpu_seconds(process: psutil.Process | None = None) -> float:
    """CPU time that `process` (this one by default), its living descendants and those it has waited for have used."""
    process = process or psutil.Process(os.getpid())
    total = 0.0
    for member in [process, *process.children(recursive=True)]:
        try:
            times = member.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def measure(contender: Contender, warm_up: int, samples: int) -> Throughput:
    """Open `contender`, let `warm_up` samples pass, time at least `samples` more, close it.

    Raises:
        RuntimeError: the contender ran dry.
    """
    opened = time.perf_counter()
    with contender() as batches:
        passed = _pull(batches)
        first_batch_seconds = time.perf_counter() - opened
        while passed < warm_up:
            passed += _pull(batches)
        cpu, start, timed = cpu_seconds(), time.perf_counter(), 0
        while timed < samples:
            timed += _pull(batches)
        seconds = time.perf_counter() - start
        return Throughput(timed, seconds, cpu_seconds() - cpu, first_batch_seconds)


def _pull(batches: Iterator[Sized]) -> int:
    for batch in batches:
        return len(batch)
    raise RuntimeError("a contender ran out of batches; it has to repeat its data without end")


def take_turns(contenders: Mapping[str, Contender], rounds: int, warm_up: int, samples: int) -> dict[str, list[Throughput]]:
    """Measure every contender once per round, each round beginning with another one, so that a slow minute of the machine hits all."""
    results: dict[str, list[Throughput]] = {name: [] for name in contenders}
    names = list(contenders)
    for round_number in range(rounds):
        shift = round_number % len(names)
        for name in names[shift:] + names[:shift]:
            results[name].append(measure(contenders[name], warm_up, samples))
    return results


def ratio(results: Sequence[float], reference: Sequence[float]) -> float:
    """Median over the rounds of result / reference, each of the same round."""
    return statistics.median(ours / theirs for ours, theirs in zip(results, reference, strict=True))


def throughput_table(results: Mapping[str, Sequence[Throughput]], reference: str) -> str:
    """A table for people: medians over the rounds, and samples per second relative to `reference`."""
    width = max(map(len, results))
    lines = [f"{'':{width}}  samples/s  CPU s per 1000  first batch s  relative"]
    speeds = {name: [one.samples_per_second for one in rounds] for name, rounds in results.items()}
    for name, rounds in results.items():
        cpu = statistics.median(one.cpu_per_thousand for one in rounds)
        first = statistics.median(one.first_batch_seconds for one in rounds)
        speed = statistics.median(speeds[name])
        lines.append(f"{name:{width}}  {speed:9.0f}  {cpu:14.2f}  {first:13.2f}  {ratio(speeds[name], speeds[reference]):8.2f}")
    return "\n".join(lines)
