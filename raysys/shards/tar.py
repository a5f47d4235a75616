"""Reads tar archives front to back and proves that they are whole.

The format is POSIX.1-1988 (ustar) and POSIX.1-2001 (pax) with GNU long names. A reader of tars usually takes the end of
the file for the end of the archive, and a damaged header for the same; here either is an error that names the byte.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from raysys.shards.headers import BLOCK, ShardError, decode_name, number, parse_header, pax_records

__all__ = ["BLOCK", "Member", "ShardError", "iterate_members"]

PIECE = 4 << 20
"""Bytes read at once."""
_LONGEST_HEADER = 1 << 20
_ZEROS = bytes(BLOCK)
_EXTENDED = frozenset("xXgLK")
_NO_FILES = frozenset("346VD")
"""Devices, pipes, the label of a volume, a list of a folder; a type nobody knows counts as a file."""
_SIGNATURES = {
    b"\x1f\x8b": "is compressed with gzip: byte ranges cannot be read from it; unpack it with gunzip",
    b"BZh": "is compressed with bzip2: byte ranges cannot be read from it; unpack it with bunzip2",
    b"\xfd7zXZ": "is compressed with xz: byte ranges cannot be read from it; unpack it with unxz",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd: byte ranges cannot be read from it; unpack it with unzstd",
    b"PK\x03\x04": "is a zip archive, not a tar",
}


class Member(NamedTuple):
    """One file of an archive."""

    name: str
    offset: int
    """Of the first byte of its content in the archive."""
    size: int
    """Bytes of content."""
    data: bytes
    """The content."""
    start: int
    """Offset of its first header, long-name headers included."""


def iterate_members(file: BinaryIO, size: int, where: str, begin: int = 0) -> Iterator[Member]:
    """The regular files of a tar, in order, read from beginning to end; folders are passed over.

    Args:
        file: the archive, read sequentially from its byte `begin`.
        size: its size in bytes, as the storage states it.
        where: how errors call it.
        begin: where the first header lies.

    Raises:
        ShardError: empty file, compressed file, damaged or cut header, cut content, links and sparse files (their content
            lies elsewhere), no end-of-archive, bytes after it, more or fewer bytes than `size`. Members before the damage
            were yielded by then, but for one that ends where a header is damaged and whose padding does not prove that it
            has its own bytes: some may have been lost or inserted.
    """
    source = _Source(file, size, where, begin)
    if size == 0:
        raise ShardError(where, 0, "the shard has zero bytes: its writer never wrote it")
    extended: dict[str, str] = {}
    start = begin
    last: Member | None = None  # handed on when what follows it was looked at
    proven = False
    while True:
        here = source.position
        try:
            header = source.take(BLOCK, "a header" if here else "the first header")
        except ShardError:
            if last:
                yield last
            raise
        at_end = header == _ZEROS
        try:
            if at_end and (size - begin) % BLOCK and size - here >= 2 * BLOCK:
                proven = False  # its padding and what follows it are zeros alike
                raise ShardError(where, size, f"the shard has {size} bytes, which are not whole blocks: bytes were lost or inserted")
            if here == 0:
                _refuse_foreign(header, where)
            kind, name, length = parse_header(header, here, where) if not at_end else ("", "", 0)
        except ShardError:
            if last and proven:
                yield last
            raise
        if last:
            yield last
            last = None
        if at_end:
            _prove_end(source)
            return
        if not extended:
            start = here
        if kind in _EXTENDED:
            extended |= _extension(source, kind, length, here, where)
            continue
        if extended:
            name = extended.get("path", name)
            if "size" in extended:
                length = number(extended["size"], here, where)
        if kind != "0":
            _refuse_kind(kind, name, here, where)
        if kind == "S" or any(record.startswith("GNU.sparse") for record in extended):
            raise ShardError(where, here, f"member {name!r} is stored as a sparse file; write the tar without --sparse")
        extended = {}
        if kind == "5" or (kind == "0" and name.endswith("/")):
            continue
        offset = source.position
        data = source.take(length, f"member {name!r}")
        proven = source.skip_padding(length)
        if kind not in _NO_FILES:
            last = Member(name, offset, length, data, start)


def _extension(source: "_Source", kind: str, length: int, begin: int, where: str) -> dict[str, str]:
    """What a header that extends the next one states: pax records, or a long name under `path`."""
    if length > _LONGEST_HEADER:
        raise ShardError(where, begin, f"an extended header claims {length} bytes")
    content = source.take(length, "an extended header")
    source.skip_padding(length)
    if kind == "g":
        return {}  # for all members: comments, of no use here
    found = {"": ""}  # marks that the member's extent began with this header
    if kind in "xX":
        found |= pax_records(content, begin, where)
    elif kind == "L":
        found["path"] = decode_name(content.rstrip(b"\0"))
    return found


def _refuse_kind(kind: str, name: str, begin: int, where: str) -> None:
    if kind in "12":
        raise ShardError(where, begin, f"member {name!r} is a link without content; write the tar with --hard-dereference -h")
    if kind == "M":
        raise ShardError(where, begin, f"member {name!r} continues from another volume of a split archive")


class _Source:
    """Takes bytes from a file, which it reads in large pieces, and knows where it is."""

    def __init__(self, file: BinaryIO, size: int, where: str, begin: int):
        self._file, self.size, self.where = file, size, where
        self.position = begin
        self._piece, self._at = b"", 0

    def take(self, count: int, what: str) -> bytes:
        at = self._at
        end = at + count
        if end <= len(self._piece):
            self._at = end
            self.position += count
            return self._piece[at:end]
        if self.position + count > self.size:
            if self.position >= self.size:
                raise ShardError(self.where, self.position, "the shard ends without an end-of-archive mark: it was cut")
            missing = self.position + count - self.size
            raise ShardError(self.where, self.position, f"the shard ends {missing} bytes before the end of {what}: it was cut")
        held = [self._piece[at:]]
        have = len(held[0])
        while have < count:
            piece = self._file.read(max(PIECE, count - have))
            if not piece:
                end = self.position + have
                raise ShardError(self.where, end, f"reading ended at byte {end} of {self.size}")
            held.append(piece)
            have += len(piece)
        self._piece = held[-1]
        self._at = len(self._piece) - (have - count)
        held[-1] = self._piece[: self._at]
        self.position += count
        return b"".join(held)

    def skip_padding(self, length: int) -> bool:
        """Pass over what fills the last block of a content; returns whether there is such padding, all zeros as it should be."""
        rest = -length % BLOCK
        return bool(rest) and not self.take(rest, "the padding after a member").strip(b"\0")

    def more(self) -> bool:
        """Whether the file goes on."""
        return self._at < len(self._piece) or bool(self._file.read(1))


def _prove_end(source: _Source) -> None:
    """After the first zero block: a second one, nothing but zeros, and as many bytes as the storage says."""
    where, mark = source.where, source.position - BLOCK
    if source.position == source.size:
        raise ShardError(where, mark, "the end-of-archive mark is cut: one zero block where two belong")
    while source.position < source.size:
        begin = source.position
        rest = source.take(min(1 << 16, source.size - begin), "the end-of-archive mark")
        if rest.strip(b"\0"):
            byte = begin + len(rest) - len(rest.lstrip(b"\0"))
            raise ShardError(where, byte, f"there are bytes after the end-of-archive mark at byte {mark}: several tars in one file?")
    if source.position - mark < 2 * BLOCK:
        raise ShardError(where, mark, "the end-of-archive mark is cut: less than two zero blocks")
    if source.more():
        raise ShardError(where, source.size, f"the shard goes on after the {source.size} bytes that the storage states")


def _refuse_foreign(header: bytes, where: str) -> None:
    for signature, reason in _SIGNATURES.items():
        if header.startswith(signature):
            raise ShardError(where, 0, f"the shard {reason}")
