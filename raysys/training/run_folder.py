"""What a run leaves behind, and where."""

import contextlib
import json
import math
from types import TracebackType
from typing import Any, TypeVar

from raysys import settings as settings_module
from raysys.errors import UserError
from raysys.settings import Settings
from raysys.storage import Storage, StorageError, is_remote, join

AnySettings = TypeVar("AnySettings", bound=Settings)

_NEVER_CHANGES = (
    "system",
    "base",
    "visual",
    "data",
    "model",
    "objective",
    "training.seed",
    "training.global_batch",
    "training.precision",
    "training.accumulation",
    "training.learning_rate",
    "training.learning_rate_factors",
    "training.layer_decay",
    "training.weight_decay",
)
# The data may have moved: its fingerprint, kept with every checkpoint, tells whether it is the same.
_MAY_CHANGE = (
    *("data.folder", "data.decode", "data.decode_threads", "data.validation", "data.tests"),
    *("data.images", "data.test_images", "data.on_bad_sample", "data.max_bad_fraction"),
    "model.text.expansion",  # read when an encoder is exported
)


class RunFolder:
    """One run's folder: settings, metrics, checkpoints, tokenizer, export, report. Picklable.

    Args:
        storage: the door to it.
        uri: the folder, local or s3://.
    """

    def __init__(self, storage: Storage, uri: str):
        self.storage = storage
        self.uri = uri

    def path(self, *parts: str) -> str:
        """Where a part of the run lies."""
        return join(self.uri, *parts)

    def beside(self, name: str) -> str:
        """Where another run of this name lies in the same storage."""
        return join(self.uri.rpartition("/")[0], name)

    @property
    def checkpoints(self) -> str:
        """Folder of the checkpoints."""
        return self.path("checkpoints")

    @property
    def is_remote(self) -> bool:
        """Whether the folder is in object storage."""
        return is_remote(self.uri)

    def exists(self) -> bool:
        """Whether a run of this name was started before."""
        return self.storage.exists(self.path("settings.yaml"))

    def save_settings(self, settings: Settings) -> None:
        """Write the resolved settings, from which the run can be loaded without any other file."""
        self.write_text("settings.yaml", settings_module.dumps(settings))

    def load_settings(self, cls: type[AnySettings]) -> AnySettings:
        """The settings of this run. Raises UserError where there is no run."""
        if not self.exists():
            raise UserError(f"no run at {self.uri}: there is no settings.yaml in it")
        try:
            return settings_module.loads(cls, self.read_text("settings.yaml"), self.path("settings.yaml"))
        except UserError as error:
            raise UserError(f"{error}: the run may be of another version of raysys; use that one, or give a new run another name") from None

    def check_writable(self) -> None:
        """Raise UserError where nothing can be written into the folder."""
        probe = self.path(".writable")
        try:
            self.storage.write(probe, b"")
            self.storage.delete(probe)
        except (StorageError, UserError) as error:
            raise UserError(f"the run's folder {self.uri} cannot be written ({error}): change its permissions, or --run.storage") from None

    def check_resumable(self, settings: Settings) -> None:
        """Raise UserError where the run exists and `settings` would change what it has trained so far."""
        old = self.load_settings(type(settings)).model_dump(mode="json")
        new = settings.model_dump(mode="json")
        changed = [key for key in _differences(old, new) if _matters(key)]
        if changed:
            key = changed[0]
            raise UserError(
                f"the run {self.uri} exists and was trained with {key} = {_at(old, key)!r}, now asked for {_at(new, key)!r}: "
                "give the new run another --run.name, or resume with the old value"
            )

    def read_text(self, name: str) -> str:
        """A text file of the run."""
        return self.storage.read(self.path(name)).decode()

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of the run, whole or not at all."""
        self.storage.write(self.path(name), text.encode())

    def metrics(self) -> list[dict[str, Any]]:
        """All lines of metrics.jsonl, in order; empty before the first."""
        if not self.storage.exists(self.path("metrics.jsonl")):
            return []
        return [json.loads(line) for line in self.read_text("metrics.jsonl").splitlines() if line]


class MetricsLog:
    """metrics.jsonl: one JSON object a line, in the order of steps, without NaN literals.

    Lines are kept in memory and the file is written whole, since object storage cannot append; a resumed run drops the
    lines of steps that are to be done again.

    Args:
        folder: the run.
        resume_step: lines with a greater step are dropped.
    """

    def __init__(self, folder: RunFolder, resume_step: int):
        self.folder = folder
        self.lines = [line for line in folder.metrics() if line["step"] <= resume_step]

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write what there is where training fails: those are the lines that tell why."""
        if error is not None:
            with contextlib.suppress(StorageError, UserError):
                self.flush()

    def add(self, step: int, values: dict[str, Any]) -> dict[str, Any]:
        """Append a line; a value that is not finite becomes null."""
        line = {"step": step, **{name: _finite(value) for name, value in values.items()}}
        self.lines.append(line)
        return line

    def flush(self) -> None:
        """Write the file."""
        self.folder.write_text("metrics.jsonl", "".join(json.dumps(line, allow_nan=False) + "\n" for line in self.lines))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if old == new else [prefix]
    dotted = f"{prefix}." if prefix else ""
    return [key for name in {**old, **new} for key in _differences(old.get(name), new.get(name), f"{dotted}{name}")]


def _matters(key: str) -> bool:
    def under(parents: tuple[str, ...]) -> bool:
        return any(key == parent or key.startswith(parent + ".") for parent in parents)

    return under(_NEVER_CHANGES) and not under(_MAY_CHANGE)


def _at(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values
