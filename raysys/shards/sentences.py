"""Ordered sentences: what a sample of running text holds, and how many words a sentence has.

Such a sample is a ``.json`` member of the form ``{"sentences": ["…", "…"], "language": "en", …free fields…}``: a piece of one document.
The last two sentences of a full piece are the first two of the next one.
"""

import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

import regex

from raysys.shards.languages import normalise_language
from raysys.shards.sample import SampleError, clean_caption, kind_of

FIELD = "sentences"

MOST_WORDS = 32_767
"""Longer sentences count as this long: the numbers are kept as int16."""

UNPARTED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
"""Scripts whose words no space parts, for a class of a regular expression."""
_WORD = regex.compile(rf"[{UNPARTED}]\p{{M}}*|(?:(?![{UNPARTED}])[\p{{L}}\p{{M}}])+|\p{{N}}+|[^\s\p{{L}}\p{{M}}\p{{N}}\p{{C}}]")
_INVISIBLE = regex.compile("[\xad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_SURROGATE = regex.compile("[\ud800-\udfff]")
_ASCII_WORD = regex.compile(r"[A-Za-z]+|[0-9]+|[!-/:-@\[-`{-~]")


class Sentences(NamedTuple):
    """Consecutive sentences of one document."""

    language: str
    """BCP-47, normalised."""
    sentences: list[str]
    """In order, cleaned by :func:`raysys.shards.sample.clean_caption`; one that shows nothing is an empty string, as it parts others."""


def read_sentences(fields: Mapping[str, Any], where: str = "") -> Sentences:
    """The sentences of a sample.

    Args:
        fields: of its ``.json`` member.
        where: how errors call the sample (shard and key).

    Raises:
        SampleError: `sentences` is no list of texts, or `language` is missing or names no language.
    """
    stored, language = fields.get(FIELD), fields.get("language")
    if not isinstance(stored, list):
        raise SampleError(where, f"{FIELD!r} is {kind_of(stored)} where a list of sentences was expected", "json", "text")
    for number, sentence in enumerate(stored, 1):
        if not isinstance(sentence, str):
            raise SampleError(where, f"its sentence {number} is {kind_of(sentence)} where text was expected", "json", "text")
        if not sentence.isascii() and _SURROGATE.search(sentence):
            raise SampleError(where, f"its sentence {number} holds half a surrogate pair, which is no character", "json", "text")
    if not isinstance(language, str):
        raise SampleError(
            where, f"the language of its sentences, 'language', is {kind_of(language)} where text was expected", "json", "text"
        )
    try:
        return Sentences(normalise_language(language), [clean_caption(sentence) for sentence in stored])
    except ValueError as error:
        raise SampleError(where, str(error), "json", "text") from None


def count_words(sentence: str) -> int:
    """Words of a sentence, at most `MOST_WORDS`, as :mod:`raysys.data.word_tokenizer` parts them: runs of letters and marks, runs of
    digits, other signs one by one; in scripts without spaces between words, every letter."""
    if sentence.isascii():
        return min(len(_ASCII_WORD.findall(sentence)), MOST_WORDS)
    return min(len(_WORD.findall(unicodedata.normalize("NFKC", _INVISIBLE.sub("", sentence)))), MOST_WORDS)
