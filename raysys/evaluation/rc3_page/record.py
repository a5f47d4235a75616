"""Every number of the page, for programs."""

from typing import Any

from raysys.evaluation.rc3_page import paper
from raysys.evaluation.rc3_page.data import Rc3Comparison, key
from raysys.evaluation.rc3_page.order import MEAN, by_language, checks, clear_of_noise, verdict
from raysys.evaluation.side_by_side.record import chance_record, row_record
from raysys.evaluation.side_by_side.verdicts import check_record


def record(data: Rc3Comparison) -> dict[str, Any]:
    """What ``comparison.json`` holds: JSON values only, shares in [0, 1] but for the paper's numbers, which are printed out of 100.

    Keys:
        systems: list of {name, label, seeds: seed → task → metric → value, mean and deviation: task → metric → value (deviation null for a
        single seed)}; metrics are `<task>/<test>`, `<task>/<test>/<other score>`, `<task>/zero-shot` and `all/zero-shot`.
        chance: task → metric → value.
        order: {verdict, columns: column → list of {better, worse, verdict, difference, within_deviation, clear_of_noise, wins, seeds,
        sentence}, languages: the same by test}.
        weak_pairs: {folder, samples, images, languages, counts} or null.
        paper: {note, table_1 … table_4: row → `<task>/<test>` → number, table_5: {languages, counts}}.
        missing: list of {run, why}.
    """
    found = checks(data)

    def pairs(columns: Any) -> dict[str, Any]:
        return {
            title: [check_record(pair) | {"clear_of_noise": clear_of_noise(pair)} for pair in column] for title, column in columns.items()
        }

    tables = {"table_1": paper.TABLE_1, "table_2": paper.TABLE_2, "table_3": paper.TABLE_3, "table_4": paper.TABLE_4}
    published = {
        name: {row: {key(*column): value for column, value in numbers.items()} for row, numbers in table.items()}
        for name, table in tables.items()
    }
    return {
        "title": data.title,
        "systems": [row_record(row) for row in data.rows],
        "chance": chance_record(data),
        "order": {"verdict": verdict(found.get(MEAN, [])), "columns": pairs(found), "languages": pairs(by_language(data))},
        "weak_pairs": None if data.weak is None else data.weak.record(),
        "paper": {
            "note": "other data and size",
            **published,
            "table_5": {"languages": list(paper.LANGUAGES_5), "counts": paper.TABLE_5},
        },
        "missing": [{"run": name, "why": why} for name, why in data.missing],
    }
