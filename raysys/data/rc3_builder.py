"""Reading workers' shares of RC³'s batches: pairs of languages are drawn, texts tokenised and masked, regions read.

This module and what it imports do without torch and transformers, as :mod:`raysys.data.builder` does.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from raysys.data.bad import BadSample
from raysys.data.encoding import EmptyTextError, TextForm, pad_rows
from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.language_codes import encode_with_language
from raysys.data.masking import WordPieces, mask_words
from raysys.data.pairs import Parallel, parallel_texts
from raysys.data.randomness import mix, uniform
from raysys.data.regions import MEMBER, Regions, read_regions
from raysys.data.samples import Samples
from raysys.data.shares import Payload, Share, ShareBuilder
from raysys.data.streams import STRICT, WEAK, Rc3Streams
from raysys.shards.reader import RawSample, digest
from raysys.shards.sample import SampleError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from raysys.data.rc3_batches import Rc3Batch

StrictVisual = Literal["regions", "patches", "combined"]
"""How pictures of D_s are seen: as regions, as pixels, or as both. Those of D_w are seen as pixels."""

_LANGUAGES, _TEXTS, _FIRST, _SECOND, _REGIONS = range(41, 46)  # what a random draw is for


@dataclass
class _Row:
    """One row of a batch before tokens are padded."""

    where: str
    languages: list[str]
    """Of the texts, two."""
    texts: list[str]
    image_id: int = 0
    regions: Regions | None = None
    picture: Any = None
    """Encoded bytes, or pixels (uint8 [3, H, W])."""
    member: str = ""
    """Extension of the member that holds the picture."""
    tokens: list[list[int]] = field(default_factory=list)
    cut: bool = False


class Rc3Builder(ShareBuilder[_Row]):
    """Reads samples of the three streams, draws two texts in two languages of each, and tokenises and masks them.

    Args:
        streams: D_s, D_w and D_t; of the first two, those samples that have captions in two of the languages (`pairs` of
            :class:`raysys.data.samples.Samples`).
        languages: those in use, BCP-47; their order numbers them.
        tokenizer: the run's tokenizer.
        language_ids: the token of each language.
        form: how texts become ids.
        seed: of all that is drawn.
        strict_visual: how pictures of D_s are seen.
        regions: most regions of a picture.
        region_size: numbers in the vector of a region.
        decode: preprocessor with which to decode pictures here; None leaves them encoded.
        spares: as in :class:`raysys.data.shares.ShareBuilder`; those of the bad sample's own stream are used.
        first_language: of the first text of each row of D_s, whose samples have captions in it (`including` of
            :class:`raysys.data.samples.Samples`); None: any.
    """

    def __init__(
        self,
        streams: Rc3Streams,
        languages: Sequence[str],
        tokenizer: "PreTrainedTokenizerFast",
        language_ids: Mapping[str, int],
        form: TextForm,
        seed: int,
        strict_visual: StrictVisual = "regions",
        regions: int = 36,
        region_size: int = 2048,
        decode: ImagePreprocessorSettings | None = None,
        spares: Callable[[int, int], Iterator[int]] | None = None,
        first_language: str | None = None,
    ):
        super().__init__(streams, spares)
        self.samples: Rc3Streams = streams
        self.languages = tuple(languages)
        # Only the fast tokenizer's core travels: importing transformers would hold up every task that reads data.
        self.tokenizer = tokenizer.backend_tokenizer
        self._pad_id = tokenizer.pad_token_id
        special = {*tokenizer.all_special_ids, *language_ids.values()}
        self._pieces = WordPieces.of(self.tokenizer, special, tokenizer.mask_token_id)
        self.language_ids = dict(language_ids)
        self.form = form
        self.seed = seed
        self.first_language = first_language
        self.regions, self.region_size = regions, region_size
        self.decode = decode
        self._with_regions = streams.strict is not None and strict_visual != "patches"
        self._image_ids = {kind: part.column("image_id") for kind in (STRICT, WEAK) if isinstance(part := streams.kinds[kind], Samples)}
        self._pictured = [kind for kind in self._image_ids if kind == WEAK or strict_visual != "regions"]
        """Kinds of samples whose pixels are seen."""

    @property
    def batch_type(self) -> "type[Rc3Batch]":
        from raysys.data.rc3_batches import Rc3Batch  # not where data is read, see above

        return Rc3Batch

    def _spares(self, step: int, sample: int) -> Iterator[int]:
        """Of the same stream, so that a batch keeps as many rows of each kind."""
        own = self.samples.numbers(int(self.samples.kinds_of(np.array(sample))))
        return (spare for spare in super()._spares(step, sample) if spare in own)

    def _read(self, ids: np.ndarray, epoch: int, bad: dict[int, BadSample]) -> dict[int, _Row]:
        rows: dict[int, _Row] = {}
        kinds = self.samples.kinds_of(ids)
        for kind in np.unique(kinds).tolist():
            part, mine = self.samples.kinds[kind], ids[kinds == kind]
            numbers = mine - self.samples.numbers(kind).start
            draws = uniform(self.seed, np.array([[_LANGUAGES], [_TEXTS]])[None], epoch, mine[:, None, None], np.arange(2)).tolist()
            for sample, number, found, drawn in zip(mine.tolist(), numbers.tolist(), part.try_read(numbers), draws, strict=True):
                try:
                    if isinstance(found, SampleError):
                        raise found
                    rows[sample] = self._row(kind, number, found, *drawn)
                except SampleError as error:
                    self._blame(sample, error, bad)
        self._encode(rows, bad)
        return rows

    def _row(self, kind: int, number: int, found: RawSample | Parallel, of_languages: list[float], of_texts: list[float]) -> _Row:
        """Two texts, as draws in [0, 1) choose them, and what is seen of the picture."""
        if isinstance(found, Parallel):
            languages = _two(list(found.texts), of_languages)
            return _Row(found.where, languages, [found.texts[language] for language in languages])
        samples = self.samples.kinds[kind]
        assert isinstance(samples, Samples)
        first = self.first_language if kind == STRICT else None
        if kind == STRICT:
            together = parallel_texts(found, samples.layout, self.languages)
            together = [place for place in together if first is None or first in place.texts]
            if not together:
                needed = "two of the languages in use" if first is None else f"{first} and another of the languages in use"
                raise SampleError(found.where, f"it has no texts that belong together in {needed}", "json", "text")
            texts = {language: [text] for language, text in together[int(of_texts[0] * len(together))].texts.items()}
        else:
            texts = samples.captions(found).captions
        usable = [language for language in self.languages if texts.get(language)]
        if len(usable) < 2:
            raise SampleError(found.where, "it has captions in fewer than two of the languages in use", "json", "text")
        languages = _two(usable, of_languages, first)
        drawn = [texts[language][int(draw * len(texts[language]))] for language, draw in zip(languages, of_texts, strict=True)]
        row = _Row(found.where, languages, drawn, int(self._image_ids[kind][number]))
        if kind == STRICT and self._with_regions:
            row.regions = read_regions(found, self.regions, self.region_size)
            row.image_id = row.image_id or digest(found.members[MEMBER])
        if kind in self._pictured:
            row.member, row.picture = samples.picture(found)
            if self.decode is not None:
                try:
                    row.picture = ImagePreprocessor(self.decode)(row.picture).numpy()
                except ImageError as error:
                    raise SampleError(found.where, error.reason, row.member, "image") from None
        return row

    def _encode(self, rows: dict[int, _Row], bad: dict[int, BadSample]) -> None:
        """Tokens of all texts; takes away rows that have an empty one."""
        while rows:
            texts = [text for row in rows.values() for text in row.texts]
            tags = [self.language_ids[language] for row in rows.values() for language in row.languages]
            try:
                encoded = encode_with_language(self.tokenizer, texts, tags, self.form)
            except EmptyTextError as error:
                sample = list(rows)[error.index // 2]
                where = rows.pop(sample).where
                self._blame(sample, SampleError(where, f"its text {texts[error.index]!r} has no visible character", cause="text"), bad)
                continue
            for row, (first, second) in zip(rows.values(), zip(encoded[::2], encoded[1::2], strict=True), strict=True):
                row.tokens, row.cut = [first[0], second[0]], first[1] or second[1]
            return

    def _payload(self, share: Share, chosen: Sequence[int], rows: Mapping[int, _Row], bad: Mapping[int, BadSample]) -> Payload:
        ids, found = np.array(chosen, dtype=np.int64), [rows[sample] for sample in chosen]
        pictured = [row for row in found if row.picture is not None]
        batch: dict[str, Any] = {
            "share": share,
            "members": [row.member for row in pictured],
            "replaced": self._replaced(share, chosen, bad),
            "cut_captions": sum(row.cut for row in found[: len(share.ids)]),
            "ids": ids,
            "kinds": self.samples.kinds_of(ids),
            "image_ids": np.array([row.image_id for row in found], dtype=np.int64),
            **self._texts("first", 0, found, share.epoch, ids),
            **self._texts("second", 1, found, share.epoch, ids),
        }
        if self._with_regions:
            batch |= self._regions(found, share.epoch, ids)
        if self._pictured:
            batch["has_pixels"] = np.array([row.picture is not None for row in found])
        if self.decode is None:
            return Payload(share.step, pickle.dumps(batch, protocol=5), [row.picture for row in pictured])
        if pictured:
            batch["images"] = np.stack([row.picture for row in pictured])
        return Payload(share.step, pickle.dumps(batch, protocol=5), ())

    def _texts(self, name: str, place: int, rows: Sequence[_Row], epoch: int, ids: np.ndarray) -> dict[str, np.ndarray]:
        """One text of each row: tokens, mask, hidden tokens, labels, language."""
        tokens, mask = pad_rows([row.tokens[place] for row in rows], self._pad_id)
        positions = np.arange(tokens.shape[1])
        draws = uniform(self.seed, (_FIRST, _SECOND)[place], epoch, ids[:, None, None], positions[None, :, None], np.arange(3))
        hidden, labels = mask_words(tokens, self._pieces, draws)
        return {
            f"{name}_ids": tokens,
            f"{name}_mask": mask,
            f"{name}_masked": hidden,
            f"{name}_labels": labels,
            f"{name}_languages": np.array([self.languages.index(row.languages[place]) for row in rows], dtype=np.int64),
        }

    def _regions(self, rows: Sequence[_Row], epoch: int, ids: np.ndarray) -> dict[str, np.ndarray]:
        """The regions of all rows, one after another ([Σ r, D], as stored), and their boxes, mask and draws in rows."""
        found = [row.regions for row in rows if row.regions is not None]
        counts = np.array([0 if row.regions is None else len(row.regions.boxes) for row in rows])
        places = np.arange(counts.max())
        mask = places[None] < counts[:, None]
        boxes = np.zeros((*mask.shape, 5), dtype=np.float32)
        if found:
            boxes[mask] = np.concatenate([regions.boxes for regions in found])
        return {
            "regions": np.concatenate([regions.features for regions in found]) if found else np.zeros((0, self.region_size), np.float32),
            "boxes": boxes,
            "region_mask": mask.astype(np.int64),
            # 24 bits, which float32 holds: rounded up, a draw would be 1.
            "region_draws": ((mix(self.seed, _REGIONS, epoch, ids[:, None], places) >> np.uint64(40)) * 2.0**-24).astype(np.float32),
        }


def _two(languages: Sequence[str], draws: Sequence[float], first: str | None = None) -> list[str]:
    """Two different ones of `languages`, each ordered pair equally likely, or of those that begin with `first`."""
    rest = list(languages)
    one = rest.pop(int(draws[0] * len(rest)) if first is None else rest.index(first))
    return [one, rest[int(draws[1] * len(rest))]]
