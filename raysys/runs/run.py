"""A run: its settings, folder, data and plan, checked before anything is started."""

import os
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from raysys.data.grouped_plan import GroupedPlan, language_groups, tempered_shares
from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.data.translations import check_translations
from raysys.errors import UserError
from raysys.models.backbones import check_backbone
from raysys.runs.settings import GlobetrotterSettings
from raysys.storage import Storage, StorageSettings, is_remote, join
from raysys.systems.settings import without_effect
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.resources import check_cpus
from raysys.training.run_folder import RunFolder
from raysys.training.settings import RunSettings, TrainingSettings

Log = Callable[[str], None]


@dataclass(frozen=True)
class SavedRun:
    """A run as its folder tells it: enough to load what it has trained, without its data."""

    settings: GlobetrotterSettings
    """As resolved when training began: `data.languages` names all languages in use."""
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
                f"python jobs/globetrotter.py --config {self.folder.path('settings.yaml')}"
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

    samples: Samples
    validation: Samples | None
    plan: Plan

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self.settings.training.total_steps(self.plan.steps_per_epoch)


def run_folder(settings: GlobetrotterSettings) -> RunFolder:
    """Where the run of these settings is kept."""
    return open_folder(Storage(settings.storage), join(settings.run.storage, settings.run.name))


def open_folder(storage: Storage, uri: str) -> RunFolder:
    """A run's folder by its path or URI."""
    if uri.startswith("file://"):
        uri = urllib.parse.unquote(uri.removeprefix("file://"))
    return RunFolder(storage, uri if "://" in uri else os.path.abspath(uri))


def check_paths(settings: GlobetrotterSettings) -> None:
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
    settings = settings.resolved()
    check_paths(settings)
    if not os.environ.get("RAY_ADDRESS"):
        check_cpus(settings.ray.cpus, settings.training)
    folder = run_folder(settings)
    if folder.exists():
        if not settings.data.languages:
            settings = with_data(settings, languages=folder.load_settings(GlobetrotterSettings).data.languages)
        if Checkpoints(folder, 1).latest():
            folder.check_resumable(settings)
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
    checkpoints = Checkpoints(folder, training.keep_checkpoints)
    checkpoints.check_resumable(samples.fingerprint)
    parts = _micro_batches(training, checkpoints.latest(), log)
    order = (training.global_batch, training.seed, data.run_length, data.window_steps, data.last_batch, parts)
    if data.balance == "languages":
        groups = language_groups(samples.languages, samples.column("languages"))
        plan: Plan = GroupedPlan(groups, tempered_shares(list(map(len, groups)), data.balance_exponent), *order)
    else:
        plan = Plan(len(samples), *order)
    return Run(settings, folder, samples, validation, plan)


def _micro_batches(training: TrainingSettings, latest: CheckpointState | None, log: Log) -> int:
    """Parts of each global batch: those that the run began with, whatever the number of workers is now.

    Raises:
        UserError: there are more workers than parts.
    """
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


def with_data(settings: GlobetrotterSettings, **changes: Any) -> GlobetrotterSettings:
    """The settings with some of `data` changed."""
    return settings.model_copy(update={"data": settings.data.model_copy(update=changes)})


def describe(run: Run) -> list[str]:
    """The plan in lines for people."""
    training, plan = run.settings.training, run.plan
    counts = run.samples.counts()
    lines = [
        f"run {run.folder.uri}" + (f", resumed at step {run.checkpoints.next_step()}" if run.checkpoints.next_step() else ""),
        f"data {len(run.samples)} samples in {len(counts)} languages (" + ", ".join(f"{tag} {n}" for tag, n in counts.items()) + ")",
        f"plan {run.total_steps} steps of {training.global_batch} samples, {plan.steps_per_epoch} steps an epoch"
        + (f", {plan.dropped_per_epoch} samples left out of each epoch in turn" if plan.dropped_per_epoch else ""),
        *([describe_passes(plan, run.samples.languages)] if isinstance(plan, GroupedPlan) else []),
        f"workers {training.workers}, ZeRO {training.zero_stage}, {training.precision}; " + negatives(plan, training),
    ]
    if idle := without_effect(run.settings.system, run.settings.objective):
        lines.append(f"without effect on the system {run.settings.system}: {', '.join(idle)}")
    cpus = training.max_workers * training.cpus_per_worker
    if not os.environ.get("RAY_ADDRESS") and cpus > (os.cpu_count() or 1):
        lines.append(f"these workers share the {os.cpu_count()} CPUs of this machine, and are slower than on {cpus}")
    return lines


def describe_passes(plan: GroupedPlan, languages: Sequence[str]) -> str:
    """How often each language's samples are seen in an epoch, in words."""
    passes = ", ".join(f"{tag} {often:.2g}" for tag, often in zip(languages, plan.passes_per_epoch, strict=True))
    return f"batches balanced by language; in an epoch the samples of each are seen so often: {passes}"


def negatives(plan: Plan, training: TrainingSettings) -> str:
    """What a sample is compared with in a step, in words."""
    sizes = plan.micro_batch_sizes(plan.global_batch, training.min_workers)
    turns, largest, others = max(map(len, sizes)), max(map(max, sizes)), plan.global_batch - 1
    if training.accumulation == "plain" and turns > 1:
        seen = sum(of_worker[0] for of_worker in sizes) - 1
        return (
            f"each sample is compared with {seen} others only (plain accumulation over {turns} micro-batches of {largest} a worker), "
            f"not with the {others} of the global batch as by training.accumulation exact"
        )
    ways = f"exact accumulation over {turns} micro-batches of {largest} samples a worker" if turns > 1 else f"{largest} samples a worker"
    return f"each sample is compared with the {others} others of the global batch ({ways})"


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
            return SavedRun(folder.load_settings(GlobetrotterSettings), folder)
        if "/" in run:
            break
    where = run.rstrip("/").rpartition("/")[0] if "/" in run else RunSettings().storage
    raise UserError(f"there is no run {run}: no settings.yaml in {open_folder(storage, run).uri}; {_runs_in(where)}")


def _runs_in(uri: str) -> str:
    if not uri or is_remote(uri):
        return "give the folder of a run"
    entries = sorted(os.scandir(uri), key=lambda entry: entry.name) if os.path.isdir(uri) else []
    names = [entry.name for entry in entries if os.path.isfile(join(entry.path, "settings.yaml"))]
    return f"runs in {uri}: {', '.join(names)}" if names else f"there are no runs in {uri}: train one with python jobs/globetrotter.py"
