"""Train what is not finished of a comparison, side by side, and write its page."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from raysys.errors import RunFailed, UserError
from raysys.runs.compare.entries import ComparisonSettings, Entry, progress
from raysys.runs.compare.processes import Failed, Log, Row, explain, fitting, resources, run_rows, shared_ray
from raysys.runs.run import RunTree, check_paths
from raysys.settings import from_command_line
from raysys.storage import Storage, is_remote, join
from raysys.training.resources import needed_cpus


@dataclass(frozen=True)
class Comparing(Generic[RunTree]):
    """How the runs of one comparison are trained."""

    paper: str
    """What the command calls it: python jobs/reproduce.py <paper>."""
    options: ComparisonSettings
    config: Path
    """Settings file of all runs."""
    handed: Sequence[str]
    """Further settings of all runs, as on the command line."""
    job: Path
    """The program that trains one run."""

    def base(self, kind: type[RunTree], place: str) -> RunTree:
        """The settings that all runs have in common.

        Args:
            kind: of settings.
            place: folder of the runs, where `options` name none, and the settings file none in object storage.

        Raises:
            UserError: settings are at fault, or the folder is relative in a submitted job.
        """
        base = from_command_line(kind, ["--config", str(self.config), *self.handed], self.job.name, "Settings of all runs.")

        def kept_in(place: str) -> RunTree:
            return base.model_copy(update={"run": base.run.model_copy(update={"storage": place})})

        kept = base.run.storage
        place = self.options.storage or (kept if is_remote(kept) else place)
        try:
            check_paths(kept_in(place))
        except UserError as error:
            raise UserError(str(error).replace("run.storage", "storage")) from None
        return kept_in(place if is_remote(place) else os.path.abspath(place))

    def row(self, entry: Entry[RunTree]) -> Row:
        """What trains and scores a run, or goes on with it."""
        run, training = entry.settings.run, entry.settings.training
        base: list[str] = ["--model.base", entry.base.settings.run.name] if entry.base else []
        own: list[str] = [
            "--system",
            entry.system,
            "--training.seed",
            str(training.seed),
            "--run.storage",
            run.storage,
            "--run.name",
            run.name,
            *base,
        ]
        command = [sys.executable, str(self.job), "--config", str(self.config), *self.handed, *own]
        return Row(entry.name, command, join(run.storage, f"{run.name}.log"), entry.base.name if entry.base else "")

    def command(self) -> str:
        """What a person types to get here again."""
        return shlex.join(["python", "jobs/reproduce.py", self.paper, *self._given(), *self.handed])

    def _given(self) -> list[str]:
        """The options that have to be given, or differ from what they are by themselves."""
        words: list[str] = []
        for name, field in type(self.options).model_fields.items():
            value: Any = getattr(self.options, name)
            if value != field.default:
                words += [f"--{name}", *map(str, value if isinstance(value, tuple) else [value])]
        return words


def compare(
    comparing: Comparing[RunTree],
    made: Sequence[Entry[RunTree]],
    steps: Mapping[str, int | None],
    page: Callable[[Sequence[tuple[str, str]]], str],
    *,
    dry_run: bool = False,
    page_only: bool = False,
    log: Log = print,
) -> None:
    """Train what is not finished, then write the page of all that is.

    Args:
        comparing: how.
        made: the runs. Those that others stand on are trained first.
        steps: name of a run → its steps; None where they are not known.
        page: takes (what it does, command line) of the commands to show, and returns where the page lies.
        dry_run: say what would be trained, and stop.
        page_only: train nothing.
        log: takes a line for people.

    Raises:
        UserError: a run is there that was made with other settings.
        RunFailed: some runs did not end well; the page was written from the others.
        KeyboardInterrupt: Ctrl-C; the runs were stopped.
    """
    base, options = made[0].settings, comparing.options
    largest = max((entry.settings.training for entry in made), key=needed_cpus)
    done = {entry.name: progress(entry, steps[entry.name]) for entry in made}
    left = [entry for entry in made if done[entry.name] is not None]
    begun = sum(bool(done[entry.name]) for entry in left)
    log(
        f"{len(made)} runs in {base.run.storage}: {len(made) - len(left)} finished"
        + (f", {begun} to go on" if begun else "")
        + (f", {len(left) - begun} to be trained" if len(left) > begun else "")
    )
    for entry in made if dry_run else ():
        log(f"  {entry.name}: {_state(entry, done[entry.name], steps[entry.name])}")
    parallel = 0
    if left and not page_only:
        cpus, gpus = resources(largest, base.ray)
        parallel = options.parallel or fitting(largest, len(left), cpus, gpus)
        where = "the cluster has" if os.environ.get("RAY_ADDRESS") else "there are"
        log(f"{parallel} at a time ({where} {cpus} CPUs, each run needs {needed_cpus(largest)}); logs beside the runs")
    if dry_run:
        return
    failed: list[Failed] = []
    if parallel:
        try:
            with shared_ray(largest, base.ray, parallel) as environment:
                failed = run_rows([comparing.row(entry) for entry in left], parallel, environment, Storage(base.storage), log)
        except KeyboardInterrupt:
            log("stopped; the same command goes on from here")
            raise
    log(f"page: {page([('Train what is not finished, and write this page again', comparing.command())])}")
    if failed:
        lost = {one.row.name for one in failed}
        held = [(entry.name, entry.base.name) for entry in left if entry.base is not None and entry.base.name in lost]
        raise RunFailed(explain(failed) + "".join(f"\n  {name}: not begun, for it stands on {base}" for name, base in held))


def _state(entry: Entry[RunTree], at: int | None, steps: int | None) -> str:
    if at is None:
        return "finished"
    whole = f"{steps} steps" if steps else f"{entry.settings.training.epochs:g} epochs"
    length = whole if entry.settings.trained else "computed at once"
    after = f", after {entry.base.name}" if entry.base else ""
    return f"goes on at step {at} of {whole.removesuffix(' steps')}" if at else f"to be trained, {length}{after}"
