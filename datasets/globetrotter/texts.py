"""Reading texts, and which of their captions say what another split says too."""

import hashlib
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from raysys.errors import RunFailed, UserError
from raysys.shards.sample import clean_caption
from raysys.shards.tasks import call_all
from raysys.storage import Storage, join

from ..common.lines import NOT_UTF8, Line
from .splits import Record

Place = tuple[int, int]
"""(record of a part, line of its texts), both from 0."""


class UnreadableText(Exception):
    """A text that cannot be read; `cause` is one of few, `detail` says more."""

    def __init__(self, cause: str, detail: str):
        super().__init__(f"{cause}: {detail}")
        self.cause, self.detail = cause, detail


def read_text(storage: Storage, uri: str) -> list[Line]:
    """The lines of a text, as :func:`raysys_datasets.common.lines.read_lines` gives them, with a door to the storage that stays open.

    Raises:
        UnreadableText: it is missing, or no UTF-8 from its first bytes on.
    """
    try:
        data = storage.read(uri)
    except UserError as error:
        raise UnreadableText("text missing", str(error)) from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableText("text is UTF-16", uri)
    lines = data.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n") if data else []
    return [_line(number, line.removesuffix(b"\r")) for number, line in enumerate(lines, 1)]


def _line(number: int, data: bytes) -> Line:
    try:
        return Line(number, data.decode())
    except UnicodeDecodeError:
        return Line(number, "", NOT_UTF8)


class Sentences(NamedTuple):
    """What the records of one part say."""

    content: str
    """Digest of all their texts and translations, readable or not."""
    digests: np.ndarray
    """uint64 [n], of the captions as :func:`raysys.shards.sample.clean_caption` leaves them, in any language."""
    places: np.ndarray
    """int64 [n, 2]: record and line of each."""


def read_sentences(source: str, records: Sequence[Record], stop: threading.Event) -> Sentences:
    """Read everything that a part will be made of; `stop` ends it early."""
    storage, content = Storage(), hashlib.blake2b(digest_size=8)
    digests: list[int] = []
    places: list[Place] = []
    for number, record in enumerate(records):
        if stop.is_set():
            raise RunFailed("stopped")
        for index, (_, path) in enumerate(record.texts + record.translations):
            try:
                lines = read_text(storage, join(source, path))
            except UnreadableText as error:
                content.update(repr(error.cause).encode())
                continue
            content.update(repr(lines).encode())
            if index >= len(record.texts):
                continue
            for line in lines:
                if caption := clean_caption(line.text):
                    digests.append(int.from_bytes(hashlib.blake2b(caption.encode(), digest_size=8).digest()))
                    places.append((number, line.number - 1))
    return Sentences(content.hexdigest(), np.array(digests, dtype=np.uint64), np.array(places, dtype=np.int64).reshape(-1, 2))


def read_all(source: str, parts: Sequence[Sequence[Record]]) -> list[Sentences]:
    """:func:`read_sentences` of many parts, in parallel; in their order."""
    read = dict(call_all(read_sentences, [(source, records) for records in parts]))
    return [read[number] for number in range(len(parts))]


def said_in(sentences: Sentences, held_out: np.ndarray) -> list[Place]:
    """Where a part says one of the sentences `held_out` (uint64 [n]), in order."""
    return [(int(record), int(line)) for record, line in sentences.places[np.isin(sentences.digests, held_out)]]
