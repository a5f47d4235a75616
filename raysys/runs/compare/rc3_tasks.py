"""The tasks that pre-trained networks are compared on: one settings file for all, and one with the data of each."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from raysys.data.task_records import TaskName
from raysys.errors import UserError
from raysys.runs.finetune.settings import FinetuneSettings, settings_class
from raysys.runs.rc3.settings import Rc3Settings
from raysys.settings import from_command_line
from raysys.systems.rc3.tasks import TASK_NAMES

TaskSettings = dict[str, FinetuneSettings]
"""What is fine-tuned, such as xvnli and mmt-de, whose task is what its name begins with → its settings, without base and seed."""


def load_tasks(common: Path, each: Path, wanted: Sequence[TaskName], handed: Sequence[str], base: Rc3Settings) -> TaskSettings:
    """The settings of every fine-tuning of the tasks that are wanted.

    Pictures are prepared as in pre-training, data lies in the same folder unless the files say otherwise, and storage and Ray are those of
    pre-training.

    Args:
        common: settings file for jobs/finetune.py that holds for all.
        each: YAML file of name → what is set for it besides.
        wanted: tasks.
        handed: further settings of all, as on the command line of jobs/finetune.py.
        base: settings of pre-training.

    Raises:
        UserError: a file or a setting is at fault, or a task that is wanted has no data there.
    """
    shared, own = _read(common), _read(each)
    if unknown := [name for name in own if task_of(name) not in TASK_NAMES]:
        raise UserError(f"{each}: {unknown[0]} begins with no task; tasks are {', '.join(TASK_NAMES)}")
    if lacking := [task for task in wanted if not any(task_of(name) == task for name in own)]:
        raise UserError(f"{each} says nothing of the task {lacking[0]}: add it, or leave it out of --tasks")
    pictures = {"data": {"folder": base.data.folder, "image": base.data.image.model_dump(mode="json")}}
    found: TaskSettings = {}
    for name, more in own.items():
        task: Any = task_of(name)
        if task in wanted:
            values = _merged(_merged(pictures, shared), more) | {"storage": base.storage.model_dump(mode="json")}
            values |= {"ray": base.ray.model_dump(mode="json"), "system": task}
            found[name] = _with_options(values, task, handed)
    return found


def task_of(name: str) -> str:
    """The task of a fine-tuning."""
    return name.partition("-")[0]


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected settings as 'key: value' lines")
    return values


def _merged(one: dict[str, Any], other: Any) -> dict[str, Any]:
    """`one` with what `other` says instead or besides."""
    both = dict(one)
    for key, value in other.items():
        both[key] = _merged(both[key], value) if isinstance(value, dict) and isinstance(both.get(key), dict) else value
    return both


def _with_options(values: dict[str, Any], task: TaskName, handed: Sequence[str]) -> FinetuneSettings:
    with tempfile.NamedTemporaryFile("w", suffix=f"-{task}.yaml", encoding="utf-8") as file:
        yaml.safe_dump(values, file, allow_unicode=True, sort_keys=False)  # tests are shown in this order
        file.flush()
        try:
            return from_command_line(settings_class(task), ["--config", file.name, *handed], "finetune.py", "Settings of all fine-tunings.")
        except UserError as error:
            raise UserError(f"fine-tuning on {task}: {str(error).removeprefix(f'{file.name}: ')}") from None
