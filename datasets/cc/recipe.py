"""Conceptual Captions (CC3M, CC12M): pictures of the web with the alternative texts of their pages, cleaned."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from raysys.errors import UserError
from raysys.shards.former import FormerSample
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample, clean_caption
from raysys.storage import Storage

from ..common.described import not_found
from ..common.download import Limits
from ..common.lines import find_files, part_name
from ..common.web_pictures import WebPicture, default_limits, fetch_all

SOURCE = (
    "Expected are the lists of addresses and captions as Google publishes them: Train_GCC-training.tsv and "
    "Validation_GCC-1.1.0-Validation.tsv (CC3M), or cc12m.tsv; the pictures are fetched from the web."
)
LANGUAGES = ("en",)
AVAILABLE = LANGUAGES

PIECE = 8 << 20
"""Bytes of a list read at once."""


@dataclass(frozen=True)
class Range:
    """Some consecutive lines of a list."""

    begin: int
    end: int
    """Bytes."""
    first_line: int
    """1 for the first line of the list."""
    digest: str
    """Of the bytes."""


@dataclass(frozen=True)
class Captions:
    """A part of one list."""

    name: str
    split: str
    uri: str
    url_column: int
    """0 or 1; the caption is in the other one."""
    lines: Range
    limits: Limits

    def __call__(self) -> Iterator[Sample | Skipped]:
        return self.again({})

    def again(self, former: Mapping[str, FormerSample]) -> Iterator[Sample | Skipped]:
        return fetch_all(self.split, self._records(), self.limits, former)

    def _records(self) -> Iterator[WebPicture | Skipped]:
        stem = re.sub(r"[^a-z0-9]+", "-", self.uri.rpartition("/")[2].removesuffix(".tsv").lower()).strip("-")
        for number, line in enumerate(_read(self.uri, self.lines), self.lines.first_line):
            where = f"{self.uri} line {number}"
            try:
                cells = line.decode().removesuffix("\r").split("\t")
            except UnicodeDecodeError:
                yield Skipped("not UTF-8", where)
                continue
            if len(cells) != 2:
                yield Skipped("row is malformed", f"{where} has {len(cells)} columns")
            elif not clean_caption(caption := cells[1 - self.url_column]):
                yield Skipped("no caption", where)
            else:
                url = cells[self.url_column].strip()
                metadata = {"captions": {"en": [caption.strip()]}, "alignment": "weak", "source": stem, "url": url}
                yield WebPicture(f"{stem}-{number:08d}", url, metadata, where)


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """Split → parts: `train` and `validation` (lists whose names say so), each part some consecutive lines. `seed` plays no part.

    Raises:
        UserError: no list, two lists of one split, or one in which the addresses are not to be found.
    """
    lists: dict[str, str] = {}
    for uri in (entry.uri for entry in find_files(source) if entry.uri.endswith(".tsv")):
        split = "validation" if "validation" in uri.rpartition("/")[2].lower() else "train"
        if split in lists:
            raise UserError(f"--source: {lists[split]} and {uri} are both lists of the split {split}; prepare them one by one, apart")
        lists[split] = uri
    if not lists:
        raise not_found(source, "list (.tsv; unpack it if it is compressed)", SOURCE)
    limits = default_limits()
    found: dict[str, list[Part]] = {}
    for split, uri in sorted(lists.items()):
        column = find_url_column(uri)
        found[split] = [
            Captions(part_name(f"cc {split} {number}", lines, column, limits.longest_side), split, uri, column, lines, limits)
            for number, lines in enumerate(divide(uri, shards))
        ]
    return found


def find_url_column(uri: str) -> int:
    """Which of the two columns of a list holds web addresses: CC3M has them second, CC12M first.

    Raises:
        UserError: neither does, or one cannot tell.
    """
    lines = Storage().read(uri, 0, min(Storage().size(uri), 1 << 16)).decode("utf-8", "replace").splitlines()[:100]
    rows = [cells for line in lines if len(cells := line.split("\t")) == 2]
    counts = [sum(cells[column].startswith(("http://", "https://")) for cells in rows) for column in (0, 1)]
    if counts[0] == counts[1]:
        shown = lines[0][:100] if lines else ""
        raise UserError(f"{uri}: of its two columns one should hold web addresses; its first line is {shown!r}. {SOURCE}")
    return 0 if counts[0] > counts[1] else 1


def divide(uri: str, shards: int) -> list[Range]:
    """Cut a list at ends of lines into at most `shards` ranges of about equal size; it is read once, for the digests."""
    storage = Storage()
    size, ranges, begin, line = storage.size(uri), [], 0, 1
    with storage.open(uri) as file:
        for number in range(shards):
            target = size * (number + 1) // shards
            digest, position, breaks, last = hashlib.blake2b(digest_size=16), begin, 0, b"\n"
            while position < target:
                data = file.read(min(PIECE, target - position))
                if not data:
                    raise UserError(f"{uri} became shorter while it was read")
                position += len(data)
                breaks += data.count(b"\n")
                digest.update(data)
                last = data[-1:]
            if last != b"\n":
                rest = file.readline()
                position += len(rest)
                breaks += rest.endswith(b"\n")
                digest.update(rest)
            if position > begin:
                ranges.append(Range(begin, position, line, digest.hexdigest()))
            begin, line = position, line + breaks
    return ranges


def _read(uri: str, lines: Range) -> Iterator[bytes]:
    storage = Storage()
    rest = b""
    for begin in range(lines.begin, lines.end, PIECE):
        *whole, rest = (rest + storage.read(uri, begin, min(PIECE, lines.end - begin))).split(b"\n")
        yield from whole
    if rest:
        yield rest
