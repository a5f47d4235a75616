"""Text files of a source, line by line: plain or gzip, on disk or in object storage, with all that is wrong in them named."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from raysys.errors import UserError
from raysys.shards.sample import SampleError, decode_json
from raysys.storage import Entry, Storage, is_remote

NOT_UTF8 = "not UTF-8"
NOT_JSON = "not a json object"
NOT_STORABLE = "json holds half a surrogate pair or no number"
CUT_SHORT = "file is cut short or damaged"


@dataclass(frozen=True)
class Line:
    """One line of a text file."""

    number: int
    """1 for the first."""
    text: str
    """Without its end; empty where there is a fault."""
    fault: str = ""
    """Why the line cannot be used."""


class CutShort(UserError):
    """A compressed file that cannot be read to its end; the lines before were given out."""

    def __init__(self, uri: str, line: int, reason: str):
        super().__init__(f"{uri} is cut short or damaged after line {line} ({reason}); download it again")
        self.uri, self.line, self.reason = uri, line, reason

    def __reduce__(self):
        return type(self), (self.uri, self.line, self.reason)


def find_files(source: str) -> list[Entry]:
    """All files beneath the folder `source`, sorted, with absolute paths; without hidden ones and what other systems leave in archives.

    Raises:
        UserError: no such folder.
    """
    source = source.removeprefix("file://")
    if not is_remote(source):
        source = os.path.abspath(os.path.expanduser(source))  # parts are called in processes that may work in another folder
    begin = len(source.rstrip("/")) + 1
    return [entry for entry in Storage().list(source) if not any(_is_hidden(part) for part in entry.uri[begin:].split("/"))]


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or part == "__MACOSX"


def read_lines(uri: str) -> Iterator[Line]:
    r"""The lines of a UTF-8 file, decompressed if its name ends with ``.gz``. Lines end with ``\n`` or ``\r\n`` and with nothing else,
    as in the tools that made the files; a byte-order mark is left out.

    Raises:
        CutShort: the compressed file is damaged from here on. A line that is not whole is not given out.
        UserError: the file is missing, is UTF-16, or is compressed without saying so.
    """
    compressed = uri.endswith(".gz")
    number = 0
    with Storage().open(uri) as raw:
        file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if compressed else raw
        while True:
            try:
                data = file.readline()
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise CutShort(uri, number, str(error)) from None
            if not data:
                break
            if number == 0:
                data = _begin(uri, data)
            number += 1
            yield _line(number, data.removesuffix(b"\n").removesuffix(b"\r"))
    if compressed and number == 0 and Storage().size(uri) == 0:
        raise CutShort(uri, 0, "it has 0 bytes")


def _begin(uri: str, data: bytes) -> bytes:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(f"{uri} is UTF-16 text; make UTF-8 of it: iconv -f UTF-16 -t UTF-8")
    if data.startswith(b"\x1f\x8b"):
        raise UserError(f"{uri} is compressed by gzip; let its name end with .gz")
    return data.removeprefix(b"\xef\xbb\xbf")


def _line(number: int, data: bytes) -> Line:
    try:
        return Line(number, data.decode())
    except UnicodeDecodeError:
        return Line(number, "", NOT_UTF8)


def read_objects(uri: str) -> Iterator[tuple[Line, dict[str, Any]]]:
    """(line, json object) of each line of a ``.jsonl`` file that is not blank; the object is empty where the line has a fault.

    Raises:
        as :func:`read_lines`.
    """
    for line in read_lines(uri):
        if line.fault:
            yield line, {}
        elif line.text.strip():
            try:
                value = decode_json(line.text.encode(), "")
            except SampleError:
                yield Line(line.number, "", NOT_JSON), {}
                continue
            yield (line, value) if is_storable(value) else (Line(line.number, "", NOT_STORABLE), {})


def is_storable(value: object) -> bool:
    """Whether a value that was read from json can be written as json again: not so with ``"\ud800"`` and ``NaN``."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def share(total: int, index: int, of: int) -> range:
    """The part `index` of `total` items dealt to `of` parts: consecutive, and as many as the others or one more or less."""
    return range(total * index // of, total * (index + 1) // of)


def part_name(what: str, *facts: object) -> str:
    """Name of a part: what a person calls it, and a digest of everything else its output depends on."""
    return f"{what} {hashlib.blake2b(repr(facts).encode(), digest_size=8).hexdigest()}"
