"""Reading workers' shares of batches of a task's records: texts from memory, images from their shards.

Pictures are decoded here, where data is read: a row can have two, or regions in their place. This module and what it imports do without
torch (but where a picture is decoded) and transformers, as :mod:`raysys.data.builder` does.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from raysys.data.bad import BadSample
from raysys.data.encoding import EmptyTextError, TextForm, pad_rows
from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.language_codes import encode_with_language
from raysys.data.randomness import permute
from raysys.data.regions import Regions, read_regions
from raysys.data.shares import Payload, Share, ShareBuilder
from raysys.data.task_images import TaskImages
from raysys.data.task_records import TaskRecords
from raysys.shards.reader import RawSample
from raysys.shards.sample import IMAGE_EXTENSIONS, SampleError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from raysys.data.task_batches import TaskBatch


_OTHERS = 17  # what a random draw is for


@dataclass(frozen=True)
class TaskInputs:
    """How records become what the network reads."""

    form: TextForm
    image: ImagePreprocessorSettings
    regions: int
    """Most regions of an image; an image's first ones are kept."""
    region_size: int
    """Numbers of a region's features."""
    classes: tuple[str, ...] = ()
    """Answers that training knows, by their numbers; empty in tasks without classes."""


@dataclass
class _Image:
    pixels: np.ndarray | None = None
    """uint8 [3, H, W]"""
    regions: Regions | None = None


@dataclass
class _Row:
    images: Sequence[_Image]
    text: tuple[Sequence[int], bool] = ((), False)
    target: tuple[Sequence[int], bool] = ((), False)


