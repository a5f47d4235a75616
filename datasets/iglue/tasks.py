"""The annotations of IGLUE's tasks: which files they are in, and what their records say."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from raysys.shards.sample import SampleError, clean_caption, decode_json
from raysys.storage import Entry, Storage

from ..common.lines import CUT_SHORT, NOT_STORABLE, CutShort, is_storable, read_objects
from .regions import sample_key


@dataclass(frozen=True)
class Record:
    """One annotated record, or a line that is none."""

    where: str
    identifier: str = ""
    """As published."""
    texts: tuple[str, ...] = ()
    """In the record's language."""
    images: tuple[str, ...] = ()
    """Keys of the images' samples."""
    fields: dict[str, Any] | None = None
    """The whole record as published."""
    fault: str = ""


@dataclass(frozen=True)
class Task:
    """One task, and where the texts, images and identifiers of its records are."""

    name: str
    files: tuple[str, ...]
    """Patterns of the ends of its files' paths, in lower case; groups `name` (of the split) and `language` where paths tell them."""
    text: str
    """Field of the text, or of the list of texts, that is given with the image."""
    identifier: str
    """Field; empty where the file is one json object of identifier → record."""
    images: Callable[[dict[str, Any]], list[Any]]
    """The published ids or file names of a record's images."""


def _fields(*names: str) -> Callable[[dict[str, Any]], list[Any]]:
    return lambda record: [record[name] for name in names]


def _of_nlvr2(record: dict[str, Any]) -> list[Any]:
    """``dev-850-0-1`` is the second sentence about the images ``dev-850-0-img0`` and ``dev-850-0-img1``."""
    pair = record["identifier"].rpartition("-")[0]
    return [f"{pair}-img0", f"{pair}-img1"]


_TAG = "(?P<language>[a-z]{2})"
_NAME = r"(?P<name>\w+)"
TASKS = {
    task.name: task
    for task in (
        Task("xvnli", (rf"xvnli/annotations/{_TAG}/{_NAME}\.jsonl",), "sentence2", "pairID", _fields("Flikr30kID")),
        Task(
            "xgqa",
            (rf"(?P<name>train|val|testdev)_balanced_questions(?:_{_TAG})?\.json", rf"xgqa/annotations/few_shot/{_TAG}/{_NAME}\.json"),
            "question",
            "",
            _fields("imageId"),
        ),
        Task("marvl", (rf"marvl-{_TAG}(?:_{_NAME})?\.jsonl",), "caption", "id", _fields("left_img", "right_img")),
        Task("nlvr2", (rf"nlvr2/(?:annotations/|data/)?{_NAME}\.jsonl?",), "sentence", "identifier", _of_nlvr2),
        Task("xflickrco", (rf"xflickrco/annotations/{_TAG}/{_NAME}\.jsonl",), "sentences", "id", _fields("img_path")),
        Task("flickr30k", (rf"flickr30k/annotations/{_NAME}\.jsonl",), "sentences", "id", _fields("img_path")),
    )
}
"""By name, in the order in which splits are written."""


@dataclass(frozen=True)
class Annotations:
    """One file of a task."""

    task: str
    """Key of `TASKS`."""
    split: str
    """Name of its split among shards, such as `xvnli-test-fr`."""
    language: str
    file: Entry

    def records(self) -> Iterator[Record]:
        """Its records, in order, and the lines that are none.

        Raises:
            UserError: the file is missing, or (where it is one json object) damaged.
        """
        task = TASKS[self.task]
        for where, identifier, value, fault in _json_lines(self.file) if task.identifier else _one_object(self.file):
            yield Record(where, fault=fault) if fault else _record(task, where, identifier, value)


def find_annotations(files: Sequence[Entry]) -> list[Annotations]:
    """The annotations of all tasks among `files`, in order of tasks; those translated by machine are left out.

    Raises:
        UserError: two files for one split.
    """
    found: dict[str, Annotations] = {}
    for task in TASKS.values():
        for file in files:
            path = "/" + file.uri.lower()
            if "machine-translate" in path or "_gmt." in path:
                continue
            named = next(filter(None, (re.search(f"/{pattern}$", path) for pattern in task.files)), None)
            if named:
                groups = named.groupdict()
                language = normalise_language(groups.get("language") or "en")
                split = f"{task.name}-{(groups['name'] or 'test').replace('_', '-')}-{language}"
                if other := found.get(split):
                    raise UserError(f"{other.file.uri} and {file.uri} are both {split}; leave one of them there")
                found[split] = Annotations(task.name, split, language, file)
    return list(found.values())


def _record(task: Task, where: str, identifier: str, value: Any) -> Record:
    """What one record says; a record with a fault where it is not as published."""
    if not isinstance(value, dict):
        return Record(where, fault="not a json object")
    if value.get("gold_label") == "-":
        return Record(where, fault="no label")
    try:
        texts, images = value[task.text], task.images(value)
        identifier = identifier or str(value[task.identifier])
    except (KeyError, AttributeError):
        return Record(where, fault="field missing")
    texts = [texts] if isinstance(texts, str) else texts
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts) and all(isinstance(name, str) for name in images)):
        return Record(where, fault="field of an unexpected kind")
    if not any(clean_caption(text) for text in texts):
        return Record(where, fault="no text")
    return Record(where, identifier, tuple(texts), tuple(sample_key(name) for name in images), value)


def _json_lines(file: Entry) -> Iterator[tuple[str, str, Any, str]]:
    """(where, identifier unknown yet, value, fault) of each line."""
    number = 0
    try:
        for line, value in read_objects(file.uri):
            number = line.number
            yield f"{file.uri} line {number}", "", value, line.fault
    except CutShort:
        yield f"{file.uri} line {number + 1}", "", {}, CUT_SHORT


def _one_object(file: Entry) -> Iterator[tuple[str, str, Any, str]]:
    """(where, identifier, value, fault) of each entry."""
    try:
        everything = decode_json(Storage().read(file.uri), "")
    except SampleError as error:
        raise UserError(f"{file.uri} cannot be used: {error.reason}; download it again") from None
    for identifier, value in everything.items():
        yield f"{file.uri} record {identifier}", identifier, value, "" if is_storable(value) else NOT_STORABLE
