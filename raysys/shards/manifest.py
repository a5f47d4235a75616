"""The manifest of a data set: one row per sample, so that any sample can be fetched by number.

A data set is one folder of tars with ``manifest.parquet`` beside them; rows lie in the order of shards and of samples in
them. The manifest is built by reading every byte once, which proves that all shards are whole.
"""

import functools
import hashlib
import io
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raysys.errors import UserError
from raysys.settings import from_mapping
from raysys.shards.build import all_damage, check_layout, index_shards, with_lost
from raysys.shards.index import ShardIndex
from raysys.shards.layout import OWN_FORM, Layout
from raysys.shards.listing import find_datasets, incomplete, list_shards
from raysys.shards.lookup import Lookup, single
from raysys.shards.rows import SCHEMA
from raysys.shards.sample import MANIFEST_NAME as NAME
from raysys.storage import Storage, StorageError, join

__all__ = ["NAME", "Lookup", "Manifest", "SampleFault", "find_datasets", "list_shards", "load_or_build", "notes"]

_FORMAT = 4
_METADATA = b"raysys.shards"


class SampleFault(NamedTuple):
    """A sample that cannot be used."""

    shard: str
    key: str
    cause: str
    """One of :data:`raysys.shards.sample.CAUSES`."""
    reason: str


class Manifest:
    """The samples of one data set.

    Attributes:
        folder: URI of the folder the shards lie in.
        table: one row per sample, columns as in :data:`raysys.shards.rows.SCHEMA`.
        shards: file name → size in bytes of every shard that was indexed, those without samples included.
        damage: what was wrong with shards that were only read in part (`build` with `on_damage="skip"`).
        layout: where captions and images were looked for.
    """

    def __init__(self, folder: str, table: pa.Table, shards: dict[str, int], damage: tuple[str, ...] = (), layout: Layout = OWN_FORM):
        self.folder = join(folder)
        self.table = table.combine_chunks()
        self.shards = shards
        self.damage = damage
        self.layout = layout

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
        return Lookup.of(self.table)

    def languages(self) -> dict[str, int]:
        """Samples with a caption, a text or ordered sentences, per language, the most frequent first."""
        return dict(sorted(Counter(single(self.table["languages"]).flatten().to_pylist()).items(), key=lambda item: (-item[1], item[0])))

    def captions(self) -> dict[str, int]:
        """Captions per language, in the order of :meth:`languages`; 0 in a language that has no captions but texts or ordered sentences."""
        totals = dict.fromkeys(self.languages(), 0)
        tags, counts = single(self.table["languages"]).flatten().to_pylist(), single(self.table["captions"]).flatten().to_pylist()
        for tag, count in zip(tags, counts, strict=True):
            totals[tag] += count
        return totals

    def faults(self) -> list[SampleFault]:
        """Samples that cannot be used, in stored order."""
        rows = self.table.select(["shard", "key", "cause", "fault"]).filter(pc.is_valid(self.table["fault"]))
        return [SampleFault(*row.values()) for row in rows.to_pylist()]

    def causes(self) -> dict[str, int]:
        """Samples that cannot be used, by :data:`raysys.shards.sample.CAUSES`, the most frequent first."""
        return dict(Counter(self.table["cause"].drop_null().to_pylist()).most_common())

    def save(self, storage: Storage) -> None:
        """Write ``manifest.parquet`` beside the shards, atomically."""
        notes = json.dumps(
            {"format": _FORMAT, "shards": self.shards, "damage": self.damage, "layout": self.layout.model_dump()}, ensure_ascii=False
        )
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
        return cls(folder, table, notes["shards"], tuple(notes["damage"]), from_mapping(Layout, notes["layout"], uri))

    @classmethod
    def build(
        cls,
        storage: Storage,
        folder: str,
        on_damage: Literal["raise", "skip"] = "raise",
        layout: Layout = OWN_FORM,
        processes: int = 0,
    ) -> "Manifest":
        """Read all shards of a folder, in Ray tasks where Ray runs, else in `processes`, else in threads.

        Args:
            on_damage: what a damaged shard leads to: `raise` names every one; `skip` keeps the samples before the damage. Samples
                of a damaged shard that a manifest beside it lists and that are not found now, or not as they were, become rows
                with a fault (causes `lost` and `checksum`).
            layout: where captions and images lie in a sample.
            processes: as in :func:`raysys.shards.build.index_shards`.

        Raises:
            UserError: no folder, no shards, or no sample of the first shard that has any with text where the layout says (lists
                what was found instead, and which setting to change; the other shards are not read).
            ShardError: a shard is damaged, and `on_damage` is `raise`.
        """
        entries = list_shards(storage, folder)
        indexes: list[ShardIndex] = []
        while entries and not any(index.table.num_rows for index in indexes):
            indexes += index_shards(storage, folder, [entries.pop(0)], layout)
            check_layout(folder, indexes[-1], layout)
        indexes += index_shards(storage, folder, entries, layout, processes)
        damaged = [index for index in indexes if index.damage]
        if damaged and on_damage == "raise":
            raise all_damage([error for index in damaged for error in index.damages])
        if damaged and (former := _former(storage, folder)):
            for index in damaged:
                index.table = with_lost(index.table, former.rows_of(index.shard))
        table = pa.concat_tables([index.table for index in indexes])
        if not len(table):
            found = f"no samples can be read: {damaged[0].damage}" if damaged else "all are whole but hold no samples"
            raise UserError(f"{folder}: of its {len(indexes)} shards {found}")
        return cls(folder, table, {index.shard: index.size for index in indexes}, tuple(str(index.damage) for index in damaged), layout)

    def rows_of(self, shard: str) -> pa.Table:
        """The rows of one shard."""
        return self.table.filter(pc.equal(self.table["shard"], shard))