class TaskBuilder(ShareBuilder[_Row]):
    """Makes batches of a task's records; picklable.

    Args:
        records: the data, and the policy for what is bad in it.
        images: those of the records.
        tokenizer: the run's tokenizer.
        language_ids: language (BCP-47) → id of its tag, for those of the records and the one that is translated into.
        inputs: how records become what the network reads.
        spares: as in :class:`raysys.data.shares.ShareBuilder`.
        others: give each row so many texts of other records, of other images and other words, for its image to be told apart from: in
            validation, where rows do not meet those of other workers.
    """

    def __init__(
        self,
        records: TaskRecords,
        images: TaskImages,
        tokenizer: "PreTrainedTokenizerFast",
        language_ids: Mapping[str, int],
        inputs: TaskInputs,
        spares: Callable[[int, int], Iterator[int]] | None = None,
        others: int = 0,
    ):
        super().__init__(records, spares)
        self.samples: TaskRecords = records
        self.images, self.inputs, self.language_ids, self.others = images, inputs, dict(language_ids), others
        # Only the fast tokenizer's core travels: importing transformers would hold up every task that reads data.
        self.tokenizer = tokenizer.backend_tokenizer
        self._pad_id = tokenizer.pad_token_id
        self._numbers = {name: number for number, name in enumerate(inputs.classes)}
        known: dict[str, int] = {}
        self._text_numbers = np.array([known.setdefault(text, len(known)) for text in records.texts()], dtype=np.int64)

    @property
    def batch_type(self) -> "type[TaskBatch]":
        from raysys.data.task_batches import TaskBatch  # not where data is read, see above

        return TaskBatch

    def _read(self, ids: np.ndarray, epoch: int, bad: dict[int, BadSample]) -> dict[int, _Row]:
        wanted = self.images.of_records[ids]
        images = dict(self._read_images(np.unique(wanted)))
        rows: dict[int, _Row] = {}
        for record, its in zip(ids.tolist(), wanted.tolist(), strict=True):
            found = [images[image] for image in its]
            if fault := next((image for image in found if isinstance(image, SampleError)), None):
                self._blame(record, fault, bad)
            else:
                rows[record] = _Row([image for image in found if isinstance(image, _Image)])
        self._encode(rows, "text", self.samples.texts, self.samples.tags, bad)
        if self.samples.target is not None:
            self._encode(rows, "target", self.samples.answers, lambda some: [self.samples.target] * len(some), bad)
        return rows

    def _read_images(self, numbers: np.ndarray) -> Iterator[tuple[int, _Image | SampleError]]:
        """The images of these numbers; the error in place of one that cannot be used."""
        for image, samples in self.images.read(numbers):
            try:
                yield image, self._decode(samples)
            except SampleError as error:
                yield image, error

    def _decode(self, samples: Mapping[str, RawSample | SampleError]) -> _Image:
        found = _Image()
        for kind, sample in samples.items():
            if isinstance(sample, SampleError):
                raise sample
            if kind == "regions":
                found.regions = read_regions(sample, self.inputs.regions, self.inputs.region_size)
                continue
            member = next(extension for extension in sample.members if extension in IMAGE_EXTENSIONS)
            try:
                found.pixels = ImagePreprocessor(self.inputs.image)(sample.members[member]).numpy()
            except ImageError as error:
                raise SampleError(sample.where, error.reason, member, "image") from None
        return found

    def _encode(self, rows: dict[int, _Row], field: str, texts: Any, tags: Any, bad: dict[int, BadSample]) -> None:
        """Tokens of one text of each row; takes away rows whose text is empty to the tokenizer."""
        while rows:
            ids = np.array(list(rows))
            said = texts(ids)
            try:
                encoded = encode_with_language(self.tokenizer, said, [self.language_ids[tag] for tag in tags(ids)], self.inputs.form)
            except EmptyTextError as error:
                record = int(ids[error.index])
                del rows[record]
                where = "{}: sample {!r}".format(*self.samples.locate(record))
                self._blame(record, SampleError(where, f"its text {said[error.index]!r} has no visible character", "json"), bad)
                continue
            for row, tokens in zip(rows.values(), encoded, strict=True):
                setattr(row, field, tokens)
            return

    def _payload(self, share: Share, chosen: Sequence[int], rows: Mapping[int, _Row], bad: Mapping[int, BadSample]) -> Payload:
        ids, found = np.array(chosen, dtype=np.int64), [rows[record] for record in chosen]
        batch: dict[str, Any] = {
            "share": share,
            "members": [],
            "replaced": self._replaced(share, chosen, bad),
            "cut_captions": sum(row.text[1] or row.target[1] for row in found[: len(share.ids)]),
            "ids": ids,
            "text_numbers": self._text_numbers[ids],
            "image_ids": self.images.of_records[ids, 0],
        }
        batch["text_ids"], batch["text_mask"] = pad_rows([row.text[0] for row in found], self._pad_id)
        if self.samples.target is not None:
            batch["target_ids"], batch["target_mask"] = pad_rows([row.target[0] for row in found], self._pad_id)
        if self.inputs.classes:
            batch["labels"] = np.array([self._numbers.get(answer, -1) for answer in self.samples.answers(ids)], dtype=np.int64)
        if "picture" in self.images.kinds:
            batch["pixels"] = np.stack([np.stack([image.pixels for image in row.images]) for row in found])  # type: ignore[misc]
        if "regions" in self.images.kinds:
            batch |= self._regions([[image.regions for image in row.images] for row in found])
        if self.others:
            batch |= self._near(ids)
        return Payload(share.step, pickle.dumps(batch, protocol=5), ())

    def _regions(self, rows: Sequence[Sequence[Regions | None]]) -> dict[str, np.ndarray]:
        shape = len(rows), len(rows[0]), self.inputs.regions
        features, boxes = np.zeros((*shape, self.inputs.region_size), np.float32), np.zeros((*shape, 5), np.float32)
        mask = np.zeros(shape, dtype=np.int64)
        for row, images in enumerate(rows):
            for place, found in enumerate(images):
                assert found is not None
                count = len(found.features)
                features[row, place, :count], boxes[row, place, :count], mask[row, place, :count] = *found, 1
        return {"regions": features, "boxes": boxes, "region_mask": mask}

    def encode(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of the texts of records, without their images: ids and mask, int64 [n, L].

        Raises:
            EmptyTextError: a text is nothing to the tokenizer.
        """
        tags = [self.language_ids[tag] for tag in self.samples.tags(ids)]
        encoded = encode_with_language(self.tokenizer, self.samples.texts(ids), tags, self.inputs.form)
        return pad_rows([tokens for tokens, _ in encoded], self._pad_id)

    def _near(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """Texts of other records, the same ones for a record whatever batch it is in; where there are too few, row −1 and the own text."""
        count, texts, pictures = len(self.samples), self._text_numbers, self.images.of_records[:, 0]
        rows = np.full((len(ids), self.others), -1, dtype=np.int64)
        for row, record in enumerate(ids.tolist()):
            places = np.arange(min(count, 4 * self.others))
            drawn = permute(places, count, _OTHERS, record)
            apart = drawn[(texts[drawn] != texts[record]) & (pictures[drawn] != pictures[record])][: self.others]
            rows[row, : len(apart)] = apart
        shown = np.where(rows < 0, ids[:, None], rows).ravel()
        near_ids, mask = self.encode(shown)
        shape = *rows.shape, near_ids.shape[1]
        return {"near_ids": near_ids.reshape(shape), "near_mask": mask.reshape(shape), "near_rows": rows, "row_numbers": ids}
