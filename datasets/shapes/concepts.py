"""Which scenes there are, and which split each of them belongs to."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from .scenes import COLOURS, COUNTS, RELATIONS, SHAPES, SIZES, Figures, Scene

T = TypeVar("T")

# At most five figures in a picture of two kinds: so many fit at every size.
PAIR_COUNTS = tuple((first, second) for first in COUNTS for second in COUNTS if first + second <= 5)
SINGLE_EVERY = 8
CONTRAST_SHARE = 0.25


class Deck(Generic[T]):
    """Draws cards at random without putting them back until all are out: every card is drawn about equally often."""

    def __init__(self, cards: Iterable[T], random: Random) -> None:
        self.cards, self.random, self.rest = tuple(cards), random, list[T]()

    def draw(self) -> T:
        if not self.rest:
            self.rest = self.random.sample(self.cards, len(self.cards))
        return self.rest.pop()


@dataclass(frozen=True)
class Concepts:
    """The scenes of each split. No group of scenes is in two of them; `reserved` (colour, shape) pairs occur in `unseen` only."""

    train: list[Scene]
    validation: list[Scene]
    unseen: list[Scene]
    reserved: frozenset[tuple[str, str]]


def divide(seed: int, train: int, validation: int, unseen: int) -> Concepts:
    """Draw so many scenes for each split.

    Half of the unseen pairs, and every unseen scene of one kind, hold a colour and shape that are never seen together in training;
    the others are pairs that never occur, of kinds that do.
    """
    random = Random(f"shapes/{seed}/concepts")
    reserved = frozenset(zip(COLOURS, random.sample(SHAPES, len(SHAPES)), strict=True))
    known = [(colour, shape) for colour in COLOURS for shape in SHAPES if (colour, shape) not in reserved]
    groups: set[str] = set()
    seen = _families(known, groups, random)
    kept_back = _take(seen, validation)
    new = _unseen(known, sorted(reserved), groups, random)
    tested = [next(new) for _ in range(unseen)]
    return Concepts(_take(seen, train), kept_back, tested, reserved)


def _take(families: Iterator[list[Scene]], count: int) -> list[Scene]:
    """`count` scenes. What is left over of the last family is thrown away: its group must not go on in another split."""
    scenes: list[Scene] = []
    while len(scenes) < count:
        scenes.extend(next(families))
    return scenes[:count]


def _singles(bindings: Iterable[tuple[str, str]], random: Random) -> list[Scene]:
    sizes = Deck((None, None, *SIZES), random)
    kinds = [(count, binding) for binding in bindings for count in COUNTS]
    return [Scene.of(Figures(count, *binding, sizes.draw())) for count, binding in random.sample(kinds, len(kinds))]


class _Pairs:
    """Scenes of two kinds, balanced in counts, sizes and relations, no group twice."""

    def __init__(self, groups: set[str], random: Random) -> None:
        self.groups = groups
        self.counts, self.relations = Deck(PAIR_COUNTS, random), Deck(RELATIONS, random)
        self.sizes = Deck([(first, second) for first in (None, *SIZES) for second in (None, *SIZES)], random)

    def draw(self, first: Deck[tuple[str, str]], second: Deck[tuple[str, str]]) -> Scene:
        while True:
            bindings, counts, sizes = (first.draw(), second.draw()), self.counts.draw(), self.sizes.draw()
            if bindings[0] == bindings[1]:
                continue
            one, other = (Figures(count, *binding, size) for count, binding, size in zip(counts, bindings, sizes, strict=True))
            scene = Scene.of(one, self.relations.draw(), other)
            if scene.group not in self.groups:
                self.groups.add(scene.group)
                return scene


def _families(known: list[tuple[str, str]], groups: set[str], random: Random) -> Iterator[list[Scene]]:
    """Endless groups of scenes: one scene, or two that differ in nothing but the relation."""
    singles, pairs, bindings = _singles(known, random), _Pairs(groups, random), Deck(known, random)
    number = 0
    while True:
        number += 1
        if number % SINGLE_EVERY == 0 and singles:
            yield [singles.pop()]
            continue
        scene = pairs.draw(bindings, bindings)
        family = [scene]
        if random.random() < CONTRAST_SHARE and scene.second is not None:
            relation = random.choice([relation for relation in RELATIONS if relation != scene.relation])
            family.append(Scene.of(scene.first, relation, scene.second))
        yield family


def _unseen(known: list[tuple[str, str]], reserved: list[tuple[str, str]], groups: set[str], random: Random) -> Iterator[Scene]:
    singles, pairs = _singles(reserved, random), _Pairs(groups, random)
    kinds, novel = Deck(known, random), Deck(reserved, random)
    number = 0
    while True:
        number += 1
        if number % SINGLE_EVERY == 0 and singles:
            yield singles.pop()
        elif number % 2:
            yield pairs.draw(kinds, kinds)
        else:
            yield pairs.draw(*random.sample([novel, kinds], 2))
