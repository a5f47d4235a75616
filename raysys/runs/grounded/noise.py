"""Batches of noise, by which the needs of a grounded run are measured before it is started."""

import functools
from typing import Any

import torch

from raysys.data.grounded_batches import GroundedBatch
from raysys.models.images import ImageBackbone, ImageModelSettings
from raysys.runs.run import Run


def random_grounded_batch(run: Run, system: Any, samples: int, generator: torch.Generator) -> GroundedBatch:
    """Triples and captions by their shares of a batch, all of them as long as the settings allow."""
    settings = run.settings
    words, data = settings.model.text, settings.data
    text = data.text_share * settings.uses_text
    triple = torch.arange(samples) % (text + data.caption_share * settings.uses_images) < text

    def sentences(present: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.randint(5, words.vocabulary_size, (samples, words.form.longest), generator=generator)
        return ids, present[:, None].expand_as(ids).long()

    this, every = sentences(torch.ones(samples, dtype=torch.bool)), torch.arange(samples)
    parts: dict[str, torch.Tensor] = {"input_ids": this[0], "attention_mask": this[1]}
    if settings.uses_text:
        for name in ("previous", "next"):
            parts[f"{name}_ids"], parts[f"{name}_mask"] = sentences(triple)
    if settings.uses_images:
        parts["other_ids"], parts["other_mask"] = sentences(~triple)
        parts["features"] = torch.randn(samples, picture_size(settings.model.image), generator=generator) * ~triple[:, None]
    return GroundedBatch(
        step=0,
        count=samples,
        ids=every,
        replaced=[],
        cut_captions=0,
        image_ids=torch.where(triple, 0, every + 1),
        draws=torch.rand(samples, generator=generator),
        **parts,
    )


@functools.cache
def picture_size(image: ImageModelSettings) -> int:
    """Size of the image network's vectors."""
    return ImageBackbone(image).hidden_size
