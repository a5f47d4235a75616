"""Reading workers' shares of global batches: bytes, captions, tokens.

This module and what it imports do without torch and transformers, whose import takes seconds in every process that reads.
"""

import pickle
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from raysys.data.bad import BadSample
from raysys.data.encoding import EmptyTextError, TextForm, encode_texts, pad_rows
from raysys.data.features import FeatureCache
from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.masking import mask_tokens
from raysys.data.randomness import uniform
from raysys.data.samples import Samples
from raysys.data.shares import Payload, Share, ShareBuilder
from raysys.data.translations import concept_of, translations_of
from raysys.shards.reader import RawSample
from raysys.shards.sample import SampleError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from raysys.data.batches import Batch

_CAPTION, _MASKING, _VIEW, _TRANSLATION = 11, 12, 13, 14  # what a random draw is for


@dataclass
class _Row:
    """One row of a batch before tokens are padded."""

    raw: RawSample
    language: str
    text: str
    picture: Any
    """Encoded bytes, pixels (uint8 [3, H, W]), or None where vectors stand in."""
    member: str
    """Extension of the member that holds the picture; empty where vectors stand in."""
    tokens: Sequence[int] = ()
    cut: bool = False
    translation: str | None = None
    concept: int = 0


class BatchBuilder(ShareBuilder[_Row]):
    """Reads, draws captions and tokenises; picklable, for tasks anywhere in the cluster.

    Args:
        samples: the data, and the policy for what is bad in it.
        tokenizer: the run's tokenizer.
        form: how captions become ids.
        seed: of the captions drawn and of the masks.
        features: cached image vectors, which then stand in for the pictures.
        decode: preprocessor with which to decode pictures here; None leaves them encoded.
        spares: as in :class:`raysys.data.shares.ShareBuilder`.
        translations: also give each caption's translation, and say which captions mean the same.
        held_out: languages of which no translation is given.
        pictures: whether pictures travel; without them, samples need have none.
    """

    def __init__(
        self,
        samples: Samples,
        tokenizer: "PreTrainedTokenizerFast",
        form: TextForm,
        seed: int,
        features: FeatureCache | None = None,
        decode: ImagePreprocessorSettings | None = None,
        spares: Callable[[int, int], Iterator[int]] | None = None,
        translations: bool = False,
        held_out: Collection[str] = (),
        pictures: bool = True,
    ):
        super().__init__(samples, spares)
        self.samples: Samples = samples
        # Only the fast tokenizer's core travels: importing transformers would hold up every task that reads data.
        self.tokenizer = tokenizer.backend_tokenizer
        self._pad_id, self._mask_id = tokenizer.pad_token_id, tokenizer.mask_token_id
        self._special_ids = tokenizer.all_special_ids
        self.form = form
        self.seed = seed
        self.features = features
        self.decode = decode
        self.translations, self.held_out = translations, frozenset(held_out)
        self.pictures = pictures
        self._image_ids = samples.column("image_id")

    @property
    def batch_type(self) -> "type[Batch]":
        from raysys.data.batches import Batch  # not where data is read, see above

        return Batch

    def _read(self, ids: np.ndarray, epoch: int, bad: dict[int, BadSample]) -> dict[int, _Row]:
        rows = {}
        for sample, raw, draws in zip(ids.tolist(), self.samples.try_read(ids), self.caption_draws(ids, epoch), strict=True):
            try:
                if isinstance(raw, SampleError):
                    raise raw
                rows[sample] = _Row(raw, *self.draw_caption(raw, *draws), *self._picture(sample, raw))
                if self.translations:
                    self._translate(sample, rows[sample], epoch)
            except SampleError as error:
                self._blame(sample, error, bad)
        while rows:
            try:
                encodings = encode_texts(self.tokenizer, [row.text for row in rows.values()], self.form)
            except EmptyTextError as error:
                sample = list(rows)[error.index]
                where = rows.pop(sample).raw.where
                self._blame(sample, SampleError(where, "its caption has no visible character", cause="text"), bad)
            else:
                for row, (tokens, cut) in zip(rows.values(), encodings, strict=True):
                    row.tokens, row.cut = tokens, cut
                break
        return rows

    def _picture(self, sample: int, raw: RawSample) -> tuple[Any, str]:
        if not self.pictures:
            return None, ""
        if self.features is not None:
            if reason := self.features.bad.get(sample):
                raise SampleError(raw.where, reason, self.samples.picture(raw)[0], "image")
            return None, ""
        member, data = self.samples.picture(raw)
        if self.decode is None:
            return data, member
        try:
            return ImagePreprocessor(self.decode)(data).numpy(), member
        except ImageError as error:
            raise SampleError(raw.where, error.reason, member, "image") from None

    def _payload(self, share: Share, chosen: Sequence[int], rows: Mapping[int, _Row], bad: Mapping[int, BadSample]) -> Payload:
        ids, found = np.array(chosen, dtype=np.int64), [rows[sample] for sample in chosen]
        input_ids, attention_mask = pad_rows([row.tokens for row in found], self._pad_id)
        translated = self._translations(found) if self.translations else {}
        positions = np.arange(input_ids.shape[1])
        masking = uniform(self.seed, _MASKING, share.epoch, ids[:, None, None], positions[None, :, None], np.arange(3))
        masked_ids, labels = mask_tokens(input_ids, self._special_ids, self._mask_id, self.tokenizer.get_vocab_size(), masking)
        batch: dict[str, Any] = {
            "share": share,
            "members": [row.member for row in found],
            "replaced": self._replaced(share, chosen, bad),
            "cut_captions": sum(row.cut for row in found[: len(share.ids)]),
            "ids": ids,
            "image_ids": self._image_ids[ids],
            "languages": np.array([self.samples.languages.index(row.language) for row in found]),
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "masked_ids": masked_ids,
            "labels": labels,
            **translated,
        }
        pictures: Sequence[bytes] = ()
        if self.features is not None:
            batch["features"] = self.draw_views(ids, share.epoch)
        elif self.decode is not None and self.pictures:
            batch["images"] = np.stack([row.picture for row in found])
        elif self.pictures:
            pictures = [row.picture for row in found]
        return Payload(share.step, pickle.dumps(batch, protocol=5), pictures)

    def _translate(self, sample: int, row: _Row, epoch: int) -> None:
        """Draw a translation of a row's caption, if it has one, and number what it says."""
        text = self.samples.captions(row.raw)
        translations = translations_of(text.extra, row.raw.where, self.samples.layout.unknown_languages)
        row.concept = concept_of(text, translations)
        others = [language for language in translations if language != row.language]
        # Where there is none in use, another language may stand between those that are; but not one that training is to know nothing of.
        others = [language for language in others if language in self.samples.languages] or [
            language for language in others if language not in self.held_out
        ]
        if others:
            of_language, of_texts = uniform(self.seed, _TRANSLATION, epoch, sample, np.arange(2)).tolist()
            texts, own = translations[others[int(of_language * len(others))]], text.captions[row.language]
            # Where there are as many as captions, they stand in the same order.
            row.translation = texts[own.index(row.text)] if len(texts) == len(own) else texts[int(of_texts * len(texts))]

    def _translations(self, rows: Sequence[_Row]) -> dict[str, np.ndarray]:
        texts = [row.text if row.translation is None else row.translation for row in rows]
        translated = np.array([row.translation is not None for row in rows])
        while True:
            try:
                encodings = encode_texts(self.tokenizer, texts, self.form)
                break
            except EmptyTextError as error:  # no translation then
                texts[error.index], translated[error.index] = rows[error.index].text, False
        ids, mask = pad_rows([tokens for tokens, _ in encodings], self._pad_id)
        concepts = np.array([row.concept for row in rows], dtype=np.int64)
        return {"translation_ids": ids, "translation_mask": mask, "translated": translated, "concepts": concepts}

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

    def draw_caption(self, sample: RawSample, language_draw: float, caption_draw: float) -> tuple[str, str]:
        """(language, caption) that two draws in [0, 1) choose: a language, then one of its captions."""
        found = self.samples.captions(sample).captions
        usable = [language for language in self.samples.languages if found.get(language)]
        if not usable:
            raise SampleError(sample.where, "it has no caption in the languages in use", cause="text")
        language = usable[int(language_draw * len(usable))]
        texts = found[language]
        return language, texts[int(caption_draw * len(texts))]
