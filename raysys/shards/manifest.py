"""The manifest of a data set: one row per sample, so that any sample can be fetched by number.

A data set is one folder of tars with ``manifest.parquet`` beside them; rows lie in the order of shards and of samples in
them. The manifest is built by reading every byte once, which proves that all shards are whole.
"""

import functools
import hashlib
import io
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raysys.errors import UserError
from raysys.shards.index import SCHEMA, ShardIndex, index_shard
from raysys.shards.sample import MANIFEST_NAME as NAME
from raysys.shards.tar import ShardError
from raysys.storage import Entry, Storage, StorageError, is_remote, join

_FORMAT = 1
_METADATA = b"raysys.shards"


@dataclass(frozen=True)
class Lookup:
    """The manifest as flat arrays, for finding thousands of samples a second. n samples, m members."""

    shard_names: list[str]
    shards: np.ndarray
    """int64 [n]: index into `shard_names`."""
    keys: pa.StringArray
    """[n]"""
    checksums: np.ndarray
    """int64 [n]"""
    starts: np.ndarray
    """int64 [n + 1]: members of sample i are `starts[i]` to `starts[i + 1]`."""
    extension_names: list[str]
    extensions: np.ndarray
    """int64 [m]: index into `extension_names`."""
    offsets: np.ndarray
    """int64 [m], bytes."""
    sizes: np.ndarray
    """int64 [m], bytes."""


class Manifest:
    """The samples of one data set.

    Attributes:
        folder: URI of the folder the shards lie in.
        table: one row per sample, columns as in :data:`raysys.shards.index.SCHEMA`.
        shards: file name → size in bytes of every shard that was indexed, those without samples included.
        damage: what was wrong with shards that were only read in part (`build` with `on_damage="skip"`).
    """

    def __init__(self, folder: str, table: pa.Table, shards: dict[str, int], damage: tuple[str, ...] = ()):
        self.folder = join(folder)
        self.table = table.combine_chunks()
        self.shards = shards
        self.damage = damage

    def __len__(self) -> int:
        return self.table.num_rows

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hex digest (32 characters) of every sample's shard, key, place and contents; independent of the folder."""
        digest = hashlib.blake2b(digest_size=16)
        for name in ("shard", "key"):
            digest.update("\0".join(self.table[name].to_pylist()).encode() + b"\1")
        for name in ("offset", "size", "checksum"):
            digest.update(np.ascontiguousarray(self.table[name].to_numpy(), dtype="<i8").tobytes())
        return digest.hexdigest()

    @functools.cached_property
    def lookup(self) -> Lookup:
        """Flat arrays of places, made once."""
        shards = _single(self.table["shard"]).dictionary_encode()
        members = _single(self.table["members"])
        flat = members.flatten()
        extensions = flat.field("extension").dictionary_encode()
        return Lookup(
            shard_names=shards.dictionary.to_pylist(),
            shards=shards.indices.to_numpy().astype(np.int64),
            keys=_single(self.table["key"]),
            checksums=self.table["checksum"].to_numpy(),
            starts=np.concatenate([[0], np.cumsum(pc.list_value_length(members).to_numpy())]).astype(np.int64),
            extension_names=extensions.dictionary.to_pylist(),
            extensions=extensions.indices.to_numpy().astype(np.int64),
            offsets=flat.field("offset").to_numpy(),
            sizes=flat.field("size").to_numpy(),
        )

    def languages(self) -> dict[str, int]:
        """Samples with at least one caption, per language, the most frequent first."""
        return dict(sorted(Counter(_single(self.table["languages"]).flatten().to_pylist()).items(), key=lambda item: (-item[1], item[0])))

    def captions(self) -> dict[str, int]:
        """Captions per language, in the order of :meth:`languages`."""
        totals = dict.fromkeys(self.languages(), 0)
        tags, counts = _single(self.table["languages"]).flatten().to_pylist(), _single(self.table["captions"]).flatten().to_pylist()
        for tag, count in zip(tags, counts, strict=True):
            totals[tag] += count
        return totals

    def faults(self) -> list[tuple[str, str, str]]:
        """(shard, key, reason) of samples that cannot be used."""
        rows = self.table.select(["shard", "key", "fault"]).filter(pc.is_valid(self.table["fault"]))
        return [(row["shard"], row["key"], row["fault"]) for row in rows.to_pylist()]

    def save(self, storage: Storage) -> None:
        """Write ``manifest.parquet`` beside the shards, atomically."""
        notes = json.dumps({"format": _FORMAT, "shards": self.shards, "damage": self.damage})
        buffer = io.BytesIO()
        pq.write_table(self.table.replace_schema_metadata({_METADATA: notes}), buffer, compression="zstd")
        storage.write(join(self.folder, NAME), buffer.getvalue())

    @classmethod
    def load(cls, storage: Storage, folder: str) -> "Manifest":
        """Read ``manifest.parquet``.

        Raises:
            UserError: it is missing, damaged or of another format.
        """
        uri = join(folder, NAME)
        advice = f"make it anew with: python jobs/shards.py index {folder}"
        try:
            table = pq.read_table(io.BytesIO(storage.read(uri)))
            notes = json.loads((table.schema.metadata or {}).get(_METADATA, b"{}"))
            if notes.get("format") != _FORMAT or not table.schema.equals(SCHEMA):
                raise UserError(f"{uri} is no manifest of this version; {advice}")
        except (pa.ArrowException, ValueError, OSError) as error:
            raise UserError(f"{uri} is damaged ({' '.join(str(error).split())[:200]}); {advice}") from None
        return cls(folder, table, notes["shards"], tuple(notes["damage"]))

    @classmethod
    def build(cls, storage: Storage, folder: str, on_damage: Literal["raise", "skip"] = "raise") -> "Manifest":
        """Read all shards of a folder, in Ray tasks where Ray runs, else in threads.

        Args:
            on_damage: what a damaged shard leads to: `raise` names every one; `skip` keeps the samples before the damage.

        Raises:
            UserError: no folder, no shards, or not one sample with a caption (lists what was found instead).
            ShardError: a shard is damaged, and `on_damage` is `raise`.
        """
        entries = list_shards(storage, folder)
        indexes = list(_index_all(storage, folder, entries))
        damage = [index.damage for index in indexes if index.damage]
        if damage and on_damage == "raise":
            first = damage[0]
            others = "".join(f"\n  also {error}" for error in damage[1:10])
            more = f"\n  and {len(damage) - 10} more shards" if len(damage) > 10 else ""
            raise ShardError(first.where, first.byte, f"{first.reason}{others}{more}", first.samples)
        table = pa.concat_tables([index.table for index in indexes])
        if not pc.any(pc.greater(pc.list_value_length(table["languages"]), 0)).as_py():
            raise UserError(_nothing_found(folder, indexes))
        return cls(folder, table, {index.shard: index.size for index in indexes}, tuple(str(error) for error in damage))


