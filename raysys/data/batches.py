"""From the plan's ids to what a training step takes.

A batch is built in two places. :class:`raysys.data.builder.BatchBuilder` runs where the data is read: it fetches bytes,
draws captions and tokenises, and what travels on is small. :class:`BatchFinisher` runs in the training worker: it decodes
the pictures and makes tensors. With ``data.decode: cluster`` the pictures are decoded by the builder instead; the batches are the same.
"""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysys.data.bad import BadSample, Replacement
from raysys.data.builder import BatchBuilder, Payload
from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.shards.sample import SampleError


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
    replaced: list[Replacement]
    """Rows whose own sample is bad; another sample took its place."""
    cut_captions: int
    """Captions that were longer than allowed and lost their end."""
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
    """Decodes in threads and makes tensors; lives in a training worker.

    Args:
        settings: of the preprocessor.
        threads: that decode.
        builder: builds a share anew with spares where pictures in it turn out to be bad.
    """

    def __init__(self, settings: ImagePreprocessorSettings, threads: int, builder: BatchBuilder):
        self.preprocess = ImagePreprocessor(settings)
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")
        self.builder = builder
        self._bad: dict[int, BadSample] = {}

    def __call__(self, payload: Payload) -> Batch:
        """A batch from a share as :class:`raysys.data.builder.BatchBuilder` reads it.

        Raises:
            BadDataError: a picture that cannot be decoded, where the policy is `raise`; otherwise too many bad samples.
        """
        while True:
            batch = pickle.loads(payload.header)
            share, members = batch.pop("share"), batch.pop("members")
            decoded = list(self.pool.map(self._decode, payload.pictures))
            faults = {
                int(batch["ids"][row]): SampleError("", fault.reason, members[row], "image")
                for row, fault in enumerate(decoded)
                if isinstance(fault, ImageError)
            }
            if not faults:
                break
            self._note(faults)
            (payload,) = self.builder([share], self._bad)
        tensors = {name: torch.from_numpy(value) for name, value in batch.items() if isinstance(value, np.ndarray)}
        if "features" in tensors:
            tensors["features"] = tensors["features"].float()
        if decoded:
            tensors["images"] = torch.stack([picture for picture in decoded if isinstance(picture, Tensor)])
        return Batch(**{**batch, **tensors, "step": share.step, "count": len(share.ids)})

    def _decode(self, data: bytes) -> Tensor | ImageError:
        try:
            return self.preprocess(data)
        except ImageError as error:
            return error

    def _note(self, faults: dict[int, SampleError]) -> None:
        samples = self.builder.samples
        for sample, fault in faults.items():
            self._bad[sample] = samples.policy.accept(samples.describe_bad(sample, fault))
            samples.policy.check(len(self._bad), samples.total, str(self._bad[sample]))
