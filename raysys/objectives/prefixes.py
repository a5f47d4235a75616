"""Vectors whose first entries are vectors of their own ("Matryoshka Representation Learning", Kusupati et al. 2022)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def mean_over_prefixes(loss: Callable[..., Tensor], sizes: Sequence[int], *vectors: Tensor) -> Tensor:
    """The mean of ``loss(*vectors)`` over the vectors as they are and cut to each of `sizes`; all sizes weigh the same.

    Our losses normalise what they are given, so each prefix is compared by its own cosines::

        mean_over_prefixes(lambda a, b: info_nce(a, b, temperature, image_ids), (32, 64), images, captions)

    Args:
        loss: a scalar of the vectors. What is no argument of it is not cut, such as images that only judge which captions match.
        sizes: entries of the prefixes, each less than there are; empty: the loss of the whole vectors alone.
        vectors: float [N, d], all of them cut alike.

    Raises:
        ValueError: a size that is not between 1 and the width of the vectors.
    """
    for size in sizes:
        if not 0 < size < min(whole.shape[-1] for whole in vectors):
            raise ValueError(f"a prefix of {size} entries cannot be taken of vectors of {[whole.shape[-1] for whole in vectors]}")
    if not sizes:
        return loss(*vectors)
    cut = [loss(*(whole[..., :size] for whole in vectors)) for size in sizes]
    return torch.stack([*cut, loss(*vectors)]).mean()
