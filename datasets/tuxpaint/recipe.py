"""Tux Paint's stamps: photographs and drawings, one sentence each, translated by volunteers."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from raysys.errors import UserError
from raysys.shards.sample import Sample

from ..common.archives import DebianArchive, fetch_debian, to_stderr
from ..common.deal import LanguageDeal, choose_groups, lot
from ..common.debian import read_files
from ..common.groups import Groups
from ..common.pictures import ENCODING, alike, encode, read_raster, render_svg, thumbnail
from .stamps import FOLDER, Stamp, labels, read_stamps

_AVAILABLE = """
ach af am an ar ast be bg ca cs da de el en eo es eu ff fi fr ga gd gl gu hi hr hu hy id is it iu ja ka ko lv ml ms nb nl nn pl
pt pt-BR ro ru sk sl son sq sr sv th tr uk vec vi zh-Hans zh-Hant zu
"""

LANGUAGES = ("en", "de", "fr", "es", "ru", "cs", "id", "tr", "hi", "ja")
"""Languages taken when none are asked for. A picture to test on has a caption in each of them."""

AVAILABLE = tuple(_AVAILABLE.split())
"""Languages with captions for at least 500 of the pictures."""

TAKES_MULTILINGUAL = True
"""Whether pictures to train on can have texts in all languages at once."""

PACKAGE = DebianArchive("tuxpaint-stamps-default", "2022.06.04-1", "6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34")
LICENCE = "GPL-2.0-only"

PICTURE_SIZE = 256
"""Pixels of the longest side; smaller photographs stay as they are."""

SAME_DRAWING = 0.007
"""Two thumbnails that differ by less (`alike`) are one picture."""

FAINT = 0.04
"""Standard deviation of a thumbnail (0..1) up to which a picture counts as hardly to be seen on white."""

TEST = 181
"""Pictures to test on, of 701."""
VALIDATION = 0.1
"""Share of the remaining concept groups to validate on."""


def samples(cache: Path, *, seed: int, languages: Sequence[str], count: int | None = None, multilingual: bool = False) -> Iterator[Sample]:
    """Fetch the package if `cache` lacks it, then yield every sample; the same for the same seed and languages.

    Splits: `train` and `validation` (one language per picture; in `train` the captions in others lie apart, in `translations`),
    `test` (all languages). With `multilingual`, all three have all languages.

    Raises:
        UserError: the network cannot be reached, the package is not the right one, or `count` is given.
    """
    if count is not None:
        raise UserError("the size of the data set 'tuxpaint' is fixed by its source; --samples is for 'shapes'")
    files = read_files(fetch_debian(PACKAGE, cache, to_stderr), FOLDER, (".txt", ".png", ".svg"))
    stamps = read_stamps(files)
    pictures, thumbnails = draw(stamps, files)
    groups = group_stamps(stamps, pictures, thumbnails)
    group_of = {name: min(group) for group in groups for name in group}
    by_name = {stamp.name: stamp for stamp in stamps}
    for split, names in divide(stamps, groups, seed).items():
        for name, captions in _captions(split, [by_name[name] for name in names], languages, seed, multilingual):
            metadata: dict[str, Any] = {"captions": captions, "alignment": "strict", "group": group_of[name]}
            if split == "train" and not multilingual:
                texts = by_name[name].captions
                others = [language for language in languages if language in texts and language not in captions]
                metadata["translations"] = {language: [texts[language]] for language in others}
            metadata |= {"stamp": name, "category": name.rpartition("/")[0], "licence": LICENCE, "source": PACKAGE.name}
            yield Sample(split, name.replace("/", "-").replace(".", "-"), pictures[name], ENCODING, metadata)


def draw(stamps: Sequence[Stamp], files: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[np.ndarray]]:
    """Stamp name → encoded picture, and the thumbnail of every stamp in order."""

    def work(stamp: Stamp) -> tuple[bytes, np.ndarray]:
        image = _open(stamp, files[stamp.file])
        return encode(image), thumbnail(image)

    to_stderr(f"drawing {len(stamps)} pictures")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(work, stamps))
    return {stamp.name: data for stamp, (data, _) in zip(stamps, results, strict=True)}, [small for _, small in results]


def _open(stamp: Stamp, data: bytes) -> Image.Image:
    """The picture on white; on grey where it is white itself and would hardly be seen."""
    image = _open_on(stamp, data, "#ffffff")
    return image if thumbnail(image).std() > FAINT else _open_on(stamp, data, "#808080")


def _open_on(stamp: Stamp, data: bytes, background: str) -> Image.Image:
    if stamp.file.endswith(".svg"):
        return render_svg(data.decode("utf-8"), PICTURE_SIZE, background)
    return read_raster(data, PICTURE_SIZE, background)


def group_stamps(stamps: Sequence[Stamp], pictures: Mapping[str, bytes], thumbnails: Sequence[np.ndarray]) -> list[list[str]]:
    """Concept groups as lists of stamp names: stamps with an equal caption in one of the default languages, with the same picture,
    or with the same picture mirrored or turned, are one group."""
    groups = Groups(stamp.name for stamp in stamps)
    groups.join_equal(labels(stamps, LANGUAGES))
    groups.join_equal((hashlib.sha256(pictures[stamp.name]).digest(), stamp.name) for stamp in stamps)
    for first, second in alike(thumbnails, SAME_DRAWING):
        groups.join(stamps[first].name, stamps[second].name)
    return groups.groups()


def divide(stamps: Sequence[Stamp], groups: Sequence[list[str]], seed: int) -> dict[str, list[str]]:
    """Split → stamp names; by whole groups, dependent on `seed` alone. Training and validation are in random order.

    Only groups in which every caption exists in all the default languages are tested on.
    """
    complete = {stamp.name for stamp in stamps if all(language in stamp.captions for language in LANGUAGES)}
    test = choose_groups([group for group in groups if complete.issuperset(group)], TEST, lot(seed, "test"))
    tested = {name for group in test for name in group}
    rest = [group for group in groups if tested.isdisjoint(group)]
    validation = lot(seed, "validation").sample(rest, round(VALIDATION * len(rest)))
    validated = {name for group in validation for name in group}
    splits = {
        "train": [stamp.name for stamp in stamps if stamp.name not in tested and stamp.name not in validated],
        "validation": [stamp.name for stamp in stamps if stamp.name in validated],
        "test": [stamp.name for stamp in stamps if stamp.name in tested],
    }
    for split in ("train", "validation"):
        lot(seed, "order", split).shuffle(splits[split])
    return splits


def _captions(
    split: str, stamps: Sequence[Stamp], languages: Sequence[str], seed: int, multilingual: bool = False
) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """(stamp name, captions) for each stamp of a split that has a caption in one of `languages`."""
    deal = LanguageDeal(languages, lot(seed, "languages", split))
    for stamp in stamps:
        spoken = [language for language in languages if language in stamp.captions]
        if split != "test" and not multilingual:
            spoken = deal.deal(1, spoken)
        if spoken:
            yield stamp.name, {language: [stamp.captions[language]] for language in spoken}
