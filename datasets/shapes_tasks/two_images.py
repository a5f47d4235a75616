"""Statements about two pictures, in the forms of NLVR2 (training) and MaRVL (tests).

Records come in fours: two pairs of pictures and two statements, each of which is true of one pair and false of the other. So every
statement and every pair is true as often as false, and neither alone tells anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from ..shapes.concepts import PAIR_COUNTS, Deck
from ..shapes.grammar import LANGUAGES
from ..shapes.languages.base import Frame
from ..shapes.roles import BINDINGS, Role, role_of, scenes_for
from ..shapes.scenes import INVERSE, RELATIONS, Figures, Reading, Scene
from .published import SPLITS, Picture, Published, file_tag, spoken

Pair = tuple[Scene, Scene]
"""The left and the right picture."""
RECORDS = 4
"""Of each family."""
MOST = 5


@dataclass(frozen=True)
class Statement:
    """What is said of two pictures."""

    frame: Frame
    said: Reading

    def is_true(self, pair: Pair) -> bool:
        """Of a pair."""
        left, right = pair
        if self.frame in ("more left", "more right"):
            difference = _number(left, self.said.first) - _number(right, self.said.first)
            return difference > 0 if self.frame == "more left" else difference < 0
        shown = left.shows(self.said), right.shows(self.said)
        return {"left": shown[0], "right": shown[1], "both": all(shown), "one": shown[0] != shown[1]}[self.frame]


def publish(sizes: dict[str, int], languages: tuple[str, ...], seed: int) -> Published:
    """So many records of each split (rounded down to fours): NLVR2's train and dev, MaRVL's tests."""
    published = Published()
    for split in SPLITS:
        random = Random(f"shapes_tasks/{seed}/marvl/{split}")
        prefix = {"train": "train", "validation": "dev", "test": "marvl"}[split]
        records: list[tuple[str, Statement, bool]] = []
        for number in range(sizes[split] // RECORDS):
            pairs, statements = family(split, random)
            for place, pair in enumerate(pairs):
                name = f"{prefix}-{number}-{place}"
                published.pictures += [Picture(f"{name}-img{side}", scene) for side, scene in enumerate(pair)]
                records += [(f"{name}-{which}", statement, statement.is_true(pair)) for which, statement in enumerate(statements)]
        random.shuffle(records)
        for language in spoken(split, languages):
            worded = ((name, LANGUAGES[language].say(one.frame, one.said), truth) for name, one, truth in records)
            if split == "test":
                published.add_lines(f"marvl-{file_tag(language)}.jsonl", (_marvl(*record, language) for record in worded))
            else:
                published.add_lines(f"nlvr2/annotations/{prefix}.jsonl", (_nlvr2(*record) for record in worded))
    return published


def _nlvr2(name: str, text: str, truth: bool) -> dict:
    return {"identifier": name, "sentence": text, "label": str(truth)}


def _marvl(name: str, text: str, truth: bool, language: str) -> dict:
    pair = name.rpartition("-")[0]
    images = {"left_img": f"{pair}-img0.jpg", "right_img": f"{pair}-img1.jpg"}
    return {"concept": "shapes", "language": file_tag(language), "caption": text, **images, "id": name, "label": truth}


def family(role: Role, random: Random) -> tuple[tuple[Pair, Pair], tuple[Statement, Statement]]:
    """Two pairs of scenes and two statements of one sort: the first is true of the first pair alone, the second of the second alone."""
    sort = random.choice((_side, _side, _shared, _more))
    while True:
        pairs, statements = sort(role, random)
        if all(one.is_true(pair) == (place == which) for place, pair in enumerate(pairs) for which, one in enumerate(statements)):
            return pairs, statements


def _side(role: Role, random: Random) -> tuple[tuple[Pair, Pair], tuple[Statement, Statement]]:
    """What one side shows; the other pair has it on the other side, in another relation, or not at all."""
    scenes = scenes_for(role, random)
    pair = next(scenes), next(scenes)
    frame: Frame = random.choice(("left", "right"))
    change = random.choice(("exchange", "relation", "other"))
    if change == "exchange":
        other = pair[1], pair[0]
    elif change == "relation":
        other = _in_other_relation(pair[0], random), _in_other_relation(pair[1], random)
    else:
        other = next(scenes), next(scenes)
    statements = []
    whole = change == "relation" or random.random() < 0.5
    for one in (pair, other):
        scene = one[frame == "right"].without_sizes()
        said = random.choice(list(scene.readings())) if whole else Reading(random.choice(scene.figures))
        statements.append(Statement(frame, said))
    return (pair, other), (statements[0], statements[1])


def _shared(role: Role, random: Random) -> tuple[tuple[Pair, Pair], tuple[Statement, Statement]]:
    """Of two kinds, the first pair has one in both pictures and the other in one; the second pair has it the other way round."""
    base = next(scenes_for(role, random, singles=False))
    one, other = random.sample(base.figures, 2)
    pairs = []
    for common in (one, other):
        pair = [_in_other_relation(base, random), next(_with(common, role, random))]
        random.shuffle(pair)
        pairs.append((pair[0], pair[1]))
    frame: Frame = random.choice(("both", "one"))
    said = [Reading(replace(figures, size=None)) for figures in ((one, other) if frame == "both" else (other, one))]
    return (pairs[0], pairs[1]), (Statement(frame, said[0]), Statement(frame, said[1]))


def _more(role: Role, random: Random) -> tuple[tuple[Pair, Pair], tuple[Statement, Statement]]:
    """Which side has more figures of a shape or of a colour; the other pair has the sides exchanged."""
    scenes = scenes_for(role, random)
    left, right = next(scenes), next(scenes)
    known = random.choice((left, right)).first
    figures = Figures(1, known.colour, None) if random.random() < 0.5 else Figures(1, None, known.shape)
    frames: tuple[Frame, Frame] = ("more left", "more right")
    if _number(left, figures) < _number(right, figures):
        frames = ("more right", "more left")
    return ((left, right), (right, left)), (Statement(frames[0], Reading(figures)), Statement(frames[1], Reading(figures)))


def _number(scene: Scene, sort: Figures) -> int:
    """How many figures of a colour or shape a scene has."""
    return sum(figures.count for figures in scene.figures if replace(sort, count=figures.count).describes(figures))


def _in_other_relation(scene: Scene, random: Random) -> Scene:
    """The same figures in any other relation: another concept of the same group."""
    if scene.second is None or scene.relation is None:
        return scene
    relation = random.choice([relation for relation in RELATIONS if relation != scene.relation])
    assert relation in INVERSE
    return Scene.of(scene.first, relation, scene.second)


def _with(figures: Figures, role: Role, random: Random) -> Iterator[Scene]:
    """Scenes of a role that hold some figures."""
    bindings = Deck([binding for binding in BINDINGS if binding != figures.binding], random)
    while True:
        count = random.choice([second for first, second in PAIR_COUNTS if first == figures.count])
        scene = Scene.of(figures, random.choice(RELATIONS), Figures(count, *bindings.draw()))
        if role_of(scene) == role:
            yield scene
