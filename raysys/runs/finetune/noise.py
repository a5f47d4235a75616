"""Batches of noise, by which the needs of fine-tuning are measured before it is started."""

import torch
from torch import Tensor

from raysys.data.task_batches import TaskBatch
from raysys.runs.run import Run
from raysys.systems.rc3.tasks import TaskSystem


def random_task_batch(run: Run, system: TaskSystem, samples: int, generator: torch.Generator) -> TaskBatch:
    """Records with texts as long and regions as many as the settings allow."""
    settings, network, every = run.settings, system.network.settings, torch.arange(samples)
    images = 2 if settings.system == "marvl" else 1
    ids = torch.randint(5, network.vocabulary_size, (samples, settings.max_tokens), generator=generator)
    parts: dict[str, Tensor] = {"text_ids": ids, "text_mask": torch.ones_like(ids), "text_numbers": every, "image_ids": every}
    if settings.system == "mmt":
        parts |= {"target_ids": ids, "target_mask": torch.ones_like(ids)}
    elif settings.system != "itr":
        parts["labels"] = torch.zeros_like(every)
    if settings.visual != "regions":
        shape = (samples, images, 3, network.image_size, network.image_size)
        parts["pixels"] = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    if settings.visual != "patches":
        regions = (samples, images, network.regions)
        parts |= {
            "regions": torch.randn(*regions, network.region_size, generator=generator),
            "boxes": torch.rand(*regions, 5, generator=generator),
            "region_mask": torch.ones(regions, dtype=torch.int64),
        }
    return TaskBatch(step=0, count=samples, ids=every, replaced=[], cut_captions=0, **parts)
