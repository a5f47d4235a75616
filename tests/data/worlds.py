"""Small data sets with known contents, written as shards."""

from collections.abc import Callable, Sequence
from pathlib import Path

from raysys.data.bad import BadSamplePolicy
from raysys.data.builder import BatchBuilder
from raysys.data.encoding import TextForm
from raysys.data.samples import Samples
from raysys.data.tokenizer import train_tokenizer
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import picture

LANGUAGES = ("de", "en", "ja", "ru")
WORDS = {"de": "das Bild Nummer", "en": "the picture number", "ja": "写真の番号", "ru": "картина номер"}
MAX_TOKENS = 24


def one_language(number: int) -> dict[str, list[str]]:
    """Captions of a training sample: two in one language, of different lengths."""
    language = LANGUAGES[number % len(LANGUAGES)]
    return {language: [f"{WORDS[language]} {number}" + " …" * (number % 5), f"{number}"]}


def all_languages(number: int) -> dict[str, list[str]]:
    """Captions of a test sample: one in each language."""
    return {language: [f"{WORDS[language]} {number}"] for language in LANGUAGES}


def write_dataset(folder: Path, count: int, captions: Callable[[int], dict[str, list[str]]] = one_language, first: int = 0) -> str:
    """`count` samples, keys and pictures numbered from `first`, in 2 shards."""
    numbers = range(first, first + count)
    write_shards(
        (Sample("train", f"s{n:04}", picture(n), "png", {"captions": captions(n), "alignment": "strict"}) for n in numbers),
        str(folder),
        2,
        Storage(),
    )
    return str(folder)


def load(folders: Sequence[str], languages: Sequence[str] = (), policy: BadSamplePolicy | None = None) -> Samples:
    """The data sets as one, without a word."""
    return Samples.load(folders, languages, Storage(), log=lambda line: None, policy=policy)


def builder(samples: Samples, seed: int = 5, **options) -> BatchBuilder:
    """With a tokenizer trained on a few of the captions."""
    return BatchBuilder(
        samples,
        train_tokenizer([text for n in range(40) for texts in one_language(n).values() for text in texts], 400),
        TextForm(MAX_TOKENS),
        seed,
        **options,
    )
