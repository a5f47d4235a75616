"""Files of region features: how their images are listed and read. The formats are in modules of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from raysys.shards.parts import Skipped

from .regions import Regions, RegionsError


@dataclass(frozen=True)
class Item:
    """One image in a file."""

    image_id: str
    where: str
    """How a person finds it in the file."""
    offset: int = 0
    size: int = 0
    """Bytes of its row, in formats that have rows."""


class Store(Protocol):
    """A file of region features; picklable."""

    @property
    def name(self) -> str:
        """What a person calls it."""

    def items(self) -> tuple[list[Item], list[Skipped]]:
        """Its images in stored order, and what in it is none."""

    def read(self, items: Sequence[Item]) -> Iterator[Regions | RegionsError]:
        """The regions of some of its images, in their order."""
