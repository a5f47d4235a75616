"""From members of a tar to samples, and samples by number in few ranged reads."""

import itertools
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raysys.shards.sample import IMAGE_EXTENSIONS
from raysys.shards.tar import Member, ShardError, iterate_members
from raysys.storage import Storage, StorageError, is_remote, join

if TYPE_CHECKING:
    from raysys.shards.manifest import Manifest

__all__ = ["Member", "RawSample", "ShardError", "image_extension", "iterate_members", "read_samples", "split_name"]

KNOWN_EXTENSIONS = frozenset([*IMAGE_EXTENSIONS, "json", "txt", "caption", "cls", "npz", "npy", "rois.npz"])
"""Extensions, in lower case, that end the key of a sample; the longest that fits counts."""
GAP = 64 << 10
"""Bytes between two members that are rather read along than cost a read of their own."""
LONGEST_READ = 32 << 20
"""Neighbouring members are put together into reads of at most this many bytes."""
CONNECTIONS = 8
"""Ranges fetched at once from object storage by one call."""


@dataclass
class RawSample:
    """The bytes of one sample as they lie in its shard."""

    id: int
    """Row of the manifest."""
    shard: str
    """File name of the shard in the data set's folder."""
    key: str
    members: dict[str, bytes]
    """Extension in lower case → content."""

    @property
    def where(self) -> str:
        """How errors call the sample."""
        return f"{self.shard}: sample {self.key!r}"


def split_name(name: str) -> tuple[str, str] | None:
    """(key, extension in lower case) of a member; None for hidden files, resource forks and notes of other tools.

    The key is the name without its last known extension; of an unknown extension the part after the last dot counts, and a
    name without a dot has the extension ``""``.
    """
    name = name.removeprefix("./").strip("/")
    folder, _, base = name.rpartition("/")
    parts = name.split("/")
    if base.startswith(".") or "__MACOSX" in parts or any(len(part) > 4 and part[:2] == part[-2:] == "__" for part in parts):
        return None
    stem, _, last = base.rpartition(".")
    if not stem:
        return name, ""
    inner, _, second = stem.rpartition(".")
    extension = last
    if inner and f"{second}.{last}".lower() in KNOWN_EXTENSIONS:
        stem, extension = inner, f"{second}.{last}"
    return f"{folder}/{stem}" if folder else stem, extension.lower()


def image_extension(extensions: Sequence[str]) -> str | None:
    """The extension under which a sample's image lies: the first one that is an image's; None in a text-only sample."""
    return next((extension for extension in extensions if extension in IMAGE_EXTENSIONS), None)


def read_samples(storage: Storage, manifest: "Manifest", ids: Sequence[int] | np.ndarray) -> list[RawSample]:
    """Samples `ids` (rows of the manifest, in any order, repeated or not), in that order.

    Members that lie close to one another are fetched in one ranged read, whichever samples they belong to; every sample is
    compared with the checksum of the manifest.

    Raises:
        StorageError: a read failed, or bytes differ from those that were indexed (names shard and key).
        UserError: a shard is missing.
    """
    rows = np.asarray(ids, dtype=np.int64)
    if rows.size == 0:
        return []
    if rows.min() < 0 or rows.max() >= len(manifest):
        raise IndexError(f"samples {rows.min()} to {rows.max()} were asked for; {manifest.folder} has {len(manifest)}")
    wanted = np.unique(rows)
    found = dict(zip(wanted.tolist(), _read_rows(storage, manifest, wanted), strict=True))
    return [found[row] for row in rows.tolist()]


def _read_rows(storage: Storage, manifest: "Manifest", rows: np.ndarray) -> list[RawSample]:
    """Samples of `rows`, which are ascending and distinct."""
    lookup = manifest.lookup
    counts = lookup.starts[rows + 1] - lookup.starts[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    members = np.arange(counts.sum()) + np.repeat(lookup.starts[rows] - np.cumsum(counts) + counts, counts)
    shards, offsets, sizes = lookup.shards[rows][owner], lookup.offsets[members], lookup.sizes[members]

    order = np.lexsort((offsets, shards))
    groups = _coalesce(shards[order], offsets[order], sizes[order])
    names = lookup.shard_names
    ranges = []
    for group in groups:
        first = order[group.start]
        end = int((offsets + sizes)[order[group]].max())
        ranges.append((join(manifest.folder, names[shards[first]]), int(offsets[first]), end - int(offsets[first])))
    if len(ranges) > 1 and is_remote(manifest.folder):
        with ThreadPoolExecutor(min(CONNECTIONS, len(ranges))) as pool:
            blocks = list(pool.map(lambda item: storage.read(*item), ranges))
    else:
        blocks = [storage.read(*item) for item in ranges]

    pieces: list[bytes] = [b""] * len(members)
    for group, (_, begin, _), block in zip(groups, ranges, blocks, strict=True):
        for index in order[group].tolist():
            at = int(offsets[index]) - begin
            pieces[index] = block[at : at + int(sizes[index])]
    samples = []
    position = 0
    extensions = [lookup.extension_names[code] for code in lookup.extensions[members].tolist()]
    keys = lookup.keys.take(rows).to_pylist()
    for row, key, code, count, checksum in zip(
        rows.tolist(), keys, lookup.shards[rows].tolist(), counts.tolist(), lookup.checksums[rows].tolist(), strict=True
    ):
        contents = pieces[position : position + count]
        if checksum_of(contents) != checksum:
            shard = join(manifest.folder, names[code])
            raise StorageError(f"{shard}: sample {key!r} is not what was indexed: the shard was changed or damaged; index it again")
        samples.append(RawSample(row, names[code], key, dict(zip(extensions[position : position + count], contents, strict=True))))
        position += count
    return samples


def checksum_of(contents: Sequence[bytes]) -> int:
    """CRC-32 over the members of a sample, in the order in which they lie in the shard."""
    value = 0
    for content in contents:
        value = zlib.crc32(content, value)
    return value


def _coalesce(shards: np.ndarray, offsets: np.ndarray, sizes: np.ndarray) -> list[slice]:
    """Groups of members, sorted by shard and offset, that one read covers."""
    ends = offsets + sizes
    breaks = np.flatnonzero((shards[1:] != shards[:-1]) | (offsets[1:] - ends[:-1] > GAP)) + 1
    bounds = [0, *breaks.tolist(), len(shards)]
    groups = []
    for start, stop in itertools.pairwise(bounds):
        while start < stop:  # cut what is too long, at least one member each
            length = int(np.searchsorted(ends[start:stop], offsets[start] + LONGEST_READ, side="right"))
            groups.append(slice(start, start + max(1, length)))
            start += max(1, length)
    return groups
