"""The three streams of RC³ with known contents, written as shards, and what a run makes of them."""

import io
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from raysys.data.bad import BadSamplePolicy
from raysys.data.encoding import TextForm
from raysys.data.language_codes import language_ids
from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer
from raysys.data.pairs import Pairs
from raysys.data.rc3_builder import Rc3Builder
from raysys.data.samples import Samples
from raysys.data.streams import Rc3Streams
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import picture

LANGUAGES = ("en", "de", "fr", "ja")
STRICTS, WEAKS, PARALLELS = 14, 11, 9
"""Samples of each stream. Those of D_t hold two texts each."""
COUNT = STRICTS + WEAKS + 2 * PARALLELS
REGIONS, SIZE = 4, 3
FORM = TextForm(16)
_SAID = {"en": "the {} number {}", "de": "das {} Nummer {}", "fr": "le {} numéro {}", "ja": "{}番号{}"}
_THINGS = ("circle", "square", "heart")


def said(language: str, number: int, place: int = 0) -> str:
    """What is said of a thing, in words of its own in each language."""
    return _SAID[language].format(_THINGS[number % 3], f"{number} {place}")


def strict_captions(number: int) -> dict[str, list[str]]:
    """Two captions in each of three or four languages."""
    return {language: [said(language, number, place) for place in range(2)] for language in LANGUAGES[number % 2 :]}


def weak_captions(number: int) -> dict[str, list[str]]:
    """One caption in one language and three in another."""
    one, other = LANGUAGES[number % 4], LANGUAGES[(number + 1) % 4]
    return {one: [said(one, 100 + number)], other: [said(other, 200 + number, place) for place in range(3)]}


def parallel_captions(number: int) -> dict[str, list[str]]:
    """Two texts in English and one other language."""
    return {language: [said(language, 300 + number, place) for place in range(2)] for language in ("en", LANGUAGES[1 + number % 3])}


def regions_of(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Features [r, SIZE], that tell picture and region, and boxes [r, 4] within 16 × 12 pixels; one to five regions."""
    count = 1 + number % 5
    features = np.full((count, SIZE), number, np.float32) + np.arange(count, dtype=np.float32)[:, None] / 8
    return features, np.array([[place, 1, place + 4, 7] for place in range(count)], np.float32)


def rois(features: np.ndarray, boxes: np.ndarray, size: Sequence[int] = (16, 12)) -> bytes:
    """A member ``.rois.npz``."""
    buffer = io.BytesIO()
    np.savez(buffer, features=features, boxes=boxes, size=np.array(size, np.int32))
    return buffer.getvalue()


def write(folder: Path, samples: Sequence[Sample]) -> str:
    write_shards(iter(samples), str(folder), 1, Storage())
    return str(folder)


def strict_samples(pictures: Mapping[int, bytes] | None = None) -> list[Sample]:
    return [
        Sample(
            "strict",
            f"s{n:02}",
            (pictures or {}).get(n, picture(n)),
            "png",
            {"captions": strict_captions(n), "alignment": "strict"},
            {"rois.npz": rois(*regions_of(n))},
        )
        for n in range(STRICTS)
    ]


def weak_samples(pictures: Mapping[int, bytes] | None = None) -> list[Sample]:
    shown = {n: picture(100 + n) for n in range(WEAKS)} | dict(pictures or {})
    return [Sample("weak", f"w{n:02}", shown[n], "png", {"captions": weak_captions(n), "alignment": "weak"}) for n in range(WEAKS)]


def parallel_samples() -> list[Sample]:
    return [Sample("parallel", f"t{n:02}", None, metadata={"captions": parallel_captions(n)}) for n in range(PARALLELS)]


def open_samples(folder: str, policy: BadSamplePolicy | None = None, languages: Sequence[str] = LANGUAGES) -> Samples:
    return Samples.load([folder], languages, Storage(), lambda line: None, None, policy, pairs=True)


def open_pairs(folder: str, policy: BadSamplePolicy | None = None, languages: Sequence[str] = LANGUAGES) -> Pairs:
    return Pairs.load([folder], languages, Storage(), lambda line: None, None, policy)


def write_all(folder: Path) -> tuple[str, str, str]:
    return (
        write(folder / "strict", strict_samples()),
        write(folder / "weak", weak_samples()),
        write(folder / "parallel", parallel_samples()),
    )


def open_all(folders: Sequence[str], policy: BadSamplePolicy | None = None) -> Rc3Streams:
    return Rc3Streams(open_samples(folders[0], policy), open_samples(folders[1], policy), open_pairs(folders[2], policy))


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Trained on texts such as those above."""
    texts = [said(language, n, n) for language in LANGUAGES for n in range(320)]
    return train_multilingual_tokenizer(texts, LANGUAGES, 400, FORM.max_tokens)


def builder(streams: Rc3Streams, seed: int = 5, languages: Sequence[str] = LANGUAGES, **options) -> Rc3Builder:
    options = {"regions": REGIONS, "region_size": SIZE} | options
    return Rc3Builder(streams, languages, tokenizer(), language_ids(tokenizer(), languages), FORM, seed, **options)
