"""Batches of RC³'s three kinds of rows: pictures with texts in two languages, parallel or not, and parallel texts alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from raysys.data.batches import Rows
from raysys.data.streams import PARALLEL, STRICT, WEAK

__all__ = ["PARALLEL", "STRICT", "WEAK", "Rc3Batch"]


@dataclass(frozen=True)
class Rc3Batch(Rows):
    """n rows. A text, regions or a picture that a row does not have: its mask is 0 everywhere.

    Which fields are None is the same in all batches of a run; of those that are there, every batch has its part, be it [n, 0].
    """

    texts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "first_mask": ("first_ids", "first_masked", "first_labels"),
        "second_mask": ("second_ids", "second_masked", "second_labels"),
        "region_mask": ("regions", "boxes", "region_draws"),
        "near_first_mask": ("near_first_ids",),
        "near_second_mask": ("near_second_ids",),
    }

    kinds: Tensor
    """int64 [n]: STRICT, WEAK or PARALLEL."""
    image_ids: Tensor
    """int64 [n]; equal numbers mean the same picture, 0 no picture."""
    first_ids: Tensor
    """int64 [n, L], `[BOS] x [LAN]` of x^li, a text in one of the row's languages."""
    first_mask: Tensor
    """int64 [n, L], 1 at tokens, 0 at padding."""
    first_masked: Tensor
    """int64 [n, L], the tokens with 15 % of the words hidden."""
    first_labels: Tensor
    """int64 [n, L], the hidden tokens, −100 elsewhere."""
    first_languages: Tensor
    """int64 [n], index into the languages in use."""
    second_ids: Tensor
    """int64 [n, K], of x^lj, a text in another language."""
    second_mask: Tensor
    """int64 [n, K]."""
    second_masked: Tensor
    """int64 [n, K]."""
    second_labels: Tensor
    """int64 [n, K]."""
    second_languages: Tensor
    """int64 [n]."""
    regions: Tensor | None = None
    """float32 [n, R, D], what the detector says of each region; None in runs that look at none."""
    boxes: Tensor | None = None
    """float32 [n, R, 5]: left, top, right, bottom as fractions of the picture, and the share of it that the box covers."""
    region_mask: Tensor | None = None
    """int64 [n, R], 1 at regions, 0 at padding."""
    region_draws: Tensor | None = None
    """float32 [n, R], uniform in [0, 1), by address of seed, pass, sample and region: chooses the regions that are hidden."""
    images: Tensor | None = None
    """uint8 [n, 3, H, W], zeros in rows without a picture; None in runs that look at no pixels."""
    has_pixels: Tensor | None = None
    """bool [n], whether a row has a picture."""
    near_first_ids: Tensor | None = None
    """int64 [n, M, L], the first texts of M other rows of the global batch; None until the workers have exchanged them."""
    near_first_mask: Tensor | None = None
    """int64 [n, M, L]."""
    near_second_ids: Tensor | None = None
    """int64 [n, M, K], the second texts of these rows."""
    near_second_mask: Tensor | None = None
    """int64 [n, M, K]."""
    near_rows: Tensor | None = None
    """int64 [n, M], which rows of the global batch these are; −1: none."""
    row_numbers: Tensor | None = None
    """int64 [n], which row of the global batch this is."""

    @classmethod
    def unpacked(cls, **travelled: Any) -> Self:
        """The batch of what :class:`raysys.data.rc3_builder.Rc3Builder` sent: regions travel one after another, without padding."""
        if "regions" in travelled:
            packed, there = travelled["regions"], travelled["region_mask"].bool()
            travelled["regions"] = torch.zeros((*there.shape, packed.shape[1]))
            travelled["regions"][there] = packed.float()
        return cls(**travelled)
