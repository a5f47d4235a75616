"""Who is where: concepts to splits, languages to images."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..common.deal import LanguageDeal, choose_groups, lot
from .concepts import Concept, caption, listed

UNSEEN = 160
"""Concepts kept out of training."""

MOST_KEYWORDS = 3
MOST_PARAPHRASES = 4


@dataclass(frozen=True)
class Item:
    """One sample of a split, before its picture is looked up."""

    split: str
    point: str
    style: str
    captions: dict[str, list[str]]
    trained_languages: list[str] | None = None
    """In `test-seen`: the languages in which this concept had an image to train on."""


def plan(
    concepts: Sequence[Concept],
    groups: Sequence[Sequence[str]],
    drawn: Mapping[str, Collection[str]],
    styles: tuple[Sequence[str], str, str],
    languages: Sequence[str],
    seed: int,
    multilingual: bool = False,
) -> list[Item]:
    """Split the concepts and give every image its captions; split after split.

    Which concepts are seen depends on `seed` alone, not on `languages`; which language an image speaks, on nothing but these two.

    Args:
        concepts: all concepts.
        groups: their concept groups, as lists of code points.
        drawn: style → code points it has a picture of.
        styles: (training styles, validation style, test style).
        languages: BCP-47 tags to use.
        seed: of every draw.
        multilingual: whether images to train and validate on have, beside the name in their own language, keywords in all others:
            words for the same thing, but no translations. Names of unseen concepts are no keywords then.
    """
    training_styles, validation_style, test_style = styles
    testable = [list(group) for group in groups if all(point in drawn[test_style] for point in group)]
    unseen = {point for group in choose_groups(testable, UNSEEN, lot(seed, "unseen")) for point in group}
    seen = [concept for concept in concepts if concept.point not in unseen]
    if multilingual:
        seen = without_names(seen, [concept for concept in concepts if concept.point in unseen])

    training, trained = _training(seen, drawn, training_styles, languages, seed)
    validation = _validation(seen, drawn[validation_style], validation_style, languages, trained, seed)
    if multilingual:
        by_point = {concept.point: concept for concept in seen}
        training, validation = (
            [add_keywords(item, by_point[item.point], languages, seed) for item in items] for items in (training, validation)
        )
    test_seen, test_unseen = [], []
    for concept in concepts:
        names = {language: [concept.names[language]] for language in languages if language in concept.names}
        if concept.point in drawn[test_style] and names:
            if concept.point in unseen:
                test_unseen.append(Item("test-unseen", concept.point, test_style, names))
            elif trained.get(concept.point):
                test_seen.append(Item("test-seen", concept.point, test_style, names, trained[concept.point]))
    return training + validation + test_seen + test_unseen


def _training(
    seen: Sequence[Concept], drawn: Mapping[str, Collection[str]], styles: Sequence[str], languages: Sequence[str], seed: int
) -> tuple[list[Item], dict[str, list[str]]]:
    """Items to train on, in random order, and the languages each concept is trained in (in the order of `languages`)."""
    deal = LanguageDeal(languages, lot(seed, "languages"))
    order = list(seen)
    lot(seed, "order").shuffle(order)
    items, trained = [], {}
    for concept in order:
        its_styles = [style for style in styles if concept.point in drawn[style]]
        dealt = deal.deal(len(its_styles), [language for language in languages if language in concept.names])
        trained[concept.point] = [language for language in languages if language in dealt]
        for style, language in zip(its_styles, dealt, strict=False):
            texts = _training_captions(concept, language, lot(seed, "caption", concept.point, style))
            items.append(Item("train", concept.point, style, {language: texts}))
    lot(seed, "train").shuffle(items)
    return items, trained


def _training_captions(concept: Concept, language: str, draw) -> list[str]:
    """The name, and the name with one, two and three keywords, as many as there are: training draws one in each epoch."""
    keywords, name = concept.keywords[language], concept.names[language]
    return [caption(language, name, draw.sample(keywords, count)) for count in range(min(MOST_KEYWORDS, len(keywords)) + 1)]


def paraphrases(concept: Concept, language: str, seed: int) -> list[str]:
    """Keywords of a concept without its name, in up to `MOST_PARAPHRASES` captions of one or two: other words for the same picture."""
    keywords = concept.keywords.get(language, ())
    drawn = lot(seed, "paraphrases", concept.point, language).sample(keywords, min(len(keywords), 2 * MOST_PARAPHRASES))
    return [listed(language, drawn[start : start + 2]) for start in range(0, len(drawn), 2)]


def without_names(concepts: Iterable[Concept], unseen: Iterable[Concept]) -> list[Concept]:
    """Concepts without those keywords that are the name of an unseen one."""
    names = {(language, name.casefold()) for concept in unseen for language, name in concept.names.items()}
    return [
        replace(
            concept,
            keywords={
                language: [word for word in words if (language, word.casefold()) not in names]
                for language, words in concept.keywords.items()
            },
        )
        for concept in concepts
    ]


def add_keywords(item: Item, concept: Concept, languages: Sequence[str], seed: int) -> Item:
    """An item with captions in all of `languages` that have keywords: its own as they were, keywords alone in the others."""
    captions = {language: item.captions.get(language) or paraphrases(concept, language, seed) for language in languages}
    return replace(item, captions={language: texts for language, texts in captions.items() if texts})


def _validation(
    seen: Sequence[Concept], points: Collection[str], style: str, languages: Sequence[str], trained: Mapping[str, list[str]], seed: int
) -> list[Item]:
    """One image per seen concept, in one language it was not trained in (in any, where it was trained in all)."""
    deal = LanguageDeal(languages, lot(seed, "validation"))
    items = []
    for concept in seen:
        if concept.point in points:
            named = [language for language in languages if language in concept.names]
            untrained = [language for language in named if language not in trained[concept.point]]
            for language in deal.deal(1, untrained or named):
                items.append(Item("validation", concept.point, style, {language: [concept.names[language]]}))
    lot(seed, "validation order").shuffle(items)
    return items
