"""Writes a clean copy of a data set: what can be used, and a list of what cannot."""

import dataclasses
import functools
import io
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysys.errors import UserError
from raysys.shards.build import index_shards
from raysys.shards.index import Fault, ShardIndex
from raysys.shards.layout import OWN_FORM, Layout
from raysys.shards.listing import list_shards
from raysys.shards.manifest import NAME, Manifest, load_or_build
from raysys.shards.reader import read_samples
from raysys.shards.salvage import salvage_members
from raysys.shards.validate import check_members, repeated_keys
from raysys.storage import Storage, is_remote, join

RECORD = "repair.jsonl"
"""Name of the list beside the copy: a line per shard (`shard`, `bytes` read, `samples` kept, `recovered` from behind damage, `faults`,
`written` bytes) and a line per fault (`shard`, `key`, `member`, `byte`, `reason`, `cause`), in the order of the shards."""
_BATCH = 256
_SAVED_EVERY = 60
"""Seconds between two versions of the list."""


@dataclass(frozen=True)
class ShardRecord:
    """What was made of one shard."""

    shard: str
    bytes: int
    """Of the source."""
    samples: int
    """Samples in the copy."""
    recovered: int
    """Those of them that lie behind damage."""
    written: int
    """Bytes of the copy."""
    faults: tuple[Fault, ...]

    def lines(self) -> Iterator[str]:
        """Its lines of the list."""
        yield json.dumps(self.__dict__ | {"faults": len(self.faults)})
        for fault in self.faults:
            yield json.dumps(dataclasses.asdict(fault), ensure_ascii=False)


def repair(
    storage: Storage, source: str, target: str, layout: Layout | None = None, log: Callable[[str], None] = print
) -> list[ShardRecord]:
    """Copy the usable samples of the data set `source` to `target`, under the same shard names, and index the copy.

    A sample is usable when :func:`raysys.shards.validate.validate` finds no fault in it. Of damaged shards the samples behind the
    damage are searched for as well. A shard without any fault is copied as it is; the others are written anew, the same bytes for the
    same samples. What was left out is listed in ``repair.jsonl`` in `target`. Run again, shards that had no fault and have the size
    they had are taken as done.

    Args:
        layout: where captions and images lie in a sample; None: as the manifest of `source` says, else the project's own form.

    Returns:
        What was made of every shard, in the order of their names.

    Raises:
        UserError: no shards, `target` is `source`, or its list is damaged.
    """
    if join(source) == join(target):
        raise UserError(f"{target} is the damaged data set itself; the copy needs a folder of its own")
    manifest = Manifest.load(storage, source) if storage.exists(join(source, NAME)) else None
    layout = layout or (manifest.layout if manifest else OWN_FORM)
    sizes = {entry.uri.rpartition("/")[2]: entry.size for entry in list_shards(storage, source)}
    records, seen = _done_before(storage, target, sizes, layout)
    rest = [(name, size) for name, size in sizes.items() if name not in records]
    if records:
        log(f"{target}: {len(records)} of {len(sizes)} shards were copied before without a fault")
    if rest:
        storage.delete(join(target, NAME))  # it must never describe other shards than those beside it
    threads = min(len(rest), 8 if is_remote(source) else os.cpu_count() or 1) or 1
    check = functools.partial(_check, storage, source, layout, manifest)
    saved = time.monotonic()
    try:
        with ThreadPoolExecutor(threads) as pool:
            for index, faults in pool.map(check, rest):
                record = _write(storage, source, target, index, sorted(faults + repeated_keys(index, seen)))
                records[index.shard] = record
                left_out = index.table.num_rows - record.samples
                log(f"{record.shard}: {record.samples} samples kept ({record.recovered} from behind damage), {left_out} left out")
                if time.monotonic() - saved > _SAVED_EVERY:
                    _save(storage, target, records)
                    saved = time.monotonic()
    finally:
        _save(storage, target, records)
    if any(record.samples for record in records.values()):
        load_or_build(storage, target, log, layout=layout)
    return [records[name] for name in sorted(records)]


def _check(
    storage: Storage, source: str, layout: Layout, manifest: Manifest | None, shard: tuple[str, int]
) -> tuple[ShardIndex, list[Fault]]:
    name, size = shard
    return check_members(salvage_members(storage, join(source, name), size), name, size, layout, manifest)


def _write(storage: Storage, source: str, target: str, index: ShardIndex, faults: list[Fault]) -> ShardRecord:
    """Put the usable samples of a shard into the copy."""
    bad = pa.array({fault.key for fault in faults if fault.cause != "shard"}, pa.string())
    usable = index.table.filter(pc.invert(pc.is_in(index.table["key"], bad)))
    with tempfile.TemporaryDirectory(prefix="raysys-repair-") as folder:
        path = Path(folder, index.shard)
        if faults:
            _write_tar(path, storage, Manifest(source, usable, {index.shard: index.size}))
        else:
            storage.download(join(source, index.shard), path)
        storage.upload(path, join(target, index.shard))
        written = path.stat().st_size
    recovered = pc.sum(pc.greater(usable["offset"], index.damage.byte)).as_py() or 0 if index.damage else 0
    return ShardRecord(index.shard, index.size, len(usable), recovered, written, tuple(faults))


def _write_tar(path: Path, storage: Storage, samples: Manifest) -> None:
    """The same bytes for the same samples: no times, no owners."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for start in range(0, len(samples), _BATCH):
            for sample in read_samples(storage, samples, np.arange(start, min(start + _BATCH, len(samples)))):
                for extension, content in sample.members.items():
                    member = tarfile.TarInfo(f"{sample.key}.{extension}" if extension else sample.key)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


def _save(storage: Storage, target: str, records: dict[str, ShardRecord]) -> None:
    lines = [line for _, record in sorted(records.items()) for line in record.lines()]
    storage.write(join(target, RECORD), "".join(line + "\n" for line in lines).encode())


def _done_before(storage: Storage, target: str, sizes: dict[str, int], layout: Layout) -> tuple[dict[str, ShardRecord], dict[str, str]]:
    """(shards that a former run copied without a fault and that are as they were, shard of every key in them)."""
    if not storage.exists(join(target, RECORD)):
        return {}, {}
    try:
        lines = [json.loads(line) for line in storage.read(join(target, RECORD)).splitlines()]
        former = {line["shard"]: ShardRecord(**line | {"faults": ()}) for line in lines if line.get("faults") == 0}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{join(target, RECORD)} is damaged; delete it to begin anew") from None
    copies = [
        entry
        for entry in storage.list(target, suffix=".tar")
        if (record := former.get(entry.uri.rpartition("/")[2])) and sizes.get(record.shard) == record.bytes and entry.size == record.written
    ]
    done: dict[str, ShardRecord] = {}
    keys: dict[str, str] = {}
    for index in index_shards(storage, target, copies, layout):
        if not index.damages:
            done[index.shard] = former[index.shard]
            keys |= dict.fromkeys(index.table["key"].to_pylist(), index.shard)
    return done, keys
