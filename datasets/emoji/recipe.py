"""Emoji: one thing drawn by eight hands and named in a hundred languages."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from raysys.errors import UserError
from raysys.shards.sample import Sample, clean_caption

from ..common.archives import to_stderr
from ..common.groups import Groups
from ..common.pictures import ENCODING, alike, encode, thumbnail
from . import sources
from .art import Art, IconSet, RasterSet
from .concepts import Concept, find_concepts
from .plan import paraphrases, plan

_AVAILABLE = """
af ak am ar as az ba be bg bn bs ca chr cs cv cy da de dsb el en es et eu fa fi fil fo fr ga gd gl gu ha he hi hr hsb hu hy
id ig is it ja jv ka kk km kn ko kok ky lo lt lv mk ml mn mr ms my nb ne nl om or pa pcm pl ps pt qu rm ro ru sd shn si sk sl
so sq sr sv sw ta te th ti tk to tr uk ur uz vi yo yue zh-Hans zh-Hant zu
"""

LANGUAGES = ("en", "de", "fr", "es", "ru", "cs", "id", "tr", "hi", "ja")
"""Languages taken when none are asked for. A concept must have a name in each of them."""

AVAILABLE = tuple(_AVAILABLE.split())
"""Languages with names for at least 95 % of the concepts."""

TAKES_MULTILINGUAL = True
"""Whether pictures to train on can have texts in all languages at once."""

PICTURE_SIZE = 128
"""Pixels, both sides."""

SAME_DRAWING = 0.007
"""Two thumbnails that differ by less (`alike`) are one drawing. Measured: such pairs lie below .0045, all others above .0095."""

_CLDR_LOCALES = {"nb": "no", "zh-Hans": "zh"}


def samples(cache: Path, *, seed: int, languages: Sequence[str], count: int | None = None, multilingual: bool = False) -> Iterator[Sample]:
    """Fetch what is missing from `cache`, then yield every sample; the same for the same seed and languages.

    Splits: `train` (six styles, seen concepts, one language per image; names in the others lie apart, in `translations`),
    `validation` (Fluent flat, seen concepts, one language they were not trained in), `test-seen` and `test-unseen` (Fluent 3D, all
    languages). With `multilingual`, images of `train` and `validation` have keywords in all other languages as well, weakly aligned.

    Raises:
        UserError: the network cannot be reached, an archive is not the right one, or `count` is given.
    """
    if count is not None:
        raise UserError("the size of the data set 'emoji' is fixed by its sources; --samples is for 'shapes'")
    concepts, art = load(cache, languages)
    pictures, groups = draw(concepts, art)
    group_of = {point: min(group) for group in groups for point in group}
    drawn: dict[str, set[str]] = {style: set() for style in art}
    for style, point in pictures:
        drawn[style].add(point)
    styles = ([style.name for style in sources.TRAINING_STYLES], sources.VALIDATION_STYLE.name, sources.TEST_STYLE.name)
    by_name = {style.name: style for style in sources.STYLES}
    named = {concept.point: concept for concept in concepts}
    for item in plan(concepts, groups, drawn, styles, languages, seed, multilingual):
        weak = multilingual and item.split in ("train", "validation")
        alignment = "weak" if weak else "strict"
        metadata: dict[str, Any] = {"captions": item.captions, "alignment": alignment, "group": group_of[item.point]}
        if item.trained_languages is not None:
            metadata["trained_languages"] = item.trained_languages
        if item.split == "train" and not weak:
            names = named[item.point].names
            absent = [language for language in languages if language in names and language not in item.captions]
            metadata["translations"] = {language: [names[language]] for language in absent}
        if not weak:
            others = {language: paraphrases(named[item.point], language, seed) for language in item.captions}
            metadata["paraphrases"] = {language: texts for language, texts in others.items() if texts}
        metadata |= {"emoji": named[item.point].emoji, "style": item.style, "licence": by_name[item.style].licence}
        metadata["source"] = by_name[item.style].archive.name
        yield Sample(item.split, f"{item.point}-{item.style}", pictures[item.style, item.point], ENCODING, metadata)


def load(cache: Path, languages: Sequence[str]) -> tuple[list[Concept], dict[str, Art]]:
    """The concepts with their names in `languages` (and in the default ones), and the art of every style, in order of `STYLES`."""
    archives = sources.fetch(cache, to_stderr)
    locales = [_CLDR_LOCALES.get(language, language) for language in dict.fromkeys([*LANGUAGES, *languages])]
    names = sources.read_names(archives[sources.NAMES.name], locales)
    sets = {style.name: IconSet(archives[style.archive.name]) for style in sources.STYLES if style is not sources.TEST_STYLE}
    main = sets[sources.TRAINING_STYLES[0].name]
    concepts = find_concepts(names, main.categories, main, LANGUAGES)
    validation = sets[sources.VALIDATION_STYLE.name]
    concepts = [concept for concept in concepts if validation.find(concept.point, concept.names["en"])]
    test = RasterSet(archives[sources.TEST_STYLE.archive.name], [concept.point for concept in concepts])
    return concepts, {**sets, sources.TEST_STYLE.name: test}


def draw(concepts: Sequence[Concept], art: dict[str, Art]) -> tuple[dict[tuple[str, str], bytes], list[list[str]]]:
    """Draw every concept in every style that has it.

    Returns:
        (style, code point) → encoded picture, and the concept groups as lists of code points: concepts with an equal name in
        some language, or drawn alike by one hand (the same drawing, mirrored or turned), are one group.
    """
    jobs = [
        (style, concept.point, key)
        for style, pictures in art.items()
        for concept in concepts
        if (key := pictures.find(concept.point, concept.names["en"]))
    ]

    def work(job: tuple[str, str, str]) -> tuple[bytes, np.ndarray]:
        style, _, key = job
        image = art[style].draw(key, PICTURE_SIZE)
        return encode(image), thumbnail(image)

    to_stderr(f"drawing {len(jobs)} pictures")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(work, jobs))
    drawings: dict[str, list[tuple[str, np.ndarray]]] = defaultdict(list)
    for (style, point, _), (_, small) in zip(jobs, results, strict=True):
        drawings[style].append((point, small))
    encoded = {(style, point): data for (style, point, _), (data, _) in zip(jobs, results, strict=True)}
    return encoded, group_concepts(concepts, drawings)


def group_concepts(concepts: Sequence[Concept], drawings: dict[str, list[tuple[str, np.ndarray]]]) -> list[list[str]]:
    """Concept groups as lists of code points; `drawings` holds (code point, thumbnail) per style."""
    groups = Groups(concept.point for concept in concepts)
    for language in LANGUAGES:
        groups.join_equal((clean_caption(concept.names[language]).casefold(), concept.point) for concept in concepts)
    for pictures in drawings.values():
        for first, second in alike([small for _, small in pictures], SAME_DRAWING):
            groups.join(pictures[first][0], pictures[second][0])
    return groups.groups()
