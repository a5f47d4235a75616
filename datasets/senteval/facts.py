"""What two statements about drawn scenes have to do with each other: facts in common, what follows from what; and changed scenes.

A statement is a scene of one or two kinds of figures. Its facts are the count, the colour, the shape and, where named, the size of
each kind, and the relation of the two. A scene describes the whole of a picture: what does not fit is untrue.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Literal

from ..shapes.scenes import COLOURS, COUNTS, INVERSE, RELATIONS, SHAPES, SIZES, Figures, Scene

Judgement = Literal["entailment", "neutral", "contradiction"]

ATTRIBUTES: dict[str, tuple] = {"count": COUNTS, "colour": COLOURS, "shape": SHAPES}
"""Attribute of figures → its values."""


def draw_figures(random: Random) -> Figures:
    """Any figures without a size; all are equally likely."""
    return Figures(random.choice(COUNTS), random.choice(COLOURS), random.choice(SHAPES))


def draw_scene(random: Random) -> Scene:
    """A scene of two kinds that are not the same, without sizes."""
    while True:
        first, second = draw_figures(random), draw_figures(random)
        if first != second:
            return Scene.of(first, random.choice(RELATIONS), second)


def count_facts(scene: Scene) -> int:
    """How much a scene states."""
    return sum(3 + (figures.size is not None) for figures in scene.figures) + (scene.relation is not None)


def common_facts(one: Scene, other: Scene) -> int:
    """Facts that both state, where the kinds of the one are taken for those of the other as it fits best."""
    larger, smaller = (one, other) if len(one.figures) >= len(other.figures) else (other, one)
    return max(
        sum(_agreements(a, b) for a, b in pairs) + (relation is not None and relation == smaller.relation)
        for pairs, relation in _pairings(larger, smaller)
    )


def similarity(one: Scene, other: Scene) -> float:
    """Share of the facts in common, 0 to 1: twice the common ones by those of both (Dice)."""
    return 2 * common_facts(one, other) / (count_facts(one) + count_facts(other))


def judge(premise: Scene, hypothesis: Scene) -> Judgement:
    """Whether `hypothesis` follows from `premise`, which has as many kinds or more, is left open by it, or cannot be true beside it."""
    verdicts = set()
    for pairs, relation in _pairings(premise, hypothesis):
        clash = relation != hypothesis.relation or any(
            replace(known, size=None) != replace(said, size=None) or (known.size and said.size and known.size != said.size)
            for known, said in pairs
        )
        if not clash:
            verdicts.add("neutral" if any(said.size and not known.size for known, said in pairs) else "entailment")
    return "entailment" if "entailment" in verdicts else "neutral" if verdicts else "contradiction"


def with_size(scene: Scene, place: int, size: str) -> Scene:
    """`scene` with a size for the kind at `place` (0 or 1) and none for the other."""
    assert scene.second is not None
    sizes = [size if place == number else None for number in (0, 1)]
    return Scene(replace(scene.first, size=sizes[0]), scene.relation, replace(scene.second, size=sizes[1]))


def exchanged(scene: Scene, random: Random) -> Scene:
    """`scene` of two kinds with one difference of theirs exchanged, or their places: another scene in the same words."""
    assert scene.relation is not None
    assert scene.second is not None
    what = random.choice(["place", *(name for name in ATTRIBUTES if getattr(scene.first, name) != getattr(scene.second, name))])
    if what == "place":
        return Scene.of(scene.first, INVERSE[scene.relation], scene.second)
    one, other = getattr(scene.first, what), getattr(scene.second, what)
    return Scene(replace(scene.first, **{what: other}), scene.relation, replace(scene.second, **{what: one}))


def altered(scene: Scene, random: Random) -> Scene:
    """`scene` of two kinds with one fact of any sort, sizes aside, replaced by another one."""
    assert scene.relation is not None
    assert scene.second is not None
    what = random.choice(["relation", *((place, name) for place in (0, 1) for name in ATTRIBUTES)])
    if what == "relation":
        return Scene.of(scene.first, random.choice([one for one in RELATIONS if one != scene.relation]), scene.second)
    place, name = what
    figures = list(scene.figures)
    value = random.choice([value for value in ATTRIBUTES[name] if value != getattr(figures[place], name)])
    figures[place] = replace(figures[place], **{name: value})
    return Scene(figures[0], scene.relation, figures[1])


def other_size(size: str) -> str:
    """Small for large and large for small."""
    return SIZES[1 - SIZES.index(size)]


def _pairings(larger: Scene, smaller: Scene) -> Iterator[tuple[list[tuple[Figures, Figures]], str | None]]:
    """Every way to take kinds of `larger` for those of `smaller`: the pairs, and the relation of the chosen ones in `larger`."""
    for places in itertools.permutations(range(len(larger.figures)), len(smaller.figures)):
        relation = larger.relation if len(places) == 2 else None
        if relation is not None and places[0] == 1:
            relation = INVERSE[relation]
        yield [(larger.figures[place], said) for place, said in zip(places, smaller.figures, strict=True)], relation


def _agreements(one: Figures, other: Figures) -> int:
    return sum(getattr(one, name) == getattr(other, name) for name in ATTRIBUTES) + (one.size is not None and one.size == other.size)
