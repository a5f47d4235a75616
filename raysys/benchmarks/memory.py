"""Whether memory grows with the data set or over epochs: the pipeline's peak use on data sets of growing size."""

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import ray

from raysys.benchmarks.ours import planned_pipeline
from raysys.data.samples import Samples
from raysys.storage import Storage


@dataclass(frozen=True)
class Use:
    """Peak memory of one epoch."""

    times: int
    """Size of the data set, relative to the smallest."""
    epoch: int
    samples: int
    object_store: float
    """Bytes in Ray's object store."""
    resident: float
    """Bytes of private memory of this process and all its descendants."""
    seconds: float


class PeakMemory:
    """Context manager that watches Ray's object store and the memory of all processes until it is left; :meth:`take` starts anew."""

    def __init__(self, interval: float = 0.3):
        self._interval = interval
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._store = self._resident = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True, name="memory")

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._thread.join()

    def take(self) -> tuple[float, float]:
        """(object store, private memory) at their peaks since the last call, in bytes."""
        self._look()
        with self._lock:
            peaks, self._store, self._resident = (self._store, self._resident), 0.0, 0.0
        return peaks

    def _watch(self) -> None:
        while not self._ended.wait(self._interval):
            self._look()

    def _look(self) -> None:
        total = ray.cluster_resources()["object_store_memory"]
        store, resident = total - ray.available_resources().get("object_store_memory", total), private_memory()
        with self._lock:
            self._store, self._resident = max(self._store, store), max(self._resident, resident)


def private_memory() -> float:
    """Bytes that only this process and its descendants hold; shared memory, such as the object store's, is not counted."""
    total = 0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            total += process.memory_full_info().uss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return float(total)


def enlarge(folder: str, target: Path, times: int) -> str:
    """A data set that is `times` as large: hard links to the shards of the local folder `folder`, under other names."""
    target.mkdir(parents=True)
    for number in range(times):
        for shard in sorted(Path(folder).glob("*.tar")):
            os.link(shard, target / f"{number:03d}-{shard.name}")
    return str(target)


def memory_use(folders: Sequence[tuple[int, str]], tokenizer: Any, size: int, batch_size: int, epochs: int) -> list[Use]:
    """Peak memory of each epoch over each of `folders` ((relative size, folder)); Ray must be running."""
    found = []
    for times, folder in folders:
        samples = Samples.load([folder], (), Storage(), log=lambda line: None)
        with PeakMemory() as peak, planned_pipeline(samples, tokenizer, size, batch_size, "trainer")() as batches:
            for epoch in range(epochs):
                start, seen = time.perf_counter(), 0
                for batch in batches:
                    seen += len(batch)
                    if seen + batch_size > len(samples):
                        break
                found.append(Use(times, epoch, seen, *peak.take(), time.perf_counter() - start))
    return found


def memory_table(found: Sequence[Use]) -> str:
    """A table for people."""
    lines = ["data  epoch  samples  object store MB  private memory MB  samples/s"]
    lines += [
        f"{use.times:3d}×  {use.epoch:5d}  {use.samples:7d}  {use.object_store / 1e6:15.0f}  {use.resident / 1e6:17.0f}"
        f"  {use.samples / use.seconds:9.0f}"
        for use in found
    ]
    return "\n".join(lines)
