"""The records of the five tasks: a text, one or two images by key, and what is right.

Records lie in shards as ``datasets/iglue`` and ``datasets/multi30k`` write them: ``{"texts": {"en": ["…"]}, "images": ["…"],
"task": "xvnli", "record": {…}}``, or for translation ``{"captions": {"en": ["…"], "de": ["…"]}, "group": "…"}``. They are small, a million
at most: all are read once and kept in memory as columns. Their pictures and regions lie in other shards
(:mod:`raysys.data.task_images`).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from raysys.data.bad import BadSample, BadSamplePolicy, refuse
from raysys.data.indexed import bad_samples, stored_members
from raysys.errors import UserError
from raysys.shards.manifest import Manifest, load_or_build
from raysys.shards.reader import RawSample, try_read_samples
from raysys.shards.sample import SampleError, captions_by_language, decode_json, kind_of
from raysys.storage import Storage, join

TaskName = Literal["xvnli", "xgqa", "marvl", "itr", "mmt"]

OF_TASK: dict[TaskName, tuple[str, ...]] = {
    "xvnli": ("xvnli",),
    "xgqa": ("xgqa",),
    "marvl": ("nlvr2", "marvl"),
    "itr": ("flickr30k", "xflickrco"),
    "mmt": (),
}
"""What the field `task` of a task's records says; records for translation have no such field."""
_CHUNK = 1024  # samples that are read at a time


class Record(NamedTuple):
    """One thing to be answered, ranked or translated."""

    text: str
    language: str
    answer: str
    """What is right: the class, the answer, the translation; empty for retrieval, where it is the image."""
    images: tuple[str | None, ...]
    """Keys of its images in shards of images; None: the sample's own."""


class TaskRecords:
    """All records of one task in some folders, numbered from 0; those with several texts (captions of one image) once for each.

    Args:
        task: whose records are wanted.
        manifests: the folders.
        storage: the door to the shards.
        source: language of the texts (BCP-47); None: every language there is. Records in other languages are left out.
        target: of `mmt`, the language to translate into.
        policy: what samples lead to that turn out to be bad.

    Raises:
        UserError: records of another task, or none in the language asked for.
        BadDataError: a bad sample, where the policy is `raise`; otherwise too many of them.
    """

    def __init__(
        self,
        task: TaskName,
        manifests: Sequence[Manifest],
        storage: Storage,
        source: str | None = None,
        target: str | None = None,
        policy: BadSamplePolicy | None = None,
    ):
        self.task, self.manifests, self.storage, self.policy = task, list(manifests), storage, policy or BadSamplePolicy()
        self.target, self.bad = target, bad_samples(self.manifests)
        self.left_out = 0
        """Records that are not numbered: bad ones, and those in other languages."""
        found: list[tuple[Record, int, int]] = []
        others: Counter[str] = Counter()
        for number, manifest in enumerate(self.manifests):
            for row, sample in _samples(storage, manifest):
                try:
                    if isinstance(sample, SampleError):
                        raise sample
                    records = read_records(task, replace(sample, shard=join(manifest.folder, sample.shard)), target)
                except SampleError as error:
                    described = BadSample(*_place(manifest, row), error.member, error.cause, error.reason)
                    self.bad.append(self.policy.accept(described))
                    continue
                chosen = [record for record in records if source is None or record.language == source]
                others.update({record.language for record in records} - {source})
                self.left_out += not chosen
                found += [(record, number, row) for record in chosen]
        folders = ", ".join(manifest.folder for manifest in self.manifests)
        if self.bad:
            self.policy.check(len(self.bad), self.total, str(self.bad[0]))
        self.left_out += len(self.bad)
        if not found:
            wanted = f"{source or 'any language'}{f' with a translation into {target}' if target else ''}"
            there = f"; languages there: {', '.join(sorted(others))}" if others else ""
            raise UserError(f"{folders}: no record of the task {task} in {wanted}{there}")
        records = [record for record, _, _ in found]
        self.languages = tuple(sorted({record.language for record in records}))
        self._texts, self._answers = (pa.array([getattr(one, name) for one in records]) for name in ("text", "answer"))
        self._languages = np.array([self.languages.index(record.language) for record in records], dtype=np.int16)
        keys = [image for record in records for image in record.images]
        self.image_keys: list[str | None] = keys
        """One after another, as many for each record as the task has images."""
        self._place = np.array([place for _, *place in found], dtype=np.int64)

    @classmethod
    def load(
        cls,
        task: TaskName,
        folders: Sequence[str],
        storage: Storage,
        source: str | None = None,
        target: str | None = None,
        policy: BadSamplePolicy | None = None,
        log: Callable[[str], None] = print,
    ) -> "TaskRecords":
        """Open folders of records, building manifests that are missing. Raises as the class itself, and ShardError for a damaged shard."""
        policy = policy or BadSamplePolicy()
        manifests = [load_or_build(storage, folder, log, "skip" if policy.tolerant else "raise") for folder in folders]
        refuse(bad_samples(manifests), policy, sum(map(len, manifests)))
        return cls(task, manifests, storage, source, target, policy)

    def __len__(self) -> int:
        return len(self._place)

    @property
    def images_each(self) -> int:
        """Images of a record: 1, or 2 of `marvl`."""
        return 2 if self.task == "marvl" else 1

    @property
    def total(self) -> int:
        """All stored samples."""
        return sum(map(len, self.manifests))

    @property
    def fingerprint(self) -> str:
        """Hex digest of the folders' contents, the task and the languages."""
        parts = [self.task, self.target or "", *self.languages, *(manifest.fingerprint for manifest in self.manifests)]
        return hashlib.blake2b("|".join(parts).encode(), digest_size=16).hexdigest()

    def texts(self, ids: np.ndarray | None = None) -> list[str]:
        """Of some records, or of all."""
        return (self._texts if ids is None else self._texts.take(pa.array(ids))).to_pylist()

    def answers(self, ids: np.ndarray | None = None) -> list[str]:
        """What is right of some records, or of all."""
        return (self._answers if ids is None else self._answers.take(pa.array(ids))).to_pylist()

    def tags(self, ids: np.ndarray | None = None) -> list[str]:
        """Languages (BCP-47) of the texts of some records, or of all."""
        return [self.languages[place] for place in (self._languages if ids is None else self._languages[ids]).tolist()]

    def sample_of(self, record: int) -> tuple[int, int]:
        """(number of the manifest, row of it) of the sample that holds a record."""
        source, row = self._place[record].tolist()
        return source, row

    def locate(self, record: int) -> tuple[str, str]:
        """(shard, key) of the sample that holds a record."""
        source, row = self.sample_of(record)
        return _place(self.manifests[source], row)

    def describe_bad(self, record: int, error: SampleError) -> BadSample:
        """What is told of a record, which `error` says cannot be used."""
        return BadSample(*self.locate(record), error.member, error.cause, error.reason)

    def stored_members(self, bad: BadSample) -> dict[str, bytes]:
        """The members of a bad sample as they lie in its shard now, as far as they can be read."""
        return stored_members(self.manifests, self.storage, bad)


