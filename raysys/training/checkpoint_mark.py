"""``complete.json``: what a checkpoint is, which files belong to it, and that they are all there."""

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from raysys.errors import UserError
from raysys.storage import Storage, join

MARK = "complete.json"
FORMAT = 1
"""Version of the files' form."""
_STEP = re.compile(r"step-(\d{8,})$")


@dataclass(frozen=True)
class CheckpointState:
    """What is told of a checkpoint: where training stood, and how it was written."""

    step: int
    """Steps that were done; training resumes at this one."""
    fingerprint: str
    """Of the training data."""
    workers: int
    """Training processes that wrote it; any number can read it."""
    zero_stage: int
    """DeepSpeed ZeRO stage that it was written in; it can be read in any."""
    score: float | None
    """On the validation data; greater is better."""
    micro_batches: int = 1
    """Parts into which each global batch is divided."""
    skipped_steps: int = 0
    """Steps so far that changed no weight, because the loss or the gradient was not finite."""


def best_scored(states: Iterable[CheckpointState]) -> CheckpointState | None:
    """The checkpoint with the best score, the later of equals; None where none has a score."""
    scored = [state for state in states if state.score is not None]
    return max(scored, key=lambda state: (state.score, state.step), default=None)


@dataclass(frozen=True)
class Mark:
    """All that is in ``complete.json``."""

    state: CheckpointState
    writing: str
    """Tells the files of one attempt to write this checkpoint from those of another; it is part of their names."""
    time: str
    """When it became complete, in UTC, as ISO 8601 writes it."""
    files: dict[str, tuple[int, int | None]]
    """Name → (bytes, CRC-32); files of tensors have no checksum here but one for each block, in the index beside them."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for size, _ in self.files.values())

    @property
    def damage(self) -> str:
        """Name of the file that lies beside the others once reading them has shown that bytes have changed."""
        return f"damaged-{self.writing}.txt"

    @property
    def indices(self) -> list[str]:
        """Names of the ranks' indices, by rank."""
        return sorted(name for name in self.files if name.endswith(".json"))

    def write(self, storage: Storage, uri: str) -> None:
        """Write it into the checkpoint's folder `uri`."""
        values = {"format": FORMAT, **asdict(self.state), "writing": self.writing, "time": self.time, "files": self.files}
        storage.write(join(uri, MARK), json.dumps({**values, "checksum": _checksum(values)}, indent=1).encode())

    @classmethod
    def read(cls, storage: Storage, uri: str) -> "Mark":
        """That of the folder `uri`.

        Raises:
            ValueError: it is damaged.
            UserError: it was written in a form that is not read here.
        """
        values: dict[str, Any] = json.loads(storage.read(join(uri, MARK)))
        if not isinstance(values, dict):
            raise ValueError("it holds no table")
        if {"workers", "zero_stage"} < values.keys() and not {"format", "checksum"} & values.keys():
            raise UserError(
                f"the checkpoint {uri} was written by an earlier version, in DeepSpeed's own form, which cannot be read: "
                "give the run another --run.name, or delete its folder of checkpoints to train it from the beginning"
            )
        checksum = values.pop("checksum", None)
        if checksum != _checksum(values):
            raise ValueError("its checksum does not fit")
        if values["format"] != FORMAT:
            raise UserError(
                f"the checkpoint {uri} has form {values['format']}, this version reads form {FORMAT}: use the one that wrote it"
            )
        state = CheckpointState(**{field.name: values[field.name] for field in fields(CheckpointState)})
        return cls(state, values["writing"], values["time"], {name: (size, crc) for name, (size, crc) in values["files"].items()})


@dataclass(frozen=True)
class Found:
    """A checkpoint's folder as it is."""

    step: int
    uri: str
    files: dict[str, int]
    """Name → bytes."""
    mark: Mark | None = None
    """None: it is not complete, or its mark cannot be read."""
    fault: str | None = None
    """Why it cannot be used; None: it can."""


def survey(storage: Storage, folder: str) -> list[Found]:
    """All checkpoints beneath `folder`, usable or not, by step; sizes of files are compared, their bytes not read."""
    if not storage.exists(folder):
        return []
    sizes: dict[str, dict[str, int]] = defaultdict(dict)
    for entry in storage.list(folder):
        uri, _, name = entry.uri.rpartition("/")
        sizes[uri][name] = entry.size
    found = [_look(storage, int(match[1]), uri, files) for uri, files in sizes.items() if (match := _STEP.search(uri))]
    return sorted(found, key=lambda one: one.step)


def _look(storage: Storage, step: int, uri: str, files: dict[str, int]) -> Found:
    if MARK not in files or not storage.exists(join(uri, MARK)):  # it may be deleted while we look
        return Found(step, uri, files, fault=f"it has no {MARK}: writing it was cut short, or goes on")
    try:
        mark = Mark.read(storage, uri)
    except ValueError as error:
        return Found(step, uri, files, fault=f"its {MARK} is damaged: {error}")
    for name, (size, _) in mark.files.items():
        if name not in files:
            return Found(step, uri, files, mark, f"{name} is missing")
        if files[name] != size:
            return Found(step, uri, files, mark, f"{name} has {files[name]} bytes instead of {size}")
    if mark.damage in files:
        return Found(step, uri, files, mark, f"it was found to be damaged: {storage.read(join(uri, mark.damage)).decode()}")
    return Found(step, uri, files, mark)


def _checksum(values: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())
