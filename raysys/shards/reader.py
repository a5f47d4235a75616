"""From members of a tar to samples, and samples by number in few ranged reads."""

import hashlib
import itertools
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raysys.shards.sample import IMAGE_EXTENSIONS, SampleError
from raysys.shards.tar import Member, ShardError, iterate_members
from raysys.storage import Storage, StorageError, is_remote, join

if TYPE_CHECKING:
    from raysys.shards.manifest import Manifest

__all__ = ["Member", "RawSample", "ShardError", "iterate_members", "read_samples", "split_name", "try_read_samples"]

KNOWN_EXTENSIONS = frozenset([*IMAGE_EXTENSIONS, "json", "txt", "caption", "cls", "npz", "npy", "rois.npz"])
"""Extensions, in lower case, that end the key of a sample; the longest that fits counts."""
_DOTTED = tuple(extension for extension in KNOWN_EXTENSIONS if "." in extension)
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


def split_name(name: str, more: Sequence[str] = ()) -> tuple[str, str] | None:
    """(key, extension in lower case) of a member; None for hidden files, resource forks and notes of other tools.

    The key is the name without its last known extension (:data:`KNOWN_EXTENSIONS`, or one of `more`); of an unknown extension the part
    after the last dot counts, and a name without a dot has the extension ``""``.
    """
    name = name.removeprefix("./").strip("/")
    folder, _, base = name.rpartition("/")
    if base.startswith(".") or ("__" in name and any(map(_is_note, name.split("/")))):
        return None
    stem, dot, last = name.rpartition(".")
    if not dot or "/" in last:
        return name, ""
    for extension in (*_DOTTED, *more) if "." in stem[len(folder) :] else ():
        begin = len(name) - len(extension)
        if name[begin:].lower() == extension and name[begin - 1] == "." and begin - 1 > len(folder) + bool(folder):
            return name[: begin - 1], extension
    return stem, last.lower()


def _is_note(part: str) -> bool:
    return part == "__MACOSX" or (len(part) > 4 and part[:2] == part[-2:] == "__")


def read_samples(storage: Storage, manifest: "Manifest", ids: Sequence[int] | np.ndarray) -> list[RawSample]:
    """Like :func:`try_read_samples`, but raises the first SampleError."""
    samples = []
    for sample in try_read_samples(storage, manifest, ids):
        if isinstance(sample, SampleError):
            raise sample
        samples.append(sample)
    return samples


def try_read_samples(storage: Storage, manifest: "Manifest", ids: Sequence[int] | np.ndarray) -> list[RawSample | SampleError]:
    """Samples `ids` (rows of the manifest, in any order, repeated or not), in that order.

    Members that lie close to one another are fetched in one ranged read, whichever samples they belong to; every sample is
    compared with the checksum of the manifest. In the place of a sample whose bytes are not those that were indexed, or lie beyond
    the end of a shard that was cut, stands a SampleError (cause `checksum`); of one that was already lost when the shard was indexed,
    cause `lost`.

    Raises:
        StorageError: a read failed.
        UserError: a shard is missing.
    """
    rows = np.asarray(ids, dtype=np.int64)
    if rows.size == 0:
        return []
    if rows.min() < 0 or rows.max() >= len(manifest):
        raise IndexError(f"samples {rows.min()} to {rows.max()} were asked for; {manifest.folder} has {len(manifest)}")
    wanted, places = np.unique(rows, return_inverse=True)
    found = _read_rows(storage, manifest, wanted)
    return [found[place] for place in places.tolist()]


def _read_rows(storage: Storage, manifest: "Manifest", rows: np.ndarray) -> list[RawSample | SampleError]:
    """Samples of `rows`, which are ascending and distinct."""
    lookup = manifest.lookup
    counts = lookup.starts[rows + 1] - lookup.starts[rows]
    members = np.arange(counts.sum()) + np.repeat(lookup.starts[rows] - np.cumsum(counts) + counts, counts)
    shards, offsets, sizes = np.repeat(lookup.shards[rows], counts), lookup.offsets[members], lookup.sizes[members]
    pieces = _read_members(storage, manifest, shards, offsets, sizes)
    extensions = [lookup.extension_names[code] for code in lookup.extensions[members].tolist()]
    keys = lookup.keys.take(rows).to_pylist()
    samples: list[RawSample | SampleError] = []
    position = 0
    for row, key, code, count, checksum in zip(
        rows.tolist(), keys, lookup.shards[rows].tolist(), counts.tolist(), lookup.checksums[rows].tolist(), strict=True
    ):
        contents = pieces[position : position + count]
        if count and checksum_of(contents) == checksum:
            members_of = dict(zip(extensions[position : position + count], contents, strict=True))
            samples.append(RawSample(row, lookup.shard_names[code], key, members_of))
        else:
            where = f"{join(manifest.folder, lookup.shard_names[code])}: sample {key!r}"
            if count:
                reason = "it is not what was indexed: the shard was changed or damaged; index it again"
                samples.append(SampleError(where, reason, "", "checksum"))
            else:
                samples.append(SampleError(where, "it was lost from its shard before the shard was indexed", "", "lost"))
        position += count
    return samples


def _read_members(storage: Storage, manifest: "Manifest", shards: np.ndarray, offsets: np.ndarray, sizes: np.ndarray) -> list[bytes]:
    """The contents of members; less than all of it where a shard ends too early."""
    order = np.lexsort((offsets, shards))
    ends = offsets + sizes
    groups = _coalesce(shards[order], offsets[order], sizes[order])
    ranges = []
    for group in groups:
        first = order[group.start]
        begin = int(offsets[first])
        ranges.append((join(manifest.folder, manifest.lookup.shard_names[shards[first]]), begin, int(ends[order[group]].max()) - begin))
    if len(ranges) > 1 and is_remote(manifest.folder):
        with ThreadPoolExecutor(min(CONNECTIONS, len(ranges))) as pool:
            blocks = list(pool.map(lambda item: _read_what_is_there(storage, *item), ranges))
    else:
        blocks = [_read_what_is_there(storage, *item) for item in ranges]
    pieces: list[bytes] = [b""] * len(offsets)
    for group, (_, begin, _), block in zip(groups, ranges, blocks, strict=True):
        inside = order[group]
        for index, start, end in zip(inside.tolist(), (offsets[inside] - begin).tolist(), (ends[inside] - begin).tolist(), strict=True):
            pieces[index] = block[start:end]
    return pieces


def _read_what_is_there(storage: Storage, uri: str, offset: int, size: int) -> bytes:
    """A range, or what is left of it in a shard that has become shorter."""
    try:
        return storage.read(uri, offset, size)
    except StorageError:
        end = storage.size(uri)
        if end >= offset + size:
            raise  # a transfer that failed, which says nothing of the sample
        return storage.read(uri, offset, end - offset) if end > offset else b""


def digest(data: bytes) -> int:
    """A 64-bit number that tells contents apart, never 0: the first 8 bytes of SHA-1, signed.

    CRC-32 would not do: formats that end their parts with their own CRC-32, like PNG, give all pictures of one size the same.
    """
    return int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest()[:8], "little", signed=True) or 1


def combined(digests: Sequence[int]) -> int:
    """The checksum of a sample whose members have these digests, in the order in which they lie in the shard."""
    return digest(struct.pack(f"<{len(digests)}q", *digests))


def checksum_of(contents: Sequence[bytes]) -> int:
    """The checksum of a sample with these members' contents, in the order in which they lie in the shard."""
    return combined([digest(content) for content in contents])


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
