"""Paragraphs in several languages: equal ones made one, and split such that nothing equal lies on two sides."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from raysys.shards.sample import clean_caption

from ..common.deal import lot
from ..common.prose import split

SPLITS = ("train", "validation", "test")
HELD_OUT = 0.04
"""Share of the documents to validate on, and to test on."""
LETTERS = 2
"""So many letters a text has at least: fewer are numbers and formulas."""

_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Paragraph:
    """One paragraph."""

    places: tuple[tuple[str, str], ...]
    """Where it stands: (document, place in it)."""
    texts: dict[str, str]
    """BCP-47 tag → text; `en` always, and at least one more."""


def comparable(text: str) -> str:
    """The words of a text without regard to case: texts for which it is the same say the same."""
    return " ".join(_WORDS.findall(text.casefold()))


def align(texts: Mapping[str, Mapping[tuple[str, str], str]]) -> list[Paragraph]:
    """One paragraph for every distinct English text that has a translation, in order of the documents.

    Where an English text stands in several places, each language's most frequent translation is taken, the first of equally frequent
    ones. What is as in English is not translated, and left out.

    Args:
        texts: BCP-47 tag, `en` among them → (document, place) → text.
    """
    places: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for place, text in texts["en"].items():
        if sum(map(str.isalpha, cleaned := clean_caption(text))) >= LETTERS:
            places[cleaned].append(place)
    paragraphs = []
    for english, its_places in places.items():
        found = {"en": english}
        for language, translations in texts.items():
            cleaned = (clean_caption(translations[place]) for place in its_places if place in translations)
            counts = Counter(text for text in cleaned if text and comparable(text) != comparable(english))
            if counts:
                found[language] = counts.most_common(1)[0][0]
        if len(found) > 1:
            paragraphs.append(Paragraph(tuple(its_places), found))
    return paragraphs


def divide(documents: Sequence[str], seed: int) -> dict[str, str]:
    """Document → split, by lot; dependent on `seed` and the documents alone."""
    held = lot(seed, "documents").sample(sorted(documents), 2 * round(HELD_OUT * len(documents)))
    return dict.fromkeys(documents, "train") | {name: SPLITS[1 + number % 2] for number, name in enumerate(held)}


def split_paragraphs(paragraphs: Sequence[Paragraph], seed: int) -> tuple[dict[str, list[Paragraph]], int]:
    """Split → paragraphs, and how many belong to none.

    A paragraph belongs to the first split of `SPLITS` that one of its documents is in, and keeps its places in those alone. Of those to
    validate or test on, those are left out that have a sentence, in whichever language, that stands in a split before: so no equal
    sentence lies on two sides.
    """
    side = divide(sorted({document for paragraph in paragraphs for document, _ in paragraph.places}), seed)
    splits: dict[str, list[Paragraph]] = {name: [] for name in SPLITS}
    for paragraph in paragraphs:
        name = min((side[document] for document, _ in paragraph.places), key=SPLITS.index)
        splits[name].append(replace(paragraph, places=tuple(place for place in paragraph.places if side[place[0]] == name)))
    known: set[tuple[str, str]] = set()
    for name, members in splits.items():
        sentences = [set(_sentences(paragraph)) for paragraph in members]
        if name != "train":
            kept = [number for number, its in enumerate(sentences) if known.isdisjoint(its)]
            splits[name], sentences = [members[number] for number in kept], [sentences[number] for number in kept]
        known.update(*sentences)
    for name, members in splits.items():
        lot(seed, "order", name).shuffle(members)
    return splits, len(paragraphs) - sum(map(len, splits.values()))


def _sentences(paragraph: Paragraph) -> Iterator[tuple[str, str]]:
    """(language, comparable sentence) of all texts."""
    for language, text in paragraph.texts.items():
        yield from ((language, words) for sentence in split(text, language) if (words := comparable(sentence)))