def load_or_build(
    storage: Storage,
    folder: str,
    log: Callable[[str], None] = print,
    on_damage: Literal["raise", "skip"] = "raise",
    layout: Layout | None = None,
) -> Manifest:
    """The manifest of `folder`: the one beside the shards if it describes them, else a new one, saved if that is allowed.

    Args:
        layout: where captions and images lie in a sample; None: where they lay for the manifest beside the shards, else the
            project's own form.
    """
    present = {entry.uri.rpartition("/")[2]: entry.size for entry in list_shards(storage, folder)}
    if storage.exists(join(folder, NAME)):
        try:
            manifest = Manifest.load(storage, folder)
            if layout is None:
                layout = manifest.layout
            if manifest.layout != layout:
                log(f"{folder}: the shards were indexed with other settings of data.layout; reading them again")
            elif manifest.shards == present:
                for message in manifest.damage:
                    log(f"{message}: the rest of the shard was left out when it was indexed")
                return manifest
            else:
                log(f"{folder}: since its shards were indexed, {_changes(manifest.shards, present)}; reading them again")
        except UserError as error:
            log(f"{error}; reading the shards again")
    start = time.monotonic()
    manifest = Manifest.build(storage, folder, on_damage, layout or OWN_FORM)
    log(f"{folder}: indexed {len(manifest)} samples in {len(manifest.shards)} shards, {time.monotonic() - start:.1f} s")
    for message in notes(manifest, storage):
        log(message)
    try:
        manifest.save(storage)
    except (UserError, StorageError) as error:
        log(f"{folder}: the manifest is kept in memory, as it cannot be saved ({error})")
    return manifest


def _changes(before: dict[str, int], now: dict[str, int]) -> str:
    """Which shards are others than those that were indexed, in words."""
    kinds = {
        "have gone": before.keys() - now.keys(),
        "were added": now.keys() - before.keys(),
        "changed their size": {name for name in before.keys() & now.keys() if before[name] != now[name]},
    }
    told = [f"{', '.join(sorted(names)[:5])}{', …' if len(names) > 5 else ''} {what}" for what, names in kinds.items() if names]
    return " and ".join(told)


def _former(storage: Storage, folder: str) -> Manifest | None:
    """The manifest that lies beside the shards, whether or not it describes them as they are."""
    try:
        return Manifest.load(storage, folder) if storage.exists(join(folder, NAME)) else None
    except UserError:
        return None


def notes(manifest: Manifest, storage: Storage) -> list[str]:
    """What a person should know of a new manifest: shards without samples, damaged or unfinished, samples that cannot be used."""
    folder, names = manifest.folder, list(manifest.shards)
    damaged = {reason.partition(", byte ")[0].rpartition("/")[2] for reason in manifest.damage}
    empty = manifest.shards.keys() - set(manifest.lookup.shard_names) - damaged
    messages = [f"{join(folder, name)}: the shard is whole but has no samples" for name in sorted(empty)]
    messages += [f"{join(folder, name)}: {reason}" for name, reason in incomplete(storage, folder, names)]
    messages += [f"{reason}: the rest of the shard is left out" for reason in manifest.damage]
    faults = manifest.faults()
    if faults:
        shard, key, _, reason = faults[0]
        causes = ", ".join(f"{cause} {count}" for cause, count in manifest.causes().items())
        messages.append(f"{folder}: {len(faults)} samples have faults ({causes}), the first: {shard}, sample {key!r}: {reason}")
    if repeated := len(manifest) - pc.count_distinct(manifest.table["key"]).as_py():
        counts = pc.value_counts(single(manifest.table["key"]))
        key = counts.field("values")[pc.index(pc.greater(counts.field("counts"), 1), True).as_py()].as_py()
        messages.append(
            f"{folder}: {repeated} keys lie in more than one shard, the first: {key!r}; to which sample a name belongs is unclear"
        )
    return messages
