"""Jane Austen's novels as the R package janeaustenr stores them: character vectors, a line of print each."""

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import rdata

from ..common.lines import Line
from ..common.pieces import Passage
from ..common.prose import read_paragraphs

FOLDER = "usr/lib/R/site-library/janeaustenr/data"
INDEX, DATA = "Rdata.rdx", "Rdata.rdb"

TITLES = {
    "sensesensibility": "Sense and Sensibility",
    "prideprejudice": "Pride and Prejudice",
    "mansfieldpark": "Mansfield Park",
    "emma": "Emma",
    "northangerabbey": "Northanger Abbey",
    "persuasion": "Persuasion",
}
"""Name in the package → title, in order of publication."""

_SENTENCE_DASH = re.compile(r'(?<=[.!?"])--(?=["A-Z])')
"""A dash that only parts two sentences."""


def read_novels(files: Mapping[str, bytes]) -> Iterator[tuple[str, Iterator[Passage]]]:
    """(title, paragraphs and borders of chapters) of each novel.

    Args:
        files: the package's data: an index of (offset, size) in a file of values, each a 4-byte length and R's serialisation, deflated
            (R Internals, "Lazy loading").
    """
    index = _value(files[INDEX])["variables"]
    for name, title in TITLES.items():
        offset, size = map(int, index[name])
        lines = _value(zlib.decompress(files[DATA][offset + 4 : offset + size]))
        yield title, read_paragraphs(Line(number, tidy(str(line))) for number, line in enumerate(lines, 1))


def _value(data: bytes) -> Any:
    return rdata.conversion.convert(rdata.parser.parse_data(data, extension=".rds"))


def tidy(line: str) -> str:
    """Dashes as signs of their own; none where it only parts two sentences."""
    return _SENTENCE_DASH.sub(" ", line).replace("--", "—")
