"""Train and score all systems of the Globetrotter paper and write the page that compares them."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from raysys.errors import RunFailed, UserError
from raysys.runs.comparison import ComparisonSettings, Entry, entries, progress
from raysys.runs.comparison_page import write_page
from raysys.runs.reproduce import Log, Row, explain, fitting, resources, run_rows, shared_ray
from raysys.runs.run import check_paths, open_run
from raysys.runs.settings import GlobetrotterSettings
from raysys.settings import from_command_line
from raysys.storage import Storage, is_remote, join
from raysys.training.resources import needed_cpus


def reproduce(
    options: ComparisonSettings,
    config: Path,
    handed: Sequence[str],
    job: Path,
    *,
    dry_run: bool = False,
    page_only: bool = False,
    log: Log = print,
) -> None:
    """Train what is not finished, then write the page of all that is.

    Args:
        options: which runs.
        config: settings file of all runs.
        handed: further settings of all runs, as on the command line.
        job: the program that trains one run, jobs/globetrotter.py.
        dry_run: say what would be trained, and stop.
        page_only: train nothing.
        log: takes a line for people.

    Raises:
        UserError: settings or data are at fault, or a run is there that was made with other settings.
        RunFailed: some runs did not end well; the page was written from the others.
        KeyboardInterrupt: Ctrl-C; the runs were stopped.
    """
    base = _base(options, config, handed)
    made = entries(base, list(dict.fromkeys(options.systems)), list(dict.fromkeys(options.seeds)))
    steps = _total_steps(made[0], page_only, log)
    done = {entry.name: progress(entry, steps) for entry in made}
    left = [entry for entry in made if done[entry.name] is not None]
    begun = sum(bool(done[entry.name]) for entry in left)
    log(
        f"{len(made)} runs in {base.run.storage}: {len(made) - len(left)} finished"
        + (f", {begun} to go on" if begun else "")
        + (f", {len(left) - begun} to be trained" if len(left) > begun else "")
    )
    if dry_run:
        for entry in made:
            at = done[entry.name]
            state = "finished" if at is None else f"goes on at step {at} of {steps}" if at else f"to be trained, {steps} steps"
            log(f"  {entry.name}: {state}")
    parallel = 0
    if left and not page_only:
        cpus, gpus = resources(base.training, base.ray)
        parallel = options.parallel or fitting(base.training, len(left), cpus, gpus)
        where = "the cluster has" if os.environ.get("RAY_ADDRESS") else "there are"
        log(f"{parallel} at a time ({where} {cpus} CPUs, each run needs {needed_cpus(base.training)}); logs beside the runs")
    if dry_run:
        return
    failed = []
    if parallel:
        rows = [_row(entry, config, handed, job) for entry in left]
        try:
            with shared_ray(base.training, base.ray, parallel) as environment:
                failed = run_rows(rows, parallel, environment, Storage(base.storage), log)
        except KeyboardInterrupt:
            log("stopped; the same command goes on from here")
            raise
    command = [*("python", "jobs/reproduce.py", "globetrotter", "--data", options.data), *_given(options), *handed]
    commands = [("Train what is not finished, and write this page again", shlex.join(command))]
    log(f"page: {write_page(made, steps, options.also, options.human, f'Globetrotter on {config.stem}', commands, log)}")
    if failed:
        raise RunFailed(explain(failed))


def _base(options: ComparisonSettings, config: Path, handed: Sequence[str]) -> GlobetrotterSettings:
    base = from_command_line(GlobetrotterSettings, ["--config", str(config), *handed], "globetrotter.py", "Settings of all runs.")

    def kept_in(place: str) -> GlobetrotterSettings:
        return base.model_copy(update={"run": base.run.model_copy(update={"storage": place})})

    place = options.storage or f"runs/comparison/{config.stem}"
    try:
        check_paths(kept_in(place))
    except UserError as error:
        raise UserError(str(error).replace("run.storage", "storage")) from None
    return kept_in(place if is_remote(place) else os.path.abspath(place))


def _total_steps(entry: Entry, page_only: bool, log: Log) -> int | None:
    """Steps of every run; None where only the page is wanted and the data is not here."""
    progress(entry, None)  # says it in the words of a comparison where the run is another one
    try:
        return open_run(entry.settings, log).total_steps
    except UserError:
        if page_only:
            return entry.settings.training.steps
        raise


def _row(entry: Entry, config: Path, handed: Sequence[str], job: Path) -> Row:
    run, training = entry.settings.run, entry.settings.training
    own = ["--system", entry.system, "--training.seed", str(training.seed), "--run.storage", run.storage, "--run.name", run.name]
    command = [sys.executable, str(job), "--config", str(config), *handed, *own]
    return Row(entry.name, command, join(run.storage, f"{run.name}.log"))


def _given(options: ComparisonSettings) -> list[str]:
    """The options of a command that differ from what they are by themselves."""
    words = []
    for name, field in ComparisonSettings.model_fields.items():
        value = getattr(options, name)
        if name != "data" and value != field.default:
            words += [f"--{name}", *map(str, value if isinstance(value, tuple) else [value])]
    return words
