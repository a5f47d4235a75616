"""WIT: pictures of Wikipedia with their captions in a hundred languages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raysys.shards.former import FormerSample
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample
from raysys.shards.tasks import call_all
from raysys.storage import join

from ..common.described import find_file, not_found
from ..common.download import Limits
from ..common.lines import find_files, part_name
from ..common.web_pictures import WebPicture, default_limits, fetch_all, read_all
from .captions import ALT, ATTRIBUTION, REFERENCE
from .rows import AVAILABLE, Row, check_header
from .sorting import Drawer, picture_number, sort_file

SOURCE = (
    "Expected are WIT's files as Google publishes them, wit_v1.train.all-00000-of-00010.tsv.gz and so on (any number of them; "
    "wit_v1.val.… and wit_v1.test.… too), and the pictures in images/, if they are not to be fetched from the web."
)
LANGUAGES = AVAILABLE
CAPTION_COLUMNS = (REFERENCE, ATTRIBUTION, ALT)
"""Columns that captions can be taken from; the first one alone if none are asked for."""

_NAME = re.compile(r"wit_v1\.(?P<split>train|val|test)\..*\.tsv(\.gz)?")
_SPLITS = {"train": "train", "val": "validation", "test": "test"}


@dataclass(frozen=True)
class Pictures:
    """All rows about some pictures."""

    name: str
    split: str
    drawers: tuple[Drawer, ...]
    """One per file of the split."""
    images: str | None
    """Folder of the pictures; None: they are fetched."""
    limits: Limits

    def __call__(self) -> Iterator[Sample | Skipped]:
        return self.again({})

    def again(self, former: Mapping[str, FormerSample]) -> Iterator[Sample | Skipped]:
        if self.images is None:
            return fetch_all(self.split, self._records(), self.limits, former)
        return read_all(self.split, self._records(), self.images, self.limits.longest_side)

    def _records(self) -> Iterator[WebPicture | Skipped]:
        found: dict[str, list[Row]] = {}
        for drawer in self.drawers:
            for row in drawer.rows():
                if row.cause:
                    yield Skipped(row.cause, row.where)
                    continue
                rows = found.setdefault(row.url, [])
                rows.append(row)
                if len(rows) > 1:
                    yield Skipped("another row of a picture (its caption is with the first)", row.where)
        for url, rows in found.items():
            captions: dict[str, list[str]] = {}
            for row in rows:
                if row.caption not in (texts := captions.setdefault(row.language, [])):
                    texts.append(row.caption)
            metadata: dict[str, Any] = {"captions": captions, "alignment": "weak", "source": "wit", "url": url, "page": rows[0].page}
            yield WebPicture(f"{picture_number(url):020x}", url, metadata, rows[0].where)


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int, caption_columns: Sequence[str] = ()) -> dict[str, list[Part]]:
    """Split → parts, by pictures; before, the rows are sorted by picture, a Ray task per file. `seed` plays no part.

    Raises:
        UserError: there are no files of WIT, or one of them is damaged.
    """
    columns = tuple(caption_columns) or CAPTION_COLUMNS[:1]
    files: dict[str, list[str]] = {split: [] for split in _SPLITS.values()}
    for entry in find_files(source):
        if named := _NAME.fullmatch(entry.uri.rpartition("/")[2]):
            check_header(entry.uri)
            files[_SPLITS[named["split"]]].append(entry.uri)
    if not any(files.values()):
        raise not_found(source, "wit_v1.train.all-….tsv.gz", SOURCE)
    images, limits = find_file(source, ["images"]), default_limits()
    facts = (images is None, limits.longest_side)
    found: dict[str, list[Part]] = {}
    for split, uris in files.items():
        by_file = dict(call_all(sort_file, [(uri, join(source, ".sorted"), shards, languages, columns) for uri in uris]))
        drawers = zip(*(by_file[number] for number in range(len(uris))), strict=True)
        by_part = [its for its in drawers if any(drawer.blocks for drawer in its)]
        if uris:
            found[split] = [
                Pictures(part_name(f"wit {split} {number}", [drawer.digest for drawer in its], facts), split, its, images, limits)
                for number, its in enumerate(by_part)
            ]
    return found
