"""Reading a dictionary in the format of dictd, and what FreeDict's dictionaries write into it."""

import re
import zlib
from collections.abc import Iterator

from raysys.errors import UserError

_DIGITS = {digit: value for value, digit in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
_ABOUT = "00database"
"""Entries that describe the dictionary itself begin with it."""

_HEADWORD_ENDS = re.compile(r"\s+[/<(\[]")
"""Before pronunciation, part of speech, inflected forms or remarks."""
_SENSE = re.compile(r"\s*\d+\.\s+(.*)")
_NOTES = re.compile(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
"""Grammar, remarks, fields and regions of use, references to other entries."""


def read_entries(index: bytes, data: bytes, where: str) -> Iterator[str]:
    """The text of every entry, in the order of the index.

    The format: a line of the index is headword, tab, offset, tab, size, the numbers in base 64 (digits `A–Za–z0–9+/`, most
    significant first); they count bytes of the text, which is gzip (`.dict.dz`), in UTF-8.

    Raises:
        UserError: not this format; `where` says of which dictionary.
    """
    try:
        text = zlib.decompress(data, wbits=31)
        for line in index.decode("utf-8").splitlines():
            headword, offset, size = line.split("\t")[:3]
            if not headword.startswith(_ABOUT):
                start, length = _number(offset), _number(size)
                if start + length > len(text):
                    raise ValueError(f"the entry {headword!r} lies behind the end of the text")
                yield text[start : start + length].decode("utf-8")
    except (ValueError, KeyError, zlib.error) as error:
        raise UserError(f"{where} is not a dictionary in the format of dictd: {error}") from None


def _number(digits: str) -> int:
    value = 0
    for digit in digits:
        value = value * 64 + _DIGITS[digit]
    return value


def translations(entry: str) -> Iterator[tuple[str, str]]:
    """(headword, translation) pairs of an entry as FreeDict writes it; either may be several words.

    The first line is the headword, then pronunciation and grammar. Translations stand in the lines `1. …`, `2. …`, one for each
    sense, or, where no line is numbered, in the next one that is not blank; they are separated by commas, semicolons or colons.
    What follows them (definitions, examples, synonyms) is not read, and notes in brackets are taken out.
    """
    first, *lines = entry.strip("\n").split("\n")
    headword = _HEADWORD_ENDS.split(first.strip())[0]
    senses = [match[1] for line in lines if (match := _SENSE.fullmatch(line))]
    senses = senses or [line for line in lines if line.strip()][:1]
    for sense in senses:
        for translation in re.split(r"[,;:]", _without_notes(sense)):
            if translation := translation.strip().removesuffix(".").strip():
                yield headword, translation


def _without_notes(text: str) -> str:
    """`text` without anything in brackets, innermost first."""
    while (shorter := _NOTES.sub(" ", text)) != text:
        text = shorter
    return text
