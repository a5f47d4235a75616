"""Storage as a node reaches it: who asks, what can be listed, read and written, and how fast."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence

from raysys.errors import RunFailed, UserError
from raysys.runs.doctor.checks import check_clock, difference_of_clocks
from raysys.runs.doctor.findings import Finding, size
from raysys.storage import Storage, is_remote, join

PROBE = 8 << 20
"""Bytes of the ranged read."""


def check_storage(node: str, storage: Storage, folders: Sequence[str], run_storage: str | None) -> list[Finding]:
    """List and read the data folders, write where runs are kept.

    Args:
        node: how to call this machine.
        storage: the door, as the driver made it: its endpoint and region travel to the nodes, credentials do not.
        folders: of shards.
        run_storage: the folder of runs; None: nothing is written.
    """
    uris = [*folders, *([run_storage] if run_storage else [])]
    findings: list[Finding] = []
    if remote := next((uri for uri in uris if is_remote(uri)), None):
        findings += _guarded(_identity, node, storage, remote)
    for folder in folders:
        findings += _guarded(_read, node, storage, folder)
    if run_storage:
        findings += _guarded(_write, node, storage, run_storage)
    return findings


def _guarded(check: Callable[[str, Storage, str], Iterable[Finding]], node: str, storage: Storage, folder: str) -> list[Finding]:
    """What a check of a folder finds, or the fault that ended it."""
    try:
        return list(check(node, storage, folder))
    except (UserError, RunFailed) as error:
        return [Finding("failed", node, "storage", str(error))]


def _identity(node: str, storage: Storage, remote: str) -> Iterator[Finding]:
    yield Finding("ok", node, "storage", f"settings name {storage.describe(remote)}")
    before = time.time()
    try:
        clock = storage.clock(remote)
    except (UserError, RunFailed):
        return  # whatever it is, the first use of a folder meets it too
    after = time.time()
    if clock is not None:  # told in full seconds: any moment of that second may be meant
        ours_ahead = -min((difference_of_clocks(moment, before, after) for moment in (clock, clock + 1)), key=abs)
        yield check_clock(node, "the store", ours_ahead)


def _read(node: str, storage: Storage, folder: str) -> Iterator[Finding]:
    started = time.perf_counter()
    entries = storage.list(folder)
    seconds = time.perf_counter() - started
    shards = [entry for entry in entries if entry.uri.endswith(".tar")]
    if not shards:
        yield Finding("failed", node, f"data {folder}", "no .tar shards in it", "prepare the data, or mend data.folder")
        return
    largest = max(shards, key=lambda entry: entry.size)
    wanted = min(PROBE, largest.size)
    storage.read(largest.uri, 0, 1)
    first = time.perf_counter()
    storage.read(largest.uri, 0, 1)
    second = time.perf_counter()
    storage.read(largest.uri, largest.size - wanted, wanted)
    third = time.perf_counter()
    yield Finding(
        "ok",
        node,
        f"data {folder}",
        f"{len(shards)} shards, {size(sum(entry.size for entry in shards))}; listed in {seconds * 1000:.0f} ms, "
        f"round trip {(second - first) * 1000:.1f} ms, {wanted / 1e6 / max(third - second, 1e-9):.0f} MB/s in one read of {size(wanted)}",
    )


def _write(node: str, storage: Storage, folder: str) -> Iterator[Finding]:
    probe, data = join(folder, f".doctor-{uuid.uuid4().hex}"), uuid.uuid4().bytes * 64
    started = time.perf_counter()
    storage.write(probe, data)
    try:
        same = storage.read(probe) == data
    finally:
        storage.delete(probe)
    milliseconds = (time.perf_counter() - started) * 1000
    if not same:
        yield Finding("failed", node, f"runs {folder}", f"{probe} did not come back as it was written", "do not keep runs there")
    else:
        yield Finding("ok", node, f"runs {folder}", f"written, read and deleted in {milliseconds:.0f} ms")
