"""Which of the published files of Multi30k lie beneath a folder, and that they fit together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from raysys.errors import UserError
from raysys.shards.sample import IMAGE_EXTENSIONS
from raysys.storage import Entry

from ..common.lines import read_lines

_TEXT = re.compile(r"(?P<split>train|val|test_?\d{4}\w*)(?:\.(?P<number>\d))?\.(?P<language>[a-z]{2})(?:\.gz)?")
"""``train.de``, ``test_2016_flickr.fr.gz`` (task 1: translations); ``train.1.de`` (task 2: descriptions)."""


@dataclass(frozen=True)
class Split:
    """The files of one split of one task; line i of all of them belongs to image i."""

    task: int
    """1: translations of one caption; 2: captions that were written independently of one another."""
    published: str
    """Its name in the files' names, such as `val`."""
    texts: tuple[tuple[str, Entry], ...]
    """(language, file), in order of languages and of the descriptions' numbers."""
    images: Entry | None
    """The list of the images' names, or None."""

    @property
    def folder(self) -> str:
        """Name of the split among shards: `train`, `validation`, `test-2016-flickr`; `task2-…` for task 2."""
        name = {"val": "validation"}.get(self.published, self.published.replace("_", "-"))
        return name if self.task == 1 else f"task2-{name}"

    def count(self) -> int:
        """The number of lines that all files have.

        Raises:
            UserError: two files have different numbers of lines (names both), or a compressed file is damaged.
        """
        files = [file for _, file in self.texts] + ([self.images] if self.images else [])
        counts = [sum(1 for _ in read_lines(file.uri)) for file in files]
        for file, count in zip(files, counts, strict=True):
            if count != counts[0]:
                raise UserError(
                    f"{files[0].uri} has {counts[0]} lines and {file.uri} has {count}; line i of both must be about the same image: "
                    "one of them is not whole, or not of this split"
                )
        return counts[0]

    def image_names(self) -> list[str]:
        """File names of the images, in order of lines; empty without a list. What follows a ``#`` (a caption's number) is left out."""
        return [line.text.partition("#")[0].strip() for line in read_lines(self.images.uri)] if self.images else []


def find_splits(files: Sequence[Entry], languages: Sequence[str]) -> list[Split]:
    """The splits that have texts in any of `languages`, in order of tasks and names.

    Raises:
        UserError: one text or list lies there twice, or a description is missing (``train.3.de`` without ``train.2.de``).
    """
    texts: dict[tuple[int, str], dict[tuple[str, int], Entry]] = {}
    for file in files:
        if (named := _TEXT.fullmatch(file.uri.rpartition("/")[2])) and named["language"] in languages:
            number = int(named["number"] or 0)
            its_texts = texts.setdefault((2 if number else 1, named["split"]), {})
            _put(its_texts, (named["language"], number), file)
    lists: dict[str, Entry] = {}
    for file in files:
        if file.uri.split("/")[-2:-1] == ["image_splits"] and file.uri.endswith(".txt"):
            _put(lists, file.uri.rpartition("/")[2].removesuffix(".txt"), file)
    splits = []
    for (task, name), its_texts in sorted(texts.items()):
        ordered = tuple((language, its_texts[key]) for language in languages for key in sorted(its_texts) if key[0] == language)
        for language, number in its_texts:
            if number > 1 and (language, number - 1) not in its_texts:
                raise UserError(f"{its_texts[language, number].uri} is there, {name}.{number - 1}.{language} is not")
        names = [name, f"{name}_images"] if task == 1 else [f"{name}_images", name]
        splits.append(Split(task, name, ordered, next((lists[name] for name in names if name in lists), None)))
    return splits


def _put(found: dict, key: object, file: Entry) -> None:
    if other := found.get(key):
        raise UserError(f"{other.uri} and {file.uri} are the same text of Multi30k; leave one of them there")
    found[key] = file


def find_images(files: Sequence[Entry]) -> dict[str, str]:
    """File name → URI of all images; where a name lies in two folders, the first one in order of paths."""
    found: dict[str, str] = {}
    for file in files:
        name = file.uri.rpartition("/")[2]
        if name.rpartition(".")[2].lower() in IMAGE_EXTENSIONS:
            found.setdefault(name, file.uri)
    return found
