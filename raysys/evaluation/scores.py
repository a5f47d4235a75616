"""From an encoder and a test split to scores: encode once, score, keep chance beside every number."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from raysys.evaluation.retrieval import CrossModal, cross_modal
from raysys.evaluation.translation import KS, SentenceTranslation, sentence_translation

ENGLISH = "en"
NAMED_DIRECTIONS = (("ru", ENGLISH), ("hi", ENGLISH), ("ja", ENGLISH))
"""Directions reported by name: three scripts that share no word with English."""


class Encoder(Protocol):
    """What is scored: three ways into vectors, each float [n, d]."""

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        """Sentences in the space in which captions are compared with captions (β)."""
        ...

    def encode_captions_for_images(self, texts: list[str]) -> np.ndarray:
        """Sentences in the space in which captions are compared with images (α^x)."""
        ...

    def encode_images(self, images: list[bytes]) -> np.ndarray:
        """Encoded images (file contents) in the space of captions and images (α^x), also used among images (α^v)."""
        ...


@dataclass(frozen=True)
class Item:
    """One image of a test split with its captions in many languages."""

    image: bytes | None
    captions: Mapping[str, Sequence[str]]
    """BCP-47 tag → captions; the first of each language is scored."""
    trained_languages: Iterable[str] | None = None
    """Languages in which this concept's caption occurred in training; None where the split does not tell."""
    key: str = ""


@dataclass(frozen=True)
class EncodedItems:
    """A test split as vectors; row i of every array is item i. Rows of lacking captions and images are zero."""

    languages: tuple[str, ...]
    texts: dict[str, list[str | None]]
    sentences: dict[str, np.ndarray] = field(repr=False)
    """float32 [n, d] per language, caption–caption space."""
    captions: dict[str, np.ndarray] = field(repr=False)
    """float32 [n, d] per language, caption–image space."""
    images: np.ndarray | None = field(repr=False)
    """float32 [n, d]; None if no item has an image."""
    image_ids: list[str | None] = field(repr=False)
    """Digest of the image's bytes; None without image."""
    seen: dict[str, np.ndarray] | None = field(repr=False)
    """bool [n] per language; None where the split does not tell."""

    def __len__(self) -> int:
        return len(self.image_ids)


def encode_items(encoder: Encoder, items: Sequence[Item], languages: Sequence[str] | None = None) -> EncodedItems:
    """Encode every distinct caption and every distinct image once.

    `languages` defaults to all that occur, in order of first occurrence.
    """
    if languages is None:
        languages = list(dict.fromkeys(language for item in items for language in item.captions))
    texts: dict[str, list[str | None]] = {a: [next(iter(item.captions.get(a, ())), None) for item in items] for a in languages}
    with_image = [item.image is not None for item in items]
    illustrated = {a: [t if has else None for t, has in zip(texts[a], with_image, strict=True)] for a in languages}
    images = _encode(encoder.encode_images, [[item.image for item in items]])[0] if any(with_image) else None
    captions = _encode(encoder.encode_captions_for_images, list(illustrated.values())) if any(with_image) else []
    seen = None
    if items and all(item.trained_languages is not None for item in items):
        known = [frozenset(item.trained_languages or ()) for item in items]
        seen = {a: np.array([a in languages_seen for languages_seen in known]) for a in languages}
    return EncodedItems(
        languages=tuple(languages),
        texts=texts,
        sentences=dict(zip(languages, _encode(encoder.encode_texts, list(texts.values())), strict=True)),
        captions=dict(zip(languages, captions, strict=False)),
        images=images,
        image_ids=[None if item.image is None else hashlib.blake2b(item.image, digest_size=16).hexdigest() for item in items],
        seen=seen,
    )


