"""Scores of RC³'s systems made up for tests, in the shape that fine-tuned runs write."""

import numpy as np

from raysys.evaluation.figures import Curve
from raysys.evaluation.rc3_page import paper
from raysys.evaluation.rc3_page.data import Link, Rc3Comparison, averaged, flattened
from raysys.evaluation.side_by_side.row import Row
from raysys.shards.language_pairs import LanguagePairs

CHANCE = {"xvnli": 1 / 3, "xgqa": 0.05, "marvl": 0.5, "itr": 0.01}


def result(task, value, items=300):
    """What a fine-tuned run has of one test."""
    metrics = {paper.SCORES[task]: value}
    if task == "itr":
        metrics |= {"eval/text_to_image_R@1": value - 0.01, "eval/image_to_text_R@1": value + 0.01}
    return {"metrics": metrics, "chance": {paper.SCORES[task]: CHANCE[task]} if task in CHANCE else {}, "items": items}


def scores(task, **values):
    """Scores of one task from the value of each test: de=0.3."""
    return flattened(task, {test.replace("_", "-"): result(task, value) for test, value in values.items()})


def row(name, *seeds, wanted=0):
    """A row with the results of each seed; None leaves the seed out."""
    label = paper.ROWS[name].label if name in paper.ROWS else name
    return Row(name, label, {i: one for i, one in enumerate(seeds) if one is not None}, wanted or len(seeds))


def published(*shifts):
    """Every row with the paper's own numbers, added to them a shift for each seed."""
    rows = []
    for name in paper.ROWS:
        cells = {**paper.TABLE_4.get(name, {}), **paper.TABLE_1.get(name, {}), **paper.TABLE_2.get(name, {}), **paper.TABLE_3.get(name, {})}
        seeds = []
        for shift in shifts:
            results = {}
            for task in dict.fromkeys(task for task, _ in cells):
                found = {test: result(task, value / 100 + shift) for (one, test), value in cells.items() if one == task}
                results |= flattened(task, found)
            seeds.append(results)
        rows.append(row(name, *seeds))
    return averaged(Rc3Comparison(title="the paper's own", rows=rows))


def full(text="x"):
    """Every part, with `text` wherever text may come from elsewhere."""

    def run(value):
        return {
            **scores("xvnli", en=value + 0.1, de=value, fr=value - 0.05),
            **scores("xgqa", en=value, de=value - 0.1, zh_Hans=value - 0.2),
            **flattened("mmt", {f"{text} en-de": result("mmt", value / 2), "2016 en-de": result("mmt", value / 3)}),
        }

    names = ("rc3-combined", "rc3-no-kl", "rc3-no-rxvtcl", "rc3-no-rxvtcl-xtcl")
    rows = [row("m3p", None, None, wanted=2), row("rc3-regions", run(0.6), run(0.62))]
    rows += [row(name, run(0.55 - 0.02 * i), None, wanted=2) for i, name in enumerate(names)]
    steps = list(range(1, 101))
    return averaged(
        Rc3Comparison(
            title=text,
            summary=text,
            facts=[(text, text)],
            rows=rows,
            missing=[(text, text)],
            commands=[(text, text)],
            curves={
                "mlm": {text: Curve(text, steps, [5.0 / step for step in steps]), "b": Curve("b", steps, [4.0 / step for step in steps])},
                text: {text: Curve(text, [1], [2.5])},
            },
            weak=LanguagePairs(text, 1009, 9, ("en", "de", text), np.array([[5, 3, 2], [3, 1000, 1], [2, 1, 4]])),
            links=[Link(text, "", 0, "rc3-seed-0/report.html"), Link(text, text, 1, "x/report.html"), Link(text, text, 0, "y/report.html")],
        )
    )
