"""Nearest neighbours for people to look at: of sentences with abstract words (Table 2), of a caption and of its picture (Figure 2)."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from raysys.evaluation.concreteness import AbstractQuery
from raysys.evaluation.grounded_page.examples import Neighbour, PictureNeighbours, QueryNeighbours
from raysys.evaluation.ranking import similarities, unit_vectors

_CHUNK_BYTES = 16 << 20  # of similarities held at a time


def nearest(queries: np.ndarray, candidates: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k candidates nearest to each query by cosine, nearest first; all of them where there are fewer.

    Of equally near ones the first comes first: this is for reading, and no score is made of it.

    Args:
        queries: float [q, d]; need not be normalised.
        candidates: float [n, d].
        k: how many.

    Returns:
        (rows of candidates int64 [q, k], cosines float32 [q, k]).

    Raises:
        RunFailed: vectors that are not finite.
    """
    asked, bank = unit_vectors(queries, "queries"), unit_vectors(candidates, "candidates")
    rows = np.empty((len(asked), min(k, len(bank))), np.int64)
    cosines = np.empty(rows.shape, np.float32)
    step = max(1, _CHUNK_BYTES // (8 * max(1, len(bank))))
    for start in range(0, len(asked), step):
        scores = similarities(asked[start : start + step], bank).numpy()
        found = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        rows[start : start + step] = found
        cosines[start : start + step] = np.take_along_axis(scores, found, axis=1)
    return rows, cosines


def nearest_sentences(
    encode: Callable[[Sequence[str]], np.ndarray], queries: Sequence[AbstractQuery], sentences: Sequence[str], k: int = 1
) -> list[QueryNeighbours]:
    """Table 2: the k of `sentences` that are nearest to each query, in the order of the queries.

    Equal sentences are one, and none is its own neighbour. A query that has no other sentence is left out.
    """
    if not queries or not sentences:
        return []
    bank = list(dict.fromkeys(sentences))
    rows, cosines = nearest(np.asarray(encode([query.text for query in queries])), np.asarray(encode(bank)), k + 1)
    answered = []
    for query, its_rows, its_cosines in zip(queries, rows.tolist(), cosines.tolist(), strict=True):
        found = [Neighbour(bank[row], cosine) for row, cosine in zip(its_rows, its_cosines, strict=True) if bank[row] != query.text]
        if found:
            answered.append(QueryNeighbours(query.text, found[:k], query.word, query.rating))
    return answered


def choose_captions(image_of: npt.ArrayLike, count: int, seed: int = 0) -> list[int]:
    """Rows of `count` captions, each of another picture, drawn by `seed`; of pictures with several captions as far as there are any.

    The choice knows nothing of any system, so that all systems show the same captions.
    """
    of = np.asarray(image_of, dtype=np.int64)
    if not len(of):
        return []
    rows = np.random.default_rng(seed).permutation(len(of))
    _, first = np.unique(of[rows], return_index=True)
    drawn = rows[np.sort(first)]
    several = np.bincount(of)[of[drawn]] > 1
    return [*drawn[several].tolist(), *drawn[~several].tolist()][:count]


def picture_neighbours(
    captions: np.ndarray,
    texts: Sequence[str],
    image_of: npt.ArrayLike,
    images: np.ndarray,
    row: int,
    k: int = 5,
    show: Callable[[int], bytes] = lambda picture: b"",
) -> PictureNeighbours:
    """Figure 2: the picture Q of a caption, its nearest picture N, and the captions nearest to that caption.

    Neighbours are distinct sentences other than the caption's; one that describes Q is marked so, whatever else it describes too.

    Args:
        captions: float [M, d].
        texts: their strings.
        image_of: int [M], the picture of each caption as a row of `images`.
        images: float [K, D]; rows without a caption are no neighbours.
        row: the caption.
        k: neighbours.
        show: row of a picture → a small image file to show.
    """
    of = np.asarray(image_of, dtype=np.int64)
    described, query = np.unique(of), int(of[row])
    others = described[described != query]
    near = int(others[nearest(images[[query]], images[others], 1)[0][0, 0]]) if len(others) else None
    first = {text: number for number, text in reversed(list(enumerate(texts))) if text != texts[row]}
    rows = sorted(first.values())
    found, cosines = nearest(captions[[row]], captions[rows], k)
    said = {
        picture: {texts[number] for number in np.flatnonzero(of == picture).tolist()} for picture in (query, near) if picture is not None
    }

    def mark(text: str) -> Literal["Q", "N", ""]:
        return "Q" if text in said[query] else "N" if near is not None and text in said[near] else ""

    answers = [texts[rows[number]] for number in found[0].tolist()]
    return PictureNeighbours(
        caption=texts[row],
        found=[Neighbour(text, cosine, mark(text)) for text, cosine in zip(answers, cosines[0].tolist(), strict=True)],
        picture=show(query),
        nearest=b"" if near is None else show(near),
        nearest_caption="" if near is None else texts[np.flatnonzero(of == near).tolist()[0]],
    )
