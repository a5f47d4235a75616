"""Shards for pre-training on the drawn world: captions that are translations, captions that are not, and parallel text alone."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from raysys.errors import UserError
from raysys.shards.sample import Sample

from ..common.deal import LanguageDeal
from ..shapes.grammar import LANGUAGES as GRAMMARS
from ..shapes.grammar import caption, variants
from ..shapes.pictures import SIZE, draw, encode
from ..shapes.roles import scenes_for
from ..shapes.scenes import Scene
from .weak import describe

LANGUAGES: tuple[str, ...] = ("en", "de", "fr", "ja", "zh-Hans", "id", "cs")
AVAILABLE: tuple[str, ...] = tuple(tag for tag, grammar in GRAMMARS.items() if grammar.more)
"""Languages that can leave colours and shapes unsaid."""
COUNT = 10_000
SHARES = {"strict": 0.3, "weak": 0.3, "parallel": 0.4, "validation": 0.03, "test": 0.03}
"""Samples of each split by those that are trained on, which are the first three."""
LEAST, MOST = 100, 60_000
CAPTIONS = 2
"""Captions of a strict sample in each language."""
WEAK_LANGUAGES = (2, 4)
"""The least and the most languages of a weak sample."""


def samples(cache: Path, *, seed: int, languages: Sequence[str] = LANGUAGES, count: int | None = None) -> Iterator[Sample]:
    """Draw `count` samples to train on (default 10 000), split after split, then validation and test beside them.

    Nothing is fetched and `cache` stays empty. The same seed, languages and count give the same bytes.

    Raises:
        UserError: fewer than two languages, or a count that is too small, or too large for there to be enough scenes.
    """
    count = COUNT if count is None else count
    if len(languages) < 2:
        raise UserError("--languages: shapes_streams pairs texts of two languages; name two or more")
    if not LEAST <= count <= MOST:
        raise UserError(f"--samples: shapes_streams can be made with {LEAST} to {MOST} samples to train on, not {count}")
    for split, share in SHARES.items():
        random = Random(f"shapes_streams/{seed}/{split}")
        role = split if split in ("validation", "test") else "train"
        deal = LanguageDeal(languages, random)
        for index, scene in enumerate(islice(scenes_for(role, random), max(3, round(share * count)))):
            if split == "weak":
                spoken = deal.deal(min(random.randint(*WEAK_LANGUAGES), len(languages)), languages)
                captions, told = describe(scene, spoken, random)
                metadata = {"captions": captions, "alignment": "weak", "told": told}
            else:
                wordings = 1 if role != "train" or split == "parallel" else CAPTIONS
                metadata = {"captions": _parallel(scene, languages, wordings, random), "alignment": "strict"}
            yield _sample(split, index, scene, metadata, seed)


def _parallel(scene: Scene, languages: Sequence[str], wordings: int, random: Random) -> dict[str, list[str]]:
    """The i-th captions of all languages say the same in the same order."""
    choices = list(variants(scene))
    chosen = random.sample(choices, min(wordings, len(choices)))
    return {language: [caption(scene, language, variant) for variant in chosen] for language in languages}


def _sample(split: str, index: int, scene: Scene, metadata: dict[str, Any], seed: int) -> Sample:
    metadata |= {"group": scene.group, "concept": scene.concept, "scene": scene.facts(), "source": "shapes", "licence": "Apache-2.0"}
    if split == "parallel":
        return Sample(split, f"{index:06d}", None, metadata=metadata)
    random = Random(f"shapes_streams/{seed}/{split}/{index}/picture")
    picture, placed = draw(scene, random)
    image, extension = encode(picture, random)
    metadata["boxes"] = [[figure.index, *figure.box(SIZE)] for figure in placed]
    return Sample(split, f"{index:06d}", image, extension, metadata)
