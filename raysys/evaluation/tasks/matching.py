"""How well every image and every text of a test go together."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from raysys.models.visual import Visual


def match_all(
    match: Callable[[Tensor, Tensor, Visual], Tensor], images: Iterable[Visual], text_ids: Tensor, text_mask: Tensor, batch_size: int
) -> np.ndarray:
    """Scores of all pairs, float32 [images, texts]; besides them, one batch of images and one of pairs are in memory.

    Args:
        match: ids and masks of k texts and their k images → scores, float32 [k].
        images: in batches, on the device that `match` computes on.
        text_ids: int64 [T, L].
        text_mask: int64 [T, L], 1 at tokens, 0 at padding.
        batch_size: pairs that are scored at a time.
    """
    lengths = text_mask.sum(dim=1)
    order = torch.argsort(lengths, stable=True)  # texts of like length meet in a batch: padding is computed too
    rows = []
    for batch in images:
        first = next(part for part in (batch.pixels, batch.regions) if part is not None)
        for image in range(len(first)):
            scores = np.empty(len(text_ids), dtype=np.float32)
            for some in order.split(batch_size):
                longest = int(lengths[some].max())
                ids, mask = (own[some, :longest].to(first.device) for own in (text_ids, text_mask))
                scores[some.numpy()] = match(ids, mask, batch.rows(torch.full_like(some, image, device=first.device))).cpu().numpy()
            rows.append(scores)
    return np.stack(rows)
