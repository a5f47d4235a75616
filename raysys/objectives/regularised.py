"""L_R-XVtCL, regularised cross-lingual visio-textual contrastive learning (RC³ §2.3.4)."""

from typing import NamedTuple

import torch
from torch import Tensor

from raysys.objectives.blocks import BLOCK_PAIRS, mean_over_blocks, row_blocks
from raysys.objectives.interpolation import contrast, distances, pair_distances
from raysys.objectives.related import related_rows
from raysys.objectives.similarity import full_precision


class Triplets(NamedTuple):
    """N triplets (v, x^li, x^lj) of one kind of data, and the VtRs of each one's image with the texts of K others, its near ones."""

    first: Tensor
    """VtR of (v, x^li), float [N, d]."""
    second: Tensor
    """VtR of (v, x^lj), float [N, d]."""
    near_first: Tensor
    """VtR of (v, x̂^li), float [N, K, d]."""
    near_second: Tensor
    """VtR of (v, x̂^lj), float [N, K, d]."""
    near: Tensor
    """int64 [N, K], which triplet's texts those are; −1: none, the vectors there mean nothing."""
    image_ids: Tensor
    """int64 [N]; equal numbers mean the same image."""
    texts: Tensor
    """int64 [N, 2], equal numbers mean equal texts (:func:`raysys.objectives.related.text_numbers`)."""

    def of(self, rows: Tensor) -> "Triplets":
        """The triplets `rows`, int64 [M], as triplets of their own; those whose near ones are not among them lose these."""
        place = torch.full_like(self.image_ids, -1)
        place[rows] = torch.arange(len(rows), device=rows.device)
        near = self.near[rows]
        parts = {name: value[rows] for name, value in self._asdict().items()}
        return Triplets(**parts | {"near": torch.where(near >= 0, place[near.clamp(min=0)], -1)})


def rxvtcl_loss(triplets: Triplets, power: float | Tensor = 0.0, block_pairs: int = BLOCK_PAIRS) -> Tensor:
    """Mean over the triplets of L̃(v, x^li), with (v, x^li) the anchor, (v, x^lj) its positive, and three kinds of negatives.

    Equation 9: the same image with the texts of near triplets; the images of those to which this triplet is near, with its texts; and
    all other triplets' images with their own texts. Triplets of the same image, or with a text in common, are no negatives of one
    another. A triplet that has no negatives has nothing to be told from, and is not counted.

    Args:
        triplets: of one kind of data; `near` leaves out what is no negative.
        power: ζ · p⁺_avg (:func:`raysys.objectives.interpolation.drawn_nearer`).
        block_pairs: pairs that are compared at a time.

    Returns:
        float scalar; 0 with zero gradient where no triplet is counted.
    """
    return _rxvtcl(*triplets, power, block_pairs)


@full_precision
def _rxvtcl(
    first: Tensor,
    second: Tensor,
    near_first: Tensor,
    near_second: Tensor,
    near: Tensor,
    image_ids: Tensor,
    texts: Tensor,
    power: float | Tensor,
    block_pairs: int,
) -> Tensor:
    facing = facing_places(near)

    def losses(rows: slice, first: Tensor, second: Tensor, near_first: Tensor, near_second: Tensor) -> tuple[Tensor, Tensor]:
        anchors, others, there = first[rows], ~related_rows(image_ids, texts, rows), facing[rows].clamp(min=0)
        same_image = torch.cat([near_first[rows], near_second[rows]], dim=1)
        same_text = torch.cat([one.flatten(0, 1)[there] for one in (near_first, near_second)], dim=1)
        few = distances(anchors[:, None], torch.cat([same_image, same_text], dim=1))
        many = pair_distances(anchors, torch.cat([first, second]))
        present = [(near[rows] >= 0).repeat(1, 2), (facing[rows] >= 0).repeat(1, 2), others.repeat(1, 2)]
        negatives = torch.cat(present, dim=1)
        found = contrast(distances(anchors, second[rows]), torch.cat([few, many], dim=1), negatives, power)
        counted = negatives.any(dim=1)
        return torch.where(counted, found, 0).sum(), counted.sum()

    blocks = row_blocks(len(first), 2 * len(first) + 4 * near.shape[1], block_pairs)
    return mean_over_blocks(losses, blocks, first, second, near_first, near_second)


def facing_places(near: Tensor) -> Tensor:
    """Where each row's own texts are among those that its near rows read: int64 [N, K], places of the flat table [N · K].

    Where row i has row m as near one, this is the place at which m has i; −1 where m does not.

    Args:
        near: int64 [N, K], each row at most once in a row; −1: none.
    """
    rows = len(near)
    own = torch.arange(rows, device=near.device)[:, None].expand_as(near)
    there, back = (near * rows + own).flatten(), (own * rows + near).flatten()
    order = there.argsort()
    place = order[torch.searchsorted(there[order], back).clamp(max=max(0, near.numel() - 1))]
    found = (near.flatten() >= 0) & (there[place] == back)
    return torch.where(found, place, -1).view_as(near)


def relevance_loss(triplets: Triplets, text_first: Tensor, text_second: Tensor, detach_relevance: bool = False) -> Tensor:
    """Mean over weakly aligned triplets, and over the near ones of each, of KL(P_vtr ‖ P_tr) (equations 10–12).

    Both are softmax of minus the distances of x^lj, x̂^li and x̂^lj to the anchor x^li: among texts in P_tr, each together with the image v
    in P_vtr.

    Args:
        triplets: of the weakly aligned data.
        text_first: TR of x^li, float [N, d].
        text_second: TR of x^lj, float [N, d].
        detach_relevance: whether P_tr is a constant.

    Returns:
        float scalar; 0 with zero gradient where no triplet has a near one.
    """
    return _relevance(*triplets[:5], text_first, text_second, detach_relevance)


@full_precision
def _relevance(
    first: Tensor,
    second: Tensor,
    near_first: Tensor,
    near_second: Tensor,
    near: Tensor,
    text_first: Tensor,
    text_second: Tensor,
    detach_relevance: bool,
) -> Tensor:
    chosen = near.clamp(min=0)
    visual = _relevances(first, second, near_first, near_second)
    textual = _relevances(text_first, text_second, text_first[chosen], text_second[chosen])
    if detach_relevance:
        textual = textual.detach()
    divergence = (visual.exp() * (visual - textual)).sum(dim=-1)
    known = near >= 0
    of_row = torch.where(known, divergence, 0).sum(dim=1) / known.sum(dim=1).clamp(min=1)
    return (of_row.sum() / known.any(dim=1).sum().clamp(min=1)).to(first.dtype)


def _relevances(anchors: Tensor, positives: Tensor, near_first: Tensor, near_second: Tensor) -> Tensor:
    """Logarithms of the relevance distributions: float64 [N, K, 3]. Where two are nearly alike, their divergence in float32 is rounding."""
    anchors, positives, near_first, near_second = (vectors.double() for vectors in (anchors, positives, near_first, near_second))
    positive = distances(anchors, positives)[:, None].expand(near_first.shape[:2])
    others = (distances(anchors[:, None], near) for near in (near_first, near_second))
    return torch.log_softmax(-torch.stack([positive, *others], dim=-1), dim=-1)
