"""Books of a compressed SWORD module (driver zText, OSIS markup), without the SWORD library."""

import html
import re
import struct
import zlib
from collections.abc import Iterator, Mapping

from ..common.pieces import Passage

FOLDER = "usr/share/sword/modules/texts/ztext/engWEB2015eb"
TESTAMENTS = ("ot", "nt")

_BLOCK = struct.Struct("<III")
_BOOK = re.compile(r'<div\b[^>]*\bsID="(\w+)" type="book"/>(.*?)<div\b[^>]*\beID="\1"', re.DOTALL)
"""From its milestone at the begin to that at the end."""
_NAME = re.compile(r'<milestone n="([^"]*)"')
_APART = re.compile(r"<(note|title|speaker)\b.*?</\1>", re.DOTALL)
"""What is no running text."""
_CHAPTER = re.compile(r"<chapter\b[^>]*\bsID=[^>]*>")
_PARAGRAPH = re.compile(r'<div\b[^>]*\btype="x-p"[^>]*>')
_TAG = re.compile(r"<[^>]*>")


def read_books(files: Mapping[str, bytes]) -> Iterator[tuple[str, Iterator[Passage]]]:
    """(name, paragraphs and borders of chapters) of each book of the Bible.

    Args:
        files: for each testament ``.bzs``, a table of (offset, compressed size, size) as 32-bit little-endian numbers, and ``.bzz`` with
            the deflated blocks, which follow one another in the order of the text. What stands outside of the books (prefaces, a
            glossary) is passed over.
    """
    for testament in TESTAMENTS:
        data = files[f"{testament}.bzz"]
        blocks = (zlib.decompress(data[offset : offset + size]) for offset, size, _ in _BLOCK.iter_unpack(files[f"{testament}.bzs"]))
        for _, book in _BOOK.findall(b"".join(blocks).decode()):
            name = _NAME.search(book)
            yield html.unescape(name[1]) if name else "", read_book(book)


def read_book(text: str) -> Iterator[Passage]:
    """Paragraphs and borders of chapters."""
    for chapter in _CHAPTER.split(_APART.sub(" ", text)):
        yield Passage(0)
        for paragraph in _PARAGRAPH.split(chapter):
            if shown := " ".join(html.unescape(_TAG.sub("", paragraph)).split()):
                yield Passage(0, shown)
