"""What sentence translation between many languages costs: seconds, CPU time and peak memory, each size in a process of its own."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from raysys.benchmarks.measure import cpu_seconds
from raysys.evaluation.translation import sentence_translation


@dataclass(frozen=True)
class Cost:
    """What scoring `captions` sentences in each of `languages` took."""

    captions: int
    languages: int
    threads: int
    seconds: float
    """Wall-clock time."""
    cpu_seconds: float
    """User and system time of all threads."""
    peak: int
    """Largest resident set of the process in bytes, with the libraries and the vectors themselves."""


def measure_translation(captions: int, languages: int, dimensions: int = 128, threads: int = 2) -> Cost:
    """Score random vectors that agree between languages as those of a fair encoder do, in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, captions, languages, dimensions, threads).result()


def _measure(captions: int, languages: int, dimensions: int, threads: int) -> Cost:
    torch.set_num_threads(threads)
    generator = np.random.default_rng(0)
    meaning = generator.standard_normal((captions, dimensions), dtype=np.float32)
    names = [f"language {number}" for number in range(languages)]
    vectors = {name: meaning + 2 * generator.standard_normal(meaning.shape, dtype=np.float32) for name in names}
    texts = {name: [f"caption {number}" for number in range(captions)] for name in names}
    cpu, start = cpu_seconds(), time.perf_counter()
    sentence_translation(vectors, texts)
    seconds = time.perf_counter() - start
    return Cost(captions, languages, threads, seconds, cpu_seconds() - cpu, _peak())


def _peak() -> int:
    """Most memory that this process has held, in bytes. What `getrusage` tells would be that of the process that started it, if larger."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def translation_table(costs: Sequence[Cost]) -> str:
    """A table for people; where other programs share the machine, CPU time by thread is the fairer measure."""
    lines = ["captions  languages  seconds  CPU s  CPU s by thread  peak GiB"]
    lines += [
        f"{cost.captions:8d}  {cost.languages:9d}  {cost.seconds:7.2f}  {cost.cpu_seconds:5.1f}"
        f"  {cost.cpu_seconds / cost.threads:15.2f}  {cost.peak / 2**30:8.2f}"
        for cost in costs
    ]
    return "\n".join(lines)
