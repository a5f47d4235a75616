"""Writes a data set in parts, in parallel, so that an interrupted preparation goes on where it was.

Part i becomes shard i. Beside a finished shard lies ``NNNNNN.part.json``, which tells the part's name, the size of its shard and
what became of the part's records; run again, only parts without a record that fits are made.
"""

import contextlib
import json
import os
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from webdataset import TarWriter

from raysys.errors import RunFailed, UserError
from raysys.shards.former import FormerSample, FormerShard
from raysys.shards.listing import PART_RECORD
from raysys.shards.sample import MANIFEST_NAME, Sample
from raysys.shards.tar import ShardError
from raysys.shards.tasks import call_all
from raysys.shards.writer import check_sample, record_of, shard_name
from raysys.storage import Storage, is_remote, join

"""Ending of the file beside a shard that tells which part it is and what became of the part's records."""


@dataclass(frozen=True)
class Skipped:
    """A record of the source that gave no sample of its own."""

    cause: str
    """One of few distinct short causes, such as ``image missing`` or ``no caption``."""
    where: str
    """File and line or record."""
    retry: bool = False
    """Whether it may turn out otherwise at another time (a timeout): the part is then made again by the next run."""


class Part(Protocol):
    """One shard's worth of a source; picklable, as it is called in other processes."""

    @property
    def name(self) -> str:
        """Says all that the part's output depends on; a shard is kept as long as its part has this name."""

    def __call__(self) -> Iterator[Sample | Skipped]:
        """What each record of the source became, the same at every call."""


@runtime_checkable
class ResumablePart(Part, Protocol):
    """A part whose samples are costly (fetched from the web): made again, it can take over those that were written before."""

    def again(self, former: Mapping[str, FormerSample]) -> Iterator[Sample | Skipped]:
        """As :meth:`Part.__call__`; `former` holds what an earlier call of a part with this name led to, by key."""


@dataclass
class Counts:
    """What became of the records of a source; `read` is `written` and all `skipped` together."""

    read: int = 0
    written: int = 0
    """Samples."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Cause → records."""
    examples: dict[str, str] = field(default_factory=dict)
    """Cause → where the first such record lies."""

    def add(self, item: Sample | Skipped) -> None:
        """Count one record."""
        self.read += 1
        if isinstance(item, Skipped):
            self.skipped[item.cause] += 1
            self.examples.setdefault(item.cause, item.where)
        else:
            self.written += 1

    def __iadd__(self, other: "Counts") -> "Counts":
        self.read += other.read
        self.written += other.written
        self.skipped.update(other.skipped)
        self.examples = other.examples | self.examples
        return self


@dataclass
class _Record:
    """What lies in a ``.part.json``."""

    part: str
    size: int
    """Bytes of the shard; 0 where the part gave no samples and there is none."""
    retry: int
    """Skipped records that may turn out otherwise at another time."""
    counts: Counts
    keys: list[str]
    """Of the samples, in order."""

    @classmethod
    def load(cls, storage: Storage, uri: str) -> "_Record | None":
        """The record at `uri`; None where it is none."""
        try:
            values = json.loads(storage.read(uri))
            counts = values.pop("counts")
            return cls(**values, counts=Counts(**counts | {"skipped": Counter(counts["skipped"])}))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def save(self, storage: Storage, uri: str) -> None:
        storage.write(uri, json.dumps(vars(self) | {"counts": vars(self.counts)}, ensure_ascii=False).encode())


def write_parts(parts: Sequence[Part], folder_uri: str, storage: Storage, log: Callable[[str], None] = print) -> Counts:
    """Write one split: part i as shard i, in Ray tasks where Ray runs, else in threads.

    Parts that a former run finished are kept, unless records of theirs were skipped for reasons that may pass. Shards are built
    on local disk and handed to the storage whole. A part without samples leaves no shard. Shards and records that are not
    those of `parts` are removed first, and so is a manifest, unless nothing changes.

    Args:
        folder_uri: of the split; on a cluster of several machines a place they all reach.

    Returns:
        What became of the records of all parts, those of a former run included.

    Raises:
        UserError: no parts; a key that two samples have, within a part or in two of them, or that cannot be a key.
        RunFailed: a part failed (names it); those that were finished by then are kept.
    """
    if not parts:
        raise UserError(f"there is nothing to write into {folder_uri}: the source has no records")
    if not is_remote(folder_uri) and "://" not in folder_uri:
        folder_uri = os.path.abspath(folder_uri)  # other processes may work in another folder
    records, stale = _find_finished(parts, folder_uri, storage)
    work = [(number, part) for number, part in enumerate(parts) if number not in records or records[number].retry]
    if len(work) < len(parts):
        log(f"{folder_uri}: {len(parts) - len(work)} of {len(parts)} parts are there already")
    if work or stale:
        storage.delete(join(folder_uri, MANIFEST_NAME))  # first: it must never describe other shards than those beside it
    for uri in stale:
        storage.delete(uri)
    for number, _ in work:
        records.pop(number, None)
    owners: dict[str, int] = {}
    for number, record in records.items():
        _claim(record.keys, number, owners, folder_uri)
    calls = [(number, part, folder_uri, storage) for number, part in work]
    with contextlib.closing(call_all(_write_part, calls)) as written:
        for count, (call, record) in enumerate(written, 1):
            number = work[call][0]
            _claim(record.keys, number, owners, folder_uri)
            records[number] = record
            log(f"{shard_name(number)}: {record.counts.written} of {record.counts.read} records ({count} of {len(work)} parts)")
    total = Counts()
    for number in range(len(parts)):
        total += records[number].counts
    return total


