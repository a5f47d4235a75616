"""Which tokens of a caption the cloze objective hides, and what stands in their place."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

PREDICTED_SHARE = 1 / 6
MASKED_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the predicted tokens; the rest are kept as they are
IGNORED = -100
"""Label of a token that is not predicted (what torch's cross-entropy leaves out)."""


def mask_tokens(
    input_ids: NDArray[np.int64],
    special_ids: Collection[int],
    mask_id: int,
    vocabulary_size: int,
    draws: NDArray[np.floating],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hide tokens for the cloze objective (BERT's scheme with Globetrotter's share).

    Each token that is not special is predicted with probability 1/6; of the predicted, 80 % become the mask token, 10 % a random token
    that is not special, 10 % stay. A caption with any such token has at least one predicted: that with the smallest draw.

    Pure function of its arguments. Draw for the whole global batch at the full caption length and hand over the rows of a worker: the
    masks are then the same for any number of workers and any padding.

    Args:
        input_ids: tokens padded to L, int64 [n, L].
        special_ids: tokens never predicted and never drawn: padding, start, end, mask, unknown.
        mask_id: the mask token.
        vocabulary_size: random tokens are below this; ids from it on are never predicted.
        draws: uniform in [0, 1), float [n, ≥ L, 3]: whether predicted, what is done, which random token.

    Returns:
        The tokens to read, int64 [n, L], and the tokens to predict, int64 [n, L], :data:`IGNORED` where none is.

    Raises:
        ValueError: draws of the wrong shape, or a vocabulary of special tokens alone.
    """
    rows, length = input_ids.shape
    if draws.ndim != 3 or len(draws) != rows or draws.shape[1] < length or draws.shape[2] != 3:
        raise ValueError(f"masking {rows} captions of {length} tokens needs draws [{rows}, >={length}, 3], not {list(draws.shape)}")
    special = np.fromiter(special_ids, dtype=np.int64)
    ordinary = np.setdiff1d(np.arange(vocabulary_size), special)
    if not len(ordinary):
        raise ValueError(f"the vocabulary of {vocabulary_size} tokens holds special tokens alone")
    chance, action, choice = np.moveaxis(draws[:, :length], 2, 0)

    predictable = (input_ids < vocabulary_size) & ~np.isin(input_ids, special)
    predicted = predictable & (chance < PREDICTED_SHARE)
    neglected = np.flatnonzero(predictable.any(axis=1) & ~predicted.any(axis=1))
    predicted[neglected, np.where(predictable, chance, np.inf)[neglected].argmin(axis=1)] = True

    masked = predicted & (action < MASKED_SHARE)
    replaced = predicted & ~masked & (action < MASKED_SHARE + RANDOM_SHARE)
    random_ids = ordinary[(choice.astype(np.float64) * len(ordinary)).astype(np.int64)]
    read = np.where(masked, mask_id, np.where(replaced, random_ids, input_ids))
    return read, np.where(predicted, input_ids, IGNORED)
