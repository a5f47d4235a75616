"""Which rows of a batch are no negatives of one another: those of one image, and those with a text in common."""

import torch
from torch import Tensor

from raysys.objectives.similarity import same_image_pairs

_FIRST, _SECOND = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9  # odd, so that no bit of what they multiply is lost


def text_numbers(ids: Tensor, mask: Tensor) -> Tensor:
    """A number for each text, the same for equal texts in whatever language: int64 [n].

    Args:
        ids: ``[BOS] pieces [LAN]``, int64 [n, L].
        mask: int64 [n, L], 1 at tokens, 0 at padding.
    """
    places = torch.arange(ids.shape[1], device=ids.device)
    of_text = places < mask.sum(dim=1, keepdim=True) - 1  # without its language
    hashed = (ids + 1) * _FIRST ^ (places + 1) * _SECOND
    hashed = (hashed ^ (hashed >> 29)) * _SECOND
    return torch.where(of_text, hashed ^ (hashed >> 32), 0).sum(dim=1)


def related_rows(image_ids: Tensor, texts: Tensor, rows: slice = slice(None)) -> Tensor:
    """Which rows show the same image or have a text in common, and each row itself: bool [rows, N].

    Args:
        image_ids: int64 [N]; equal numbers mean the same image, 0 none.
        texts: int64 [N, 2], the :func:`text_numbers` of each row's texts.
        rows: of which rows.
    """
    related = same_image_pairs(image_ids, rows)
    for own in texts[rows].T:
        for other in texts.T:
            related |= own[:, None] == other
    return related
