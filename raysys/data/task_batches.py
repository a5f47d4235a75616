"""Batches of a task's records: a text, one or two images, and what is right."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from raysys.data.batches import Rows


@dataclass(frozen=True)
class TaskBatch(Rows):
    """n rows of K images each (2 in `marvl`, else 1). Which fields are None is the same in all batches of a run."""

    texts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "text_mask": ("text_ids",),
        "target_mask": ("target_ids",),
        "near_mask": ("near_ids",),
    }

    text_ids: Tensor
    """int64 [n, L], ``[BOS] text [LAN]``."""
    text_mask: Tensor
    """int64 [n, L], 1 at tokens, 0 at padding."""
    text_numbers: Tensor
    """int64 [n]; equal numbers mean equal texts."""
    image_ids: Tensor
    """int64 [n], of the first image; equal numbers mean the same image."""
    labels: Tensor | None = None
    """int64 [n], the right class; −1: one that training has not. None in tasks without classes."""
    target_ids: Tensor | None = None
    """int64 [n, T], ``[BOS] translation [LAN]``; None in tasks without translations."""
    target_mask: Tensor | None = None
    """int64 [n, T]."""
    pixels: Tensor | None = None
    """uint8 [n, K, 3, H, W]; None where regions alone are read."""
    regions: Tensor | None = None
    """float32 [n, K, R, D], features of regions; None where pixels alone are read."""
    boxes: Tensor | None = None
    """float32 [n, K, R, 5]: left, top, right and bottom as shares of the picture, and the area."""
    region_mask: Tensor | None = None
    """int64 [n, K, R], 1 at regions, 0 where an image has fewer."""
    near_ids: Tensor | None = None
    """int64 [n, M, L], the texts of other rows of the global batch, which the row's image is told apart from; None before they are
    exchanged (:meth:`raysys.systems.rc3.tasks.TaskSystem.exchange`), and in tasks that need none."""
    near_mask: Tensor | None = None
    """int64 [n, M, L]."""
    near_rows: Tensor | None = None
    """int64 [n, M], the rows of the global batch that those texts belong to."""
    row_numbers: Tensor | None = None
    """int64 [n], the row's own number in the global batch."""
