"""The numbers of a page for programs: JSON values only, shares in [0, 1]."""

from collections.abc import Mapping
from typing import Any

from raysys.evaluation.side_by_side.published import Published
from raysys.evaluation.side_by_side.row import Row, SideBySide


def row_record(row: Row) -> dict[str, Any]:
    """A system for programs: JSON values only, shares in [0, 1]."""
    seeds = {str(seed): {split: dict(result["metrics"]) for split, result in results.items()} for seed, results in row.seeds.items()}
    names = {(split, name) for results in seeds.values() for split, metrics in results.items() for name in metrics}
    mean: dict[str, dict[str, float]] = {}
    deviation: dict[str, dict[str, float | None]] = {}
    for split, name in sorted(names):
        summary = row.summary(split, name)
        if summary is not None:
            mean.setdefault(split, {})[name] = summary.mean
            deviation.setdefault(split, {})[name] = summary.deviation
    changes = {key: list(change) for key, change in row.changes.items()}
    return {"name": row.name, "label": row.label, "seeds": seeds, "mean": mean, "deviation": deviation, "changes": changes}


def chance_record(data: SideBySide) -> dict[str, dict[str, float]]:
    """Split → metric → what is reached without training, of the first run that says it."""
    chance: dict[str, dict[str, float]] = {}
    for results in (results for row in data.shown for results in row.seeds.values()):
        for split, result in results.items():
            chance[split] = {**result.get("chance", {}), **chance.get(split, {})}
    return chance


def published_record(scores: Mapping[str, Published]) -> dict[str, list[float]]:
    """Published scores for programs: system → [low, high]."""
    return {system: [one.low, one.high] for system, one in scores.items()}
