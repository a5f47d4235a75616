"""A comparison of a paper's systems: which runs belong to it, and which are finished."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic

import pydantic

from raysys.errors import UserError
from raysys.runs.card import SCORES
from raysys.runs.run import AnyRunSettings, RunTree, SavedRun, load_settings, run_folder
from raysys.settings import Settings
from raysys.training.run_folder import RunFolder


class ComparisonSettings(Settings):
    """Which runs are compared, and where they are kept."""

    data: str
    """A settings file of this comparison in jobs/configs, by its name without .yaml, or the path of another one."""
    seeds: Annotated[tuple[pydantic.NonNegativeInt, ...], pydantic.Field(min_length=1)] = (0, 1, 2)
    """Every system is trained once with each."""
    storage: str | None = None
    """Folder of the runs and of the page, local or s3://; by default one in runs, by the name of the settings file."""
    parallel: pydantic.PositiveInt | None = None
    """Runs at a time; by default as many as the CPUs (and GPUs) of the cluster or of this machine have room for."""


_NO_MATTER = (
    *("run", "evaluation", "storage", "ray", "data.folder", "data.tests", "data.decode", "data.decode_threads"),
    *("training.workers", "training.resize_seconds", "training.cpus_per_worker", "training.gpu", "training.zero_stage"),
    *("training.activation_checkpointing", "training.keep_checkpoints", "training.log_every", "training.max_failures"),
    *("training.watchdog_seconds", "training.trackers", "training.profile_steps", "training.profile_from", "training.profile_all_workers"),
    "model.text.expansion",
)
"""Settings that say where and how fast, not what is trained."""


@dataclass(frozen=True)
class Entry(Generic[RunTree]):
    """A run of the comparison: one system, one seed."""

    system: str
    seed: int
    settings: RunTree
    """As the run has them from the start, with what its system changes."""
    base: "Entry[Any] | None" = None
    """The run that this one begins with or stands on, which has to be finished before; of the same program or another."""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.system}, seed {self.seed}"

    @property
    def folder(self) -> RunFolder:
        """Where it is kept."""
        return run_folder(self.settings)

    def saved(self) -> SavedRun:
        """What is there of it. Raises UserError where there is nothing."""
        return SavedRun(load_settings(self.folder), self.folder)


def make_entry(base: RunTree, system: str, seed: int, stands_on: Entry[Any] | None = None) -> Entry[RunTree]:
    """The run of a system with a seed, called <system>-seed-<seed>.

    Args:
        base: settings that all runs have in common.
        system: of the run.
        seed: of the run.
        stands_on: the run that it begins with or stands on.

    Raises:
        UserError: the system cannot be trained with these settings.
    """
    training = base.training.model_copy(update={"seed": seed})
    run = base.run.model_copy(update={"name": f"{system}-seed-{seed}"})
    changed: dict[str, Any] = {"system": system, "training": training, "run": run}
    if stands_on is not None:
        changed["model"] = base.model.model_copy(update={"base": stands_on.settings.run.name})
    return Entry(system, seed, base.model_copy(update=changed).resolved(), stands_on)


def progress(entry: Entry[RunTree], total_steps: int | None) -> int | None:
    """Steps that are done of a run; None: it is finished, all steps and the scores of all test splits.

    Args:
        entry: the run.
        total_steps: of the run; None where it is not known, and a scored run counts as finished.

    Raises:
        UserError: there is a run of that name with other settings; names the first that differs.
    """
    if not entry.folder.exists():
        return 0
    saved = entry.saved()
    if changed := differences(saved.settings, entry.settings):
        key, (before, now) = next(iter(changed.items()))
        raise UserError(
            f"the run {entry.folder.uri} is there and was made with {key} = {before!r}, not {now!r} as asked for now: give the comparison "
            "another --storage, or delete that run"
        )
    latest = saved.checkpoints.latest()
    done = latest.step if latest else 0
    if total_steps is not None and done > total_steps:
        raise UserError(
            f"the run {entry.folder.uri} is there and was trained for {done} steps, not {total_steps} as asked for now: give the "
            "comparison another --storage, or delete that run"
        )
    whole = not entry.settings.trained or (latest is not None and total_steps in (None, done))
    # A run that was scored in another way is scored again.
    alike = saved.settings.evaluation == entry.settings.evaluation and saved.settings.data.tests == entry.settings.data.tests
    return None if whole and alike and finished_scores(saved, entry.settings.data.tests) is not None else done


def differences(before: AnyRunSettings, now: AnyRunSettings) -> dict[str, tuple[Any, Any]]:
    """Dotted setting → (before, now), of those that change what is trained.

    A finished run has the languages of its data in its settings; where `now` leaves them open, they are no difference.
    """
    one, two = (_flat(settings.model_dump(mode="json")) for settings in (before, now))
    if not now.data.languages:
        two["data.languages"] = one.get("data.languages")
    keys = [key for key in {**one, **two} if not any(key == other or key.startswith(f"{other}.") for other in _NO_MATTER)]
    return {key: (one.get(key), two.get(key)) for key in keys if one.get(key) != two.get(key)}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) and value else {prefix + name: value}
    return flat


def finished_scores(run: SavedRun, tests: Mapping[str, str]) -> dict[str, Any] | None:
    """scores.json, if it is of the run's best checkpoint (where it is trained step by step) and has every test split."""
    if not run.folder.storage.exists(run.folder.path(SCORES)):
        return None
    scores: dict[str, Any] = json.loads(run.folder.read_text(SCORES))
    best = run.checkpoints.best()
    current = best is not None and scores["step"] == best.step if run.settings.trained else best is None
    return scores if current and set(tests) <= set(scores["data"]) else None
