"""Reads tar archives front to back and proves that they are whole.

The format is POSIX.1-1988 (ustar) and POSIX.1-2001 (pax) with GNU long names. A reader of tars usually takes the end of
the file for the end of the archive, and a damaged header for the same; here either is an error that names the byte.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from raysys.errors import RunFailed

BLOCK = 512
"""Bytes of a tar block: headers take one, contents are padded to whole ones."""
_LONGEST_HEADER = 1 << 20
_SIGNATURES = {
    b"\x1f\x8b": "is compressed with gzip: byte ranges cannot be read from it; unpack it with gunzip",
    b"BZh": "is compressed with bzip2: byte ranges cannot be read from it; unpack it with bunzip2",
    b"\xfd7zXZ": "is compressed with xz: byte ranges cannot be read from it; unpack it with unxz",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd: byte ranges cannot be read from it; unpack it with unzstd",
    b"PK\x03\x04": "is a zip archive, not a tar",
}


class ShardError(RunFailed):
    """A shard is damaged or of the wrong kind.

    Attributes: `where` (shard), `byte` (offset of the damage), `reason`, `samples` (samples before the damage that are whole).
    """

    def __init__(self, where: str, byte: int, reason: str, samples: int | None = None):
        self.where, self.byte, self.reason, self.samples = where, byte, reason, samples
        before = "" if samples is None else f"; {samples} whole {'sample lies' if samples == 1 else 'samples lie'} before it"
        super().__init__(f"{where}, byte {byte}: {reason}{before}")

    def __reduce__(self):
        return type(self), (self.where, self.byte, self.reason, self.samples)


@dataclass(frozen=True)
class Member:
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


def iterate_members(file: BinaryIO, size: int, where: str) -> Iterator[Member]:
    """The regular files of a tar, in order, read from beginning to end; folders are passed over.

    Args:
        file: the archive, read sequentially from its first byte.
        size: its size in bytes, as the storage states it.
        where: how errors call it.

    Raises:
        ShardError: empty file, compressed file, damaged or cut header, cut content, links and sparse files (their content
            lies elsewhere), no end-of-archive, bytes after it, more or fewer bytes than `size`. Members before the damage
            were yielded by then.
    """
    source = _Source(file, size, where)
    if size == 0:
        raise ShardError(where, 0, "the shard has zero bytes: its writer never wrote it")
    extended: dict[str, str] = {}
    start = 0
    while True:
        begin = source.position
        header = source.take(BLOCK, "a header" if begin else "the first header")
        if not header.strip(b"\0"):
            _prove_end(source)
            return
        if begin == 0:
            _refuse_foreign(header, where)
        kind, name, length = _parse(header, begin, where)
        if not extended:
            start = begin
        if kind in "xXgLK":
            if length > _LONGEST_HEADER:
                raise ShardError(where, begin, f"an extended header claims {length} bytes")
            content = source.take(length, "an extended header")
            source.skip_padding(length)
            if kind in "xX":
                extended.update(_pax_records(content, begin, where))
            elif kind == "L":
                extended["path"] = _decode(content.rstrip(b"\0"))
            if kind in "xXLK":
                extended.setdefault("", "")  # marks that the member's extent began with this header
            continue
        name = extended.get("path", name)
        if "size" in extended:
            length = _number(extended["size"], begin, where)
        if kind == "S" or any(record.startswith("GNU.sparse") for record in extended):
            raise ShardError(where, begin, f"member {name!r} is stored as a sparse file; write the tar without --sparse")
        extended = {}
        if kind in "12":
            raise ShardError(where, begin, f"member {name!r} is a link without content; write the tar with --hard-dereference -h")
        if kind == "M":
            raise ShardError(where, begin, f"member {name!r} continues from another volume of a split archive")
        if kind == "5" or (kind == "0" and name.endswith("/")):
            continue
        offset = source.position
        data = source.take(length, f"member {name!r}")
        source.skip_padding(length)
        if kind not in "346VD":  # devices, pipes, the label of a volume, a list of a folder; a type nobody knows counts as a file
            yield Member(name, offset, length, data, start)


class _Source:
    """Takes bytes from a file and knows where it is."""

    def __init__(self, file: BinaryIO, size: int, where: str):
        self._file, self.size, self._where = file, size, where
        self.position = 0

    def take(self, count: int, what: str) -> bytes:
        if self.position + count > self.size:
            if self.position >= self.size:
                raise ShardError(self._where, self.position, "the shard ends without an end-of-archive mark: it was cut")
            missing = self.position + count - self.size
            raise ShardError(self._where, self.position, f"the shard ends {missing} bytes before the end of {what}: it was cut")
        data = self._file.read(count)
        while len(data) < count:
            more = self._file.read(count - len(data))
            if not more:
                end = self.position + len(data)
                raise ShardError(self._where, end, f"reading ended at byte {end} of {self.size}")
            data += more
        self.position += count
        return data

    def skip_padding(self, length: int) -> None:
        if length % BLOCK:
            self.take(BLOCK - length % BLOCK, "the padding after a member")


def _prove_end(source: _Source) -> None:
    """After the first zero block: a second one, nothing but zeros, and as many bytes as the storage says."""
    where, mark = source._where, source.position - BLOCK
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
    if source._file.read(1):
        raise ShardError(where, source.size, f"the shard goes on after the {source.size} bytes that the storage states")


def _refuse_foreign(header: bytes, where: str) -> None:
    for signature, reason in _SIGNATURES.items():
        if header.startswith(signature):
            raise ShardError(where, 0, f"the shard {reason}")


def _parse(header: bytes, begin: int, where: str) -> tuple[str, str, int]:
    """(type, name, size of the content) of a header block whose checksum holds."""
    stated = _octal(header[148:156])
    unsigned = sum(header) - sum(header[148:156]) + 8 * 32
    if stated != unsigned:
        high = sum(byte > 127 for byte in header) - sum(byte > 127 for byte in header[148:156])
        if stated != unsigned - 256 * high:  # some old writers summed signed bytes
            reason = "the header is damaged: its checksum does not hold" if begin else "this is not a tar, or its first header is damaged"
            raise ShardError(where, begin, reason)
    size = int.from_bytes(header[125:136]) if header[124] == 0x80 else _octal(header[124:136])
    if size is None:
        raise ShardError(where, begin, "the header is damaged: it states no size")
    name = header[:100].split(b"\0", 1)[0]
    if header[257:263] == b"ustar\0":
        prefix = header[345:500].split(b"\0", 1)[0]
        name = prefix + b"/" + name if prefix else name
    kind = chr(header[156]) if header[156] else "0"
    if kind in "123456":
        size = 0  # links, devices and folders have no content, whatever size they state
    return kind, _decode(name), size


def _octal(field: bytes) -> int | None:
    text = field.strip(b"\0 ")
    if not text:
        return 0
    return int(text, 8) if all(48 <= byte < 56 for byte in text) else None


def _pax_records(content: bytes, begin: int, where: str) -> dict[str, str]:
    """Records of the form ``LENGTH keyword=value\\n``."""
    records, position = {}, 0
    while position < len(content) and content[position]:
        digits, space, _ = content[position : position + 20].partition(b" ")
        length = int(digits) if space and digits.isdigit() else 0
        record = content[position : position + length]
        keyword, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if not length or len(record) < length or not equals or record[-1:] != b"\n":
            raise ShardError(where, begin, "an extended header is damaged")
        records[_decode(keyword)] = _decode(value)
        position += length
    return records


def _number(text: str, begin: int, where: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ShardError(where, begin, f"an extended header states the size {text!r}")
    return int(text)


def _decode(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")  # not UTF-8: still readable, still distinct
