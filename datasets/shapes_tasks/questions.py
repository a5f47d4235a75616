"""Questions about a picture, in the form of xGQA: asked in every language, answered in English."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from random import Random

from ..shapes.grammar import LANGUAGES
from ..shapes.languages.base import Frame
from ..shapes.roles import scenes_for
from ..shapes.scenes import COLOURS, COUNTS, RELATIONS, SHAPES, SIZES, Figures, Reading, Scene
from .published import SPLITS, Picture, Published, file_tag, spoken

QUESTIONS_PER_PICTURE = 4
FILES = {"train": "train_balanced_questions", "validation": "val_balanced_questions", "test": "testdev_balanced_questions"}
ANSWERS = ("yes", "no", *map(str, COUNTS), *COLOURS, *SHAPES)
COUNT_KEPT = {1: 1 / 4, 2: 1 / 3, 3: 1 / 2, 4: 1.0}
"""How many questions for a number are asked: scenes have small numbers more often than large ones, answers have not."""

Asked = tuple[Frame, Reading, str]
"""What is asked, about what, and the answer."""


def publish(sizes: dict[str, int], languages: tuple[str, ...], seed: int) -> Published:
    """So many questions of each split (rounded down to whole pictures of four): xGQA's and GQA's files."""
    published = Published()
    for split in SPLITS:
        random = Random(f"shapes_tasks/{seed}/xgqa/{split}")
        asked: list[tuple[Picture, Asked]] = []
        scenes = scenes_for(split, random)
        for number, scene in enumerate(islice(scenes, sizes[split] // QUESTIONS_PER_PICTURE)):
            picture = Picture(f"xgqa-{split}-{number:06d}", scene)
            published.pictures.append(picture)
            asked += [(picture, one) for one in questions(scene, random)]
        for language in spoken(split, languages):
            tag = f"_{file_tag(language)}" if split == "test" else ""
            records = {
                f"{number:08d}": {
                    "question": LANGUAGES[language].say(frame, about),
                    "imageId": picture.key,
                    "answer": answer,
                    "isBalanced": True,
                    "types": {"structural": "verify" if frame == "exists" else "query", "semantic": frame},
                }
                for number, (picture, (frame, about, answer)) in enumerate(asked)
            }
            published.files[f"{FILES[split]}{tag}.json"] = json.dumps(records, ensure_ascii=False, indent=1)
    return published


def questions(scene: Scene, random: Random) -> list[Asked]:
    """Four different questions about a scene, of different sorts as far as it has them."""
    found: list[Asked] = []
    while len(found) < QUESTIONS_PER_PICTURE:
        for ask in random.sample(SORTS, len(SORTS)):
            one = ask(scene, random)
            if one is not None and one not in found and len(found) < QUESTIONS_PER_PICTURE:
                found.append(one)
    return found


def _colour(scene: Scene, random: Random) -> Asked | None:
    figures = random.choice(scene.figures)
    if sum(other.shape == figures.shape for other in scene.figures) > 1:
        return None
    return "colour", Reading(Figures(figures.count, None, figures.shape)), figures.colour or ""


def _shape(scene: Scene, random: Random) -> Asked | None:
    figures = random.choice(scene.figures)
    if sum(other.colour == figures.colour for other in scene.figures) > 1:
        return None
    return "shape", Reading(Figures(figures.count, figures.colour, None)), figures.shape or ""


def _count(scene: Scene, random: Random) -> Asked | None:
    figures = random.choice(scene.figures)
    if random.random() > COUNT_KEPT[figures.count]:
        return None
    return "count", Reading(Figures(1, figures.colour, figures.shape)), str(figures.count)


def _exists(scene: Scene, random: Random) -> Asked | None:
    """Half of them are there; of the others one fact is untrue."""
    said = random.choice(list(scene.readings()))
    if said.second is not None and random.random() < 0.5:
        said = Reading(random.choice(scene.figures))
    if random.random() < 0.5:
        return "exists", said, "yes"
    said = _altered(said, random)
    return None if scene.shows(said) else ("exists", said, "no")


def _altered(said: Reading, random: Random) -> Reading:
    what = random.choice(["count", "colour", "shape", *["size"] * bool(said.first.size), *["relation"] * bool(said.relation)])
    values: tuple = {"count": COUNTS, "colour": COLOURS, "shape": SHAPES, "size": SIZES, "relation": RELATIONS}[what]
    if what == "relation":
        return replace(said, relation=random.choice([value for value in values if value != said.relation]))
    return replace(said, first=replace(said.first, **{what: random.choice([v for v in values if v != getattr(said.first, what)])}))


def _what(scene: Scene, random: Random) -> Asked | None:
    said = random.choice(list(scene.readings()))
    if said.second is None:
        return None
    return "what", Reading(Figures(1, None, None), said.relation, said.second), said.first.shape or ""


SORTS: tuple[Callable[[Scene, Random], Asked | None], ...] = (_colour, _shape, _count, _exists, _what)
