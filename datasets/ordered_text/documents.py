"""Reads sentences in order: text with one sentence a line, running text, or json lines of either."""

from collections.abc import Iterator

from raysys.shards.sample import clean_caption

from ..common.lines import CUT_SHORT, CutShort, Line, read_lines, read_objects
from ..common.pieces import Passage, Piece, cut
from ..common.prose import read_paragraphs, split_paragraphs

ENDINGS = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz")


def read_pieces(uri: str, prose: str = "") -> Iterator[Piece]:
    """The documents of a file, cut into pieces, and the lines that cannot be read.

    Args:
        prose: the language of running text, which is divided into sentences here; empty for text that is divided already.

    Raises:
        UserError: the file is missing or no UTF-8 text at all.
    """
    is_text = uri.removesuffix(".gz").endswith(".txt")
    reader = _read_lines(uri, prose) if is_text else _read_objects(uri, prose)
    return cut(Passage(passage.line, _cleaned(passage.text), passage.fault) for passage in reader)


def _read_lines(uri: str, prose: str) -> Iterator[Passage]:
    """A line is a sentence, and one that shows nothing a border; or the lines are running text."""
    last = 0

    def lines() -> Iterator[Line]:
        nonlocal last
        for line in read_lines(uri):
            last = line.number
            yield line

    try:
        if prose:
            yield from split_paragraphs(read_paragraphs(lines()), prose)
        else:
            yield from (Passage(line.number, line.text, line.fault) for line in lines())
    except CutShort:
        yield Passage(last + 1, fault=CUT_SHORT)


def _read_objects(uri: str, prose: str) -> Iterator[Passage]:
    """The field `text` of a json line is one sentence (or a border), or a document by itself if there are line ends in it; running text is
    a document in any case."""
    number = 0
    try:
        for line, value in read_objects(uri):
            number = line.number
            text = value.get("text")
            if line.fault or not isinstance(text, str):
                yield Passage(number, fault=line.fault or "no field `text`")
                continue
            lines = text.split("\n")
            border = [Passage(number)] if prose or len(lines) > 1 else []
            yield from border
            if prose:
                paragraphs = read_paragraphs(Line(place, text) for place, text in enumerate(lines, 1))
                yield from split_paragraphs((Passage(number, paragraph.text) for paragraph in paragraphs), prose)
            else:
                yield from (Passage(number, text) for text in lines)
            yield from border
    except CutShort:
        yield Passage(number + 1, fault=CUT_SHORT)


def _cleaned(text: str) -> str:
    return text.strip() if clean_caption(text) else ""
