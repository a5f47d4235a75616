"""Reads sentences in order, from text with one sentence a line or from json lines, in pieces that lose no neighbours."""

from collections.abc import Iterator
from dataclasses import dataclass

from raysys.shards.sample import clean_caption

from ..common.lines import CUT_SHORT, CutShort, read_lines, read_objects

ENDINGS = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz")
LONGEST = 256
"""Sentences in one piece at most."""
OVERLAP = 2
"""The last sentences of a full piece begin the next one, so that every three neighbours stand together in exactly one piece."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, or the border between two documents."""

    line: int
    """Of the file, 1 for the first."""
    text: str = ""
    """Empty for a border."""
    fault: str = ""
    """Why a line gave no sentence; it is a border, too: what stands around it are no neighbours."""


@dataclass(frozen=True)
class Piece:
    """Consecutive sentences of one document, or one line that gave none."""

    line: int
    """Of the first sentence."""
    sentences: tuple[str, ...] = ()
    fault: str = ""


def read_pieces(uri: str) -> Iterator[Piece]:
    """The documents of a file, cut into pieces of at most `LONGEST` sentences, and the lines that cannot be read.

    Raises:
        UserError: the file is missing or no UTF-8 text at all.
    """
    piece: list[Sentence] = []
    for sentence in read_sentences(uri):
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


def _piece(sentences: list[Sentence]) -> Piece:
    return Piece(sentences[0].line, tuple(sentence.text for sentence in sentences))


def read_sentences(uri: str) -> Iterator[Sentence]:
    """Sentences and borders of a file.

    In text a line is a sentence; a line that shows nothing is a border. In json lines the field `text` is one sentence (or a border),
    or a document by itself if there are line ends in it.
    """
    number = 0
    try:
        if uri.removesuffix(".gz").endswith(".txt"):
            for line in read_lines(uri):
                number = line.number
                yield Sentence(number, _cleaned(line.text), line.fault)
            return
        for line, value in read_objects(uri):
            number = line.number
            text = value.get("text")
            if line.fault or not isinstance(text, str):
                yield Sentence(number, fault=line.fault or "no field `text`")
                continue
            texts = text.split("\n")
            border = [""] if len(texts) > 1 else []
            yield from (Sentence(number, _cleaned(text)) for text in border + texts + border)
    except CutShort:
        yield Sentence(number + 1, fault=CUT_SHORT)


def _cleaned(text: str) -> str:
    return text.strip() if clean_caption(text) else ""
