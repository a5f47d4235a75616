"""The paper's Tables 1 and 3, with the scores of the runs."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from raysys.evaluation.grounded_page import paper
from raysys.evaluation.grounded_page.data import RELATEDNESS, SENTEVAL, THIS, THIS_JOINT, GroundedComparison, average_of, whole_sets
from raysys.evaluation.grounded_page.numbers import number_table
from raysys.evaluation.grounded_page.significance import LEVEL, stars
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.bars import Bars, bar_table, seed_table
from raysys.evaluation.side_by_side.published import CHANCE, Published, percent
from raysys.evaluation.side_by_side.row import Row
from raysys.evaluation.side_by_side.statistics import Summary
from raysys.evaluation.wording import headline, named, remark

_LOW = frozenset({"eval/C_inter"})
_MRPC = paper.task_metric("MRPC")
_Scores = Mapping[str, tuple[str, str]]
"""Metric → (split, heading)."""


def structure(data: GroundedComparison) -> list[Markup]:
    """Table 1, measures of structure: a table for each test split of captioned pictures."""
    cards = []
    for split in data.structures:
        scores = {metric: (split, heading) for metric, heading in paper.STRUCTURE.items()}
        card = _card(data, headline(split), scores, paper.TABLE_1, _theirs_1, _size(data, split), this=(THIS,), low=_LOW)
        if card is not None:
            cards += [card, _neighbours(data, split)]
    if not cards:
        return []
    return [
        remark(
            named(
                "All numbers × 100. mNNO: share of the nearest neighbours of a picture that are also those of its caption, ",
            ),
            named("ρ_vis: correlation of the likeness of captions with that of their pictures, "),
            named("C_inter and C_intra: mean cosine of captions of different pictures, and of one picture. "),
            named("Sentences are compared in the grounded space of systems that have one (g), in the space of pictures for CM (vis.), "),
            "and in the text space otherwise. The best of a column is bold.",
        ),
        *cards,
    ]


def relatedness(data: GroundedComparison) -> list[Markup]:
    """Table 1, semantic relatedness: Spearman's correlation of cosines with what people say."""
    scores = {metric: (RELATEDNESS, heading) for metric, heading in paper.RELATEDNESS.items() if _scored(data, RELATEDNESS, metric)}
    further = {metric: (RELATEDNESS, heading) for metric, heading in _further_sets(data).items()}
    cards = [
        _card(data, "The paper's benchmarks", scores, paper.TABLE_1, _theirs_1, this=(THIS,)),
        _card(data, "Further sets", further, paper.TABLE_1, _theirs_1, this=(THIS,)),
        lacking(data, RELATEDNESS),
    ]
    shown = [card for card in cards if card is not None]
    text = "Spearman's correlation × 100 of the cosine of two sentences with how alike people, or a grammar that knows, say they are."
    return [remark(text), *shown] if shown else []


def classification(data: GroundedComparison) -> list[Markup]:
    """Table 3: accuracy of classifiers on frozen sentence vectors."""
    tasks = data.tasks
    tests = {paper.task_metric(task): stars(data, task) for task in tasks}
    scores = {paper.task_metric(task): (SENTEVAL, paper.TASKS.get(task, task)) for task in tasks}
    if _scored(data, SENTEVAL, paper.task_metric(paper.AVERAGE)):
        scores[paper.task_metric(paper.AVERAGE)] = (SENTEVAL, paper.AVERAGE)

    def star(row: str, metric: str) -> str:
        return "*" if metric in tests and tests[metric].starred(row) else ""

    def f1(row: Row, metric: str) -> str:
        summary = row.summary(SENTEVAL, paper.task_metric("MRPC", "f1")) if metric == _MRPC else None
        return f" / {100 * summary.mean:.1f}" if summary else ""

    card = _card(
        data,
        "Accuracy, %",
        scores,
        paper.TABLE_3,
        _theirs_3,
        _tested(data, [task for task in tasks if tests[paper.task_metric(task)].best]),
        this=(THIS_JOINT,),
        chance_name="most frequent class",
        marks=star,
        after=f1,
    )
    shown = [part for part in (card, lacking(data, SENTEVAL)) if part is not None]
    averaged = ", ".join(paper.TASKS.get(task, task) for task in average_of(data.shown))
    text = "Logistic regression on frozen sentence vectors by SentEval's protocol; MRPC: accuracy / F1."
    over = f" AVG is over the tasks that all rows have: {averaged}." if averaged else ""
    return [remark(text + over), *shown] if shown else []


def lacking(data: GroundedComparison, split: str) -> Markup | None:
    """What could not be scored, and how to get it."""
    found = data.lacking(split)
    if not found:
        return None
    lines = [el("li", el("b", name), ": ", how) for name, how in found.items()]
    return el("div", "Not scored here, because the data is not there:", el("ul", lines), class_="notice", role="note")


