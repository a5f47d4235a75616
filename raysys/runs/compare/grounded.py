"""Train and score the rows of the grounded paper's tables and write the page that compares them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import pydantic

from raysys.errors import UserError
from raysys.runs.compare.compare import Comparing, compare
from raysys.runs.compare.entries import ComparisonSettings, Entry, make_entry, progress
from raysys.runs.compare.grounded_page import write_page
from raysys.runs.grounded.run import open_grounded
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.run import Log
from raysys.systems.grounded.names import GroundedName, parts_of

GroundedEntry = Entry[GroundedSettings]
_PLAIN: dict[tuple[bool, bool], GroundedName] = {(True, False): "t", (True, True): "t-cp-g", (False, True): "cp-g"}
"""(learns from ordered sentences, from captioned pictures) → a system that can begin by itself."""


class GroundedComparisonSettings(ComparisonSettings):
    """Which runs of the grounded systems are compared."""

    systems: Annotated[tuple[GroundedName, ...], pydantic.Field(min_length=1)] = get_args(GroundedName)
    """What is trained, beside the runs of t and t-half that these stand on."""
    also: tuple[str, ...] = ()
    """Folders of further runs to show: options beyond the paper, trained by other commands."""
    from_t: bool = True
    """Sentence encoders begin as that of T with the same seed, as in the paper; otherwise with random weights, but for the systems that
    stand on a run by nature (seq, gs-img, gs-cap, gs-both)."""


def base_of(system: str, from_t: bool) -> str | None:
    """The system whose run `system` begins with or stands on; None for those that begin by themselves."""
    if system in ("t", "t-half") or not (from_t or parts_of(system)["base"]):
        return None
    return "t-half" if system.startswith("gs-") else "t"


def entries(base: GroundedSettings, systems: Sequence[str], seeds: Sequence[int], from_t: bool = True) -> list[GroundedEntry]:
    """All runs: first those that others stand on, then the others, seed by seed, so that a comparison that is cut short holds all
    systems of some seeds.

    Raises:
        UserError: a system cannot be trained with these settings.
    """
    needed = {name for system in systems if (name := base_of(system, from_t))}
    first = [name for name in ("t", "t-half") if name in needed or name in systems]
    stands = {(name, seed): make_entry(base, name, seed) for seed in seeds for name in first}
    made = list(stands.values())
    for seed in seeds:
        for system in systems:
            if system not in first:
                name = base_of(system, from_t)
                made.append(make_entry(base, system, seed, stands[name, seed] if name else None))
    return made


def reproduce(
    options: GroundedComparisonSettings,
    config: Path,
    handed: Sequence[str],
    job: Path,
    *,
    dry_run: bool = False,
    page_only: bool = False,
    log: Log = print,
) -> None:
    """As :func:`raysys.runs.compare.globetrotter.reproduce`, by jobs/grounded.py."""
    comparing: Comparing[GroundedSettings] = Comparing("grounded", options, config, handed, job)
    base = comparing.base(GroundedSettings, f"runs/grounded/{config.stem}")
    made = entries(base, list(dict.fromkeys(options.systems)), list(dict.fromkeys(options.seeds)), options.from_t)
    steps = _total_steps(base, made, page_only, log)

    def page(commands: Sequence[tuple[str, str]]) -> str:
        return write_page(made, steps, options.also, f"Grounded sentence representations on {config.stem}", commands, log)

    compare(comparing, made, steps, page, dry_run=dry_run, page_only=page_only, log=log)


def _total_steps(base: GroundedSettings, made: Sequence[GroundedEntry], page_only: bool, log: Log) -> dict[str, int | None]:
    """Name of a run → its steps; None where only the page is wanted and the data is not here, or nothing is trained step by step.

    Systems that learn from the same data have as many; every kind of data is opened, so that its faults are told before any training.
    """
    found: dict[tuple[bool, bool], int | None] = {}
    for entry in made:
        if entry.settings.trained and _kind(entry) not in found:
            progress(entry, None)  # says it in the words of a comparison where the run is another one
            try:
                found[_kind(entry)] = open_grounded(_alone(base, entry), log).total_steps
            except UserError:
                if not page_only:
                    raise
                found[_kind(entry)] = entry.settings.training.steps
    return {entry.name: found[_kind(entry)] if entry.settings.trained else None for entry in made}


def _kind(entry: GroundedEntry) -> tuple[bool, bool]:
    return entry.settings.uses_text, entry.settings.uses_images


def _alone(base: GroundedSettings, entry: GroundedEntry) -> GroundedSettings:
    """Settings that have the same plan as those of a run, whose base may not be trained yet: of a system that needs none."""
    if entry.base is None:
        return entry.settings
    run = base.run.model_copy(update={"name": "not-begun"})
    model = base.model.model_copy(update={"base": None})
    return base.model_copy(update={"system": _PLAIN[_kind(entry)], "run": run, "model": model})
