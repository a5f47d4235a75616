"""From an encoder and a test split to scores: encode once, score, keep chance beside every number."""

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from raysys.evaluation.hubness import hubness
from raysys.evaluation.metrics import Metrics, add_hubness, add_named_directions, add_retrieval, add_transfer, add_translation
from raysys.evaluation.retrieval import CrossModal, cross_modal
from raysys.evaluation.translation import KS, SentenceTranslation, sentence_translation


class Encoder(Protocol):
    """What is scored: three ways into vectors, each float [n, d].

    An encoder that declares ``reads_languages = True`` gets the language of every text, a BCP-47 tag, with it, and each text once
    in every language that has it; any other gets texts alone, each once. One that declares ``has_images = False`` is asked for
    :meth:`encode_texts` alone.
    """

    def encode_texts(self, texts: list[str], languages: list[str] | None = None) -> np.ndarray:
        """Sentences in the space in which captions are compared with captions (β)."""
        ...

    def encode_captions_for_images(self, texts: list[str], languages: list[str] | None = None) -> np.ndarray:
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
    centred: dict[str, str] | None = None
    """Language → whose mean has been taken from its sentences; see :func:`raysys.evaluation.centring.centred`."""

    def __len__(self) -> int:
        return len(self.image_ids)


def encode_items(encoder: Encoder, items: Sequence[Item], languages: Sequence[str] | None = None) -> EncodedItems:
    """Encode every distinct caption and every distinct image once; images only where the encoder has any.

    `languages` defaults to all that occur, in order of first occurrence.
    """
    if languages is None:
        languages = list(dict.fromkeys(language for item in items for language in item.captions))
    texts: dict[str, list[str | None]] = {a: [next(iter(item.captions.get(a, ())), None) for item in items] for a in languages}
    pictures = [item.image if getattr(encoder, "has_images", True) else None for item in items]
    with_image = [picture is not None for picture in pictures]
    illustrated = {a: [t if has else None for t, has in zip(texts[a], with_image, strict=True)] for a in languages}
    seen = None
    if items and all(item.trained_languages is not None for item in items):
        known = [frozenset(item.trained_languages or ()) for item in items]
        seen = {a: np.array([a in languages_seen for languages_seen in known]) for a in languages}
    return EncodedItems(
        languages=tuple(languages),
        texts=texts,
        sentences=encode_sentences(encoder, texts),
        captions=_encode_texts(encoder, encoder.encode_captions_for_images, illustrated) if any(with_image) else {},
        images=_encode(encoder.encode_images, [pictures])[0] if any(with_image) else None,
        image_ids=[None if picture is None else hashlib.blake2b(picture, digest_size=16).hexdigest() for picture in pictures],
        seen=seen,
    )


def reads_languages(encoder: Encoder) -> bool:
    """Whether a sentence's vector depends on the language that it is said to be in."""
    return getattr(encoder, "reads_languages", False)


def encode_sentences(encoder: Encoder, texts: Mapping[str, Sequence[str | None]]) -> dict[str, np.ndarray]:
    """Float32 [n, d] per language in the space of sentences; every distinct text is encoded once, None gets a zero row."""
    return _encode_texts(encoder, encoder.encode_texts, texts)


def _encode_texts(encoder: Encoder, encode: Callable[..., np.ndarray], texts: Mapping[str, Sequence[str | None]]) -> dict[str, np.ndarray]:
    if not reads_languages(encoder):
        return dict(zip(texts, _encode(encode, list(texts.values())), strict=True))

    def encode_pairs(pairs: list[tuple[str, str]]) -> np.ndarray:
        return encode([text for text, _ in pairs], [language for _, language in pairs])

    columns = [[None if text is None else (text, language) for text in column] for language, column in texts.items()]
    return dict(zip(texts, _encode(encode_pairs, columns), strict=True))


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


