"""All pairs of images and texts, each scored by what belongs to it, whatever the sizes of batches."""

import numpy as np
import pytest
import torch

from raysys.evaluation.tasks.matching import match_all
from raysys.models.visual import Visual


@pytest.mark.parametrize("size", [1, 3, 100])
def test_every_pair_is_scored_with_its_own_text_and_image(size):
    lengths = torch.tensor([3, 1, 4, 2, 4])
    mask = (torch.arange(4) < lengths[:, None]).long()
    ids = (torch.arange(5)[:, None] + 1) * 10 * mask
    pixels, seen = torch.arange(7, dtype=torch.float32)[:, None], []

    def match(ids: torch.Tensor, mask: torch.Tensor, visual: Visual) -> torch.Tensor:
        seen.append(ids.shape)
        assert mask.shape == ids.shape
        return ids.sum(dim=1) + visual.pixels[:, 0]

    found = match_all(match, [Visual(pixels=pixels[:4]), Visual(pixels=pixels[4:])], ids, mask, size)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.arange(7)[:, None] + ids.sum(dim=1).numpy()[None])
    assert max(rows for rows, _ in seen) <= size
