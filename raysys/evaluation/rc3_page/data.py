"""What the page of RC³ is made from, and averages over languages that were not seen in fine-tuning."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raysys.evaluation.figures import Curve
from raysys.evaluation.rc3_page.paper import SCORES, TASKS, ZERO_SHOT_TASKS, Column
from raysys.evaluation.side_by_side.row import Results, Row, SideBySide
from raysys.shards.language_pairs import LanguagePairs

ALL = "all"
"""The split of averages over tasks."""
ZERO_SHOT = "zero-shot"
"""The name of averages over languages."""
SOURCE = "en"
"""The language of fine-tuning."""


@dataclass(frozen=True)
class Link:
    """A run and its report."""

    row: str
    """Label of its row, or of its pre-trained system."""
    task: str
    """What it was fine-tuned on, as it is called; empty for pre-training."""
    seed: int
    href: str
    """Of the report, from the page."""


@dataclass(frozen=True)
class Rc3Comparison(SideBySide):
    """Everything that the page shows. All of it is text or numbers from elsewhere and is escaped; an empty field leaves its part out.

    Splits of a row's scores are tasks, and `all`; a metric is `<task>/<test>`, such as `xgqa/de` and `mmt/2016 en-de`, or an average,
    `<task>/zero-shot` and `all/zero-shot`, which :func:`averaged` adds. `items` is test → how many there are.
    """

    curves: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)
    """Loss → pre-trained system as it is called → the loss over its steps."""
    weak: LanguagePairs | None = None
    """Table 5 of the weakly aligned data that was pre-trained on."""
    links: Sequence[Link] = ()
    """To the runs' reports."""

    @property
    def columns(self) -> list[Column]:
        """(task, test) of all that was scored: tasks in the paper's order, tests in that of their first occurrence."""
        found = dict.fromkeys(
            (task, metric.split("/")[1])
            for task in TASKS
            for row in self.rows
            for results in row.seeds.values()
            for metric in results.get(task, {}).get("metrics", {})
            if metric.count("/") == 1 and metric != key(task, ZERO_SHOT)
        )
        return list(found)

    def zero_shot_tests(self, task: str) -> list[str]:
        """Tests of a task in languages that it was not fine-tuned in."""
        return [test for name, test in self.columns if name == task and task in ZERO_SHOT_TASKS and test != SOURCE]


def key(task: str, test: str) -> str:
    """The name under which the score of a test is kept, the one that the tables print."""
    return f"{task}/{test}"


def flattened(task: str, results: Results) -> dict[str, Any]:
    """The scores of a fine-tuned run, test → metrics, as those of one split, its task.

    The score that the tables print is called `<task>/<test>`, others `<task>/<test>/<name>`.
    """
    metrics: dict[str, float] = {}
    chance: dict[str, float] = {}
    for test, result in results.items():
        for kind, into in (("metrics", metrics), ("chance", chance)):
            for name, value in result.get(kind, {}).items():
                own = name == SCORES[task]
                into[key(task, test) if own else f"{key(task, test)}/{name.removeprefix('eval/')}"] = value
    return {task: {"metrics": metrics, "chance": chance, "items": {test: result["items"] for test, result in results.items()}}}


def averaged(data: Rc3Comparison) -> Rc3Comparison:
    """With averages over the zero-shot languages of each task, and over the tasks of those.

    A run has the average of a task only where it has all of the task's languages, and that over tasks only where it has every task that
    any run has: an average over fewer is another one.
    """
    tests = {task: found for task in ZERO_SHOT_TASKS if (found := data.zero_shot_tests(task))}

    def added(results: Results) -> dict[str, Any]:
        made = dict(results)
        for kind in ("metrics", "chance"):
            means = {}
            for task, names in tests.items():
                values = results.get(task, {}).get(kind, {})
                if all(key(task, name) in values for name in names):
                    means[task] = sum(values[key(task, name)] for name in names) / len(names)
                    made[task] = {**made[task], kind: {**made[task][kind], key(task, ZERO_SHOT): means[task]}}
            if tests and len(means) == len(tests):
                made.setdefault(ALL, {"metrics": {}, "chance": {}, "items": {}})
                made[ALL] = {**made[ALL], kind: {key(ALL, ZERO_SHOT): sum(means.values()) / len(means)}}
        return made

    rows = [
        Row(row.name, row.label, {seed: added(results) for seed, results in row.seeds.items()}, row.wanted, row.changes)
        for row in data.rows
    ]
    return dataclasses.replace(data, rows=rows)
