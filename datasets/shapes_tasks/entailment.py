"""Entailment in the form of XVNLI: a picture of which one side is hidden by a sheet, and hypotheses about two kinds of figures.

Behind the sheet may lie figures of other kinds than those that are seen. A hypothesis is entailed if the picture shows it; neutral if it
speaks of figures that may lie behind the sheet; a contradiction if what it says would have to be seen, and is not. Every picture has one
hypothesis of each class, and all classes speak of the same things in the same words, so that neither the picture nor the text alone tells
more than chance. Nor is it enough to see whether the relation points to the sheet: that gives one half.
"""

from dataclasses import replace
from itertools import islice
from random import Random

from ..shapes.grammar import LANGUAGES
from ..shapes.roles import Role, role_of, scenes_for
from ..shapes.scenes import COLOURS, COUNTS, INVERSE, SHAPES, Figures, Reading, Scene
from .published import SPLITS, Picture, Published, file_tag, spoken

TOWARDS = {"left": "left of", "right": "right of", "top": "above", "bottom": "below"}
"""Side of the sheet → the relation to what is seen in which figures behind it stand."""
ENDS = {"left of": ("left", "right"), "above": ("top", "bottom")}
"""Relation of a scene → the sides on which a sheet lies in line with the two kinds."""
MOST = 5
"""Figures that two kinds have together."""


def publish(sizes: dict[str, int], languages: tuple[str, ...], seed: int) -> Published:
    """So many records of each split (rounded down to whole pictures of three): XVNLI's files."""
    published = Published()
    for split in SPLITS:
        random = Random(f"shapes_tasks/{seed}/xvnli/{split}")
        records = []
        for number, scene in enumerate(islice(scenes_for(split, random, sized=False, singles=False), sizes[split] // 3)):
            picture = Picture(f"xvnli-{split}-{number:06d}", scene, random.choice(ENDS[scene.relation or ""]))
            published.pictures.append(picture)
            premise = random.choice(list(scene.readings()))
            records += [
                (picture, premise, said, label, random.random() < 0.5) for label, said in hypotheses(picture, split, random).items()
            ]
        random.shuffle(records)
        for language in spoken(split, languages):
            grammar = LANGUAGES[language]
            published.add_lines(
                f"XVNLI/annotations/{file_tag(language)}/{split}.jsonl",
                (
                    {
                        "gold_label": label,
                        "sentence1": grammar.describe(premise, True),
                        "sentence2": grammar.describe(said, whole),
                        "captionID": f"{picture.file}#0",
                        "pairID": f"{picture.file}#0r1{label[0]}",
                        "Flikr30kID": picture.file,
                    }
                    for picture, premise, said, label, whole in records
                ),
            )
    return published


def hypotheses(picture: Picture, role: Role, random: Random) -> dict[str, Reading]:
    """One statement of each class about a picture of two kinds with a sheet at one end of the line on which they stand."""
    scene = picture.scene
    towards = TOWARDS[picture.sheet or ""]
    return {
        "entailment": random.choice(list(scene.readings())),
        "neutral": _of_stranger(scene, towards, role, random),
        "contradiction": _untrue(scene, random.choice((towards, INVERSE[towards])), towards, role, random),
    }


def _untrue(scene: Scene, relation: str, towards: str, role: Role, random: Random) -> Reading:
    """What is not there though it would have to be seen: the kinds in the wrong order, another number, figures that are nowhere.

    The last one only where no sheet is. The others are untrue on either side, as all figures of the kinds that are seen are seen.
    """
    true = next(true for true in scene.readings() if true.relation == relation)
    assert true.second is not None
    untrue = [Reading(true.second, relation, true.first)]
    counts = [count for count in COUNTS if count != true.first.count and count + true.second.count <= MOST]
    if counts:
        untrue.append(replace(true, first=replace(true.first, count=random.choice(counts))))
    if relation != towards:
        untrue.append(_of_stranger(scene, relation, role, random))
    return random.choice(untrue)


def _of_stranger(scene: Scene, relation: str, role: Role, random: Random) -> Reading:
    """A kind that is not seen, in `relation` to one that is; half of them differ from the other one in one fact alone."""
    assert scene.second is not None
    while True:
        anchor, other = random.sample(scene.figures, 2)
        if random.random() < 0.5:
            what, values = random.choice((("colour", COLOURS), ("shape", SHAPES)))
            stranger = replace(other, **{what: random.choice(values)})
        else:
            count = random.choice([count for count in COUNTS if count + anchor.count <= MOST])
            stranger = Figures(count, random.choice(COLOURS), random.choice(SHAPES))
        if stranger.binding in (anchor.binding, other.binding):
            continue
        if role != "train" or role_of(Scene.of(stranger, relation, anchor)) == "train":  # training speaks of no test's scene
            return Reading(stranger, relation, anchor)
