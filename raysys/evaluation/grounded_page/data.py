"""What the page of the grounded systems is made from."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raysys.evaluation.grounded_page import paper
from raysys.evaluation.grounded_page.examples import Examples
from raysys.evaluation.side_by_side.row import Results, Row, SideBySide

RELATEDNESS, SENTEVAL = "relatedness", "senteval"
"""Splits of scores that are not of a test split of captioned pictures."""
THIS = "cp-g"
"""The system that the page is about in Table 1."""
THIS_JOINT = "t-cp-g"
"""The same learned together with text: the system that the page is about in Table 3."""
_IN_TEXT = "_text"
_TASK = re.compile(r"eval/senteval_([\w-]+)_accuracy")


@dataclass(frozen=True)
class GroundedComparison(SideBySide):
    """Everything that the page shows. All of it is text or numbers from elsewhere and is escaped; an empty field leaves its part out.

    A row's scores are, for each test split of captioned pictures, the measures of structure (and how many `items`, pictures, and
    `captions` there are); in the split `relatedness` also `concreteness`, set such as STS_captions → mean concreteness of its words; in
    the split `senteval` also `correct`, task → one character for each test example, "1" where the classifier was right; in any split
    `lacking`, what is not scored → how to get it. Measures in the text space, of systems with another one, end with `_text`.
    """

    references: Sequence[Row] = ()
    """What stands beside the systems without a place in their order, such as untrained networks."""
    examples: Mapping[str, Examples] = field(default_factory=dict)
    """Row → of its first run that has any."""
    examples_seed: int | None = None
    """Seed of the runs whose examples are shown."""

    @property
    def shown(self) -> list[Row]:
        """All rows that may have scores."""
        return [*self.rows, *self.references, *self.also]

    @property
    def structures(self) -> list[str]:
        """Test splits of captioned pictures."""
        return [split for split in self.splits if split not in (RELATEDNESS, SENTEVAL)]

    @property
    def tasks(self) -> list[str]:
        """Tasks of classification that any row has: the paper's in its order, then others."""
        found = dict.fromkeys(
            match[1]
            for row in self.shown
            for results in row.seeds.values()
            for metric in results.get(SENTEVAL, {}).get("metrics", {})
            if (match := _TASK.fullmatch(metric)) and match[1] != paper.AVERAGE
        )
        return [*(task for task in paper.TASKS if task in found), *(task for task in found if task not in paper.TASKS)]

    def lacking(self, split: str) -> dict[str, str]:
        """What no run could score in a split → how to get it."""
        found: dict[str, str] = {}
        for results in (results for row in self.shown for results in row.seeds.values()):
            found |= results.get(split, {}).get("lacking", {})
        return found


def whole_sets(names: Collection[str]) -> list[str]:
    """The names of sets of sentences without those of parts of others: `STS_2012`, and not `STS_2012_MSRpar` or `STS_2012_weighted`."""
    return [name for name in names if not any(name.startswith(f"{whole}_") for whole in names)]


def in_text_space(results: Results) -> dict[str, Any]:
    """The scores of a run with its sentences compared in the text space, which runs keep as `<metric>_text` beside their own; splits
    that have none are left out."""
    found = {}
    for split, result in results.items():
        named = {
            kind: {name.removesuffix(_IN_TEXT): value for name, value in result.get(kind, {}).items() if name.endswith(_IN_TEXT)}
            for kind in ("metrics", "chance")
        }
        if named["metrics"]:
            found[split] = {**result, **named}
    return found


def averaged(rows: Sequence[Row]) -> list[Row]:
    """The rows with their average accuracy as a further metric of `senteval`, over the tasks that all runs with scores have in common.

    Fewer tasks than the paper's eight make another average than its own, and tasks that only some rows have would favour those rows.
    """
    common = [paper.task_metric(task) for task in average_of(rows)]
    return [_with(row, {seed: _averaged(results, common) for seed, results in row.seeds.items()}) for row in rows]


def average_of(rows: Sequence[Row]) -> list[str]:
    """The tasks over which :func:`averaged` averages."""
    runs = [results[SENTEVAL]["metrics"] for row in rows for results in row.seeds.values() if SENTEVAL in results]
    tasks = [{match[1] for metric in metrics if (match := _TASK.fullmatch(metric))} for metrics in runs]
    return sorted(set.intersection(*tasks) - {paper.AVERAGE}) if tasks else []


def _with(row: Row, seeds: Mapping[int, Results]) -> Row:
    return Row(row.name, row.label, seeds, row.wanted, row.changes)


def _averaged(results: Results, metrics: Sequence[str]) -> dict[str, Any]:
    if SENTEVAL not in results or not metrics:
        return dict(results)
    split = results[SENTEVAL]

    def mean(values: Mapping[str, float]) -> dict[str, float]:
        return {paper.task_metric(paper.AVERAGE): sum(values[name] for name in metrics) / len(metrics)}

    chance = split.get("chance", {})
    added = {"metrics": {**split["metrics"], **mean(split["metrics"])}}
    if all(name in chance for name in metrics):
        added["chance"] = {**chance, **mean(chance)}
    return {**results, SENTEVAL: {**split, **added}}
