"""Train and score all systems of the Globetrotter paper and write the page that compares them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import pydantic

from raysys.errors import UserError
from raysys.runs.compare.compare import Comparing, compare
from raysys.runs.compare.entries import ComparisonSettings, Entry, make_entry, progress
from raysys.runs.compare.globetrotter_page import write_page
from raysys.runs.run import Log, open_run
from raysys.runs.settings import GlobetrotterSettings
from raysys.systems.settings import SystemName


class GlobetrotterComparisonSettings(ComparisonSettings):
    """Which runs of Globetrotter and its rivals are compared."""

    systems: Annotated[tuple[SystemName, ...], pydantic.Field(min_length=1)] = get_args(SystemName)
    """What is trained."""
    also: tuple[str, ...] = ()
    """Folders of further runs to show: options beyond the paper, trained by other commands."""
    human: tuple[str, ...] = ("tuxpaint", "human")
    """Test splits with one of these in their names were translated by people, and are shown apart."""


def entries(base: GlobetrotterSettings, systems: Sequence[str], seeds: Sequence[int]) -> list[Entry[GlobetrotterSettings]]:
    """All runs, seed by seed, so that a comparison that is cut short holds all systems of some seeds.

    Raises:
        UserError: a system cannot be trained with these settings.
    """
    return [make_entry(base, system, seed) for seed in seeds for system in systems]


def reproduce(
    options: GlobetrotterComparisonSettings,
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
    comparing: Comparing[GlobetrotterSettings] = Comparing("globetrotter", options, config, handed, job)
    base = comparing.base(GlobetrotterSettings, f"runs/comparison/{config.stem}")
    made = entries(base, list(dict.fromkeys(options.systems)), list(dict.fromkeys(options.seeds)))
    steps = _total_steps(made[0], page_only, log)

    def page(commands: Sequence[tuple[str, str]]) -> str:
        return write_page(made, steps, options.also, options.human, f"Globetrotter on {config.stem}", commands, log)

    compare(comparing, made, {entry.name: steps for entry in made}, page, dry_run=dry_run, page_only=page_only, log=log)


def _total_steps(entry: Entry[GlobetrotterSettings], page_only: bool, log: Log) -> int | None:
    """Steps of every run; None where only the page is wanted and the data is not here."""
    progress(entry, None)  # says it in the words of a comparison where the run is another one
    try:
        return open_run(entry.settings, log).total_steps
    except UserError:
        if page_only:
            return entry.settings.training.steps
        raise