def _encode(encode: Any, columns: Sequence[Sequence[Any]]) -> list[np.ndarray]:
    """One array per column; equal values share one pass through the encoder, None gets a zero row."""
    place: dict[Any, int] = {}
    for column in columns:
        for value in column:
            if value is not None:
                place.setdefault(value, len(place))
    if not place:
        return [np.zeros((len(column), 1), np.float32) for column in columns]
    vectors = np.asarray(encode(list(place)), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(place):
        raise ValueError(f"the encoder returned {vectors.shape} for {len(place)} inputs")
    padded = np.concatenate([vectors, np.zeros((1, vectors.shape[1]), np.float32)])
    return [padded[[-1 if value is None else place[value] for value in column]] for column in columns]


def evaluate(encoder: Encoder, items: Sequence[Item], languages: Sequence[str] | None = None, ks: Sequence[int] = KS) -> dict[str, Any]:
    """Every score of one test split; see :func:`score`."""
    return score(encode_items(encoder, items, languages), ks)


def score(encoded: EncodedItems, ks: Sequence[int] = KS, pairs: int = 1000) -> dict[str, Any]:
    """Translation between all languages and retrieval across modalities, as a dictionary that JSON can hold.

    Keys of the result:
        items: number of items; languages: tags; lacking: language → items without a caption in it (they are left out of that
        language's pairs), `image` → items without an image.
        metrics: name → value; chance: the same names → what a random ranking gets.
            eval/sentence_translation                     share of the M − 1 true translations in the top M − 1
            eval/translation_R@k                          mean over ordered language pairs
            eval/translation_R@1_both_seen, …_some_unseen pairs of strings that training saw both of / not
            eval/translation_R@1_non_latin_to_latin, …_non_latin_to_en, eval/ru-en/translation_R@1 …
            eval/text_to_image_R@k, eval/image_to_text_R@k  mean over languages, at most `pairs` pairs of each
            eval/<language>/…                             sentence_translation and translation_R@1 (as query), text_to_image_R@k, …
        matrices: share and recall@1 [query][target] in the order of `languages`; null where there is no query.

    A metric that has nothing to count (one language only, no images) is absent rather than zero.
    """
    measured = _Metrics()
    result: dict[str, Any] = {
        "items": len(encoded),
        "languages": list(encoded.languages),
        "lacking": {a: sum(t is None for t in encoded.texts[a]) for a in encoded.languages}
        | {"image": sum(i is None for i in encoded.image_ids)},
    }
    if len(encoded.languages) >= 2:
        translation = sentence_translation(encoded.sentences, encoded.texts, seen=encoded.seen, ks=ks)
        _add_translation(measured, translation)
        result["matrices"] = {"share": _rows(translation.share), "recall@1": _rows(translation.recall[1])}
    if encoded.images is not None:
        rows = [i for i, image in enumerate(encoded.image_ids) if image is not None]
        retrieved = cross_modal(
            encoded.images[rows],
            {a: encoded.captions[a][rows] for a in encoded.languages},
            [encoded.image_ids[i] for i in rows],
            texts={a: [encoded.texts[a][i] for i in rows] for a in encoded.languages},
            ks=ks,
            limit=pairs,
        )
        _add_retrieval(measured, retrieved)
        result["pairs"] = retrieved.pairs
    return result | {"metrics": measured.values, "chance": measured.chances}


class _Metrics:
    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.chances: dict[str, float] = {}

    def add(self, name: str, value: float, by_chance: float) -> None:
        if not math.isnan(value):
            self.values[f"eval/{name}"], self.chances[f"eval/{name}"] = float(value), float(by_chance)


def _add_translation(measured: _Metrics, got: SentenceTranslation) -> None:
    measured.add("sentence_translation", got.score, got.chance)
    for k in got.recall:
        measured.add(f"translation_R@{k}", got.mean_recall(k), got.mean_recall_chance(k))
    for name, subset in (("both_seen", got.both_seen), ("some_unseen", got.some_unseen)):
        if subset is not None:
            measured.add(f"translation_R@1_{name}", subset.recall, subset.chance)
    to_latin = got.non_latin_to_latin()
    measured.add("translation_R@1_non_latin_to_latin", *got.mean_over(to_latin))
    if ENGLISH in got.languages:
        english = np.array([language == ENGLISH for language in got.languages])
        measured.add(f"translation_R@1_non_latin_to_{ENGLISH}", *got.mean_over(to_latin & english[None, :]))
    for query, target in NAMED_DIRECTIONS:
        if query in got.languages and target in got.languages:
            cell = got.pair(query, target)
            measured.add(f"{query}-{target}/translation_R@1", got.recall[1][cell], got.recall_chance[1][cell])
    for i, language in enumerate(got.languages):
        row = np.zeros_like(to_latin)
        row[i] = True
        measured.add(f"{language}/translation_R@1", *got.mean_over(row))
        if got.queries[i].any():
            # Weighted by queries: a language that few items have must not weigh as much as the others.
            weight = got.queries[i] / got.queries[i].sum()
            share, by_chance = (float((np.nan_to_num(matrix[i]) * weight).sum()) for matrix in (got.share, got.share_chance))
            measured.add(f"{language}/sentence_translation", share, by_chance)


def _add_retrieval(measured: _Metrics, got: CrossModal) -> None:
    for name, mean, each in (
        ("text_to_image", got.mean_text_to_image, got.text_to_image),
        ("image_to_text", got.mean_image_to_text, got.image_to_text),
    ):
        for prefix, recall in [("", mean), *((f"{language}/", recall) for language, recall in each.items())]:
            if recall is not None:
                for k in recall.at:
                    measured.add(f"{prefix}{name}_R@{k}", recall.at[k], recall.chance[k])


def _rows(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(value) else round(float(value), 6) for value in row] for row in matrix]
