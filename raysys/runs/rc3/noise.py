"""Batches of noise, by which the needs of a pre-training run are measured before it is started."""

from typing import Any

import torch
from torch import Tensor

from raysys.data.masking import IGNORED, WORD_SHARE
from raysys.data.rc3_batches import STRICT, WEAK, Rc3Batch
from raysys.runs.rc3.run import shares_of
from raysys.runs.rc3.settings import STREAMS
from raysys.runs.run import Run


def random_rc3_batch(run: Run, system: Any, samples: int, generator: torch.Generator) -> Rc3Batch:
    """Rows of the streams by their shares of a batch, with texts as long and regions as many as the settings allow."""
    data, network = run.settings.data, system.model.network
    shares = [share if getattr(data, name) else 0 for name, share in zip(STREAMS, shares_of(data), strict=True)]
    round_of_kinds = torch.arange(len(STREAMS)).repeat_interleave(torch.tensor(shares))
    kinds = round_of_kinds[torch.arange(samples) % len(round_of_kinds)]
    strict, weak, every = kinds == STRICT, kinds == WEAK, torch.arange(samples)
    parts: dict[str, Tensor] = {}
    for name in ("first", "second"):
        ids = torch.randint(5, network.vocabulary_size, (samples, network.max_tokens), generator=generator)
        hidden = torch.rand(ids.shape, generator=generator) < WORD_SHARE
        parts |= {f"{name}_ids": ids, f"{name}_masked": ids, f"{name}_mask": torch.ones_like(ids)}
        parts |= {f"{name}_labels": ids.where(hidden, IGNORED), f"{name}_languages": torch.zeros_like(every)}
    if data.strict and data.strict_visual != "patches":
        shape = (samples, network.regions)
        parts |= {
            "regions": torch.randn(*shape, network.region_size, generator=generator) * strict[:, None, None],
            "boxes": torch.rand(*shape, 5, generator=generator),
            "region_mask": strict[:, None].expand(shape).long(),
            "region_draws": torch.rand(shape, generator=generator),
        }
    if data.weak or data.strict_visual != "regions":
        size = network.image_size
        parts["images"] = torch.randint(0, 256, (samples, 3, size, size), dtype=torch.uint8, generator=generator)
        parts["has_pixels"] = weak if data.strict_visual == "regions" else weak | strict
    return Rc3Batch(
        step=0,
        count=samples,
        ids=every,
        replaced=[],
        cut_captions=0,
        kinds=kinds,
        image_ids=torch.where(strict | weak, every + 1, 0),
        **parts,
    )
