"""Globetrotter: images of COCO, Flickr30k and Conceptual Captions, captioned in 52 languages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample, clean_caption
from raysys.storage import Storage, join

from ..common.described import PictureError, check_picture, not_found
from ..common.lines import Line, part_name
from .human import find_human
from .layout import ALL_LANGUAGES, COLLECTIONS, INDEPENDENT, KNOWN_LANGUAGES, find_listing
from .splits import SPLITS, Found, Record, draw, find_splits
from .texts import Place, UnreadableText, read_all, read_text, said_in

SOURCE = (
    "Expected is what dataset.tar.gz of globetrotter.cs.columbia.edu unpacks to, with the images beside it: COCO/annotations/, "
    "flickr30k/entities/ and ConceptualCaptions/ with translated_independent/ and translated_alllangs/ and their listing_train.txt, "
    "listing_val.txt and listing_test.txt; COCO/train2014/ and val2014/, flickr30k/images/ and ConceptualCaptions/train/ with images."
)
LANGUAGES = KNOWN_LANGUAGES
AVAILABLE = LANGUAGES

TRANSLATION_IMAGES, RETRIEVAL_IMAGES = 200, 1000
"""Images that the paper draws from its test set for translation and for retrieval."""


@dataclass(frozen=True)
class Captions:
    """Some images of one split with their texts."""

    name: str
    split: str
    source: str
    records: tuple[Record, ...]
    faults: tuple[Skipped, ...]
    """Of the listings; they belong to none of the records."""
    shared: dict[Place, str]
    """Captions that are left out → the split in which the same is said."""

    def __call__(self) -> Iterator[Sample | Skipped]:
        storage = Storage()
        yield from self.faults
        for number, record in enumerate(self.records):
            try:
                texts = [read_text(storage, join(self.source, path)) for _, path in record.texts]
            except UnreadableText as error:
                yield Skipped(error.cause, error.detail, retry=True)
                continue
            if len({len(lines) for lines in texts}) > 1:
                counts = ", ".join(f"{path} has {len(lines)}" for (_, path), lines in zip(record.texts, texts, strict=True))
                yield Skipped("languages differ in their numbers of captions", f"{self.source}: {counts}")
                continue
            faults = [self._fault(number, index, lines) for index, lines in enumerate(zip(*texts, strict=True))]
            yield from (fault for fault in faults if fault)
            if usable := [index for index, fault in enumerate(faults) if not fault]:
                yield from self._samples(storage, record, texts, usable)
            else:
                yield Skipped("no caption", join(self.source, record.texts[0][1]))

    def _fault(self, number: int, index: int, lines: Sequence[Line]) -> Skipped | None:
        """Why `lines`, line `index` of the texts of record `number`, are no caption in each language, or none that this split may have."""
        paths = [join(self.source, path) for _, path in self.records[number].texts]
        for path, line in zip(paths, lines, strict=True):
            if not clean_caption(line.text):
                return Skipped(line.fault or "empty line", f"{path} line {line.number}")
        if split := self.shared.get((number, index)):
            return Skipped(f"sentence of the {split} split", f"{paths[0]} line {index + 1}")
        return None

    def _samples(
        self, storage: Storage, record: Record, texts: Sequence[Sequence[Line]], usable: Sequence[int]
    ) -> Iterator[Sample | Skipped]:
        metadata: dict[str, Any] = {"alignment": "weak" if len(texts) == 1 else "strict", **dict(record.fields)}
        image, extension = None, "jpg"
        if record.images:
            uri = next((uri for file in record.images if storage.exists(uri := join(self.source, file))), None)
            if uri is None:
                yield Skipped("image missing", join(self.source, record.images[0]), retry=True)
                return
            image = storage.read(uri)
            try:
                extension = check_picture(image)
            except PictureError as error:
                yield Skipped(error.cause, f"{uri}: {error.detail}", retry=True)
                return
            metadata["file_name"] = uri.rpartition("/")[2]
        for key, lines in [(f"{record.key}-{i + 1:04d}", [i]) for i in usable] if record.by_line else [(record.key, usable)]:
            captions = {language: [its[i].text.strip() for i in lines] for (language, _), its in zip(record.texts, texts, strict=True)}
            translations: dict[str, list[str]] = {}
            for language, path in record.translations:
                try:
                    translations[language] = _translation(storage, join(self.source, path), len(texts[0]), lines)
                except UnreadableText as error:
                    yield Skipped(f"translation: {error.cause}", error.detail)
            more = {"translations": translations} if translations else {}
            yield Sample(self.split, key, image, extension, {"captions": captions, **metadata, **more})


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """Split → parts. All texts are read once before, in parallel, to find the sentences that two splits share.

    The splits are `train`, `validation`; `test` and `test-retrieval`, which are drawn from the test set by `seed` in the sizes of the
    paper, and `test-rest`, all others of it; `test-human`. A record is an image, or a text or caption that cannot be used.

    Raises:
        UserError: files are missing (lists what is there), or the splits are not disjoint (names image and files).
    """
    storage = Storage()
    listings = ((collection, kind, name) for collection in COLLECTIONS for kind in (INDEPENDENT, ALL_LANGUAGES) for name in SPLITS)
    if not any(find_listing(storage, source, *listing) for listing in listings):
        raise not_found(source, "COCO/annotations/translated_independent/listing_train.txt or its like", SOURCE)
    found = find_splits(storage, source, languages, seed)
    test = found.pop("test")
    drawn = draw(test.records, (TRANSLATION_IMAGES, RETRIEVAL_IMAGES), seed)
    for split, records in zip(("test", "test-retrieval", "test-rest"), drawn, strict=True):
        found[split] = Found(records, test.faults if split == "test" else [])
    found["test-human"] = find_human(storage, source, languages)
    found = {split: its for split, its in found.items() if its.records or its.faults}
    dealt = {split: _deal(its.records, shards) for split, its in found.items()}
    sentences = {split: read_all(source, its) for split, its in dealt.items()}
    held_out: dict[str, np.ndarray] = {}
    made: dict[str, list[Part]] = {}
    for split in reversed(found):  # what is said for testing may not be said for validation, nor either for training
        made[split] = []
        for number, (records, its) in enumerate(zip(dealt[split], sentences[split], strict=True)):
            others = () if split.startswith("test") else held_out
            shared = {place: other for other in others for place in said_in(its, held_out[other])}
            faults = tuple(found[split].faults) if number == 0 else ()
            name = part_name(f"globetrotter {split} {number}", its.content, records, faults, shared)
            made[split].append(Captions(name, split, source, records, faults, shared))
        held_out[split] = np.unique(np.concatenate([its.digests for its in sentences[split]]))
    return {split: made[split] for split in found}


def _translation(storage: Storage, uri: str, count: int, wanted: Sequence[int]) -> list[str]:
    """The lines `wanted` of a translation, which must have `count` lines in all."""
    lines = read_text(storage, uri)
    if len(lines) != count:
        raise UnreadableText("another number of lines", f"{uri} has {len(lines)}, the captions are {count}")
    for index in wanted:
        if not clean_caption(lines[index].text):
            raise UnreadableText(lines[index].fault or "empty line", f"{uri} line {index + 1}")
    return [lines[index].text.strip() for index in wanted]


def _deal(records: Sequence[Record], shards: int) -> list[tuple[Record, ...]]:
    """Record i goes to part i mod `shards`; there is one part at least, for what the listings' faults are."""
    count = max(1, min(shards, len(records)))
    return [tuple(records[number::count]) for number in range(count)]
