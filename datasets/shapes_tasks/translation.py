"""Translation with a picture, in the form of Multi30k.

In half of the lines the English sentence calls some figures no more than "figures", or says nothing of their colour. The other languages
name shape and colour, with the gender and the endings that go with them: what it is, the picture alone tells.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

from ..shapes.grammar import LANGUAGES
from ..shapes.roles import Role, scenes_for
from ..shapes.scenes import Reading
from .published import Picture, Published

AVAILABLE = ("en", "de", "fr", "cs")
"""Multi30k's languages."""
SPLITS: dict[str, tuple[Role, str, float]] = {
    "train": ("train", "train", 0.5),
    "val": ("validation", "validation", 0.5),
    "test_2016_shapes": ("test", "test", 0.5),
    "test_2017_ambiguous": ("test", "test", 1.0),
}
"""Published name → role of the scenes, size, and share of lines that cannot be translated without the picture."""


def publish(sizes: dict[str, int], languages: tuple[str, ...], seed: int) -> Published:
    """So many lines of each split, in English and those of `languages` that Multi30k has, and the names of the pictures; nothing where
    it has none of them."""
    published = Published()
    if not set(AVAILABLE[1:]) & set(languages):
        return published  # nothing to translate into
    for split, (role, size, ambiguous) in SPLITS.items():
        random = Random(f"shapes_tasks/{seed}/mmt/{split}")
        pictures: list[Picture] = []
        lines: dict[str, list[str]] = {language: [] for language in AVAILABLE if language in ("en", *languages)}
        for number, scene in enumerate(islice(scenes_for(role, random), sizes[size])):
            pictures.append(Picture(f"mmt-{split.replace('_', '-')}-{number:06d}", scene))
            said, whole = random.choice(list(scene.readings())), random.random() < 0.5
            source = random.choice(list(vaguer(said))) if random.random() < ambiguous else said
            for language, its_lines in lines.items():
                its_lines.append(LANGUAGES[language].describe(source if language == "en" else said, whole))
        published.pictures += pictures
        for language, its_lines in lines.items():
            published.files[f"data/task1/raw/{split}.{language}"] = "".join(f"{line}\n" for line in its_lines)
        published.files[f"data/task1/image_splits/{split}.txt"] = "".join(f"{picture.file}\n" for picture in pictures)
    return published


def vaguer(said: Reading) -> Iterator[Reading]:
    """The statement without the colour, or without the shape, of one of its kinds."""
    for name in ("colour", "shape"):
        yield replace(said, first=replace(said.first, **{name: None}))
        if said.second is not None:
            yield replace(said, second=replace(said.second, **{name: None}))
