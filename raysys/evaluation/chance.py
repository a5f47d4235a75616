"""What a random ranking scores, in closed form: every score of this package stands beside it."""

import numpy as np
import numpy.typing as npt

from raysys.evaluation.ranking import hit_probability


def recall(candidates: npt.ArrayLike, k: int, right: npt.ArrayLike = 1) -> np.ndarray:
    """Expected recall@k of a random ranking: 1 − C(candidates − right, k) / C(candidates, k).

    Args:
        candidates: how many are ranked.
        right: how many of them count as right (more than one where strings or images are equal).
    """
    return hit_probability(candidates, right, np.minimum(k, candidates))


def sentence_translation(candidates: npt.ArrayLike, translations: npt.ArrayLike) -> np.ndarray:
    """Expected sentence-translation score of a random ranking: `translations` / `candidates`.

    With n sentences in each of M languages it is (M − 1) / (n (M − 1)) = 1 / n: each true translation is among the top M − 1
    of n (M − 1) candidates with that probability.
    """
    return np.asarray(translations, np.float64) / np.asarray(candidates, np.float64)