def _find_finished(parts: Sequence[Part], folder_uri: str, storage: Storage) -> tuple[dict[int, _Record], list[str]]:
    """Records of parts whose shards are there, by number; and the shards and records in the folder that are not theirs."""
    if not storage.exists(folder_uri):
        return {}, []
    sizes = {entry.uri: entry.size for entry in storage.list(folder_uri) if entry.uri.rpartition("/")[0] == join(folder_uri)}

    def look(number: int) -> _Record | None:
        uri = _record_uri(folder_uri, number)
        record = _Record.load(storage, uri) if uri in sizes else None
        if record is None or record.part != parts[number].name:
            return None
        return record if sizes.get(join(folder_uri, shard_name(number)), 0) == record.size else None

    with ThreadPoolExecutor(16) as pool:
        records = {number: record for number, record in enumerate(pool.map(look, range(len(parts)))) if record}
    theirs = {uri for number in records for uri in (join(folder_uri, shard_name(number)), _record_uri(folder_uri, number))}
    return records, [uri for uri in sizes if uri.endswith((".tar", PART_RECORD)) and uri not in theirs]


def _record_uri(folder_uri: str, number: int) -> str:
    return join(folder_uri, shard_name(number).removesuffix(".tar") + PART_RECORD)


def _write_part(number: int, part: Part, folder_uri: str, storage: Storage, stop: threading.Event) -> _Record:
    uri = join(folder_uri, shard_name(number))
    record = _Record(part.name, 0, 0, Counts(), [])
    keys: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="raysys-part-") as temporary:
        path = Path(temporary, shard_name(number))
        try:
            with path.open("wb") as file, TarWriter(file, user="", group="", mtime=0, encoder=False) as writer:
                for item in _items(part, uri, storage, Path(temporary, "former.tar")):
                    if stop.is_set():
                        raise RunFailed(f"{uri}: stopped")
                    record.counts.add(item)
                    if isinstance(item, Skipped):
                        record.retry += item.retry
                        continue
                    check_sample(item, keys, folder_uri)
                    writer.write(record_of(item))
                    record.keys.append(item.key)
        except (UserError, RunFailed):
            raise
        except Exception:  # a fault in the recipe: told with its traceback, which other processes would lose
            raise RunFailed(f"{uri}: part {part.name!r} failed:\n{traceback.format_exc().strip()}") from None
        storage.delete(_record_uri(folder_uri, number))  # first: it must never describe another shard than that beside it
        if record.keys:
            record.size = path.stat().st_size
            storage.upload(path, uri)
        else:
            storage.delete(uri)
    record.save(storage, _record_uri(folder_uri, number))
    return record


def _items(part: Part, uri: str, storage: Storage, path: Path) -> Iterator[Sample | Skipped]:
    """What the part's records became, with the help of its former shard if there is one (shards of other parts are gone by now)."""
    if not isinstance(part, ResumablePart) or not storage.exists(uri):
        yield from part()
        return
    storage.download(uri, path)
    try:
        former = FormerShard(path)
    except ShardError:  # then everything is made anew
        yield from part()
        return
    with contextlib.closing(former):
        yield from part.again(former)


def _claim(keys: list[str], number: int, owners: dict[str, int], folder_uri: str) -> None:
    for key in keys:
        if owners.setdefault(key, number) != number:
            places = f"{shard_name(owners[key])} and {shard_name(number)}"
            raise UserError(f"{folder_uri}: {places} both have a sample with the key {key!r}; keys must differ within a split")
