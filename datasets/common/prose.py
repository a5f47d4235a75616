"""Running text: lines become paragraphs and documents, paragraphs become sentences."""

import itertools
import re
from collections.abc import Iterable, Iterator

import sentencex

from .lines import Line
from .pieces import Passage

QUOTES = '"“”„«»‹›'
_ITALICS = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
_NUMBERED = re.compile(r"(?:[^\W\d_]+ )?(?:[IVXLC]+|\d+)(?:[.:]?|[.:] .{0,60}\w)")
_ORDINAL = re.compile(r"(?<!\d)\d{1,2}\.")
_WITH_ORDINALS = frozenset(
    ("bs", "cs", "da", "de", "dsb", "et", "fi", "fo", "hr", "hsb", "hu", "is", "lb", "lt", "lv", "nb", "nn", "pl", "sk", "sl", "sr", "tr")
)
"""Languages that write "the 19th" as `19.`"""


def read_paragraphs(lines: Iterable[Line]) -> Iterator[Passage]:
    """Paragraphs and borders of a plain-text book, with the numbers of their first lines.

    A blank line ends a paragraph; line ends within it are spaces. A document (such as a chapter) ends at two or more blank lines, at a
    paragraph without letters and digits (`* * *`), and at a numbered heading on one line (`CHAPTER II`, `Chapter 1. In the Wood`,
    `3. Kapitel`, `IV.`), which is left out itself. So are titles: what stands at the head of a document on one line that ends with a
    letter or digit. Underscores around words, which stand for italics, are taken away.
    """
    held: list[str] = []
    first = blank = 0
    at_head = True
    for line in itertools.chain(lines, [Line(0, "")]):
        if stripped := line.text.strip():
            if blank >= 2 and not at_head:
                yield Passage(line.number)
                at_head = True
            first = first if held else line.number
            held.append(stripped)
            blank = 0
            continue
        if held:
            paragraph = _ITALICS.sub(r"\1", " ".join(" ".join(held).split()))
            if not any(map(str.isalnum, paragraph)) or (len(held) == 1 and _NUMBERED.fullmatch(paragraph)):
                yield Passage(first)
                at_head = True
            elif not (at_head and len(held) == 1 and paragraph[-1].isalnum()):
                yield Passage(first, paragraph)
                at_head = False
            held = []
        blank += 1
        if line.fault:
            yield Passage(line.number, fault=line.fault)
            at_head = True


def split_paragraphs(paragraphs: Iterable[Passage], language: str) -> Iterator[Passage]:
    """The sentences of paragraphs, each with the line its paragraph begins at; borders stay."""
    for paragraph in paragraphs:
        if paragraph.text:
            yield from (Passage(paragraph.line, sentence) for sentence in split(paragraph.text, language))
        else:
            yield paragraph


def split(text: str, language: str) -> list[str]:
    """The sentences of a paragraph, in order; together they are the text, spaces between them aside.

    Boundaries are those of sentencex, for a text without its quotation marks: with them it keeps a whole speech together. A sentence never
    begins with a small letter, nor after an ordinal number in languages that write it with a full stop (`19. Jahrhundert`).

    Args:
        language: BCP-47 tag; a language that sentencex has no rules for is split by those of a language near to it, or English.
    """
    kept = [place for place, character in enumerate(text) if character not in QUOTES]
    language = language.partition("-")[0]
    ends, seen = [], 0
    for part in _segments(language, "".join(text[place] for place in kept)):
        if shown := len(part.rstrip()):
            end = kept[seen + shown - 1] + 1
            while end < len(text) and text[end] in QUOTES:
                end += 1
            ends.append(end)
        seen += len(part)
    sentences: list[str] = []
    for begin, end in itertools.pairwise([0, *ends[:-1], len(text)]):
        sentence = text[begin:end].strip()
        if sentences and _continues(sentences[-1], sentence, language):
            sentences[-1] += " " + sentence
        elif sentence:
            sentences.append(sentence)
    return sentences


def _segments(language: str, text: str) -> list[str]:
    """What sentencex makes of `text`, with plain spaces: its rules for initials fail at the bytes of others.

    Where they fail at something else, the text is one sentence.
    """
    text = "".join(" " if character.isspace() and character != "\n" else character for character in text)
    try:
        parts: list[str] = sentencex.segment(language, text)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # by which code in Rust ends; it is no Exception
            raise
        return [text]
    return parts


def _continues(before: str, sentence: str, language: str) -> bool:
    """Whether `sentence` is no sentence of its own but goes on with the one before."""
    first = next(filter(str.isalnum, sentence), "")
    if not first or (first.islower() and first.title() != first):  # letters of scripts with one case only are their own title case
        return True
    return language in _WITH_ORDINALS and bool(_ORDINAL.fullmatch(before.rpartition(" ")[2]))
