"""Whether two encoders differ on the examples of a task: McNemar's test on what each gets right."""

import numpy as np
from scipy.stats import binomtest


def significance(correct_a: np.ndarray, correct_b: np.ndarray) -> float:
    """Two-sided p of the exact test of McNemar (*Psychometrika* 1947) that both are right equally often on the same examples.

    Only examples that one gets right and the other wrong tell them apart. If both are as good, each of these falls to either with
    probability ½: p is that of a binomial share as far from ½ as the one seen, or farther; 1 where there are none.

    Args:
        correct_a, correct_b: bool [n], of the same examples in the same order.

    Raises:
        ValueError: not as many of the one as of the other.
    """
    correct_a, correct_b = np.asarray(correct_a, dtype=bool), np.asarray(correct_b, dtype=bool)
    if correct_a.shape != correct_b.shape:
        raise ValueError(f"answers to the same examples were expected, got {correct_a.shape} and {correct_b.shape}")
    only_a, only_b = int((correct_a & ~correct_b).sum()), int((correct_b & ~correct_a).sum())
    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
