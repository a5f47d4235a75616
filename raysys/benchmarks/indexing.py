"""How fast a data set is indexed, beside reading its bytes once."""

import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from raysys.shards.build import index_shards
from raysys.shards.index import index_shard
from raysys.shards.layout import OWN_FORM
from raysys.shards.listing import list_shards
from raysys.shards.tar import PIECE
from raysys.storage import Entry, Storage, is_remote

ALONE = "reading alone"
"""Every byte read once, in pieces of 4 MB, by one thread."""


def compare(storage: Storage, folder: str, rounds: int, processes: int, cold: bool = False) -> dict[str, list[float]]:
    """Bytes per second of each way through all shards, in every round; they take turns.

    Args:
        processes: for indexing in processes, and threads for reading beside it.
        cold: local files are put out of the system's page cache before each turn (without effect on file systems that keep them).
    """
    entries = list_shards(storage, folder)
    total = sum(entry.size for entry in entries)
    ways: dict[str, Callable[[], object]] = {
        ALONE: lambda: [_read(storage, entry) for entry in entries],
        "indexing, one thread": lambda: [index_shard(storage, folder, _name(entry), entry.size) for entry in entries],
        f"reading, {processes} threads": lambda: _read_side_by_side(storage, entries, processes),
        "indexing, threads": lambda: list(index_shards(storage, folder, entries, OWN_FORM)),
        f"indexing, {processes} processes": lambda: list(index_shards(storage, folder, entries, OWN_FORM, processes)),
    }
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    _read_side_by_side(storage, entries, processes)  # in the page cache from here on
    for name, way in itertools.chain.from_iterable(itertools.repeat(list(ways.items()), rounds)):
        if cold and not is_remote(folder):
            _forget(entries)
        start = time.perf_counter()
        way()
        speeds[name].append(total / (time.perf_counter() - start))
    return speeds


def indexing_table(speeds: Mapping[str, Sequence[float]], samples: int, size: int) -> str:
    """A table for people: medians over the rounds, and relative to reading alone.

    Args:
        samples: of the data set.
        size: its bytes.
    """
    width = max(map(len, speeds))
    lines = [f"{'':{width}}      MB/s  samples/s  of reading alone"]
    for name, rounds in speeds.items():
        speed = statistics.median(rounds)
        share = statistics.median(ours / alone for ours, alone in zip(rounds, speeds[ALONE], strict=True))
        lines.append(f"{name:{width}}  {speed / 1e6:8.0f}  {speed * samples / size:9.0f}  {share:16.2f}")
    return "\n".join(lines)


def _name(entry: Entry) -> str:
    return entry.uri.rpartition("/")[2]


def _read(storage: Storage, entry: Entry) -> int:
    count = 0
    with storage.open(entry.uri) as file:
        while piece := file.read(PIECE):
            count += len(piece)
    return count


def _read_side_by_side(storage: Storage, entries: Sequence[Entry], threads: int) -> int:
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda entry: _read(storage, entry), entries))


def _forget(entries: Iterable[Entry]) -> None:
    for entry in entries:
        with open(entry.uri, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
