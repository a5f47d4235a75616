"""Batches of noise, by which the needs of a Globetrotter run are measured before it is started."""

from dataclasses import replace
from typing import Any

import torch

from raysys.data.batches import Batch
from raysys.runs.run import Run
from raysys.training.footprint import noise_batch


def random_batch(run: Run, system: Any, samples: int, generator: torch.Generator) -> Batch:
    """A batch of noise in the shape of the run's, its captions as long as the settings allow."""
    settings = run.settings
    text = system.model.text
    batch = noise_batch(samples, text.vocabulary_size + text.trigram_buckets, settings.model.text.form.longest, generator)
    if settings.system == "supervised":
        texts: dict[str, Any] = {"translation_ids": batch.input_ids, "translation_mask": batch.attention_mask}
        batch = replace(batch, **texts, translated=torch.ones(samples, dtype=torch.bool), concepts=batch.ids)
    if settings.data.cached_views:
        return replace(batch, features=torch.randn(samples, 2, system.image.hidden_size, generator=generator))
    if system.uses_images:
        size = settings.data.image.size
        return replace(batch, images=torch.randint(0, 256, (samples, 3, size, size), dtype=torch.uint8, generator=generator))
    return batch
