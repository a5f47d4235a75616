"""Similarities and ranks that do not depend on luck: exact ties, resolved in expectation.

Two candidates with the same vector must get the same score, or a tie is decided by rounding, that is by where the candidate
stands in a matrix. A plain float32 product does not promise that. Here unit vectors are rounded to multiples of 2⁻²⁵; the
products are then multiples of 2⁻⁵⁰ and every partial sum is below 2, so float64 holds them exactly: the scores are the same
in any order of summation, for any chunk size and any number of threads.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from raysys.errors import RunFailed

GRID = 2.0**25


def unit_vectors(vectors: npt.ArrayLike, name: str) -> torch.Tensor:
    """L2-normalised rows on the fixed-point grid, float64 [n, d]; a zero row stays zero (similar to nothing).

    Raises:
        RunFailed: `vectors` holds a value that is not finite; `name` says whose vectors they are.
    """
    values = np.asarray(vectors, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"{name}: expected vectors of shape [n, d], got {values.shape}")
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise RunFailed(f"{name}: {int(bad.sum())} of {len(values)} vectors are not finite (first: row {int(bad.argmax())})")
    return torch.from_numpy(np.rint(unit_rows(values) * GRID) / GRID)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """L2-normalised rows of a float [n, d], in its own dtype; a zero row stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


def similarities(queries: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    """Cosines float32 [q, c] of vectors from :func:`unit_vectors`. Rounding an exact float64 to float32 keeps ties and order."""
    return (queries @ candidates.T).float()


def hit_probability(pool: npt.ArrayLike, right: npt.ArrayLike, draws: npt.ArrayLike) -> np.ndarray:
    """Probability that at least one of `right` is among `draws` taken from a `pool` without putting back; arguments broadcast.

    This is 1 − C(pool − right, draws) / C(pool, draws), as a product, so that nothing overflows. No draws: 0.
    """
    pool, right, draws = np.broadcast_arrays(np.asarray(pool, np.float64), np.asarray(right, np.float64), np.asarray(draws, np.int64))
    hit = np.array((draws > 0) & (pool > 0), dtype=np.float64)
    unsure = (hit > 0) & (right < pool)  # few, unless many candidates tie
    hit[unsure] = 1.0 - _miss_probability(pool[unsure], right[unsure], draws[unsure])
    return hit


def _miss_probability(pool: np.ndarray, right: np.ndarray, draws: np.ndarray) -> np.ndarray:
    miss = np.ones(pool.shape)
    for taken in range(int(draws.max(initial=0))):
        left = np.maximum(pool - taken, 1.0)
        miss *= np.where((taken < draws) & (taken < pool), np.maximum(pool - right - taken, 0.0) / left, 1.0)
    return miss


def expected_hits(above: npt.ArrayLike, tied: npt.ArrayLike, right: npt.ArrayLike, k: int) -> np.ndarray:
    """Expected hit@k where ties are put in random order; arguments broadcast.

    Args:
        above: candidates that score higher than the best right one.
        tied: candidates that score exactly as it does, itself included.
        right: those of `tied` that are right (at least 1).
    """
    return hit_probability(tied, right, np.clip(k - np.asarray(above, np.int64), 0, None))


def codes(values: Sequence[object]) -> np.ndarray:
    """int64 [n]: equal values get equal numbers, in the order of first occurrence; None gets −1."""
    known: dict[object, int] = {}
    return np.array([-1 if value is None else known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def evenly(rows: np.ndarray, limit: int) -> np.ndarray:
    """At most `limit` of the `rows`, evenly spaced: an ordered list is sampled from end to end, the same in every run."""
    return rows if len(rows) <= limit else rows[np.arange(limit) * len(rows) // limit]