def load_or_build(
    storage: Storage, folder: str, log: Callable[[str], None] = print, on_damage: Literal["raise", "skip"] = "raise"
) -> Manifest:
    """The manifest of `folder`: the one beside the shards if it describes them, else a new one, saved if that is allowed."""
    present = {entry.uri.rpartition("/")[2]: entry.size for entry in list_shards(storage, folder)}
    if storage.exists(join(folder, NAME)):
        try:
            manifest = Manifest.load(storage, folder)
            if manifest.shards == present:
                return manifest
            log(f"{folder}: shards were added, removed or changed since they were indexed; reading them again")
        except UserError as error:
            log(f"{error}; reading the shards again")
    start = time.monotonic()
    manifest = Manifest.build(storage, folder, on_damage)
    log(f"{folder}: indexed {len(manifest)} samples in {len(manifest.shards)} shards, {time.monotonic() - start:.1f} s")
    for message in notes(manifest):
        log(message)
    try:
        manifest.save(storage)
    except (UserError, StorageError) as error:
        log(f"{folder}: the manifest is kept in memory, as it cannot be saved ({error})")
    return manifest


def notes(manifest: Manifest) -> list[str]:
    """What a person should know of a new manifest: shards without samples or damaged, samples that cannot be used."""
    used = set(manifest.lookup.shard_names)
    messages = [f"{join(manifest.folder, name)}: the shard is whole but has no samples" for name in manifest.shards if name not in used]
    messages += [f"{join(manifest.folder, name)}: {reason}" for name, reason in gaps(list(manifest.shards))]
    messages += [f"{reason}: the rest of the shard is left out" for reason in manifest.damage]
    faults = manifest.faults()
    if faults:
        shard, key, reason = faults[0]
        messages.append(f"{manifest.folder}: {len(faults)} samples have faults, the first: {shard}, sample {key!r}: {reason}")
    return messages


