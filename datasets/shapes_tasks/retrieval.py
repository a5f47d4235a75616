"""Pictures and their captions, in the forms of Flickr30k (training) and xFlickr&CO (tests): no caption fits two pictures of a split."""

from itertools import islice
from random import Random

from ..shapes.grammar import caption, variants
from ..shapes.roles import scenes_for
from .published import SPLITS, Picture, Published, file_tag, spoken

CAPTIONS = 4
"""Of a training picture, at most."""
TESTED = 1 / 8
"""Pictures of validation and tests by the records of other tasks: every text is scored with every picture."""


def publish(sizes: dict[str, int], languages: tuple[str, ...], seed: int) -> Published:
    """A training picture for every four records; validation and tests of an eighth as many pictures as other tasks have records."""
    published = Published()
    for split in SPLITS:
        random = Random(f"shapes_tasks/{seed}/itr/{split}")
        count = sizes[split] // CAPTIONS if split == "train" else max(2, round(TESTED * sizes[split]))
        described = []
        for number, scene in enumerate(islice(scenes_for(split, random), count)):
            picture = Picture(f"itr-{split}-{number:06d}", scene)
            published.pictures.append(picture)
            choices = list(variants(scene))
            described.append((picture, random.sample(choices, min(len(choices), CAPTIONS if split == "train" else 1))))
        for language in spoken(split, languages):
            folder = f"xFlickrCO/annotations/{file_tag(language)}" if split == "test" else "flickr30k/annotations"
            published.add_lines(
                f"{folder}/{split}.jsonl",
                (
                    {
                        "sentences": [caption(picture.scene, language, variant) for variant in chosen],
                        "id": picture.key,
                        "img_path": picture.file,
                    }
                    for picture, chosen in described
                ),
            )
    return published
