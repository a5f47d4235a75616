"""A run: its settings, folder, data and plan, checked before anything is started."""

import os
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from raysys.data.grouped_plan import GroupedPlan, language_groups, tempered_shares
from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.data.translations import check_translations
from raysys.errors import UserError
from raysys.models.backbones import check_backbone
from raysys.runs.finetune.settings import TABLE_6, FinetuneSettings
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.settings import GlobetrotterSettings
from raysys.storage import Storage, StorageSettings, is_remote, join
from raysys.systems.grounded.names import GROUNDED_TITLES
from raysys.systems.rc3.names import RC3_TITLES
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.resources import check_cpus
from raysys.training.run_folder import RunFolder
from raysys.training.settings import RunSettings, TrainingSettings

Log = Callable[[str], None]
AnyRunSettings = GlobetrotterSettings | GroundedSettings | Rc3Settings | FinetuneSettings
RunTree = TypeVar("RunTree", GlobetrotterSettings, GroundedSettings, Rc3Settings, FinetuneSettings)
LanguageTree = TypeVar("LanguageTree", GlobetrotterSettings, Rc3Settings)
_PROGRAMS: dict[type[AnyRunSettings], str] = {
    GlobetrotterSettings: "globetrotter.py",
    GroundedSettings: "grounded.py",
    Rc3Settings: "rc3.py",
    FinetuneSettings: "finetune.py",
}
"""Which program in `jobs/` trains runs of which settings."""


@dataclass(frozen=True)
class SavedRun:
    """A run as its folder tells it: enough to load what it has trained, without its data."""

    settings: Any
    """Of the class that its system has, as resolved when training began: `data.languages` names all languages in use."""
    folder: RunFolder

    @property
    def name(self) -> str:
        """Of the run."""
        return self.settings.run.name

    @property
    def checkpoints(self) -> Checkpoints:
        """The run's checkpoints."""
        return Checkpoints(self.folder, self.settings.training.keep_checkpoints)

    def checkpoint(self, which: int | Literal["best", "latest"] = "best") -> CheckpointState:
        """A checkpoint by its step, or the best or latest one.

        Raises:
            UserError: there is none, or none of that step; says which there are.
        """
        states = {state.step: state for state in self.checkpoints.all()}
        if not states:
            raise UserError(
                f"the run {self.folder.uri} has no checkpoint yet: let it train to its first one "
                f"(every {self.settings.training.checkpoint_every} steps) with: "
                f"python jobs/{program_of(self.settings)} --config {self.folder.path('settings.yaml')}"
            )
        if isinstance(which, int):
            if which not in states:
                raise UserError(
                    f"the run {self.folder.uri} has no usable checkpoint of step {which}; there are {', '.join(map(str, states))} "
                    "(python jobs/checkpoints.py list tells more)"
                )
            return states[which]
        found = self.checkpoints.best() if which == "best" else self.checkpoints.latest()
        assert found is not None
        return found


@dataclass(frozen=True)
class Run(SavedRun):
    """A run and its data, checked, before anything was started."""

    samples: Any
    """Samples, streams of several kinds of them, or records of a task."""
    validation: Any
    """Samples or records; None where there are none."""
    plan: Plan

    @property
    def total_steps(self) -> int:
        """Steps of the whole run; 0 where there is nothing to train step by step."""
        if not self.settings.trained:
            return 0
        return self.settings.training.total_steps(self.plan.steps_per_epoch)


def program_of(settings: AnyRunSettings) -> str:
    """The program in `jobs/` that trains runs of these settings, with what has to follow its name."""
    task = f" {settings.system}" if isinstance(settings, FinetuneSettings) else ""
    return _PROGRAMS[type(settings)] + task


def run_folder(settings: AnyRunSettings) -> RunFolder:
    """Where the run of these settings is kept."""
    return open_folder(Storage(settings.storage), join(settings.run.storage, settings.run.name))


def open_folder(storage: Storage, uri: str) -> RunFolder:
    """A run's folder by its path or URI."""
    if uri.startswith("file://"):
        uri = urllib.parse.unquote(uri.removeprefix("file://"))
    return RunFolder(storage, uri if "://" in uri else os.path.abspath(uri))


def check_paths(settings: AnyRunSettings) -> None:
    """Raise UserError for relative folders in a submitted job, which runs in a temporary copy of the working directory."""
    if "RAY_JOB_CONFIG_JSON_ENV_VAR" not in os.environ:
        return
    for key, value in (("run.storage", settings.run.storage), ("data.folder", settings.data.folder)):
        if not is_remote(value) and not os.path.isabs(value):
            raise UserError(
                f"{key}: {value!r} is relative, but a submitted job runs in a temporary copy of your folder: "
                f"give an absolute path that all nodes share, or s3://…, such as --{key} $PWD/{value}"
            )


