"""Losses of words, masked or written: over all words of the global batch, or over its texts."""

from typing import Literal

import torch
from torch import Tensor

from raysys.objectives.similarity import full_precision


@full_precision
def words_loss(sums: Tensor, counts: Tensor, over: Literal["mean", "sum"] = "mean", weights: Tensor | None = None) -> Tensor:
    """Mean negative log-likelihood of the words of the global batch (RC³, equations 1 and 2).

    Args:
        sums: of each row's words, float [N]; 0 where there are none.
        counts: int64 [N], each row's words.
        over: mean: every word weighs the same; sum: every text does, with the sum of its words, as the equations read.
        weights: of the rows, float [N]; all the same by default.

    Returns:
        float scalar; 0 with zero gradient where there are no words.
    """
    number = (counts if over == "mean" else counts > 0).to(sums.dtype)
    if weights is not None:
        sums, number = sums * weights, number * weights
    total = number.sum()
    return torch.where(total > 0, sums.sum() / torch.where(total > 0, total, 1), 0)


def language_weights(languages: Tensor, counted: Tensor, exponent: float) -> Tensor:
    """Weights with which rows stand for a choice of languages by n^exponent, n the number of a language's rows: float32 [N].

    Rows come as often as their language has sentences. A mean with weights n^(exponent − 1) is, in expectation, that over a batch in
    which each language has a share of n^exponent: rare languages count for more where the exponent is below 1.

    Args:
        languages: int64 [N].
        counted: bool [N], which rows the mean is over; the others get weight 0.
        exponent: between 0, all languages alike, and 1, as they come.
    """
    found, place = languages[counted].unique(return_inverse=True)
    sizes = torch.bincount(place, minlength=len(found)).float()
    weights = torch.zeros(len(languages), device=languages.device)
    weights[counted] = (sizes ** (exponent - 1))[place]
    return weights
