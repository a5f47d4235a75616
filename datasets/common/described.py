"""Data sets whose pictures and captions a person has downloaded: finding the files, checking pictures, dealing them into parts."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import PIL.Image

from raysys.errors import UserError
from raysys.shards.parts import Part, Skipped
from raysys.shards.pictures import explain_image_error
from raysys.shards.sample import Sample, clean_caption, decode_json
from raysys.storage import Storage, join

from .lines import part_name

EXTENSIONS = {"JPEG": "jpg", "MPO": "jpg", "PNG": "png", "WEBP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif"}
"""Pillow's name of a format → extension of the image's member."""


class PictureError(Exception):
    """Bytes that are no usable picture; `cause` is one of few, `detail` says more."""

    def __init__(self, cause: str, detail: str):
        super().__init__(f"{cause}: {detail}")
        self.cause, self.detail = cause, detail


def check_picture(data: bytes) -> str:
    """Decode a picture to its last pixel; the extension that its format has.

    Raises:
        PictureError: it is damaged, cut, or of a format that the reader of shards does not know.
    """
    try:
        image = PIL.Image.open(io.BytesIO(data))
        image.load()
    except Exception as error:  # Pillow's decoders raise errors of any kind on damaged data
        raise PictureError("image cannot be read", explain_image_error(error, data)) from None
    if image.format not in EXTENSIONS:
        raise PictureError("image is of an unknown format", str(image.format))
    return EXTENSIONS[image.format]


@dataclass(frozen=True)
class Described:
    """A picture and what people said of it."""

    key: str
    files: tuple[str, ...]
    """Where the picture may lie beneath the source's folder; the first one that exists is taken."""
    captions: tuple[str, ...]
    fields: dict[str, Any]
    """Free fields of the sample."""
    where: str
    """How a person finds the record in the source."""


@dataclass(frozen=True)
class DescribedPart:
    """Some pictures of one split, with captions in one language that describe the same picture independently (weak alignment).

    Each picture is a record of the source, and so is each caption that cannot be used.
    """

    name: str
    split: str
    source: str
    language: str
    records: tuple[Described, ...]
    faults: tuple[Skipped, ...]
    """Records of the source that belong to no picture."""

    def __call__(self) -> Iterator[Sample | Skipped]:
        storage = Storage()
        yield from self.faults
        for record in self.records:
            captions = [caption.strip() for caption in record.captions if clean_caption(caption)]
            for number, caption in enumerate(record.captions):
                if not clean_caption(caption):
                    yield Skipped("caption is empty", f"{record.where} caption {number}")
            yield self._sample(record, captions, storage) if captions else Skipped("no caption", record.where)

    def _sample(self, record: Described, captions: list[str], storage: Storage) -> Sample | Skipped:
        uri = next((uri for file in record.files if storage.exists(uri := join(self.source, file))), None)
        if uri is None:  # the person may still be unpacking
            return Skipped("image missing", f"{record.where}: {join(self.source, record.files[0])}", retry=True)
        data = storage.read(uri)
        try:
            extension = check_picture(data)
        except PictureError as error:
            return Skipped(error.cause, f"{uri}: {error.detail}", retry=True)
        metadata = {"captions": {self.language: captions}, "alignment": "weak", **record.fields}
        return Sample(self.split, record.key, data, extension, metadata)


def deal(
    what: str, split: str, source: str, language: str, records: Sequence[Described], faults: Sequence[Skipped], shards: int
) -> list[Part]:
    """Parts of a split: picture i goes to part i mod `shards`, the faults of the source to part 0."""
    parts: list[Part] = []
    for number in range(max(1, min(shards, len(records)))):
        dealt = tuple(records[number::shards])
        its_faults = tuple(faults) if number == 0 else ()
        name = part_name(f"{what} {split} {number}", language, dealt, its_faults)
        parts.append(DescribedPart(name, split, source, language, dealt, its_faults))
    return parts


def find_file(source: str, names: Sequence[str]) -> str | None:
    """URI of the first of the files or folders `names` that lies beneath `source`."""
    storage = Storage()
    return next((uri for name in names if storage.exists(uri := join(source, name))), None)


def read_json(uri: str) -> dict[str, Any]:
    """The json object in a file.

    Raises:
        UserError: it is damaged or something else.
    """
    try:
        return decode_json(Storage().read(uri), "")
    except Exception as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{uri} cannot be used: {error}; download it again") from None


def not_found(source: str, wanted: str, expected: str) -> UserError:
    """That `wanted` is not in `source`, with what is there instead; `expected` is the recipe's SOURCE."""
    storage = Storage()
    if not storage.exists(source):
        return UserError(f"--source: the folder {source} does not exist. {expected}")
    begin = len(source.rstrip("/")) + 1
    names = sorted({entry.uri[begin:].partition("/")[0] for entry in storage.list(source)})
    found = ", ".join(names[:10]) + (", …" if len(names) > 10 else "") if names else "nothing"
    return UserError(f"--source: {source} has no {wanted}; found there: {found}. {expected}")
