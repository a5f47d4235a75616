"""Brings all rows of one picture together: every file of WIT is read once, and its rows are sorted into as many drawers as there are parts.

A file's drawers lie in one file of compressed blocks beside the source, with an index that tells which blocks belong to which
drawer; both are kept, so that an interrupted or repeated preparation reads WIT once.
"""

import hashlib
import itertools
import json
import tempfile
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raysys.errors import RunFailed
from raysys.storage import Storage, join

from .rows import Row, read_rows

BUFFER = 128 << 20
"""Bytes of rows held before they are written."""


@dataclass(frozen=True)
class Drawer:
    """The rows of one part that come from one file."""

    uri: str
    """Of the blocks."""
    blocks: tuple[tuple[int, int], ...]
    """(offset, size) of each, bytes."""
    digest: str
    """Of the rows."""

    def rows(self) -> Iterator[Row]:
        """In the order of the file."""
        storage = Storage()
        for offset, size in self.blocks:
            for line in zlib.decompress(storage.read(self.uri, offset, size)).splitlines():
                yield Row(*json.loads(line))


def picture_number(url: str) -> int:
    """80 bits that stand for a picture."""
    return int.from_bytes(hashlib.blake2b(url.encode(), digest_size=10).digest())


def sort_file(
    uri: str, folder: str, drawers: int, languages: Sequence[str], caption_columns: Sequence[str], stop: threading.Event
) -> list[Drawer]:
    """The drawers of one file; from `folder` if it was sorted before. `stop` ends it early.

    Rows without a picture go where their number leads them.

    Raises:
        UserError: the file is damaged or not WIT's, or `folder` cannot be written.
    """
    storage = Storage()
    size = storage.size(uri)
    settings = hashlib.blake2b(repr((size, drawers, sorted(languages), caption_columns)).encode(), digest_size=8).hexdigest()
    blocks = join(folder, f"{uri.rpartition('/')[2]}.{settings}.blocks")
    index = blocks.removesuffix(".blocks") + ".json"
    if not storage.exists(index):
        rows = itertools.takewhile(lambda row: not stop.is_set(), read_rows(uri, languages, caption_columns))
        with tempfile.NamedTemporaryFile(prefix="raysys-wit-") as file:
            found = _write(rows, drawers, file)
            if stop.is_set():
                raise RunFailed(f"{uri}: stopped")
            file.flush()
            storage.upload(file.name, blocks)
        storage.write(index, json.dumps(found).encode())  # last: it says that the blocks are whole
    return [Drawer(blocks, tuple(map(tuple, places)), digest) for places, digest in json.loads(storage.read(index))]


def _write(rows: Iterator[Row], drawers: int, file) -> list[tuple[list[tuple[int, int]], str]]:
    """(blocks, digest) of each drawer."""
    digests = [hashlib.blake2b(digest_size=16) for _ in range(drawers)]
    places: list[list[tuple[int, int]]] = [[] for _ in range(drawers)]
    held: defaultdict[int, list[bytes]] = defaultdict(list)

    def empty() -> None:
        for drawer, lines in sorted(held.items()):
            content = b"\n".join(lines)
            digests[drawer].update(content + b"\n")
            block = zlib.compress(content, 1)
            places[drawer].append((file.tell(), len(block)))
            file.write(block)
        held.clear()

    size = 0
    for row in rows:
        line = json.dumps(row).encode()
        held[(picture_number(row.url) if row.url else row.number) % drawers].append(line)
        size += len(line)
        if size > BUFFER:
            empty()
            size = 0
    empty()
    return [(its_places, digest.hexdigest()) for its_places, digest in zip(places, digests, strict=True)]
