"""Texts about one picture that are no translations of one another, as in an encyclopaedia: each tells what it finds worth telling."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ..shapes.grammar import LANGUAGES
from ..shapes.roles import role_of, scenes_for
from ..shapes.scenes import Figures, Reading, Scene

SORTS = {"whole": 0.25, "part": 0.3, "aspect": 0.3, "other": 0.15}
"""What a text tells, and how often: the whole scene; one of its kinds of figures; all kinds, but not their colours, or not their shapes;
another scene."""


def describe(scene: Scene, languages: Sequence[str], random: Random) -> tuple[dict[str, list[str]], dict[str, dict]]:
    """One text in each language, no two of which say the same.

    Returns:
        (language → captions, language → what the text tells: `sort` (of `SORTS`) and `truth`, the share of the scene's facts
        (counts, colours, shapes, sizes and the relation) that it states; 0 of another scene's text).
    """
    captions: dict[str, list[str]] = {}
    told: dict[str, dict] = {}
    said: set[Reading] = set()
    for language in languages:
        while True:
            sort = random.choices(list(SORTS), list(SORTS.values()))[0]
            if sort == "part" and scene.second is None:
                continue
            reading = _reading(scene, sort, random)
            if reading not in said:
                break
        said.add(reading)
        captions[language] = [LANGUAGES[language].describe(reading, random.random() < 0.5)]
        truth = 0.0 if sort == "other" else round(_facts(reading) / _facts(next(scene.readings())), 3)
        told[language] = {"sort": sort, "truth": truth}
    return captions, told


def _reading(scene: Scene, sort: str, random: Random) -> Reading:
    if sort == "other":
        # Of the same role as the scene, so that no text speaks of what tests show.
        scene = next(other for other in scenes_for(role_of(scene), random) if other.concept != scene.concept)
    if sort in ("whole", "other"):
        return random.choice([*scene.readings(), *scene.without_sizes().readings()])
    if sort == "part":
        return Reading(random.choice(scene.figures))
    unsaid = random.choice(("colour", "shape"))
    reading = random.choice(list(scene.without_sizes().readings()))
    return Reading(_without(reading.first, unsaid), reading.relation, reading.second and _without(reading.second, unsaid))


def _without(figures: Figures, unsaid: str) -> Figures:
    return replace(figures, colour=None) if unsaid == "colour" else replace(figures, shape=None)


def _facts(reading: Reading) -> int:
    kinds = [figures for figures in (reading.first, reading.second) if figures]
    stated = sum(value is not None for figures in kinds for value in (figures.count, figures.colour, figures.shape, figures.size))
    return stated + (reading.relation is not None)
