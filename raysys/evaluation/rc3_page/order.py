"""What the paper concludes from its ablations, checked on the runs, with what noise allows to say."""

import math

from raysys.evaluation.markup import Markup, el
from raysys.evaluation.rc3_page import paper
from raysys.evaluation.rc3_page.data import ALL, ZERO_SHOT, Rc3Comparison, key
from raysys.evaluation.rc3_page.tables import published_average
from raysys.evaluation.side_by_side.check import Check
from raysys.evaluation.side_by_side.published import PAPER
from raysys.evaluation.side_by_side.statistics import Summary
from raysys.evaluation.side_by_side.verdicts import overview, verdicts
from raysys.evaluation.wording import remark

CSS = """
.verdict{font-size:17px;line-height:1.45;font-weight:560;max-width:66ch;margin:0 0 8px}
summary .hollow{display:inline-block;width:8px;height:8px;margin:0 4px 1px 2px}
"""
MEAN = "Mean of tasks"
"""The column of the order that is asked for; the others say what it is made of."""


def checks(data: Rc3Comparison) -> dict[str, list[Check]]:
    """`Mean of tasks`, and every task with other languages → its pairs; empty where the runs have none of the rows."""
    columns = {MEAN: ALL} | {paper.TASKS[task]: task for task in paper.ZERO_SHOT_TASKS if data.zero_shot_tests(task)}
    found = {title: _pairs(data, task, ZERO_SHOT) for title, task in columns.items()}
    return {title: pairs for title, pairs in found.items() if any(pair.verdict != "unknown" for pair in pairs)}


def by_language(data: Rc3Comparison) -> dict[str, list[Check]]:
    """The same for every test in a language that was not seen in fine-tuning."""
    tests = [(task, test) for task in paper.ZERO_SHOT_TASKS for test in data.zero_shot_tests(task)]
    return {f"{paper.TASKS[task]} {test}": _pairs(data, task, test) for task, test in tests}


def _pairs(data: Rc3Comparison, task: str, test: str) -> list[Check]:
    rows = [(data.row(better), data.row(worse)) for better, worse in paper.ORDER]
    metric = key(task, test)
    return [Check(a.label, b.label, a.summary(task, metric), b.summary(task, metric)) for a, b in rows if a is not None and b is not None]


def order(data: Rc3Comparison) -> list[Markup]:
    """The order in words, then every pair."""
    found = checks(data)
    if not found:
        return []
    return [
        remark(
            "The paper finds RC³ better than without the KL term or without R-XVtCL, and these better than without both R-XVtCL and XTCL, "
            "in languages that were not seen in fine-tuning."
        ),
        el("p", verdict(found.get(MEAN, [])), class_="verdict"),
        remark(noise(data, found)),
        *verdicts(found),
        el(
            "details",
            el("summary", "Where the differences come from: every language of every task"),
            el("div", overview(by_language(data))),
        ),
        el(
            "details",
            el("summary", el("i", class_="hollow"), f" The same averages of the paper's own Table 4, over its languages ({PAPER})"),
            el("div", overview(published())),
        ),
    ]


def verdict(pairs: list[Check]) -> str:
    """Whether the order holds on the mean of tasks, in a sentence."""
    known = [pair for pair in pairs if pair.verdict != "unknown"]
    if len(known) < len(paper.ORDER):
        lacking = f"{len(paper.ORDER) - len(known)} of its {len(paper.ORDER)} pairs lack scores"
        if not known:
            return f"Whether the order holds cannot be told yet: {lacking}."
        return f"Whether the whole order holds cannot be told yet: {lacking}, {_held(known)}."
    held = [pair for pair in known if pair.verdict == "holds"]
    word = "holds" if len(held) == len(known) else "does not hold" if not held else "holds in part"
    return f"By the means over seeds the order {word}: {_held(known)}."


def _held(known: list[Check]) -> str:
    held = [pair for pair in known if pair.verdict == "holds"]
    clear = [pair for pair in known if clear_of_noise(pair)]
    sure = {0: "none of them is", len(known): "all of them are"}.get(len(clear), f"{len(clear)} of the {len(known)} differences are")
    return f"{len(held)} of {len(known)} pairs stand as in the paper, and {sure} greater than the noise over seeds"


def clear_of_noise(pair: Check) -> bool:
    """Whether a difference, in whichever direction, is beyond the deviation over seeds and the same in sign for every seed of several."""
    wins, seeds = pair.wins
    return seeds > 1 and not pair.within_deviation and wins in (0, seeds)


def noise(data: Rc3Comparison, found: dict[str, list[Check]]) -> str:
    """How much of a difference chance alone makes, in words."""
    seeds = max((pair.wins[1] for pairs in found.values() for pair in pairs), default=0)
    if seeds < 2:
        text = "With a single seed in common nothing tells a difference between systems from one between seeds."
    else:
        text = (
            f"With {seeds} seeds, a system that is no better than another comes out ahead in all of them once in {2**seeds} times; "
            "a difference counts as greater than the noise where it is beyond √(s₁² + s₂²) of the two deviations s and has the same sign "
            "for every seed."
        )
    largest = max(_sampling_errors(data), default=None)
    if largest is not None:
        error, title, items = largest
        text += (
            f" The tests add noise of their own, which all systems share in part: by √(p(1 − p)/n), up to {100 * error:.1f} points on "
            f"{title} with its {items:,} items."
        )
    return text


def _sampling_errors(data: Rc3Comparison) -> list[tuple[float, str, int]]:
    """(standard error of an accuracy, test, items) of the row of RC³ that the order begins with."""
    row = data.row(paper.ORDER[0][0])
    errors = []
    for task in (task for task in paper.ZERO_SHOT_TASKS if paper.SCORES[task] == "eval/accuracy"):
        for test in data.zero_shot_tests(task):
            score = row.summary(task, key(task, test)) if row else None
            counts = [results[task]["items"].get(test) for results in row.seeds.values() if task in results] if row else []
            if score is not None and (items := next((count for count in counts if count), 0)):
                errors.append((math.sqrt(score.mean * (1 - score.mean) / items), f"{paper.TASKS[task]} {test}", items))
    return errors


def published() -> dict[str, list[Check]]:
    """The same averages of the paper's own Table 4, over its languages."""
    columns = {MEAN: ALL} | {paper.TASKS[task]: task for task in paper.ZERO_SHOT_TASKS}
    return {
        title: [Check(_label(a), _label(b), _printed(a, task), _printed(b, task)) for a, b in paper.ORDER]
        for title, task in columns.items()
    }


def _label(row: str) -> str:
    return paper.ROWS[row].label


def _printed(row: str, task: str) -> Summary | None:
    average = published_average(row, task)
    return None if average is None else Summary({0: average / 100})
