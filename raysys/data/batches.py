"""From the plan's ids to what a training step takes.

A batch is built in two places. :class:`BatchBuilder` runs where the data is read: it fetches bytes, draws captions and
tokenises, and what travels on is small. :class:`BatchFinisher` runs in the training worker: it decodes the pictures and
makes tensors. With ``data.decode: cluster`` the pictures are decoded by the builder instead; the batches are the same.
"""

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from raysys.data.features import FeatureCache
from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.masking import mask_tokens
from raysys.data.randomness import uniform
from raysys.data.samples import Samples
from raysys.data.tokenizer import encode
from raysys.shards.reader import RawSample, image_extension
from raysys.shards.sample import SampleError, parse_captions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_CAPTION, _MASKING, _VIEW = 11, 12, 13  # what a random draw is for


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


@dataclass(frozen=True)
class TextSample:
    """The caption drawn for a sample."""

    language: str
    text: str


class BatchBuilder:
    """Reads, draws captions and tokenises; picklable, for tasks anywhere in the cluster.

    Args:
        samples: the data.
        tokenizer: the run's tokenizer.
        max_tokens: longest caption in tokens.
        seed: of the captions drawn and of the masks.
        features: cached image vectors, which then stand in for the pictures.
        decode: preprocessor with which to decode pictures here; None leaves them encoded.
    """

    def __init__(
        self,
        samples: Samples,
        tokenizer: "PreTrainedTokenizerFast",
        max_tokens: int,
        seed: int,
        features: FeatureCache | None = None,
        decode: ImagePreprocessorSettings | None = None,
    ):
        self.samples = samples
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.seed = seed
        self.features = features
        self.decode = decode
        self._image_ids = samples.column("image_id")

    def __call__(self, step: int, epoch: int, ids: np.ndarray) -> bytes:
        """One worker's share of a global batch, as bytes that :class:`BatchFinisher` understands.

        Args:
            step: the global batch's number.
            epoch: chooses captions and masks.
            ids: int64 [n]; may be empty.
        """
        count = len(ids)
        if not count:
            ids = np.zeros(1, dtype=np.int64)
        raw = self.samples.read(ids)
        captions = [self.draw_caption(sample, int(number), epoch) for sample, number in zip(raw, ids, strict=True)]
        tokens = encode(self.tokenizer, [caption.text for caption in captions], self.max_tokens)
        input_ids, attention_mask = tokens.input_ids.numpy(), tokens.attention_mask.numpy()
        length = input_ids.shape[1]
        draws = uniform(self.seed, _MASKING, epoch, ids[:, None, None], np.arange(length)[None, :, None], np.arange(3))
        masked_ids, labels = mask_tokens(
            input_ids, self.tokenizer.all_special_ids, self.tokenizer.mask_token_id, len(self.tokenizer), draws
        )
        batch: dict[str, Any] = {
            "step": step,
            "count": count,
            "ids": ids,
            "image_ids": self._image_ids[ids],
            "languages": np.array([self.samples.languages.index(caption.language) for caption in captions]),
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "masked_ids": masked_ids,
            "labels": labels,
        }
        if self.features is not None:
            batch["features"] = self.draw_views(ids, epoch)
        else:
            batch["images"] = [image_bytes(sample) for sample in raw]
            batch["where"] = [sample.where for sample in raw]
            if self.decode is not None:
                preprocess = ImagePreprocessor(self.decode)
                pictures = [preprocess(data, where) for data, where in zip(batch["images"], batch["where"], strict=True)]
                batch["images"] = torch.stack(pictures).numpy()
        return pickle.dumps(batch, protocol=5)

    def draw_views(self, ids: np.ndarray, epoch: int) -> np.ndarray:
        """Cached vectors float32 [n, 2, D]: of the picture as it is, and of one of its other views, drawn anew in each epoch."""
        assert self.features is not None
        views = self.features.read(ids)
        others = views.shape[1] - 1
        drawn = (uniform(self.seed, _VIEW, epoch, ids) * others).astype(np.int64) + (1 if others else 0)
        return np.stack([views[:, 0], views[np.arange(len(ids)), drawn]], axis=1)

    def draw_caption(self, sample: RawSample, number: int, epoch: int) -> TextSample:
        """The caption that sample `number` shows in `epoch`: a language at random, then one of its captions."""
        found = parse_captions(sample.members["json"], sample.where).captions
        usable = [language for language in self.samples.languages if found.get(language)]
        language_draw, caption_draw = uniform(self.seed, _CAPTION, epoch, number, np.arange(2))
        language = usable[int(language_draw * len(usable))]
        texts = found[language]
        return TextSample(language, texts[int(caption_draw * len(texts))])


def image_bytes(sample: RawSample) -> bytes:
    """The encoded picture of a sample. Raises SampleError where it has none."""
    extension = image_extension(list(sample.members))
    if extension is None:
        raise SampleError(sample.where, f"no image among its members ({', '.join(sample.members)})")
    return sample.members[extension]


class BatchFinisher:
    """Decodes in threads and makes tensors; lives in a training worker."""

    def __init__(self, settings: ImagePreprocessorSettings, threads: int):
        self.preprocess = ImagePreprocessor(settings)
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")

    def __call__(self, payload: Any) -> Batch:
        """A batch from :class:`BatchBuilder`'s bytes (any buffer)."""
        batch = pickle.loads(payload)
        where: Sequence[str] = batch.pop("where", ())
        images = batch.pop("images", None)
        if isinstance(images, list):
            images = torch.stack(list(self.pool.map(self.preprocess, images, where)))
        elif images is not None:
            images = torch.from_numpy(images)
        tensors = {name: torch.from_numpy(value) for name, value in batch.items() if isinstance(value, np.ndarray)}
        return Batch(**{**batch, **tensors, "images": images})
