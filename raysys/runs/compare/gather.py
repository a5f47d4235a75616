"""Scores of many runs, brought together for the page that sets them side by side."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from raysys.evaluation.side_by_side.row import Row
from raysys.runs.compare.entries import Entry, differences, finished_scores, progress
from raysys.runs.run import RunTree, SavedRun


@dataclass
class Gathered:
    """Scores of runs, all of the same test data."""

    data: dict[str, str] = field(default_factory=dict)
    """Split → fingerprint, of the first run that has it."""
    results: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    """System → seed → split → scores."""
    beside: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    """What the runs of the page's own system were scored beside → seed → split → scores."""
    missing: list[tuple[str, str]] = field(default_factory=list)
    """(run, why) of those that cannot be shown."""

    def add(self, name: str, run: SavedRun) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """(split → scores of the run, what it was scored beside → the same); None, and a note why, where nothing can be compared."""
        scores = finished_scores(run, {})
        if scores is None:
            self.missing.append((name, "it has no scores of its best checkpoint"))
            return None
        other = [split for split, fingerprint in scores["data"].items() if self.data.setdefault(split, fingerprint) != fingerprint]
        if other:
            self.missing.append((name, f"it was scored on other test data ({', '.join(other)}) than the runs before it"))
            return None
        results = dict(scores["results"])
        return results.pop(run.name), results


def gather_runs(made: Sequence[Entry[RunTree]], total_steps: Callable[[Entry[RunTree]], int | None], this: str) -> Gathered:
    """The scores of those runs of the comparison that are finished.

    Args:
        made: the runs that belong to it, finished or not.
        total_steps: of a run, as :func:`raysys.runs.compare.entries.progress` takes it.
        this: the system whose runs tell what they were scored beside.
    """
    found = Gathered(results={entry.system: {} for entry in made})
    for entry in made:
        steps = total_steps(entry)
        done = progress(entry, steps)
        if done is not None:
            found.missing.append((entry.name, f"{done} of {steps or 'its'} steps are done" if done else "it is not trained yet"))
        elif (scores := found.add(entry.name, entry.saved())) is not None:
            found.results[entry.system][entry.seed], others = scores
            for name, result in others.items() if entry.system == this else ():
                found.beside.setdefault(name, {})[entry.seed] = result
    return found


def further_rows(found: Gathered, also: Sequence[SavedRun], base: Entry[RunTree] | None) -> list[Row]:
    """Runs beyond the paper. Those called <name>-seed-<number> are the seeds of one row.

    Args:
        found: where the scores go through.
        also: the runs.
        base: what their settings are compared with.
    """
    results: dict[str, dict[int, Any]] = {}
    changes: dict[str, Any] = {}
    for run in also:
        numbered = re.fullmatch(r"(.+)-seed-(\d+)", run.name)
        group, seed = (numbered[1], int(numbered[2])) if numbered else (run.name, run.settings.training.seed)
        if (scores := found.add(run.name, run)) is not None:
            results.setdefault(group, {})[seed] = scores[0]
            changed = differences(base.settings, run.settings) if base else {}
            changes[group] = {key: change for key, change in changed.items() if key not in ("training.seed", "data.languages")}
    return [Row(name, name, seeds, changes=changes[name]) for name, seeds in results.items()]


def length_of(steps: int | None, settings: Any) -> str:
    """How long runs are trained, in words."""
    training = settings.training
    count = steps or training.steps
    return f"{f'{count} steps' if count else f'{training.epochs:g} epochs'} of {training.global_batch} samples{'' if count else ' a step'}"


def numbered(count: int, one: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{count} {one}" + ("" if count == 1 else "s")
