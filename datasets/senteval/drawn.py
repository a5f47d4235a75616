"""Our own sets, in any language of the grammar of `shapes`: similarity, paraphrase, entailment and attributes.

The facts are drawn first and are the same in every language. How they are worded is drawn in the same way for every label, so that
neither the length of a sentence nor a word of it tells the label of a pair.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from ..shapes.concepts import Deck
from ..shapes.grammar import Variant, caption
from ..shapes.scenes import RELATIONS, SIZES, Figures, Scene
from .facts import (
    ATTRIBUTES,
    Judgement,
    altered,
    common_facts,
    draw_figures,
    draw_scene,
    exchanged,
    judge,
    other_size,
    similarity,
    with_size,
)

SIMILARITY_PAIRS = 800
PARAPHRASES = {"train": 2400, "test": 1200}
ENTAILMENT = {"train": 3000, "dev": 600, "test": 1500}
ATTRIBUTE_SENTENCES = {"train": 2400, "dev": 480, "test": 1200}

_LEVELS = 8  # 0 to 7 facts in common


@dataclass(frozen=True)
class Statement:
    """A scene, and how it is worded."""

    scene: Scene
    variant: Variant

    def text(self, language: str) -> str:
        return caption(self.scene, language, self.variant)


@dataclass(frozen=True)
class Pair:
    """Two statements; 1 or 0 for a paraphrase or none, or what follows."""

    first: Statement
    second: Statement
    label: int | Judgement = 0

    @property
    def similarity(self) -> float:
        """0 to 1."""
        return similarity(self.first.scene, self.second.scene)


def similar_pairs(seed: int) -> list[Pair]:
    """Pairs with 0 to 7 of 7 facts in common, as many of each; half of what is changed is exchanged between the kinds."""
    random = Random(f"senteval/{seed}/similarity")
    pairs = []
    for number in range(SIMILARITY_PAIRS):
        scene = draw_scene(random)
        other = _with_common(scene, number % _LEVELS, random)
        pairs.append(_worded(scene, other, 0, random))
    random.shuffle(pairs)
    return pairs


def _with_common(scene: Scene, facts: int, random: Random) -> Scene:
    while True:
        other = scene
        for _ in range(7 - facts):
            other = (exchanged if random.random() < 0.5 else altered)(other, random)
        if facts < 2:  # so many changes of one fact each seldom leave nothing
            other = draw_scene(random)
        if common_facts(scene, other) == facts and other.first != other.second:
            return other


def paraphrases(seed: int) -> dict[str, list[Pair]]:
    """Split → pairs, half of them two wordings of one scene, half scenes that differ in one fact or in what belongs to which kind."""
    fresh = _Fresh(Random(f"senteval/{seed}/paraphrases"))
    found: dict[str, list[Pair]] = {}
    for split, count in PARAPHRASES.items():
        pairs = []
        for number in range(count):
            scene = fresh.draw()
            other = scene if number % 2 else _changed(scene, fresh.random)
            pairs.append(_worded(scene, other, number % 2, fresh.random))
        fresh.random.shuffle(pairs)
        found[split] = pairs
    return found


def entailment(seed: int) -> dict[str, list[Pair]]:
    """Split → pairs of a premise and a hypothesis; every premise stands in three pairs, one of each judgement.

    A premise has two kinds, the size of one of which is named. The hypothesis names one size too, and either has both kinds or one.
    It follows, in other words; or it names the size that the premise leaves open; or one thing in it is untrue.
    """
    fresh = _Fresh(Random(f"senteval/{seed}/entailment"))
    found: dict[str, list[Pair]] = {}
    for split, count in ENTAILMENT.items():
        pairs: list[Pair] = []
        for number in range(count // 3):
            pairs.extend(_triple(fresh.draw(), number % 2 == 0, fresh.random))
        fresh.random.shuffle(pairs)
        found[split] = pairs
    return found


def _triple(scene: Scene, both_kinds: bool, random: Random) -> Iterator[Pair]:
    place, size = random.choice((0, 1)), random.choice(SIZES)
    premise = with_size(scene, place, size)
    sorts: dict[Judgement, Callable[[], Scene]] = {
        "entailment": lambda: premise,
        "neutral": lambda: with_size(scene, 1 - place, random.choice(SIZES)),
        "contradiction": lambda: _untrue(scene, place, size, random),
    }
    for wanted, draw in sorts.items():
        hypothesis = None
        while hypothesis is None or judge(premise, hypothesis) != wanted:
            hypothesis = draw()
            if not both_kinds:  # the one whose size is named
                hypothesis = Scene(next(figures for figures in hypothesis.figures if figures.size))
        yield _worded(premise, hypothesis, wanted, random)


def _untrue(scene: Scene, place: int, size: str, random: Random) -> Scene:
    """A scene with one thing wrong, and a size for either kind."""
    sized = random.choice((0, 1))
    if random.random() < 0.125:  # one fact of eight
        return with_size(scene, place, other_size(size))
    return with_size(_changed(scene, random), sized, size if sized == place else random.choice(SIZES))


def _changed(scene: Scene, random: Random) -> Scene:
    """Another scene that differs in one fact, or in what belongs to which kind."""
    while True:
        other = (exchanged if random.random() < 0.5 else altered)(scene, random)
        if common_facts(scene, other) < 7 and other.first != other.second:
            return other


@dataclass(frozen=True)
class Described:
    """A statement about two kinds, labelled by what it says of the kind that it is about."""

    statement: Statement
    about: Figures


def described(seed: int) -> dict[str, list[Described]]:
    """Split → statements; every count, colour and shape is said equally often of the kind that the sentence is about."""
    fresh = _Fresh(Random(f"senteval/{seed}/attributes"))
    decks = {name: Deck(values, fresh.random) for name, values in ATTRIBUTES.items()}
    found: dict[str, list[Described]] = {}
    for split, count in ATTRIBUTE_SENTENCES.items():
        sentences = []
        while len(sentences) < count:
            about = Figures(**{name: deck.draw() for name, deck in decks.items()})
            relation = fresh.random.choice(RELATIONS)
            scene = fresh.beside(about, relation)
            # The scene is seen from the kind that it is about: from the other side, if it is the second one.
            variant = Variant(False, inverse=scene.first != about, sentence=fresh.random.random() < 0.5)
            sentences.append(Described(Statement(scene, variant), about))
        found[split] = sentences
    return found


def class_of(item: Described, attribute: str) -> int:
    """The number of the class, from 0, in the order of `ATTRIBUTES`."""
    return ATTRIBUTES[attribute].index(getattr(item.about, attribute))


class _Fresh:
    """Scenes whose figures have not been together before: no two splits tell of the same ones."""

    def __init__(self, random: Random) -> None:
        self.random, self.groups = random, set[str]()

    def draw(self) -> Scene:
        while True:
            scene = draw_scene(self.random)
            if self._is_new(scene):
                return scene

    def beside(self, about: Figures, relation: str) -> Scene:
        while True:
            other = draw_figures(self.random)
            scene = Scene.of(about, relation, other)
            if other != about and self._is_new(scene):
                return scene

    def _is_new(self, scene: Scene) -> bool:
        new = scene.group not in self.groups
        self.groups.add(scene.group)
        return new


def _worded(first: Scene, second: Scene, label: int | Judgement, random: Random) -> Pair:
    """Both scenes in different wordings: one a phrase and the other a sentence, or one from the other side, or both."""
    while True:
        drawn = [(random.random() < 0.5, random.random() < 0.5) for _ in range(2)]
        if drawn[0] != drawn[1]:
            break
    one, other = (
        Variant(True, inverse=inverse and scene.relation is not None, sentence=sentence)
        for (inverse, sentence), scene in zip(drawn, (first, second), strict=True)
    )
    return Pair(Statement(first, one), Statement(second, other), label)
