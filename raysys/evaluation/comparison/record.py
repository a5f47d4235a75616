"""Every number of the page, for programs."""

from typing import Any

from raysys.evaluation.comparison import paper, tables
from raysys.evaluation.comparison.data import Comparison
from raysys.evaluation.side_by_side.record import chance_record, published_record, row_record
from raysys.evaluation.side_by_side.verdicts import check_record


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
    return {
        "title": data.title,
        "systems": [row_record(row) for row in data.rows],
        "references": [row_record(row) for row in data.references],
        "also": [row_record(row) for row in data.also],
        "chance": chance_record(data),
        "order": [
            {
                "split": split,
                "metric": metric,
                **check_record(pair),
            }
            for (split, metric), pairs in tables.checks(data).items()
            for pair in pairs
        ],
        "paper": {
            "note": "other data: 52 languages, the authors' pictures and captions",
            "sentence_translation": published_record(paper.SENTENCES),
            "human_translation": published_record(paper.HUMAN),
            "word_translation_R@10": {
                f"{words}, {when} Procrustes": published_record(found) for (words, when), found in paper.WORDS.items()
            },
            "retrieval": {f"R@{k}": published_record(found) for k, found in paper.RETRIEVAL.items()},
        },
        "missing": [{"run": name, "why": why} for name, why in data.missing],
    }
