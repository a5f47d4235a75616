"""Reading workers' shares of batches of triples and captions. Pictures never travel: their kept vectors stand in.

This module and what it imports do without torch and transformers, as :mod:`raysys.data.builder` does.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from raysys.data.bad import BadSample
from raysys.data.captions import visually_equivalent
from raysys.data.encoding import EmptyTextError, TextForm, encode_texts, pad_rows
from raysys.data.features import FeatureCache
from raysys.data.randomness import mix, uniform
from raysys.data.samples import Samples
from raysys.data.shares import Payload, Share, ShareBuilder
from raysys.data.streams import Streams
from raysys.data.triples import Triples
from raysys.shards.reader import RawSample
from raysys.shards.sample import SampleError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from raysys.data.grounded_batches import GroundedBatch

_CAPTION, _NEGATIVE = 15, 16  # what a random draw is for

_THIS, _PREVIOUS, _NEXT, _OTHER = "this", "previous", "next", "other"
_FIELDS = {
    _THIS: ("input_ids", "attention_mask"),
    _PREVIOUS: ("previous_ids", "previous_mask"),
    _NEXT: ("next_ids", "next_mask"),
    _OTHER: ("other_ids", "other_mask"),
}
"""Kind of text → its tokens and their mask in a batch."""


@dataclass
class _Row:
    """One row of a batch before tokens are padded."""

    texts: dict[str, str]
    """Kind → text, of those kinds that the row has."""
    where: str
    tokens: dict[str, Sequence[int]] = field(default_factory=dict)
    cut: bool = False


class GroundedBuilder(ShareBuilder[_Row]):
    """Reads triples and captions, draws s and s⁺ among the captions of a picture, and tokenises.

    Args:
        triples: of the text corpus; None: the run has none.
        captions: pictures with captions; None: the run has none.
        language: of the captions.
        tokenizer: the run's tokenizer.
        form: how texts become ids.
        seed: of the captions drawn and of a batch's `draws`.
        features: the pictures' vectors, numbered as `captions`; the first view is used. None: the run looks at no picture.
        spares: as in :class:`raysys.data.shares.ShareBuilder`; those of the bad sample's own kind are used.
    """

    def __init__(
        self,
        triples: Triples | None,
        captions: Samples | None,
        language: str,
        tokenizer: "PreTrainedTokenizerFast",
        form: TextForm,
        seed: int,
        features: FeatureCache | None,
        spares: Callable[[int, int], Iterator[int]] | None = None,
    ):
        super().__init__(Streams(triples, captions), spares)
        self.samples: Streams
        self.language = language
        # Only the fast tokenizer's core travels: importing transformers would hold up every task that reads data.
        self.tokenizer = tokenizer.backend_tokenizer
        self._pad_id = tokenizer.pad_token_id
        self.form = form
        self.seed = seed
        self.features = features
        self._kinds = [_THIS, *([_PREVIOUS, _NEXT] if triples is not None else []), *([_OTHER] if captions is not None else [])]
        self._image_ids = captions.column("image_id") if captions is not None else np.zeros(0, dtype=np.int64)

    @property
    def batch_type(self) -> "type[GroundedBatch]":
        from raysys.data.grounded_batches import GroundedBatch  # not where data is read, see above

        return GroundedBatch

    def _spares(self, step: int, sample: int) -> Iterator[int]:
        """Of the same kind, so that a batch keeps as many rows of each."""
        return (spare for spare in super()._spares(step, sample) if self.samples.is_caption(spare) == self.samples.is_caption(sample))

    def _read(self, ids: np.ndarray, epoch: int, bad: dict[int, BadSample]) -> dict[int, _Row]:
        rows: dict[int, _Row] = {}
        pictured = ids >= self.samples.first_caption
        for sample, row in [*self._read_triples(ids[~pictured]), *self._read_captions(ids[pictured], epoch)]:
            if isinstance(row, SampleError):
                self._blame(sample, row, bad)
            else:
                rows[sample] = row
        self._encode(rows, bad)
        return rows

    def _read_triples(self, ids: np.ndarray) -> Iterator[tuple[int, _Row | SampleError]]:
        triples = self.samples.triples
        if triples is None or not len(ids):
            return
        for sample, triple in zip(ids.tolist(), triples.try_read(ids), strict=True):
            if isinstance(triple, SampleError):
                yield sample, triple
            else:
                yield sample, _Row({_THIS: triple.this, _PREVIOUS: triple.previous, _NEXT: triple.next}, triple.where)

    def _read_captions(self, ids: np.ndarray, epoch: int) -> Iterator[tuple[int, _Row | SampleError]]:
        captions = self.samples.captions
        if captions is None or not len(ids):
            return
        numbers = ids - self.samples.first_caption
        draws = uniform(self.seed, _CAPTION, epoch, ids[:, None], np.arange(2)).tolist()
        for sample, number, raw, drawn in zip(ids.tolist(), numbers.tolist(), captions.try_read(numbers), draws, strict=True):
            row: _Row | SampleError
            try:
                row = raw if isinstance(raw, SampleError) else self._draw(captions, number, raw, *drawn)
            except SampleError as error:
                row = error
            yield sample, row

    def _draw(self, captions: Samples, number: int, raw: RawSample, draw: float, other_draw: float) -> _Row:
        """s, and s⁺ where the picture has another caption, as two draws in [0, 1) choose them."""
        texts = visually_equivalent(captions.captions(raw), self.language, raw.where)
        if self.features is not None and (reason := self.features.bad.get(number)):
            raise SampleError(raw.where, reason, captions.picture(raw)[0], "image")
        chosen = {_THIS: texts.pop(int(draw * len(texts)))}
        if texts:
            chosen[_OTHER] = texts[int(other_draw * len(texts))]
        return _Row(chosen, raw.where)

    def _encode(self, rows: dict[int, _Row], bad: dict[int, BadSample]) -> None:
        """Tokens of all texts; takes away rows that have an empty one. A sentence that stands in several triples is tokenised once."""
        while rows:
            texts = list(dict.fromkeys(text for row in rows.values() for text in row.texts.values()))
            try:
                encoded = dict(zip(texts, encode_texts(self.tokenizer, texts, self.form), strict=True))
            except EmptyTextError as error:
                empty = texts[error.index]
                for sample in [sample for sample, row in rows.items() if empty in row.texts.values()]:
                    where = rows.pop(sample).where
                    self._blame(sample, SampleError(where, f"its text {empty!r} has no visible character", cause="text"), bad)
                continue
            for row in rows.values():
                row.tokens = {kind: encoded[text][0] for kind, text in row.texts.items()}
                row.cut = any(encoded[text][1] for text in row.texts.values())
            return

    def _payload(self, share: Share, chosen: Sequence[int], rows: Mapping[int, _Row], bad: Mapping[int, BadSample]) -> Payload:
        ids, found = np.array(chosen, dtype=np.int64), [rows[sample] for sample in chosen]
        pictured, image_ids = ids >= self.samples.first_caption, np.zeros(len(ids), dtype=np.int64)
        numbers = ids[pictured] - self.samples.first_caption
        image_ids[pictured] = self._image_ids[numbers]
        batch: dict[str, Any] = {
            "share": share,
            "members": [],
            "replaced": self._replaced(share, chosen, bad),
            "cut_captions": sum(row.cut for row in found[: len(share.ids)]),
            "ids": ids,
            "image_ids": image_ids,
            # 24 bits, which float32 holds: rounded up, a draw would be 1.
            "draws": ((mix(self.seed, _NEGATIVE, share.epoch, ids) >> np.uint64(40)) * 2.0**-24).astype(np.float32),
        }
        for kind in self._kinds:
            tokens = [row.tokens.get(kind, ()) for row in found]
            batch.update(zip(_FIELDS[kind], pad_rows(tokens, self._pad_id), strict=True))
        if self.features is not None:
            batch["features"] = np.zeros((len(ids), self.features.shape[-1]), dtype=self.features.dtype)
            if len(numbers):
                batch["features"][pictured] = self.features.read(numbers)[:, 0]
        return Payload(share.step, pickle.dumps(batch, protocol=5), ())
