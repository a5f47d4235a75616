"""Every number of the page, for programs."""

from typing import Any

from raysys.evaluation.grounded_page import concreteness, paper
from raysys.evaluation.grounded_page.data import GroundedComparison
from raysys.evaluation.grounded_page.order import checks, verdict
from raysys.evaluation.grounded_page.significance import stars
from raysys.evaluation.side_by_side.record import chance_record, row_record
from raysys.evaluation.side_by_side.verdicts import check_record


def record(data: GroundedComparison) -> dict[str, Any]:
    """What ``comparison.json`` holds: JSON values only, shares in [0, 1] but for the paper's numbers, which are printed out of 100.

    Keys:
        systems, references, also: list of {name, label, seeds: seed → split → metric → value, mean and deviation: split → metric →
        value (deviation null for a single seed), changes: setting → [before, after]}.
        chance: split → metric → value.
        findings: list of {claim, split, verdict, pairs: list of {score, better, worse, lower_is_better, verdict, difference,
        within_deviation, wins, seeds, sentence}}.
        significance: task → {best, p: system → p}.
        concreteness: list of {set, concreteness, from, to, points}.
        paper: {note, table_1 and table_3: row → metric → number}, of other data.
        missing: list of {run, why}.
        lacking: split → what is not scored → how to get it.
    """
    return {
        "title": data.title,
        "systems": [row_record(row) for row in data.rows],
        "references": [row_record(row) for row in data.references],
        "also": [row_record(row) for row in data.also],
        "chance": chance_record(data),
        "findings": [
            {
                "claim": claim,
                "split": split,
                "verdict": verdict(pairs),
                "pairs": [{"score": pair.score, "lower_is_better": pair.low, **check_record(pair)} for pair in pairs],
            }
            for claim, by_split in checks(data).items()
            for split, pairs in by_split.items()
        ],
        "significance": {task: {"best": found.best, "p": dict(found.p)} for task in data.tasks if (found := stars(data, task)).best},
        "concreteness": [
            {"set": gain.name, "concreteness": gain.concreteness, "from": text, "to": grounded, "points": gain.points}
            for text, grounded in concreteness.PAIRS
            for gain in concreteness.gains(data, text, grounded)
        ],
        "paper": {"note": "other data: BookCorpus and MS COCO", "table_1": paper.TABLE_1, "table_3": paper.TABLE_3},
        "missing": [{"run": name, "why": why} for name, why in data.missing],
        "lacking": {split: lacking for split in data.splits if (lacking := data.lacking(split))},
    }