def find_datasets(storage: Storage, uri: str) -> list[str]:
    """All folders at or beneath `uri` that hold tars, hidden ones left out. Raises UserError where there are none."""
    entries = storage.list(uri)
    base = join(uri)
    folders = {entry.uri.rpartition("/")[0] for entry in entries if entry.uri.endswith(".tar") and "/." not in entry.uri[len(base) :]}
    if not folders:
        raise UserError(_no_shards(uri, entries))
    return sorted(folders)


def gaps(names: list[str]) -> list[tuple[str, str]]:
    """(shard after the gap, what is missing) where the numbers in shards' names leave some out; nothing for other names.

    Where the numbers begin proves nothing: a folder may hold a part of a larger set.
    """
    numbers = {name: int(name.removesuffix(".tar")) for name in names if re.fullmatch(r"[0-9]+\.tar", name)}
    if not names or len(numbers) != len(names) or len({len(name) for name in names}) > 1:
        return []
    found = []
    expected = min(numbers.values())
    for name, number in sorted(numbers.items(), key=lambda item: item[1]):
        if number > expected:
            width = len(name) - len(".tar")
            missing = f"{expected:0{width}d}.tar" + (f" to {number - 1:0{width}d}.tar" if number - 1 > expected else "")
            found.append((name, f"there is no {missing} before it: the numbering has a gap"))
        expected = number + 1
    return found


def list_shards(storage: Storage, folder: str) -> list[Entry]:
    """The tars directly in `folder`, sorted by name."""
    entries = storage.list(folder)
    base = join(folder) + "/"
    found = [entry for entry in entries if entry.uri.endswith(".tar") and "/" not in entry.uri[len(base) :]]
    found = [entry for entry in found if not entry.uri[len(base) :].startswith(".")]
    if not found:
        raise UserError(_no_shards(folder, entries))
    return found


def _no_shards(folder: str, entries: list[Entry]) -> str:
    names = [entry.uri[len(join(folder)) + 1 :] for entry in entries]
    packed = [name for name in names if name.endswith((".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"))]
    if packed:
        return f"{folder} has no .tar shards, but compressed ones ({packed[0]}): byte ranges cannot be read from them; unpack them first"
    beneath = sorted({name.rpartition("/")[0] for name in names if name.endswith(".tar")})
    if beneath:
        return f"{folder} is not itself a folder of .tar shards; there are some in {', '.join(join(folder, name) for name in beneath[:5])}"
    return f"{folder} has no .tar shards; it holds {', '.join(names[:5]) + (', …' if len(names) > 5 else '') if names else 'nothing'}"


def _nothing_found(folder: str, indexes: list[ShardIndex]) -> str:
    found = sum((index.found for index in indexes), Counter())
    fields = sum((index.fields for index in indexes), Counter())
    if not found:
        return f"{folder}: its {len(indexes)} shards are whole but hold no samples"
    seen = "; ".join(f"{count} × {members}" for members, count in found.most_common(5))
    known = f"; json fields: {', '.join(name for name, _ in fields.most_common(12))}" if fields else ""
    return (
        f'{folder}: no sample has a caption; a .json member with {{"captions": {{"<language>": ["…"]}}}} was looked for, '
        f"found were samples of {seen}{known}"
    )


def _single(column: pa.ChunkedArray) -> pa.Array:
    """The one array of a column whose chunks were combined."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _index_all(storage: Storage, folder: str, entries: list[Entry]) -> Iterator[ShardIndex]:
    work = [(storage, folder, entry.uri.rpartition("/")[2], entry.size) for entry in entries]
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized() and len(work) > 1:
        task = ray.remote(num_cpus=1)(index_shard)
        references = [task.remote(*arguments) for arguments in work]
        try:
            for reference in references:
                yield ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None  # the sentence itself, not a traceback from another process
        return
    threads = min(len(work), 16 if is_remote(folder) else os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(lambda arguments: index_shard(*arguments), work)
