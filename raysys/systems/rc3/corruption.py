"""What is hidden from the network, and what it is to say instead."""

import torch
from torch import Tensor

from raysys.data.masking import IGNORED


def infilled(ids: Tensor, mask: Tensor, labels: Tensor, mask_id: int) -> tuple[Tensor, Tensor]:
    """Texts in which each run of hidden tokens is a single mask token: ids and mask, int64 [n, L] (BART's text infilling).

    Args:
        ids: int64 [n, L].
        mask: int64 [n, L], 1 at tokens, 0 at padding.
        labels: int64 [n, L], −100 at tokens that are not hidden.
        mask_id: the mask token.
    """
    hidden = labels != IGNORED
    return together(torch.where(hidden, mask_id, ids), mask * (~hidden | _begins(hidden)))


def hidden_spans(ids: Tensor, mask: Tensor, labels: Tensor, mask_id: int) -> tuple[Tensor, Tensor]:
    """What :func:`infilled` hides, as a text to be written: ``[BOS] <mask> span <mask> span … [LAN]``, ids and mask, int64 [n, 2L].

    One sentinel for all spans, their order tells them apart [ours]: mBART's vocabulary has a single mask.
    """
    hidden, places = labels != IGNORED, torch.arange(ids.shape[1], device=ids.device)
    ends = (places == 0) | (places == mask.sum(dim=1, keepdim=True) - 1)
    # Each token after a place for its sentinel.
    written = torch.stack([torch.full_like(ids, mask_id), ids], dim=2).flatten(1)
    return together(written, torch.stack([_begins(hidden), (hidden | ends) & mask.bool()], dim=2).flatten(1).long())


def joined(texts: list[tuple[Tensor, Tensor]], *others: list[Tensor], longest: int) -> list[Tensor]:
    """Two texts of each row as one, the second without its [BOS]: ids, mask, and `others` that lie beside the ids; int64 [n, ≤ longest].

    Args:
        texts: ids and mask of both, int64 [n, L] and [n, K].
        others: each of both, of the shapes of the ids.
        longest: tokens; what is beyond is cut off.
    """
    (first_ids, first_mask), (second_ids, second_mask) = texts
    mask = torch.cat([first_mask, second_mask[:, 1:]], dim=1)
    order = mask.argsort(dim=1, descending=True, stable=True)[:, :longest]
    columns = [torch.cat([first_ids, second_ids[:, 1:]], dim=1), mask, *(torch.cat([one, two[:, 1:]], dim=1) for one, two in others)]
    return [column.gather(1, order) for column in columns]


def together(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens that `mask` lets stand, moved together to the left: ids and mask, int64 [n, L]; ids are 0 behind them."""
    order = mask.argsort(dim=1, descending=True, stable=True)
    mask = mask.gather(1, order)
    return ids.gather(1, order) * mask, mask


def hidden_regions(draws: Tensor, mask: Tensor, share: float) -> Tensor:
    """Which regions are hidden: those whose draw is below `share`, and at least one, that with the smallest; bool [n, R].

    Args:
        draws: float [n, R], uniform in [0, 1).
        mask: int64 [n, R], 1 at regions, 0 at padding.
        share: chance of each.
    """
    draws = torch.where(mask.bool(), draws, torch.inf)
    least = draws == draws.min(dim=1, keepdim=True).values
    return ((draws < share) | least) & mask.bool()


def _begins(hidden: Tensor) -> Tensor:
    """Where a run of `hidden`, bool [n, L], begins."""
    return hidden & ~torch.nn.functional.pad(hidden[:, :-1], (1, 0))
