"""Reads one shard from beginning to end and describes its samples."""

import hashlib
import io
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import PIL.Image
import pyarrow as pa

from raysys.shards.reader import split_name
from raysys.shards.sample import IMAGE_EXTENSIONS, Captions, SampleError, parse_captions
from raysys.shards.tar import BLOCK, Member, ShardError, iterate_members
from raysys.storage import Storage, join

SCHEMA = pa.schema(
    {
        "shard": pa.string(),
        "key": pa.string(),
        "offset": pa.int64(),
        "size": pa.int64(),
        "members": pa.list_(pa.struct({"extension": pa.string(), "offset": pa.int64(), "size": pa.int64()})),
        "languages": pa.list_(pa.string()),
        "captions": pa.list_(pa.int32()),
        "alignment": pa.string(),
        "group": pa.string(),
        "image_format": pa.string(),
        "width": pa.int32(),
        "height": pa.int32(),
        "image_id": pa.int64(),
        "checksum": pa.int64(),
        "fault": pa.string(),
    }
)
"""Columns of a manifest; a row per sample.

`offset`, `size`: extent of the sample in its shard, headers and padding included. `members`: where each member's content
lies. `captions`: number of captions of each of `languages`. `image_id`: the first 8 bytes of BLAKE2b over the image's bytes, so
that equal pictures are equal numbers; 0 without an image. `checksum`: CRC-32 over all members' contents in stored order.
`fault`: why the sample cannot be used, or null.
"""

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
    """A row per sample, in order of their first members; columns as in :data:`SCHEMA`."""
    damage: ShardError | None
    """Why the shard could not be read to its end; `table` then holds the whole samples before the damage."""
    faults: list[Fault]
    """Faults of single samples, in stored order."""
    found: Counter[str]
    """Which members samples have (``jpg + json``) → samples."""
    fields: Counter[str]
    """Fields of the json members → samples."""


@dataclass
class _Gathered:
    """What is known of one sample after some of its members."""

    shard: str
    key: str
    start: int
    end: int = 0
    members: list[dict[str, Any]] = field(default_factory=list)
    checksum: int = 0
    text: Captions | None = None
    image: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @property
    def extensions(self) -> list[str]:
        return [member["extension"] for member in self.members]

    def add(self, extension: str, member: Member) -> None:
        if extension in self.extensions:
            self._blame("two members have this name", extension, member.offset)
        self.members.append({"extension": extension, "offset": member.offset, "size": member.size})
        self.end = member.offset + -(-member.size // BLOCK) * BLOCK
        self.checksum = zlib.crc32(member.data, self.checksum)
        if extension == "json" and self.text is None:
            try:
                self.text = parse_captions(member.data)
            except SampleError as error:
                self._blame(error.reason, extension, member.offset)
            else:
                if not self.text.captions and not {"texts", "sentences"} & set(self.text.extra):
                    self._blame("it holds no caption", extension, member.offset)
        elif extension in IMAGE_EXTENSIONS and not self.image:
            self._look_at(extension, member)

    def _look_at(self, extension: str, member: Member) -> None:
        identity = int.from_bytes(hashlib.blake2b(member.data, digest_size=8).digest(), "little", signed=True)
        self.image = {"image_format": None, "width": 0, "height": 0, "image_id": identity or 1}
        try:
            image = PIL.Image.open(io.BytesIO(member.data))
        except Exception as error:  # Pillow's format readers raise errors of any kind on damaged headers
            self._blame(explain_image_error(error, member.data), extension, member.offset)
        else:
            self.image |= {"image_format": image.format, "width": image.width, "height": image.height}

    def _blame(self, reason: str, member: str = "", byte: int | None = None) -> None:
        self.faults.append(Fault(self.shard, self.start if byte is None else byte, self.key, member, reason))

    def finish(self) -> dict[str, Any]:
        """The sample's row, once all its members are known."""
        text = self.text or Captions({}, "none", {})
        group = text.extra.get("group")
        if not self.image and "json" not in self.extensions:
            self._blame(f"it holds neither an image nor a json member, but {' + '.join('.' + name for name in self.extensions)}")
        faults = [f".{fault.member}: {fault.reason}" if fault.member else fault.reason for fault in self.faults]
        return {
            "shard": self.shard,
            "key": self.key,
            "offset": self.start,
            "size": self.end - self.start,
            "members": self.members,
            "languages": list(text.captions),
            "captions": [len(texts) for texts in text.captions.values()],
            "alignment": text.alignment,
            "group": None if group is None else str(group),
            **({"image_format": None, "width": 0, "height": 0, "image_id": 0} | self.image),
            "checksum": self.checksum,
            "fault": "; ".join(faults) or None,
        }


def explain_image_error(error: Exception, data: bytes) -> str:
    """Why an image cannot be read, in words that do not depend on the decoder."""
    if not data:
        return "the member is empty"
    if isinstance(error, PIL.UnidentifiedImageError):
        return f"no image begins with the bytes {data[:12]!r}"
    return " ".join(str(error).split()) or type(error).__name__


def index_shard(storage: Storage, folder: str, shard: str, size: int, visit: Visitor | None = None) -> ShardIndex:
    """Describe the samples of one shard, in order of their first members, in memory that one member bounds.

    Faults of single samples become the `fault` of their row; a damaged archive ends the list and is told in `damage`.

    Args:
        size: bytes of the shard, as the storage's listing states them.
    """
    where = join(folder, shard)
    samples: dict[str, _Gathered] = {}
    last, mixed, damage = "", False, None
    with storage.open(where) as file:
        try:
            for member in iterate_members(file, size, where):
                named = split_name(member.name)
                if named is None:
                    continue
                key, extension = named
                if key not in samples:
                    samples[key] = _Gathered(shard, key, member.start)
                elif key != last:
                    mixed = True
                last = key
                samples[key].add(extension, member)
                if visit:
                    visit(key, extension, member)
        except ShardError as error:
            damage = error
            _drop_incomplete(samples, last, mixed)
    if damage:
        damage = ShardError(damage.where, damage.byte, damage.reason, len(samples))
    return ShardIndex(
        shard,
        size,
        pa.Table.from_pylist([sample.finish() for sample in samples.values()], SCHEMA),
        damage,
        sorted(fault for sample in samples.values() for fault in sample.faults),
        Counter(" + ".join(sorted(sample.extensions)) for sample in samples.values()),
        Counter(name for sample in samples.values() if sample.text for name in sample.text.extra),
    )


def _drop_incomplete(samples: dict[str, _Gathered], last: str, mixed: bool) -> None:
    """Take out samples whose other members may lie beyond the damage.

    That can be the last one only, or any where members of one sample lie among those of others. A sample counts as whole
    when it has all the members that the first one has.
    """
    if not samples:
        return
    pattern = set(next(iter(samples.values())).extensions)
    for key in list(samples) if mixed else [last]:
        if len(samples) == 1 or not pattern.issubset(samples[key].extensions):
            del samples[key]
