"""A small network of RC³ and what it reads, for tests."""

import torch
from torch import Tensor

from raysys.models.visual import Visual
from raysys.models.visual_mbart import VisualMBart, VisualMBartSettings

SETTINGS = VisualMBartSettings(
    size=32,
    layers=2,
    decoder_layers=2,
    heads=2,
    feed_forward=48,
    dropout=0.0,
    vocabulary_size=60,
    max_tokens=12,
    region_size=7,
    regions=3,
    patch=4,
    image_size=8,
)
FIRST_LANGUAGE = 50
"""Ids from this one on are languages'."""


def network(**settings: object) -> VisualMBart:
    torch.manual_seed(0)
    return VisualMBart(SETTINGS.model_copy(update=settings)).eval()


def texts(*lengths: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Ids and mask of texts with as many tokens each, `[BOS] x [LAN]`, int64 [n, L]; 0: a row without text."""
    draw = torch.Generator().manual_seed(seed)
    mask = (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(4, FIRST_LANGUAGE, mask.shape, generator=draw)
    ids[:, 0] = 0
    for row, length in enumerate(lengths):
        if length:
            ids[row, length - 1] = FIRST_LANGUAGE + row % 5
    return ids.masked_fill(mask == 0, 1), mask


def pictures(rows: int, seed: int = 2) -> Visual:
    """Regions and pixels of as many rows, everything there."""
    draw = torch.Generator().manual_seed(seed)
    return Visual(
        regions=torch.randn(rows, 3, 7, generator=draw),
        boxes=torch.rand(rows, 3, 5, generator=draw),
        region_mask=torch.ones(rows, 3, dtype=torch.int64),
        pixels=torch.randint(0, 256, (rows, 3, 8, 8), generator=draw, dtype=torch.uint8),
        has_pixels=torch.ones(rows, dtype=torch.bool),
    )
