"""L_P, perceptual: sentences are as alike as their pictures are."""

from dataclasses import dataclass

import torch
from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.similarity import full_precision, itself, unit_vectors

BLOCK = BLOCK_PAIRS // 4
"""Pairs that are compared at a time: the sums are taken in float64, with several numbers for each pair."""

ROUNDING = 32
"""Cosines whose standard deviation is at most this many units of rounding (4e-6 in float32) count as constant."""


def perceptual_loss(
    grounded: Tensor,
    images: Tensor,
    usable: Tensor,
    pairs: int | None = None,
    draws: Tensor | None = None,
    block_pairs: int = BLOCK,
) -> tuple[Tensor, Tensor]:
    """−ρ of {cos(g(s_k), g(s_l))} and {cos(i_k, i_l)}: Pearson's correlation over pairs k ≠ l of the whole batch.

    "Incorporating Visual Semantics into Sentence Representations within a Grounded Space", equation 3. Vectors may have any length,
    they are normalised here. Correlations of parts of a batch do not average to that of the whole, so it is taken of all rows
    together; only a block of pairs exists at a time.

    Args:
        grounded: g(s), float [N, d].
        images: the sentences' pictures, constants, float [N, D].
        usable: bool [N], the rows that have a picture; M of them.
        pairs: how many pairs are sampled, each as likely as any other; None, or as many as there are: all M (M − 1) / 2.
        draws: float [N] in [0, 1), uniform and the same on all workers: which pairs are sampled. Not needed for all of them.
        block_pairs: pairs that are compared at a time.

    Returns:
        The loss, a float scalar, and whether the correlation is not defined, 0 or 1, a float scalar without gradient: all sentences or
        all pictures are equally alike, or there is no pair at all. The loss is then 0 with zero gradient.

    Raises:
        ValueError: pairs are to be sampled without draws.
    """
    rows = usable.nonzero()[:, 0]
    every = len(rows) * (len(rows) - 1) // 2
    if pairs is None or pairs >= every:
        chosen: _AllPairs | _SampledPairs = _AllPairs(len(rows))
    elif draws is None:
        raise ValueError("which pairs are sampled is chosen by draws, which were not given")
    else:
        chosen = _sample(draws[rows], pairs)
    loss, constant = _negative_correlation(grounded[rows], images[rows].detach(), chosen, block_pairs).unbind()
    return loss, constant.detach()


@dataclass(frozen=True)
class _AllPairs:
    """A table of all rows with all rows, each pair in it twice; its diagonal holds no pairs."""

    rows: int

    def blocks(self, block_pairs: int) -> list[slice]:
        return row_blocks(self.rows, self.rows, block_pairs)

    def count(self, block: slice) -> int:
        return (block.stop - block.start) * (self.rows - 1)

    def cosines(self, vectors: Tensor, block: slice) -> Tensor:
        return vectors[block] @ vectors.T

    def without_others(self, values: Tensor, block: slice) -> Tensor:
        """`values` with 0 for what is no pair; changes them."""
        itself(values, block).fill_(0)
        return values


