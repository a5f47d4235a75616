"""From the plan's ids to what a training step takes.

A batch is built in two places. A :class:`raysys.data.shares.ShareBuilder` runs where the data is read: it fetches bytes,
draws captions and tokenises, and what travels on is small. :class:`BatchFinisher` runs in the training worker: it decodes
the pictures and makes tensors, of the kind that the builder names. With ``data.decode: cluster`` the pictures are decoded by the
builder instead; the batches are the same.
"""

import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from raysys.data.bad import BadSample, Replacement
from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.shares import Payload, ShareBuilder
from raysys.shards.sample import SampleError


@dataclass(frozen=True)
class Rows:
    """One worker's share of a global batch: n rows; the tensors of each kind of batch are fields of its class, with a row per sample."""

    texts: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Mask, 1 at tokens and 0 at padding, in its last dimension → the tensors as long as it in that dimension. Each kind of text is as
    long as the longest in the batch."""

    step: int
    """Which global batch."""
    count: int
    """Rows that belong to the batch. A worker without any is given one row of padding, and the count 0."""
    ids: Tensor
    """int64 [n], the samples' numbers."""
    replaced: list[Replacement]
    """Rows whose own sample is bad; another sample took its place."""
    cut_captions: int
    """Rows with a text that was longer than allowed and lost its end."""

    def to(self, device: torch.device) -> Self:
        """The batch with all its tensors on `device`."""
        moved: dict[str, Any] = {name: value.to(device, non_blocking=True) for name, value in self.tensors().items()}
        return replace(self, **moved)

    def pinned(self) -> Self:
        """The batch in memory from which a GPU copies by itself."""
        return replace(self, **{name: value.pin_memory() for name, value in self.tensors().items()})  # type: ignore[arg-type]

    def rows(self, start: int, stop: int) -> Self:
        """The rows from `start` to `stop` as a batch of its own, its texts as long as the longest of them.

        No rows give one row of padding, and the count 0.
        """
        chosen = slice(start, stop) if stop > start else slice(0, 1)
        parts: dict[str, Any] = {name: value[chosen] for name, value in self.tensors().items()}
        for mask, names in self.texts.items():
            if mask in parts:
                lengths = parts[mask].sum(dim=-1)
                longest = int(lengths.max()) if lengths.numel() else 0
                parts |= {name: parts[name].narrow(parts[mask].ndim - 1, 0, longest) for name in (mask, *names)}
        return replace(self, **parts, count=stop - start)

    @classmethod
    def unpacked(cls, **travelled: Any) -> Self:
        """The batch of what a builder sent; kinds of batches that are sent smaller than they are have their own way."""
        return cls(**travelled)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name; each has a row per sample."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}


@dataclass(frozen=True)
class Batch(Rows):
    """Captions, most often with pictures: n rows, captions of L tokens."""

    texts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "attention_mask": ("input_ids", "masked_ids", "labels"),
        "translation_mask": ("translation_ids",),
    }

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
    translation_ids: Tensor | None = None
    """int64 [n, K], tokens of each caption in another language, or once more in its own where it has no translation."""
    translation_mask: Tensor | None = None
    """int64 [n, K], 1 at tokens, 0 at padding."""
    translated: Tensor | None = None
    """bool [n], whether there is a translation."""
    concepts: Tensor | None = None
    """int64 [n]; equal numbers mean captions that say the same, in whatever language."""
    images: Tensor | None = None
    """uint8 [n, 3, H, W]."""
    features: Tensor | None = None
    """float32 [n, 2, D], cached vectors of two views of each picture; the first view is the picture as it is."""


def stack_texts(texts: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Ids and masks, int64 [n_i, L_i] each, one under the other: [Σn, max L] each, padded with 0."""
    longest = max(ids.shape[1] for ids, _ in texts)
    columns = ([torch.nn.functional.pad(part, (0, longest - part.shape[1])) for part in column] for column in zip(*texts, strict=True))
    ids, masks = map(torch.cat, columns)
    return ids, masks


_TAKEN = 8  # pictures


class BatchFinisher:
    """Decodes in threads and makes tensors; lives in a training worker.

    Args:
        settings: of the preprocessor.
        threads: that decode.
        builder: of the payloads; builds a share anew with spares where pictures in it turn out to be bad.
    """

    def __init__(self, settings: ImagePreprocessorSettings, threads: int, builder: ShareBuilder[Any]):
        self.preprocess = ImagePreprocessor(settings)
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")
        self.builder = builder
        self._bad: dict[int, BadSample] = {}

    def __call__(self, payload: Payload) -> Any:
        """A batch, of the builder's `batch_type`, from a share as the builder reads it.

        Raises:
            BadDataError: a picture that cannot be decoded, where the policy is `raise`; otherwise too many bad samples.
        """
        while True:
            batch = pickle.loads(payload.header)
            share, members = batch.pop("share"), batch.pop("members")
            pictured = np.flatnonzero(batch["has_pixels"]) if "has_pixels" in batch else np.arange(len(payload.pictures))
            images, broken = self._decode(payload.pictures)
            faults = {int(batch["ids"][pictured[place]]): SampleError("", error.reason, members[place], "image") for place, error in broken}
            if not faults:
                break
            self._note(faults)
            (payload,) = self.builder([share], self._bad)
        tensors = {name: torch.from_numpy(value) for name, value in batch.items() if isinstance(value, np.ndarray)}
        if "features" in tensors:
            tensors["features"] = tensors["features"].float()
        if images is not None:
            tensors["images"] = images
        if "has_pixels" in tensors:
            tensors["images"] = self._in_rows(tensors["has_pixels"], tensors.get("images"))
        return self.builder.batch_type.unpacked(**{**batch, **tensors, "step": share.step, "count": len(share.ids)})

    def _in_rows(self, pictured: Tensor, images: Tensor | None) -> Tensor:
        """The pictures, in order, in the rows that have one: uint8 [n, 3, size, size], zeros in the others."""
        if images is not None and len(images) == len(pictured):
            return images
        size = self.preprocess.settings.size
        rows = torch.zeros((len(pictured), 3, size, size), dtype=torch.uint8)
        if images is not None:
            rows[pictured] = images
        return rows

    def _decode(self, pictures: Sequence[bytes]) -> tuple[Tensor | None, list[tuple[int, ImageError]]]:
        """uint8 [n, 3, size, size], None of no pictures; and which of them cannot be decoded."""
        if not pictures:
            return None, []
        size = self.preprocess.settings.size
        images, broken = torch.empty((len(pictures), 3, size, size), dtype=torch.uint8), []

        def work(rows: range) -> None:
            for row in rows:
                try:
                    self.preprocess(pictures[row], out=images[row])
                except ImageError as error:
                    broken.append((row, error))

        # A thread takes several at a time, since handing over costs as well.
        list(self.pool.map(work, [range(start, min(start + _TAKEN, len(pictures))) for start in range(0, len(pictures), _TAKEN)]))
        return images, sorted(broken, key=lambda found: found[0])

    def _note(self, faults: dict[int, SampleError]) -> None:
        samples = self.builder.samples
        for sample, fault in faults.items():
            self._bad[sample] = samples.policy.accept(samples.describe_bad(sample, fault))
            samples.policy.check(len(self._bad), samples.total, str(self._bad[sample]))
