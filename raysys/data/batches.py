"""From the plan's ids to what a training step takes.

A batch is built in two places. :class:`raysys.data.builder.BatchBuilder` runs where the data is read: it fetches bytes,
draws captions and tokenises, and what travels on is small. :class:`BatchFinisher` runs in the training worker: it decodes
the pictures and makes tensors. With ``data.decode: cluster`` the pictures are decoded by the builder instead; the batches are the same.
"""

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings


@dataclass(frozen=True)
class Batch:
    """One worker's share of a global batch: n rows, captions of L tokens."""

    step: int
    """Which global batch."""
    count: int
    """Rows that belong to the batch. A worker without any is given one row of padding, and the count 0."""
    ids: Tensor
    """int64 [n], the samples' numbers."""
    image_ids: Tensor
    """int64 [n]; equal numbers mean the same picture, 0 no picture."""
    languages: Tensor
    """int64 [n], index into the languages in use."""
    input_ids: Tensor
    """int64 [n, L], tokens of the captions."""
    attention_mask: Tensor
    """int64 [n, L], 1 at tokens, 0 at padding."""
    masked_ids: Tensor
    """int64 [n, L], the tokens with some hidden for the cloze objective."""
    labels: Tensor
    """int64 [n, L], the hidden tokens, −100 elsewhere."""
    images: Tensor | None = None
    """uint8 [n, 3, H, W]."""
    features: Tensor | None = None
    """float32 [n, 2, D], cached vectors of two views of each picture; the first view is the picture as it is."""

    def to(self, device: torch.device) -> "Batch":
        """The batch with all its tensors on `device`."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in values.items()}
        return Batch(**moved)


class BatchFinisher:
    """Decodes in threads and makes tensors; lives in a training worker."""

    def __init__(self, settings: ImagePreprocessorSettings, threads: int):
        self.preprocess = ImagePreprocessor(settings)
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")

    def __call__(self, payload: Any) -> Batch:
        """A batch from the bytes of :class:`raysys.data.builder.BatchBuilder` (any buffer)."""
        batch = pickle.loads(payload)
        where: Sequence[str] = batch.pop("where", ())
        images = batch.pop("images", None)
        if isinstance(images, list):
            images = torch.stack(list(self.pool.map(self.preprocess, images, where)))
        elif images is not None:
            images = torch.from_numpy(images)
        tensors = {name: torch.from_numpy(value) for name, value in batch.items() if isinstance(value, np.ndarray)}
        if "features" in tensors:
            tensors["features"] = tensors["features"].float()
        return Batch(**{**batch, **tensors, "images": images})
