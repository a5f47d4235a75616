"""What a task consists of: files in the form in which such tasks are published, and the pictures that they name."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from raysys.shards.sample import Sample

from ..shapes.pictures import SIZE, draw, jpeg, sheet_box
from ..shapes.roles import Role
from ..shapes.scenes import Scene

SPLITS: tuple[Role, ...] = ("train", "validation", "test")


@dataclass(frozen=True)
class Picture:
    """A picture before it is drawn."""

    key: str
    """Of its sample; its file's name without the extension."""
    scene: Scene
    sheet: str | None = None
    """Which side of it is hidden: left, right, top or bottom."""

    @property
    def file(self) -> str:
        """Its name in the published files."""
        return f"{self.key}.jpg"

    def sample(self, seed: int) -> Sample:
        """Drawn: a JPEG; `boxes` as in `shapes`, that of the sheet last and with index -1."""
        random = Random(f"shapes_tasks/{seed}/{self.key}")
        picture, placed = draw(self.scene, random, SIZE, self.sheet)
        boxes = [[figure.index, *figure.box(SIZE)] for figure in placed]
        hidden = {"sheet": self.sheet} if self.sheet else {}
        metadata = {
            "texts": {},
            "image": self.file,
            "width": SIZE,
            "height": SIZE,
            "group": self.scene.group,
            "concept": self.scene.concept,
            "scene": self.scene.facts(),
            **hidden,
            "boxes": boxes + [[-1, *sheet_box(self.sheet, SIZE)]] * bool(self.sheet),
            "source": "shapes",
            "licence": "Apache-2.0",
        }
        return Sample("images", self.key, jpeg(picture, random), "jpg", metadata)


@dataclass
class Published:
    """The files of a task by their paths, and its pictures."""

    files: dict[str, str] = field(default_factory=dict)
    pictures: list[Picture] = field(default_factory=list)

    def add_lines(self, path: str, records: Iterable[Mapping[str, Any]]) -> None:
        """A file of one json object a line."""
        self.files[path] = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def file_tag(language: str) -> str:
    """A language as the names of published files tell it: two letters."""
    return language.partition("-")[0]


def spoken(split: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Tests are in all languages, everything else is in English."""
    return languages if split == "test" else ("en",)
