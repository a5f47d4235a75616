"""Reads one shard from beginning to end and describes its samples."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from raysys.shards.layout import OWN_FORM, Layout
from raysys.shards.reader import split_name
from raysys.shards.rows import Gathered, table_of
from raysys.shards.tar import Member, ShardError, iterate_members
from raysys.storage import Storage, join

Visitor = Callable[[str, str, Member], None]
"""Called with (key, extension, member) of every member of a sample while its bytes are at hand."""


@dataclass(frozen=True, order=True)
class Fault:
    """Something wrong with a shard or with one sample in it."""

    shard: str
    """File name."""
    byte: int
    """Where in the shard the damage or the member's content begins; 0 for what concerns the shard as a whole."""
    key: str
    """Of the sample; empty for a fault of the shard."""
    member: str
    """Extension of the member; empty where no single member is at fault."""
    reason: str
    cause: str = "shard"
    """One of :data:`raysys.shards.sample.CAUSES`."""

    def __str__(self) -> str:
        sample = f", sample {self.key!r}" if self.key else ""
        return f"{self.shard}{sample}{f', member .{self.member}' if self.member else ''}, byte {self.byte}: {self.reason}"


@dataclass
class ShardIndex:
    """What one shard holds."""

    shard: str
    size: int
    """Bytes."""
    table: pa.Table
    """A row per sample, in order of their first members; columns as in :data:`raysys.shards.rows.SCHEMA`."""
    damages: list[ShardError]
    """Stretches that could not be read, and why; without salvage there is one at most, and `table` ends with it."""
    faults: list[Fault]
    """Faults of single samples, in stored order."""
    found: Counter[str]
    """Which members samples have (``jpg + json``) → samples."""
    fields: Counter[str]
    """Fields of the json members → samples."""
    texts: int
    """Samples that have a caption, or `texts` or `sentences`."""

    @property
    def damage(self) -> ShardError | None:
        """The first of the damages."""
        return self.damages[0] if self.damages else None


def index_shard(
    storage: Storage, folder: str, shard: str, size: int, visit: Visitor | None = None, layout: Layout = OWN_FORM
) -> ShardIndex:
    """Describe the samples of one shard, in order of their first members; memory holds one piece of it and the samples' text.

    Faults of single samples become the `fault` of their row; a damaged archive ends the list and is told in `damages`.

    Args:
        size: bytes of the shard, as the storage's listing states them.
        visit: called for every member.
    """
    where = join(folder, shard)
    with storage.open(where) as file:
        return index_members(until_damage(file, size, where), shard, size, layout, visit)


def until_damage(file: BinaryIO, size: int, where: str) -> Iterator[Member | ShardError]:
    """The members of a tar, and at the end the error where it is damaged."""
    try:
        yield from iterate_members(file, size, where)
    except ShardError as error:
        yield error


def index_members(
    members: Iterable[Member | ShardError], shard: str, size: int, layout: Layout = OWN_FORM, visit: Visitor | None = None
) -> ShardIndex:
    """Describe the samples that members make up; an error among them stands for a stretch that could not be read.

    Samples beside such a stretch, or all where samples' members lie mixed, count as whole when they have the members that the first
    untouched sample has (or the largest one); the others get a fault.
    """
    samples: dict[str, Gathered] = {}
    last, mixed, damages = "", False, []
    beside: set[str] = set()
    current: Gathered | None = None
    for member in members:
        if isinstance(member, ShardError):
            damages.append(member)
            if current:
                beside.add(last)
            last, current = "", None
            continue
        named = split_name(member.name, layout.known_extensions)
        if named is None:
            continue
        key, extension = named
        if key != last or current is None:
            if current:
                current.read_text(layout, last=False)
            current = samples.get(key)
            if current is None:
                current = samples[key] = Gathered(key, member.start)
            else:
                mixed = True
            if damages and not last:
                beside.add(key)
            last = key
        current.add(extension, member, layout)
        if visit:
            visit(key, extension, member)
    for sample in samples.values():
        sample.read_text(layout, last=True)
    if damages:
        _blame_incomplete(samples, set(samples) if mixed else beside)
    whole = sum(not any(cause == "lost" for _, _, _, cause in sample.faults) for sample in samples.values())
    return ShardIndex(
        shard,
        size,
        table_of(shard, list(samples.values())),
        [ShardError(error.where, error.byte, error.reason, whole) for error in damages],
        sorted(
            Fault(shard, byte, sample.key, member, reason, cause)
            for sample in samples.values()
            for byte, member, reason, cause in sample.faults
        ),
        Counter(" + ".join(sorted(sample.extensions)) for sample in samples.values()),
        Counter(name for sample in samples.values() for name in sample.fields),
        sum(sample.has_text for sample in samples.values()),
    )


def _blame_incomplete(samples: dict[str, Gathered], beside: set[str]) -> None:
    """Give samples beside damage a fault where members are missing that may lie in the damage."""
    pattern = next((set(sample.extensions) for key, sample in samples.items() if key not in beside), None)
    if pattern is None and len(samples) > 1:
        pattern = max((set(sample.extensions) for sample in samples.values()), key=len)
    for key in beside:
        missing = None if pattern is None else pattern.difference(samples[key].extensions)
        if missing is None or missing:
            what = "." + " and .".join(sorted(missing)) if missing else "what else it may have"
            samples[key].faults.insert(0, (samples[key].start, "", f"{what} is lost in the damage beside it", "lost"))
