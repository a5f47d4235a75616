"""Region features in a TSV: a row per image, arrays in base64."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raysys.shards.parts import Skipped
from raysys.storage import Entry, Storage

from .regions import Regions, RegionsError, regions
from .stores import Item

COLUMNS = ("img_id", "img_h", "img_w", "objects_id", "objects_conf", "attrs_id", "attrs_conf", "num_boxes", "boxes", "features")
LONGEST = 64 << 20
"""Bytes of a row at most; a row of 100 regions has 1.1 MB."""


@dataclass(frozen=True)
class TsvStore:
    """A TSV with the columns `COLUMNS`, with or without a row that names them."""

    file: Entry

    @property
    def name(self) -> str:
        """Name of the file without ``.tsv``."""
        return self.file.uri.rpartition("/")[2].removesuffix(".tsv")

    def items(self) -> tuple[list[Item], list[Skipped]]:
        """Its rows in stored order, and those that are none; reads the whole file once."""
        items: list[Item] = []
        faults: list[Skipped] = []
        offset = number = 0
        with Storage().open(self.file.uri) as file:
            while row := file.readline(LONGEST):
                number += 1
                where = f"{self.file.uri} row {number}"
                image_id = row.partition(b"\t")[0].decode("utf-8-sig", "replace").strip()
                columns = row.count(b"\t") + 1
                if columns != len(COLUMNS):
                    if row.strip():
                        faults.append(Skipped(f"not {len(COLUMNS)} columns", f"{where} has {columns}"))
                elif "\ufffd" in image_id:
                    faults.append(Skipped("image id is not UTF-8", where))
                elif not (number == 1 and image_id == COLUMNS[0]):
                    items.append(Item(image_id, where, offset, len(row)))
                offset += len(row)
        return items, faults

    def read(self, items: Sequence[Item]) -> Iterator[Regions | RegionsError]:
        """The regions of some images."""
        storage = Storage()
        for item in items:
            fields = dict(zip(COLUMNS, storage.read(self.file.uri, item.offset, item.size).rstrip(b"\r\n").split(b"\t"), strict=True))
            try:
                yield regions(item.image_id, fields["img_w"], fields["img_h"], fields["num_boxes"], fields["features"], fields["boxes"])
            except RegionsError as error:
                yield error
