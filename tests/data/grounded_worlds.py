"""Documents and captioned pictures with known contents, written as shards, and what a grounded run makes of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from raysys.data.bad import BadSamplePolicy
from raysys.data.encoding import TextForm
from raysys.data.features import FeatureCache, save_features
from raysys.data.grounded_builder import GroundedBuilder
from raysys.data.samples import Samples
from raysys.data.triples import Triples
from raysys.data.word_tokenizer import train_word_tokenizer
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.data.worlds import load
from tests.shards.tars import picture

DOCUMENTS, SENTENCES, PIECE = 3, 32, 12
"""Each document has so many sentences, in pieces of so many at most."""
TRIPLES = DOCUMENTS * (SENTENCES - 2)
PICTURES = 24
SIZE = 5
"""Of the pictures' vectors."""
FORM = TextForm(12)
_NAMES = "abcdefghijklmnopqrstuvwxyzäöüßåøæþðñçé"


def sentence(document: int, place: int) -> str:
    """Two to nine words; no two sentences are alike."""
    return f"document {_NAMES[document]} sentence {_NAMES[place]}" + " goes on" * (place * 7 % 3)


def write_documents(folder: Path, sentences: Sequence[Sequence[str]] | None = None) -> str:
    """Pieces whose last two sentences begin the next, in one shard; their keys are document, piece."""
    documents = sentences or [[sentence(document, place) for place in range(SENTENCES)] for document in range(DOCUMENTS)]
    pieces = [
        Sample("train", f"{number}-{start:03}", None, metadata={"sentences": list(document[start : start + PIECE]), "language": "en"})
        for number, document in enumerate(documents)
        for start in range(0, len(document) - 2, PIECE - 2)
    ]
    write_shards(iter(pieces), str(folder), 1, Storage())
    return str(folder)


def captions_of(number: int) -> list[str]:
    """One caption of every third picture, four of the others, two of which are the same."""
    own = f"picture {_NAMES[number]}"
    return [own] if number % 3 == 0 else [own, f"a photo of {own}", f"{own} again", own]


def write_pictures(folder: Path, count: int = PICTURES) -> str:
    """Captions in English and, to be passed over, in German."""
    write_shards(
        (
            Sample("train", f"p{n:03}", picture(n), "png", {"captions": {"en": captions_of(n), "de": [f"ein Bild {n}"]}})
            for n in range(count)
        ),
        str(folder),
        1,
        Storage(),
    )
    return str(folder)


def open_triples(folder: str, policy: BadSamplePolicy | None = None) -> Triples:
    return Triples.load([folder], "en", Storage(), lambda line: None, 30, policy)


def open_pictures(folder: str, policy: BadSamplePolicy | None = None) -> Samples:
    return load([folder], ["en"], policy)


def write_features(path: Path, count: int = PICTURES, bad: dict[int, str] | None = None) -> FeatureCache:
    """Vector [sample, view, :] holds sample + 1, in its second view 100 more."""
    values = np.arange(1, count + 1)[:, None] + np.array([0, 100])[None]
    save_features(Storage(), str(path), np.repeat(values[:, :, None], SIZE, axis=2), bad)
    return FeatureCache(Storage(), str(path))


def builder(
    triples: Triples | None, captions: Samples | None, features: FeatureCache | None, seed: int = 5, spares=None
) -> GroundedBuilder:
    """With a tokenizer trained on all there is to be read."""
    texts = [sentence(document, place) for document in range(DOCUMENTS) for place in range(SENTENCES)]
    texts += [text for number in range(PICTURES) for text in captions_of(number)]
    return GroundedBuilder(triples, captions, "en", train_word_tokenizer(2 * texts, 400, FORM.max_tokens), FORM, seed, features, spares)
