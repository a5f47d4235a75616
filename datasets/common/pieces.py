"""Ordered text on its way into samples: passages, borders of documents, and pieces that lose no neighbours."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LONGEST = 256
"""Sentences in one piece at most."""
OVERLAP = 2
"""The last sentences of a full piece begin the next one, so that every three neighbours stand together in exactly one piece."""


@dataclass(frozen=True)
class Passage:
    """A sentence or paragraph, or the border between two documents."""

    line: int
    """Of the file, 1 for the first."""
    text: str = ""
    """Empty for a border."""
    fault: str = ""
    """Why a line gave no text; it is a border, too: what stands around it are no neighbours."""


@dataclass(frozen=True)
class Piece:
    """Consecutive sentences of one document, or one line that gave none."""

    line: int
    """Of the first sentence."""
    sentences: tuple[str, ...] = ()
    fault: str = ""


def cut(sentences: Iterable[Passage]) -> Iterator[Piece]:
    """Documents as pieces of at most `LONGEST` sentences, and the lines that gave none."""
    piece: list[Passage] = []
    for sentence in sentences:
        if not sentence.text:
            if piece:
                yield _piece(piece)
            piece = []
            if sentence.fault:
                yield Piece(sentence.line, fault=sentence.fault)
            continue
        if len(piece) == LONGEST:
            yield _piece(piece)
            piece = piece[-OVERLAP:]
        piece.append(sentence)
    if piece:
        yield _piece(piece)


def _piece(sentences: list[Passage]) -> Piece:
    return Piece(sentences[0].line, tuple(sentence.text for sentence in sentences))
