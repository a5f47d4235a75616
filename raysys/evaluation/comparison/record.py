"""Every number of the page, for programs."""

from typing import Any

from raysys.evaluation.comparison import paper, tables
from raysys.evaluation.comparison.data import Comparison, Row


def record(data: Comparison) -> dict[str, Any]:
    """What ``comparison.json`` holds: JSON values only, shares in [0, 1].

    Keys:
        systems, references, also: list of {name, label, seeds: seed → split → metric → value, mean and deviation: split → metric →
        value (deviation null for a single seed), changes: setting → [before, after]}.
        chance: split → metric → value.
        order: list of {split, metric, better, worse, verdict, difference, within_deviation, wins, seeds, sentence}.
        paper: figure → system → [low, high], of other data.
        missing: list of {run, why}.
    """
    rows = [*data.rows, *data.references, *data.also]
    chance: dict[str, dict[str, float]] = {}
    for results in (results for row in rows for results in row.seeds.values()):
        for split, result in results.items():
            chance.setdefault(split, {}).update({name: value for name, value in result["chance"].items() if name not in chance[split]})
    return {
        "title": data.title,
        "systems": [_row(row) for row in data.rows],
        "references": [_row(row) for row in data.references],
        "also": [_row(row) for row in data.also],
        "chance": chance,
        "order": [
            {
                "split": split,
                "metric": metric,
                "better": pair.better,
                "worse": pair.worse,
                "verdict": pair.verdict,
                "difference": pair.difference,
                "within_deviation": pair.within_deviation,
                "wins": pair.wins[0],
                "seeds": pair.wins[1],
                "sentence": pair.sentence(),
            }
            for (split, metric), pairs in tables.checks(data).items()
            for pair in pairs
        ],
        "paper": {
            "note": "other data: 52 languages, the authors' pictures and captions",
            "sentence_translation": _published(paper.SENTENCES),
            "human_translation": _published(paper.HUMAN),
            "word_translation_R@10": {f"{words}, {when} Procrustes": _published(found) for (words, when), found in paper.WORDS.items()},
            "retrieval": {f"R@{k}": _published(found) for k, found in paper.RETRIEVAL.items()},
        },
        "missing": [{"run": name, "why": why} for name, why in data.missing],
    }


def _row(row: Row) -> dict[str, Any]:
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


def _published(scores: dict[str, paper.Published]) -> dict[str, list[float]]:
    return {system: [one.low, one.high] for system, one in scores.items()}
