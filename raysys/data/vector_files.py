"""Files of word vectors in the forms they are published in: word2vec's, text or binary, and GloVe's."""

import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from raysys.errors import UserError
from raysys.storage import Storage

_LONGEST_WORD = 4096  # bytes; where no word ends within so many, the file is of another form
_BLOCK = 2**20  # bytes that are read at a time


class VectorFile(NamedTuple):
    """Words and their vectors, in the file's order, which usually is that of frequency."""

    words: list[str]
    """M words"""
    vectors: np.ndarray
    """float32 [M, D]"""


def read_vectors(path: str, storage: Storage, most: int = 500_000) -> VectorFile:
    """The first `most` word vectors of a file; which form it has is seen from its first line and what follows.

    * word2vec, text: a line ``words size``, then a line ``word number number …`` for each word;
    * word2vec, binary: the same first line, then for each word its bytes, a space, and `size` little-endian float32;
    * GloVe: as word2vec's text, without the first line; words may hold spaces.

    A file whose name ends in ``.gz`` is unpacked. A word that comes a second time is left out.

    Args:
        path: local or ``s3://…``.
        storage: to read it from.
        most: words; published files hold millions, of which the last occur in no text that one meets.

    Raises:
        UserError: there is no such file, it is none of these forms, or it ends too early; names the line or word.
    """
    found: dict[str, np.ndarray] = {}
    with storage.open(path) as raw:
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if path.endswith(".gz") else raw
        try:
            for word, vector in _entries(stream, path, most):
                found.setdefault(word, vector)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise UserError(f"{path} is not a whole gzip file ({error}); fetch it again") from None
    if not found:
        raise UserError(f"{path} holds no word vectors")
    vectors = np.stack(list(found.values()))
    if len(wrong := np.flatnonzero(~np.isfinite(vectors).all(axis=1))):
        raise UserError(f"{path}: the vector of {list(found)[wrong[0]]!r} holds a number that is not finite")
    return VectorFile(list(found), vectors)


def _entries(stream: BinaryIO, path: str, most: int) -> Iterator[tuple[str, np.ndarray]]:
    first = stream.readline()
    header = first.split()
    if len(header) != 2 or not all(part.isdigit() for part in header):
        yield from _text(itertools.chain([first] if first else [], stream), path, len(header) - 1, most, first_line=1)
        return
    size, given = int(header[1]), 0
    wanted = min(int(header[0]), most)
    # The beginning of binary vectors is no line of as many numbers.
    second = stream.readline()
    if _parsed(second, size):
        entries = _text(itertools.chain([second], stream), path, size, wanted, first_line=2)
    else:
        entries = _binary(_Binary(second, stream), path, size, wanted)
    for entry in entries:
        given += 1
        yield entry
    if given < wanted:
        raise UserError(f"{path} ends after {given} of {int(header[0])} words: fetch it again")


def _text(lines: Iterable[bytes], path: str, size: int, most: int, first_line: int) -> Iterator[tuple[str, np.ndarray]]:
    for number, line in enumerate(itertools.islice(lines, most), first_line):
        entry = _parsed(line, size)
        if entry is None:
            raise UserError(f"{path}, line {number}: not a word and its {max(size, 1)} numbers, as in word2vec's or GloVe's files")
        yield entry


def _parsed(line: bytes, size: int) -> tuple[str, np.ndarray] | None:
    """Word and vector of a line of text; None where it is something else."""
    if size < 1:
        return None
    word, *numbers = line.rstrip(b"\r\n ").rsplit(b" ", size)  # from the right: a few words of GloVe's hold spaces
    if len(numbers) != size or not word:
        return None
    try:
        return word.decode("utf-8", "replace"), np.array(numbers, dtype=np.float32)
    except ValueError:
        return None


class _Binary:
    """A stream of which the `beginning` has been read already."""

    def __init__(self, beginning: bytes, stream: BinaryIO):
        self.buffer, self.at, self.stream = beginning, 0, stream

    def until_space(self) -> bytes:
        """What comes before the next space, and the end of the stream in want of one; the space is passed over."""
        while (end := self.buffer.find(b" ", self.at)) < 0 and len(self.buffer) - self.at < _LONGEST_WORD and self._more():
            pass
        end = end if end >= 0 else len(self.buffer)
        found = self.buffer[self.at : end]
        self.at = end + 1
        return found

    def read(self, size: int) -> bytes:
        """`size` bytes; fewer at the end."""
        while len(self.buffer) - self.at < size and self._more():
            pass
        found = self.buffer[self.at : self.at + size]
        self.at += size
        return found

    def _more(self) -> bool:
        more = self.stream.read(_BLOCK)
        self.buffer, self.at = self.buffer[self.at :] + more, 0
        return bool(more)


def _binary(stream: _Binary, path: str, size: int, count: int) -> Iterator[tuple[str, np.ndarray]]:
    for number in range(1, count + 1):
        word, data = stream.until_space(), stream.read(4 * size)
        if len(data) < 4 * size:
            raise UserError(f"{path} ends within word {number} of {count}, or is neither word2vec's text nor its binary form")
        yield word.lstrip(b"\n").decode("utf-8", "replace"), np.frombuffer(data, dtype="<f4")