def _card(
    data: GroundedComparison,
    title: str,
    scores: _Scores,
    table: Collection[str],
    published: Callable[[str, str], str],
    note: str = "",
    *,
    this: Collection[str],
    low: Collection[str] = (),
    chance_name: str = CHANCE,
    marks: Callable[[str, str], str] = lambda row, metric: "",
    after: Callable[[Row, str], str] = lambda row, metric: "",
) -> Markup | None:
    """A table of the paper's rows, with the other systems and the numbers of every seed behind it. None where nothing was scored."""
    if not any(_scored(data, split, metric) for metric, (split, _) in scores.items()):
        return None
    rows = [row for name in table if (row := data.row(name)) is not None]
    others = [row for row in [*data.rows, *data.also] if row not in rows and any(row.summary(split, m) for m, (split, _) in scores.items())]

    def numbers(shown: Sequence[Row], references: Sequence[Row]) -> Markup:
        return number_table(
            shown,
            scores,
            published,
            chance=data.chance,
            chance_name=chance_name,
            low=low,
            marks=marks,
            after=after,
            references=references,
            this=this,
        )

    bars = [
        Bars(row.label, [row.summary(split, metric) for metric, (split, _) in scores.items()], [_as_published(row, m) for m in scores])
        for row in [*data.references, *rows, *others]
    ]
    return el(
        "div",
        el("h3", title),
        remark(named(note)) if note else None,
        numbers(rows, data.references),
        _details("The other systems, for which the paper has no such numbers", numbers(others, ())) if others else None,
        seed_table(bars, [heading for _, heading in scores.values()]),
        class_="card split",
    )


def _details(summary: str, inside: Markup) -> Markup:
    return el("details", el("summary", summary), el("div", inside))


def _neighbours(data: GroundedComparison, split: str) -> Markup:
    """mNNO as bars."""
    metric = "eval/mNNO"
    bars = [Bars(CHANCE, [data.chance(split, metric)], [None], "floor")]
    rows = [row for name in paper.TABLE_1 if (row := data.row(name)) is not None]
    for row in [*data.references, *rows]:
        values: list[Summary | float | None] = [row.summary(split, metric)]
        kind = "reference" if row in data.references else "this" if row.name == THIS else ""
        bars.append(Bars(row.label, values, [_as_published(row, metric)], kind, row.note))
    title = f"{headline(split)}: common neighbours (mNNO)"
    return el("div", el("h3", title), bar_table(bars, [""], f"{title} by system, in percent"), class_="card split")


def _scored(data: GroundedComparison, split: str, metric: str) -> bool:
    return any(row.summary(split, metric) is not None for row in data.shown)


def _further_sets(data: GroundedComparison) -> dict[str, str]:
    """Correlations of sets that the paper does not have → heading. Parts of a set are left to the record."""
    metrics = dict.fromkeys(
        metric for row in data.shown for results in row.seeds.values() for metric in results.get(RELATEDNESS, {}).get("metrics", {})
    )
    names = [match[1] for metric in metrics if (match := re.fullmatch(r"eval/(.+)_spearman", metric))]
    return {metric: name.replace("_", " ") for name in whole_sets(names) if (metric := f"eval/{name}_spearman") not in paper.RELATEDNESS}


def _theirs_1(row: str, metric: str) -> str:
    value = paper.TABLE_1.get(row, {}).get(metric)
    return "" if value is None else f"{value:g}" if metric in paper.RELATEDNESS else f"{value:.1f}"


def _theirs_3(row: str, metric: str) -> str:
    value = paper.TABLE_3.get(row, {}).get(metric)
    if value is None:
        return ""
    task = next((task for task in paper.TASKS if paper.task_metric(task) == metric), paper.AVERAGE)
    f1 = f"/{paper.MRPC_F1[row]:.1f}" if metric == _MRPC else ""
    return f"{value:.1f}{f1}" + ("*" if task in paper.STARRED.get(row, ()) else "")


def _as_published(row: Row, metric: str) -> Published | None:
    value = {**paper.TABLE_3.get(row.name, {}), **paper.TABLE_1.get(row.name, {})}.get(metric)
    return None if value is None else percent(value)


def _size(data: GroundedComparison, split: str) -> str:
    """Of a test split, where the scores tell it."""
    runs = [results[split] for row in data.shown for results in row.seeds.values() if split in results]
    found = next((result for result in runs if "items" in result and "captions" in result), None)
    return f"{found['items']:,} pictures, {found['captions']:,} captions" if found else ""


def _tested(data: GroundedComparison, tasks: Sequence[str]) -> str:
    """What the stars mean."""
    labels = {row.name: row.label for row in data.rows}
    best = [f"{paper.TASKS.get(task, task)} {labels[stars(data, task).best]}" for task in tasks]
    if not best:
        return ""
    return (
        f"* differs from the best of the paper's own models on the task, p < {LEVEL:g} by McNemar's exact test on the test examples; over "
        f"several seeds, twice the median of their p. The best here: {', '.join(best)}."
    )