def open_run(settings: GlobetrotterSettings, log: Log = print) -> Run:
    """Open the data and make the plan; every fault of settings or data is raised here, before training starts.

    Raises:
        UserError: says what is wrong and what to change.
    """
    settings, folder = open_settings(settings)
    if folder.exists() and not settings.data.languages:
        settings = with_data(settings, languages=folder.load_settings(GlobetrotterSettings).data.languages)
    check_resumable(settings, folder)
    data, training, storage = settings.data, settings.training, folder.storage
    samples = data.load(data.train, data.languages, storage, log)
    if samples.left_out:
        bad = sum(bool(one.key) for one in samples.bad)  # a shard damaged as a whole is no sample
        log(f"left out: {bad} bad samples, {samples.left_out - bad} without a caption in the languages in use")
    if held_out := set(settings.evaluation.held_out) & set(samples.languages):
        kept = [language for language in samples.languages if language not in held_out]
        samples = Samples(samples.manifests, kept, storage, data.layout, data.policy)
    settings = with_data(settings, languages=samples.languages)
    if settings.uses_images:
        check_backbone(settings.model.image.backbone, settings.model.image.pretrained)
    if settings.system == "supervised":
        check_translations(samples)
    validation = None
    if data.validation:
        validation = data.load(data.validation, samples.languages, storage, log)
    parts = micro_batches(training, folder, samples.fingerprint, log)
    order = (training.global_batch, training.seed, data.run_length, data.window_steps, data.last_batch, parts)
    if data.balance == "languages":
        groups = language_groups(samples.languages, samples.column("languages"))
        plan: Plan = GroupedPlan(groups, tempered_shares(list(map(len, groups)), data.balance_exponent), *order)
    else:
        plan = Plan(len(samples), *order)
    return Run(settings, folder, samples, validation, plan)


def open_settings(settings: RunTree) -> tuple[RunTree, RunFolder]:
    """What a run's settings come to, and where it is kept. Raises UserError where it cannot be trained with them, or not here."""
    settings = settings.resolved()
    check_paths(settings)
    if not os.environ.get("RAY_ADDRESS"):
        check_cpus(settings.ray.cpus, settings.training)
    return settings, run_folder(settings)


def check_resumable(settings: AnyRunSettings, folder: RunFolder) -> None:
    """Raise UserError where a run is there that these settings would not go on with."""
    if folder.exists() and Checkpoints(folder, 1).latest():
        folder.check_resumable(settings)


def micro_batches(training: TrainingSettings, folder: RunFolder, data: str, log: Log) -> int:
    """Parts of each global batch: those that the run began with, whatever the number of workers is now.

    Args:
        training: how it is to be trained now.
        folder: of the run.
        data: fingerprint of the data.
        log: takes a line for people.

    Raises:
        UserError: there are more workers than parts, or the run was trained on other data so far.
    """
    checkpoints = Checkpoints(folder, training.keep_checkpoints)
    checkpoints.check_resumable(data)
    latest = checkpoints.latest()
    if latest is None or latest.micro_batches == training.micro_batches:
        return training.micro_batches
    if training.micro_batch is not None:
        log(
            f"from step {latest.step} on, global batches are divided into {training.micro_batches} micro-batches instead of "
            f"{latest.micro_batches}: dropout and augmentation draw other numbers than they would have"
        )
        return training.micro_batches
    if training.max_workers > latest.micro_batches:
        size = training.global_batch // training.max_workers
        raise UserError(
            f"training.workers: the run divides each global batch into {latest.micro_batches} micro-batches, too few for "
            f"{training.max_workers} workers: use fewer, or divide it anew with --training.micro-batch {max(1, size)}, "
            "with which dropout and augmentation draw other numbers from here on"
        )
    return latest.micro_batches


def with_data(settings: LanguageTree, **changes: Any) -> LanguageTree:
    """The settings with some of `data` changed."""
    return settings.model_copy(update={"data": settings.data.model_copy(update=changes)})


def load_run(run: str, storage_settings: StorageSettings | None = None) -> SavedRun:
    """An existing run, from its folder alone: neither its data nor a cluster is needed.

    Args:
        run: the run's folder, local or s3://, or the name of a run in `runs`.
        storage_settings: how object storage is reached.

    Raises:
        UserError: there is no such run; names those that are there.
    """
    storage = Storage(storage_settings)
    for uri in (run, join(RunSettings().storage, run)):
        folder = open_folder(storage, uri)
        if folder.exists():
            return SavedRun(load_settings(folder), folder)
        if "/" in run:
            break
    where = run.rstrip("/").rpartition("/")[0] if "/" in run else RunSettings().storage
    raise UserError(f"there is no run {run}: no settings.yaml in {open_folder(storage, run).uri}; {_runs_in(where)}")


def load_settings(folder: RunFolder) -> AnyRunSettings:
    """The settings of a run, whatever its system. Raises UserError where there is none, or they cannot be read."""
    if not folder.exists():
        return folder.load_settings(GlobetrotterSettings)  # says so
    system = re.search(r"^system: *(\S+)", folder.read_text("settings.yaml"), re.MULTILINE)
    return folder.load_settings(settings_class_of(system[1] if system else ""))


def settings_class_of(system: str) -> type[AnyRunSettings]:
    """The class of settings of the runs that train `system`, or that fine-tune on this task."""
    if system in GROUNDED_TITLES:
        return GroundedSettings
    if system in RC3_TITLES:
        return Rc3Settings
    return FinetuneSettings if system in TABLE_6 else GlobetrotterSettings


def _runs_in(uri: str) -> str:
    if not uri or is_remote(uri):
        return "give the folder of a run"
    entries = sorted(os.scandir(uri), key=lambda entry: entry.name) if os.path.isdir(uri) else []
    names = [entry.name for entry in entries if os.path.isfile(join(entry.path, "settings.yaml"))]
    return f"runs in {uri}: {', '.join(names)}" if names else f"there are no runs in {uri}: train one with python jobs/globetrotter.py"
