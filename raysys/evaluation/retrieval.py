"""Cross-modal retrieval: captions find images and images find captions (Globetrotter, §5.4, Figure 8)."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from raysys.evaluation import chance
from raysys.evaluation.ranking import codes, evenly, expected_hits, similarities, unit_vectors

KS = (1, 5, 10)


@dataclass(frozen=True)
class Recall:
    """Recall@k of one direction, with what a random ranking gets."""

    at: dict[int, float]
    chance: dict[int, float]


@dataclass(frozen=True)
class CrossModal:
    """Recall per language and, over all languages, its mean (each language weighing the same)."""

    text_to_image: dict[str, Recall]
    image_to_text: dict[str, Recall]
    pairs: dict[str, int]
    """Image–caption pairs used per language; a language without any is in none of these."""
    mean_text_to_image: Recall | None
    mean_image_to_text: Recall | None


def cross_modal(
    image_vectors: np.ndarray,
    caption_vectors: Mapping[str, np.ndarray],
    image_ids: Sequence[Hashable],
    *,
    texts: Mapping[str, Sequence[str | None]] | None = None,
    ks: Sequence[int] = KS,
    limit: int = 1000,
    chunk_rows: int = 512,
) -> CrossModal:
    """Recall@k both ways per language, over at most `limit` image–caption pairs of each language.

    A candidate counts as right if it belongs to the same image, or if its caption is the same string, as the query's. Ties
    count with the expected value of a random order. Where a language has more than `limit` pairs, evenly spaced ones are taken,
    so that an ordered list is sampled from end to end and every run takes the same.

    Args:
        image_vectors: float [n, d].
        caption_vectors: float [n, d] per language; row i belongs to image i. Need not be normalised.
        image_ids: n values; equal for the same image.
        texts: the captions; None where an image lacks the language, and the pair is left out.
        ks: the k of recall@k.
        limit: most pairs of a language (1 000 in the paper).
        chunk_rows: queries scored at a time.

    Raises:
        ValueError: lengths that differ.
        RunFailed: vectors that are not finite.
    """
    images = unit_vectors(image_vectors, "images")
    if len(image_ids) != len(images):
        raise ValueError(f"{len(images)} image vectors for {len(image_ids)} image ids")
    identity = codes(list(image_ids))
    to_image: dict[str, Recall] = {}
    to_text: dict[str, Recall] = {}
    pairs: dict[str, int] = {}
    for language, vectors in caption_vectors.items():
        strings = codes(texts[language]) if texts is not None else np.arange(len(images))
        if not len(vectors) == len(strings) == len(images):
            raise ValueError(f"{language}: {len(vectors)} vectors and {len(strings)} texts for {len(images)} images")
        rows = evenly(np.flatnonzero(strings >= 0), limit)
        if not len(rows):
            continue
        captions = unit_vectors(np.asarray(vectors)[rows], f"captions in {language}")
        labels = np.stack([identity[rows], strings[rows]])
        to_image[language] = _recall(captions, images[rows], labels, ks, chunk_rows)
        to_text[language] = _recall(images[rows], captions, labels, ks, chunk_rows)
        pairs[language] = len(rows)
    return CrossModal(to_image, to_text, pairs, _mean(to_image, ks), _mean(to_text, ks))


def _recall(queries: torch.Tensor, candidates: torch.Tensor, labels: np.ndarray, ks: Sequence[int], chunk_rows: int) -> Recall:
    """Recall where candidate j is right for query i if any row of `labels` [kinds, n] is equal at i and j."""
    n = len(queries)
    hits, by_chance = dict.fromkeys(ks, 0.0), dict.fromkeys(ks, 0.0)
    for start in range(0, n, chunk_rows):
        scores = similarities(queries[start : start + chunk_rows], candidates).numpy()
        right = (labels[:, start : start + chunk_rows, None] == labels[:, None, :]).any(axis=0)
        best = np.where(right, scores, -np.inf).max(axis=1, keepdims=True)
        above, level = (scores > best).sum(axis=1), scores == best
        tied, tied_right, all_right = level.sum(axis=1), (level & right).sum(axis=1), right.sum(axis=1)
        for k in ks:
            hits[k] += float(expected_hits(above, tied, tied_right, k).sum())
            by_chance[k] += float(chance.recall(n, k, all_right).sum())
    return Recall({k: hits[k] / n for k in ks}, {k: by_chance[k] / n for k in ks})


def _mean(recalls: Mapping[str, Recall], ks: Sequence[int]) -> Recall | None:
    if not recalls:
        return None
    each = list(recalls.values())
    return Recall({k: float(np.mean([r.at[k] for r in each])) for k in ks}, {k: float(np.mean([r.chance[k] for r in each])) for k in ks})