def score(encoded: EncodedItems, ks: Sequence[int] = KS, pairs: int = 1000, held_out: Collection[str] = ()) -> dict[str, Any]:
    """Translation between all languages and retrieval across modalities, as a dictionary that JSON can hold.

    Args:
        encoded: the split.
        ks: the k of recall@k.
        pairs: most pairs of a language for retrieval across modalities, and most items for hubness; evenly spaced.
        held_out: languages of which training has seen no caption. They are scored apart: no mean below holds them but `transfer_…`.

    Keys of the result:
        items: number of items; languages: tags; held_out: those that are; lacking: language → items without a caption in it (they
        are left out of that language's pairs), `image` → items without an image; centred: whose means were taken off, where any were.
        metrics: name → value; chance: the same names → what a random ranking gets.
            eval/sentence_translation                     share of the M − 1 true translations in the top M − 1
            eval/translation_R@k                          mean over ordered language pairs
            eval/translation_R@1_both_seen, …_some_unseen pairs of strings that training saw both of / not
            eval/translation_R@1_non_latin_to_latin, …_non_latin_to_en
            eval/hubness_skewness, eval/anti_hubs         of N_10, mean over target languages
            eval/text_to_image_R@k, eval/image_to_text_R@k  mean over languages, at most `pairs` pairs of each
            eval/transfer_R@1_from_held_out, …_to_held_out  translation from held-out into trained languages, and back: mean over directions
            eval/transfer_text_to_image_R@k, eval/transfer_image_to_text_R@k  mean over held-out languages
            eval/ru-en/translation_R@1 …
            eval/<language>/…                             sentence_translation and translation_R@1 (as query), text_to_image_R@k, …;
                                                          of a held-out language translation_R@1 into the trained ones
        matrices: share and recall@1 [query][target] in the order of `languages`; null where there is no query.

    A metric that has nothing to count (one language only, no images) is absent rather than zero.
    """
    measured = Metrics()
    trained = [a for a in encoded.languages if a not in held_out]
    apart = [a for a in encoded.languages if a in held_out]
    result: dict[str, Any] = {
        "items": len(encoded),
        "languages": list(encoded.languages),
        "held_out": apart,
        "lacking": {a: sum(t is None for t in encoded.texts[a]) for a in encoded.languages}
        | {"image": sum(i is None for i in encoded.image_ids)},
    }
    if encoded.centred is not None:
        result["centred"] = encoded.centred
    translation = _translate(encoded, trained, ks) if len(trained) >= 2 else None
    if translation is not None:
        add_translation(measured, translation)
        add_hubness(measured, hubness({a: encoded.sentences[a] for a in trained}, encoded.texts, limit=pairs))
    if apart and len(encoded.languages) >= 2:
        translation = _translate(encoded, encoded.languages, ks)
        add_transfer(measured, translation, apart)
    if translation is not None:
        add_named_directions(measured, translation)
        result["matrices"] = {"share": _rows(translation.share), "recall@1": _rows(translation.recall[1])}
    if encoded.images is not None:
        retrieved = _retrieve(encoded, trained, ks, pairs)
        transferred = _retrieve(encoded, apart, ks, pairs)
        add_retrieval(measured, retrieved)
        add_retrieval(measured, transferred, "transfer_")
        result["pairs"] = retrieved.pairs | transferred.pairs
    return result | {"metrics": measured.values, "chance": measured.chances}


def _translate(encoded: EncodedItems, languages: Sequence[str], ks: Sequence[int]) -> SentenceTranslation:
    return sentence_translation({a: encoded.sentences[a] for a in languages}, encoded.texts, seen=encoded.seen, ks=ks)


def _retrieve(encoded: EncodedItems, languages: Sequence[str], ks: Sequence[int], pairs: int) -> CrossModal:
    assert encoded.images is not None
    rows = [i for i, image in enumerate(encoded.image_ids) if image is not None]
    return cross_modal(
        encoded.images[rows],
        {a: encoded.captions[a][rows] for a in languages},
        [encoded.image_ids[i] for i in rows],
        texts={a: [encoded.texts[a][i] for i in rows] for a in languages},
        ks=ks,
        limit=pairs,
    )


def _rows(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(value) else round(float(value), 6) for value in row] for row in matrix]
