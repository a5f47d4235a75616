"""Pre-train RC³, its ablations and its rivals, fine-tune each on the tasks, and write the page that compares them."""

import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple, get_args

import pydantic

from raysys.data.task_records import TaskName
from raysys.errors import UserError
from raysys.evaluation.rc3_page.paper import ABLATION_ROWS, MMT, MMT_ROWS, RIVAL_ROWS, ROWS
from raysys.runs.compare.compare import Comparing, compare
from raysys.runs.compare.entries import ComparisonSettings, Entry, make_entry, progress
from raysys.runs.compare.processes import Row
from raysys.runs.compare.rc3_needs import needs, needs_cluster
from raysys.runs.compare.rc3_page import Tuned, write_page
from raysys.runs.compare.rc3_tasks import TaskSettings, load_tasks, task_of
from raysys.runs.finetune.run import as_base
from raysys.runs.rc3.run import open_rc3, with_batch
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.run import Log
from raysys.settings import dumps
from raysys.storage import join
from raysys.systems.rc3.names import Rc3Name, streams_of
from raysys.systems.rc3.tasks import TASK_NAMES

FOR_TASKS = "--finetune."
"""What settings begin with that are for fine-tuning."""
Made = Sequence[Entry[Rc3Settings] | Tuned]


class Rc3ComparisonSettings(ComparisonSettings):
    """Which pre-trained networks are compared, and on what."""

    size: str
    """How large: tiny, base or large, or a settings file of jobs/rc3.py; beside it lies that of fine-tuning, finetune-<size>.yaml."""
    data: str = ""
    """Which tasks: shapes (drawn here) or real (IGLUE and Multi30k), or a file of them; by default what the size is made for."""
    systems: Annotated[tuple[Rc3Name, ...], pydantic.Field(min_length=1)] = get_args(Rc3Name)
    """What is pre-trained."""
    tasks: Annotated[tuple[TaskName, ...], pydantic.Field(min_length=1)] = TASK_NAMES
    """What each network is fine-tuned on, as far as it has a row in the paper's table of that task."""
    teraflops: pydantic.PositiveFloat = 50.0
    """Operations a second that a GPU is assumed to do, in 10¹², where hours are estimated; an A100 has 312 at most in bf16."""


class Rc3Files(NamedTuple):
    """Settings files, and the programs that read them."""

    pretrain: Path
    """Of jobs/rc3.py, for all networks."""
    finetune: Path
    """Of jobs/finetune.py, for all tasks."""
    tasks: Path
    """What is set for each task besides."""
    pretrain_job: Path
    finetune_job: Path


@dataclass(frozen=True)
class Rc3Comparing(Comparing[Rc3Settings]):
    """How the runs of both programs are trained."""

    finetune_job: Path
    scratch: Path
    """Folder on this machine for the settings of fine-tuning runs."""
    whole: Sequence[str]
    """What was handed on for both programs, as on the command line."""

    def row(self, entry: Entry[Rc3Settings]) -> Row:
        """What trains and scores a run, or goes on with it."""
        if not isinstance(entry, Tuned):
            row = super().row(entry)
            return replace(row, command=[*row.command, "--training.global-batch", str(entry.settings.training.global_batch)])
        run, file = entry.settings.run, self.scratch / f"{entry.settings.run.name}.yaml"
        file.write_text(dumps(entry.settings), encoding="utf-8")
        command = [sys.executable, str(self.finetune_job), entry.settings.system, "--config", str(file)]
        return Row(entry.name, command, join(run.storage, f"{run.name}.log"), entry.stands_on.name)

    def command(self) -> str:
        """What a person types to get here again."""
        return shlex.join(["python", "jobs/reproduce.py", self.paper, *self._given(), *self.whole])


def rows_of(task: str) -> list[str]:
    """The rows of the paper's tables of a task, in their order."""
    return [name for name in ROWS if name in (MMT_ROWS if task == MMT else {*RIVAL_ROWS, *ABLATION_ROWS})]


