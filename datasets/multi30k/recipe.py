"""Multi30k: Flickr30k's images with captions in four languages, translated (task 1) and written independently (task 2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from raysys.errors import UserError
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample, clean_caption
from raysys.storage import Storage

from ..common.described import PictureError, check_picture
from ..common.lines import Line, find_files, part_name, read_lines, share
from .layout import Split, find_images, find_splits

SOURCE = (
    "A folder with the files of github.com/multi30k/dataset (data/task1 and data/task2: raw/train.de.gz …, image_splits/train.txt …), "
    "texts unpacked or not, and Flickr30k's images (flickr30k-images/…) if you have them."
)
LANGUAGES = ("en", "de", "fr", "cs")
AVAILABLE = LANGUAGES


@dataclass(frozen=True)
class Captions:
    """Some consecutive lines of one split."""

    name: str
    split: Split
    lines: range
    """Counted from 0."""
    image_names: tuple[str, ...]
    """One per line, or none at all."""
    images: tuple[str | None, ...] | None
    """URIs, one per line; None where the image is missing, or altogether where the split is text only."""

    def __call__(self) -> Iterator[Sample | Skipped]:
        texts = [islice(read_lines(file.uri), self.lines.start, self.lines.stop) for _, file in self.split.texts]
        for index, lines in enumerate(zip(*texts, strict=True)):
            yield from self._image(index, lines)

    def _image(self, index: int, lines: Sequence[Line]) -> Iterator[Sample | Skipped]:
        """What line `index` of this part's became in all files."""
        captions: dict[str, list[str]] = {}
        for (language, file), line in zip(self.split.texts, lines, strict=True):
            if clean_caption(line.text):
                captions.setdefault(language, []).append(line.text.strip())
            else:
                yield Skipped(line.fault or "empty line", f"{file.uri} line {line.number}")
        if not captions:
            return
        number = self.lines[index] + 1
        metadata: dict[str, Any] = {"captions": captions, "alignment": "strict" if self.split.task == 1 else "weak", "source": "multi30k"}
        image, extension = None, "jpg"
        if self.image_names:
            name = self.image_names[index]
            metadata |= {"image": name, "group": name.rpartition(".")[0]}
        if self.images is not None:
            uri = self.images[index]
            if uri is None:
                assert self.split.images is not None
                yield Skipped("image missing", f"{self.split.images.uri} line {number}: {self.image_names[index] or 'no name'}")
                return
            image = Storage().read(uri)
            try:
                extension = check_picture(image)
            except PictureError as error:
                yield Skipped(error.cause, f"{uri}: {error.detail}", retry=True)
                return
        yield Sample(self.split.folder, f"{number:06d}", image, extension, metadata)


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """Find the files; split → its parts. A split of which no image is beneath `source` becomes text only.

    Raises:
        UserError: nothing of Multi30k in these languages, a language that no split has, files that do not fit together.
    """
    files = find_files(source)
    splits = find_splits(files, languages)
    there = {language for split in splits for language, _ in split.texts}
    if missing := [language for language in languages if language not in there]:
        advice = f"take the others with --languages {' '.join(sorted(there))}. " if there else ""
        raise UserError(f"--source: {source} has no text of Multi30k in {', '.join(missing)}; {advice}{SOURCE}")
    images = find_images(files)
    return {split.folder: list(_parts(split, images, shards)) for split in splits}


def _parts(split: Split, images: dict[str, str], shards: int) -> Iterator[Part]:
    count = split.count()
    names = tuple(split.image_names())
    found = tuple(images.get(name) for name in names)
    for index in range(min(shards, count)):
        lines = share(count, index, min(shards, count))
        own = slice(lines.start, lines.stop)
        part = (split, lines, names[own], found[own] if any(found) else None)
        yield Captions(part_name(f"multi30k {split.folder} {index}", *part), *part)
