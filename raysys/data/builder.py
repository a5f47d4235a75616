"""Reading a worker's share of a global batch: bytes, captions, tokens.

This module and what it imports do without torch and transformers, whose import takes seconds in every process that reads.
"""

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from raysys.data.encoding import EmptyTextError, encode_rows, pad_rows
from raysys.data.features import FeatureCache
from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.masking import mask_tokens
from raysys.data.randomness import uniform
from raysys.data.samples import Samples
from raysys.shards.reader import RawSample, image_extension
from raysys.shards.sample import SampleError, parse_captions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_CAPTION, _MASKING, _VIEW = 11, 12, 13  # what a random draw is for


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
        # Only the fast tokenizer's core travels: importing transformers would hold up every task that reads data.
        self.tokenizer = tokenizer.backend_tokenizer
        self._pad_id, self._mask_id = tokenizer.pad_token_id, tokenizer.mask_token_id
        self._special_ids = tokenizer.all_special_ids
        self.max_tokens = max_tokens
        self.seed = seed
        self.features = features
        self.decode = decode
        self._image_ids = samples.column("image_id")

    def __call__(self, step: int, epoch: int, ids: np.ndarray) -> bytes:
        """One worker's share of a global batch, as bytes that :class:`raysys.data.batches.BatchFinisher` understands.

        Args:
            step: the global batch's number.
            epoch: chooses captions and masks.
            ids: int64 [n]; may be empty.
        """
        count = len(ids)
        if not count:
            ids = np.zeros(1, dtype=np.int64)
        raw = self.samples.read(ids)
        captions = [self.draw_caption(sample, *draws) for sample, draws in zip(raw, self.caption_draws(ids, epoch), strict=True)]
        try:
            rows, _ = encode_rows(self.tokenizer, [caption.text for caption in captions], self.max_tokens)
        except EmptyTextError as error:
            raise SampleError(raw[error.index].where, "its caption has no visible character") from None
        input_ids, attention_mask = pad_rows(rows, self._pad_id)
        length = input_ids.shape[1]
        masking = uniform(self.seed, _MASKING, epoch, ids[:, None, None], np.arange(length)[None, :, None], np.arange(3))
        masked_ids, labels = mask_tokens(input_ids, self._special_ids, self._mask_id, self.tokenizer.get_vocab_size(), masking)
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
                batch["images"] = np.stack([picture.numpy() for picture in pictures])
        return pickle.dumps(batch, protocol=5)

    def draw_views(self, ids: np.ndarray, epoch: int) -> np.ndarray:
        """Cached vectors float16 [n, 2, D]: of the picture as it is, and of one of its other views, drawn anew in each epoch."""
        assert self.features is not None
        views = self.features.read(ids)
        others = views.shape[1] - 1
        drawn = (uniform(self.seed, _VIEW, epoch, ids) * others).astype(np.int64) + (1 if others else 0)
        return np.stack([views[:, 0], views[np.arange(len(ids)), drawn]], axis=1)

    def caption_draws(self, ids: np.ndarray, epoch: int) -> list[list[float]]:
        """Two draws in [0, 1) for each sample."""
        return uniform(self.seed, _CAPTION, epoch, ids[:, None], np.arange(2)).tolist()

    def draw_caption(self, sample: RawSample, language_draw: float, caption_draw: float) -> TextSample:
        """The caption that two draws in [0, 1) choose: a language, then one of its captions."""
        found = parse_captions(sample.members["json"], sample.where).captions
        usable = [language for language in self.samples.languages if found.get(language)]
        language = usable[int(language_draw * len(usable))]
        texts = found[language]
        return TextSample(language, texts[int(caption_draw * len(texts))])


def image_bytes(sample: RawSample) -> bytes:
    """The encoded picture of a sample. Raises SampleError where it has none."""
    extension = image_extension(list(sample.members))
    if extension is None:
        raise SampleError(sample.where, f"no image among its members ({', '.join(sample.members)})")
    return sample.members[extension]