@dataclass(frozen=True)
class _SampledPairs:
    """Pairs of rows, int64 [P] each."""

    first: Tensor
    second: Tensor

    def blocks(self, block_pairs: int) -> list[slice]:
        # A block takes the vectors of both rows of each pair, not only a cosine.
        return row_blocks(len(self.first), 1, max(1, block_pairs // 2**8))

    def count(self, block: slice) -> int:
        return block.stop - block.start

    def cosines(self, vectors: Tensor, block: slice) -> Tensor:
        return (vectors[self.first[block]] * vectors[self.second[block]]).sum(dim=-1)

    def without_others(self, values: Tensor, block: slice) -> Tensor:
        return values


def _sample(draws: Tensor, pairs: int) -> _SampledPairs:
    """`pairs` different pairs, fewer than there are: rows stand in a circle in the order of their draws, and each meets those after it."""
    circle = draws.argsort(stable=True)
    number = torch.arange(pairs, device=draws.device)
    place, distance = number % len(circle), number // len(circle) + 1
    return _SampledPairs(circle[place], circle[(place + distance) % len(circle)])


@full_precision
def _negative_correlation(grounded: Tensor, images: Tensor, pairs: _AllPairs | _SampledPairs, block_pairs: int) -> Tensor:
    """The loss and whether the correlation is undefined, float [2], of rows that are all usable."""
    sentences, pictures = unit_vectors(grounded), unit_vectors(images)
    blocks = pairs.blocks(block_pairs)
    means, (of_sentences, of_pictures, of_both) = _moments(sentences.detach(), pictures, pairs, blocks)
    smallest = torch.minimum(of_sentences, of_pictures).sqrt()
    constant = smallest <= ROUNDING * torch.finfo(sentences.dtype).eps
    safe = torch.where(constant, 1, of_sentences), torch.where(constant, 1, of_pictures)
    correlation = of_both / (safe[0] * safe[1]).sqrt()
    count = max(1, sum(map(pairs.count, blocks)))

    def tangent(block: slice, sentences: Tensor) -> tuple[Tensor, Tensor]:
        """A function of the sentences' cosines x with the derivative of ρ: Σ [(x−x̄)(y−ȳ) / (σ_x σ_y) − ½ ρ (x−x̄)² / σ_x²] / pairs."""
        x, y = (
            pairs.without_others(pairs.cosines(vectors, block) - mean.to(vectors.dtype), block)
            for vectors, mean in zip((sentences, pictures), means, strict=True)
        )
        slope = y / (safe[0] * safe[1]).sqrt().to(y.dtype) - x * (correlation / safe[0] / 2).to(x.dtype)
        return (x * slope).sum() / count, sentences.new_full((), float(block.start == 0))

    # Of the tangent only the derivative counts: its value is half of ρ, but for rounding.
    derivative = mean_over_blocks(tangent, blocks, sentences)
    value = correlation.to(sentences.dtype) + (derivative - derivative.detach())
    return torch.stack([-torch.where(constant, 0 * derivative, value), constant.to(sentences.dtype)])


@torch.no_grad()
def _moments(
    sentences: Tensor, pictures: Tensor, pairs: _AllPairs | _SampledPairs, blocks: list[slice]
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Means of both sides' cosines; their variances and covariance. float64 scalars, from one pass over the blocks.

    Each block's sums are about its own means, which loses no digits (Chan, Golub and LeVeque, "Updating Formulae and a Pairwise
    Algorithm for Computing Sample Variances", 1979).
    """
    if not blocks:
        nothing = sentences.new_zeros((), dtype=torch.float64)
        return (nothing, nothing), (nothing, nothing, nothing)
    counts, means, sums = [], [], []
    for block in blocks:
        count = pairs.count(block)
        x, y = (pairs.without_others(pairs.cosines(vectors, block), block).double() for vectors in (sentences, pictures))
        mean_x, mean_y = x.sum() / max(count, 1), y.sum() / max(count, 1)
        x, y = pairs.without_others(x - mean_x, block), pairs.without_others(y - mean_y, block)
        counts.append(count)
        means.append(torch.stack([mean_x, mean_y]))
        sums.append(torch.stack([(x * x).sum(), (y * y).sum(), (x * y).sum()]))
    weights = torch.tensor(counts, dtype=torch.float64, device=sentences.device) / max(sum(counts), 1)
    mean = weights @ torch.stack(means)
    apart = torch.stack(means) - mean
    between = weights @ torch.stack([apart[:, 0] ** 2, apart[:, 1] ** 2, apart[:, 0] * apart[:, 1]], dim=1)
    moments = torch.stack(sums).sum(dim=0) / max(sum(counts), 1) + between
    mean_x, mean_y = mean.unbind()
    variance_x, variance_y, covariance = moments.unbind()
    return (mean_x, mean_y), (variance_x, variance_y, covariance)
