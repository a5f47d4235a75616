"""Scores of grounded systems made up for tests, in the shape that runs write."""

from raysys.evaluation.grounded_page import paper
from raysys.evaluation.grounded_page.data import RELATEDNESS, SENTEVAL, GroundedComparison, averaged
from raysys.evaluation.grounded_page.examples import (
    Examples,
    Neighbour,
    PictureNeighbours,
    QueryNeighbours,
    SceneMap,
    ScenePoint,
)
from raysys.evaluation.side_by_side.row import Row
from raysys.systems.grounded.names import GROUNDED_TITLES
from tests.evaluation.test_report import png

LABELS = {**GROUNDED_TITLES, "cm": "CM (vis.)", f"cm{paper.TEXT}": "CM (text)"}


def structure(split="tuxpaint", pictures=200, **values):
    """Scores of a test split: mNNO=0.3, rho_vis=…"""
    metrics = {f"eval/{name}": value for name, value in values.items()}
    return {split: {"metrics": metrics, "chance": {"eval/mNNO": 0.05, "eval/rho_vis": 0.0}, "items": pictures, "captions": 5 * pictures}}


def senteval(correct, **more):
    """Scores of classification from the answers: MR="1101"."""
    metrics = {paper.task_metric(task): marks.count("1") / len(marks) for task, marks in correct.items()}
    return {SENTEVAL: {"metrics": {**metrics, **more}, "chance": dict.fromkeys(metrics, 0.5), "correct": correct}}


def relatedness(concreteness=None, **values):
    """Scores of relatedness: STS_all=0.3."""
    metrics = {f"eval/{name}_spearman": value for name, value in values.items()}
    return {RELATEDNESS: {"metrics": metrics, "chance": dict.fromkeys(metrics, 0.0), "concreteness": concreteness or {}}}


def row(name, *seeds, wanted=0):
    """A system with the results of each seed; None leaves the seed out."""
    return Row(name, LABELS.get(name, name), {i: one for i, one in enumerate(seeds) if one is not None}, wanted or len(seeds))


def published(shift=0.0):
    """Runs that got the paper's own numbers, but for `shift` added to those of seed 1."""
    rows = []
    for name, numbers in {**paper.TABLE_1, **{n: v for n, v in paper.TABLE_3.items() if n not in paper.TABLE_1}}.items():
        seeds = []
        for seed in range(2):
            values = {metric: value / 100 + shift * seed for metric, value in {**numbers, **paper.TABLE_3.get(name, {})}.items()}
            result = {}
            for split, metrics in (("tuxpaint", paper.STRUCTURE), (RELATEDNESS, paper.RELATEDNESS)):
                if found := {metric: values[metric] for metric in metrics if metric in values}:
                    result[split] = {"metrics": found, "chance": {"eval/mNNO": 0.002} if split == "tuxpaint" else {}}
            if RELATEDNESS in result:
                result[RELATEDNESS]["concreteness"] = paper.CONCRETENESS
            if name in paper.TABLE_3:
                tasks = {paper.task_metric(task): values[paper.task_metric(task)] for task in paper.TASKS}
                result[SENTEVAL] = {"metrics": tasks, "chance": dict.fromkeys(tasks, 0.5)}
            seeds.append(result)
        rows.append(row(name, *seeds))
    return GroundedComparison(title="the paper's own", rows=averaged(rows))


def examples(text="x", step=8):
    """Of one run, with `text` wherever text may come from elsewhere."""
    found = [Neighbour(text, 0.9, "Q"), Neighbour(text, 0.8, "N"), Neighbour(text, 0.5)]
    points = [ScenePoint(text, scene, x, y) for scene, x, y in ((text, 0.0, 1.0), (text, 2.0, -1.0), ("coast", -3.0, 0.5))]
    return Examples(
        step,
        "grounded",
        text,
        [QueryNeighbours(text, found, text, 2.75), QueryNeighbours("This is a tragedy", found[1:])],
        [PictureNeighbours(text, found, png(), b"no picture", text)],
        SceneMap(points, 0.27, 0.11, {text: (0.3, 0.1), "coast": (0.2, -0.12)}),
    )


def full(text="x"):
    """Every part, with `text` wherever text may come from elsewhere."""
    concreteness = {"STS_captions": 3.1, "STS_forum": 2.4, text: 2.0}
    own = {"STS_captions": 0.4, "STS_forum": 0.2, "STS_all": 0.3, "SICK": 0.5, f"STS_{text}": 0.2, text: 0.1}

    def run(value, correct):
        lacking = {"lacking": {text: text}}
        result = {
            **structure(mNNO=value, rho_vis=value / 2, C_inter=0.4 - value, C_intra=0.5 + value),
            **structure(text, mNNO=value, rho_vis=-value),
            **relatedness(concreteness, **{name: number + value / 10 for name, number in own.items()}),
            **senteval({"MR": correct, "MRPC": correct, text.replace(" ", ""): correct}, **{paper.task_metric("MRPC", "f1"): 0.8}),
        }
        result[RELATEDNESS] |= lacking
        result[SENTEVAL] |= lacking
        return result

    rows = [
        row("t", run(0.1, "1100"), run(0.12, "1100")),
        row("cp-g", run(0.3, "1110"), None, wanted=2),
        row("cm", None, None),
        row("t-cp-g", run(0.2, "1111"), run(0.24, "1111")),
    ]
    return GroundedComparison(
        title=text,
        summary=text,
        facts=[(text, text)],
        rows=averaged(rows),
        references=[Row(text, text, {0: structure(mNNO=0.06)})],
        also=[Row(text, text, {0: structure(mNNO=0.33)}, changes={text: (text, 2)})],
        examples={"t": examples(text), "cp-g": examples(text)},
        examples_seed=0,
        missing=[(text, text)],
        commands=[(text, text)],
    )
