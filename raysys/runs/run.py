"""A run: its settings, folder, data and plan, checked before anything is started."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.errors import UserError
from raysys.runs.settings import GlobetrotterSettings
from raysys.storage import Storage, StorageSettings, is_remote, join
from raysys.training.checkpoints import Checkpoints
from raysys.training.run_folder import RunFolder

Log = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """A run and its data, checked, before anything was started."""

    settings: GlobetrotterSettings
    folder: RunFolder
    samples: Samples
    validation: Samples | None
    plan: Plan

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self.settings.training.total_steps(self.plan.steps_per_epoch)

    @property
    def checkpoints(self) -> Checkpoints:
        """The run's checkpoints."""
        return Checkpoints(self.folder, self.settings.training.keep_checkpoints)


def run_folder(settings: GlobetrotterSettings) -> RunFolder:
    """Where the run of these settings is kept."""
    return open_folder(Storage(settings.storage), join(settings.run.storage, settings.run.name))


def open_folder(storage: Storage, uri: str) -> RunFolder:
    """A run's folder by its path."""
    return RunFolder(storage, uri if is_remote(uri) else os.path.abspath(uri))


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
    check_paths(settings)
    folder = run_folder(settings)
    if folder.exists():
        folder.check_resumable(settings)
    data, training, storage = settings.data, settings.training, folder.storage
    samples = Samples.load([data.locate(name) for name in data.train], data.languages, storage, log)
    if samples.left_out:
        log(f"{samples.left_out} samples are left out: faulty, or without a caption in the languages asked for")
    validation = None
    if data.validation:
        validation = Samples.load([data.locate(name) for name in data.validation], samples.languages, storage, log)
    plan = Plan(len(samples), training.global_batch, training.seed, data.run_length, data.window_steps, data.last_batch)
    run = Run(settings, folder, samples, validation, plan)
    run.checkpoints.check_resumable(samples.fingerprint, training.workers, training.zero_stage)
    return run


def describe(run: Run) -> list[str]:
    """The plan in lines for people."""
    training, plan = run.settings.training, run.plan
    counts = run.samples.counts()
    share = training.global_batch / training.workers
    lines = [
        f"run {run.folder.uri}" + (f", resumed at step {run.checkpoints.next_step()}" if run.checkpoints.next_step() else ""),
        f"data {len(run.samples)} samples in {len(counts)} languages (" + ", ".join(f"{tag} {n}" for tag, n in counts.items()) + ")",
        f"plan {run.total_steps} steps of {training.global_batch} samples, {plan.steps_per_epoch} steps an epoch"
        + (f", {plan.dropped_per_epoch} samples left out of each epoch in turn" if plan.dropped_per_epoch else ""),
        f"workers {training.workers}, each with {share:g} samples a step, ZeRO {training.zero_stage}, {training.precision}",
    ]
    return lines


def resolve_run(name: str, settings: GlobetrotterSettings | None = None) -> str:
    """A run's folder from a name (beneath the runs' storage) or a path."""
    if settings is not None and "/" not in name:
        return join(settings.run.storage, name)
    return name


def load_run(uri: str, storage_settings: StorageSettings | None = None) -> Run:
    """An existing run with its data opened, from its folder alone."""
    folder = open_folder(Storage(storage_settings), uri)
    return open_run(folder.load_settings(GlobetrotterSettings), log=lambda line: None)
