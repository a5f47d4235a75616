"""Concepts: the emoji that show a thing, and what each is called in every language."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from raysys.shards.languages import normalise_language

from .art import Art, code_point

Annotations = Mapping[str, Mapping[str, Sequence[str]]]

_NOT_PICTORIAL = {"Symbols", "Flags"}
_PAIRS_AND_FAMILIES = {"👪", "👫", "👬", "👭", "💏", "💑"}
_CLOCK_FACES = range(0x1F550, 0x1F568)
_LIST_SEPARATORS = {"ja": "、", "zh-Hans": "、", "zh-Hant": "、", "yue": "、", "ar": "، ", "fa": "، ", "ur": "، ", "ps": "، ", "sd": "، "}


@dataclass(frozen=True)
class Concept:
    """One emoji."""

    point: str
    """Hexadecimal code point; the concept's id."""
    emoji: str
    names: dict[str, str]
    """BCP-47 tag → short name."""
    keywords: dict[str, list[str]]
    """BCP-47 tag → search keywords, without the name."""


def is_pictorial(emoji: str, category: str | None) -> bool:
    """Whether an emoji shows a thing, a creature or a person: no symbols, flags, clock faces, families or joined sequences."""
    point = code_point(emoji)
    if point is None or category is None or category in _NOT_PICTORIAL:
        return False
    return int(point, 16) not in _CLOCK_FACES and emoji not in _PAIRS_AND_FAMILIES


def find_concepts(
    annotations: Mapping[str, Annotations], categories: Mapping[str, str], art: Art, required: Iterable[str]
) -> list[Concept]:
    """All pictorial emoji that have a name in every language of `required`, in CLDR's order.

    Args:
        annotations: CLDR locale → emoji → ``{"tts": [name], "default": [keywords]}``; must hold ``en``.
        categories: icon key → Unicode's group.
        art: the icon set that the keys of `categories` belong to.
        required: BCP-47 tags.
    """
    required = list(required)
    languages = {normalise_language(locale): entries for locale, entries in annotations.items()}
    concepts = []
    for emoji, english in languages["en"].items():
        point = code_point(emoji)
        key = art.find(point, english["tts"][0]) if point and english.get("tts") else None
        if point is None or key is None or not is_pictorial(emoji, categories.get(key)):
            continue
        entries = {language: table[emoji] for language, table in languages.items() if table.get(emoji, {}).get("tts")}
        if all(language in entries for language in required):
            names = {language: entry["tts"][0].strip() for language, entry in entries.items()}
            keywords = {
                language: [word for word in entry.get("default", ()) if word.casefold() != names[language].casefold()]
                for language, entry in entries.items()
            }
            concepts.append(Concept(point, emoji, names, keywords))
    return concepts


def caption(language: str, name: str, keywords: Sequence[str]) -> str:
    """A name and keywords as one caption."""
    return listed(language, [name, *keywords])


def listed(language: str, words: Sequence[str]) -> str:
    """Words in a row, as the language writes lists."""
    return _LIST_SEPARATORS.get(language, ", ").join(words)