def entries(base: Rc3Settings, tasks: TaskSettings, systems: Sequence[str], seeds: Sequence[int]) -> list[Entry[Rc3Settings] | Tuned]:
    """All runs, seed by seed, so that a comparison that is cut short holds all systems of some seeds: of a seed first the pre-trained
    networks, then every row of the paper on every task.

    Raises:
        UserError: a system or a task cannot be trained with these settings.
    """
    made: list[Entry[Rc3Settings] | Tuned] = []
    for seed in seeds:
        networks = {system: make_entry(with_batch(base, system), system, seed) for system in systems}
        made += networks.values()
        made += [
            tune(row, name, seed, networks[ROWS[row].system], tasks)
            for name in tasks
            for row in rows_of(task_of(name))
            if ROWS[row].system in networks
        ]
    return made


def tune(row: str, name: str, seed: int, network: Entry[Rc3Settings], tasks: TaskSettings) -> Tuned:
    """The run that fine-tunes a pre-trained network, called <row>-<name>-seed-<seed>; its settings are as the run itself will keep them."""
    settings, pretrained = tasks[name], network.settings
    run = pretrained.run.model_copy(update={"name": f"{row}-{name}-seed-{seed}"})
    changed = {
        "run": run,
        "base": pretrained.run.name,
        "visual": ROWS[row].visual,
        "training": settings.training.model_copy(update={"seed": seed}),
    }
    tuned = as_base(settings.model_copy(update=changed).resolved(), pretrained.model.network, pretrained.data.image)
    return Tuned(f"{row} on {name}", seed, tuned, network, row, name)


def reproduce(
    options: Rc3ComparisonSettings,
    files: Rc3Files,
    handed: Sequence[str],
    *,
    dry_run: bool = False,
    page_only: bool = False,
    log: Log = print,
) -> None:
    """As :func:`raysys.runs.compare.globetrotter.reproduce`, by jobs/rc3.py and jobs/finetune.py.

    Where more GPUs are asked for than this machine has and no cluster is named by RAY_ADDRESS, it says what the runs need and how they are
    submitted, and stops.
    """
    for_tasks, for_all = split_handed(handed)
    with tempfile.TemporaryDirectory(prefix="raysys-settings-") as scratch:
        comparing = Rc3Comparing("rc3", options, files.pretrain, for_all, files.pretrain_job, files.finetune_job, Path(scratch), handed)
        base = comparing.base(Rc3Settings, f"runs/rc3/{files.pretrain.stem}")
        tasks = load_tasks(files.finetune, files.tasks, options.tasks, for_tasks, base)
        made = entries(base, tasks, list(dict.fromkeys(options.systems)), list(dict.fromkeys(options.seeds)))
        if base.training.gpu and not page_only:
            for line in needs(base, made, comparing.command(), options.teraflops * 1e12):
                log(line)
            if needs_cluster(base.training):
                return
        steps = _total_steps(made, page_only, log)

        def page(commands: Sequence[tuple[str, str]]) -> str:
            return write_page(made, steps, f"RC³, {files.pretrain.stem}", commands, log)

        compare(comparing, made, steps, page, dry_run=dry_run, page_only=page_only, log=log)


def split_handed(handed: Sequence[str]) -> tuple[list[str], list[str]]:
    """(settings of fine-tuning, without what they begin with; settings of pre-training), each followed by its values."""
    for_tasks: list[str] = []
    for_all: list[str] = []
    into = for_all
    for word in handed:
        if word.startswith("--"):
            into = for_tasks if word.startswith(FOR_TASKS) else for_all
        into.append(f"--{word.removeprefix(FOR_TASKS)}" if word.startswith(FOR_TASKS) else word)
    return for_tasks, for_all


def _total_steps(made: Made, page_only: bool, log: Log) -> dict[str, int | None]:
    """Name of a run → its steps; None where they are not known before it begins.

    Networks that learn from the same streams have as many; all streams are opened, so that their faults are told before any training.
    """
    found: dict[tuple[str, ...], int | None] = {}
    steps: dict[str, int | None] = {}
    for entry in made:
        if isinstance(entry, Tuned):
            steps[entry.name] = entry.settings.training.steps
            continue
        streams = streams_of(entry.system)
        if streams not in found:
            progress(entry, None)  # says it in the words of a comparison where the run is another one
            try:
                found[streams] = open_rc3(entry.settings, log).total_steps
            except UserError:
                if not page_only:
                    raise
                found[streams] = entry.settings.training.steps
        steps[entry.name] = found[streams]
    return steps