def _samples(storage: Storage, manifest: Manifest) -> Iterator[tuple[int, RawSample | SampleError]]:
    """Row and members of all sound samples, in order."""
    rows = np.flatnonzero(manifest.table["fault"].is_null().to_numpy())
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        yield from zip(some.tolist(), try_read_samples(storage, manifest, some), strict=True)


def _place(manifest: Manifest, row: int) -> tuple[str, str]:
    return join(manifest.folder, manifest.table["shard"][row].as_py()), manifest.table["key"][row].as_py()


def read_records(task: TaskName, sample: RawSample, target: str | None = None) -> list[Record]:
    """What a stored sample asks in a task.

    Args:
        task: which.
        sample: its members.
        target: of `mmt`, the language to translate into; texts in all others that have a translation are records.

    Raises:
        UserError: the sample is a record of another task, or none at all.
        SampleError: it is one of this task that cannot be used.
    """
    fields = decode_json(sample.members.get("json", b""), sample.where)
    if task == "mmt":
        return _translations(fields, sample.where, target)
    if fields.get("task") not in OF_TASK[task]:
        held = f"a record of the task {fields['task']!r}" if isinstance(fields.get("task"), str) else "no record of a task"
        raise UserError(f"{sample.where} is {held}, where those of {' or '.join(OF_TASK[task])} were expected, for the task {task}")
    images, texts = fields.get("images"), fields.get("texts")
    count = 2 if task == "marvl" else 1
    if not isinstance(images, list) or len(images) != count or not all(isinstance(key, str) for key in images):
        raise SampleError(sample.where, f"'images' is no list of {count} keys, as records of {task} have", "json", "json")
    if not isinstance(texts, dict):
        raise SampleError(sample.where, f"'texts' is {kind_of(texts)} where an object of language → texts was expected", "json", "json")
    answer = "" if task == "itr" else _answer(task, fields.get("record"), sample.where)
    cleaned = captions_by_language(texts, sample.where, "json", "raise")
    if not cleaned:
        raise SampleError(sample.where, "its texts show nothing", "json", "text")
    return [Record(text, language, answer, tuple(images)) for language, found in cleaned.items() for text in found]


def _answer(task: TaskName, published: Any, where: str) -> str:
    """The class or answer of a published record."""
    name = {"xvnli": "gold_label", "xgqa": "answer"}.get(task, "label")
    value = published.get(name) if isinstance(published, dict) else None
    if task == "marvl":
        value = str(value)
        if value.lower() not in ("true", "false"):
            raise SampleError(where, f"'record.label' is {value!r} where true or false was expected", "json", "json")
        return value.lower()
    if not isinstance(value, str) or not value.strip():
        raise SampleError(where, f"'record.{name}' is {kind_of(value)} where text was expected", "json", "json")
    return value.strip()


def _translations(fields: dict[str, Any], where: str, target: str | None) -> list[Record]:
    """The i-th caption of each language beside the i-th one in the target language."""
    stored = fields.get("captions")
    if not isinstance(stored, dict):
        raise UserError(f"{where} has no captions, so that nothing can be translated; the task mmt reads what prepare.py multi30k writes")
    captions = captions_by_language(stored, where, "json", "raise")
    key = fields.get("group")
    image = (key if isinstance(key, str) and key else None,)
    aims = captions.get(target or "", [])
    return [
        Record(text, language, aim, image)
        for language, texts in captions.items()
        if language != target
        for text, aim in zip(texts, aims, strict=False)
    ]
