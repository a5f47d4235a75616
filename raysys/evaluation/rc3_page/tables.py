"""The paper's Tables 1–4 with the scores of the runs, and the same in every language that was scored."""

from collections.abc import Callable, Sequence

from raysys.evaluation.grounded_page.numbers import number_table
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.naming import language_name
from raysys.evaluation.rc3_page import paper
from raysys.evaluation.rc3_page.data import ALL, SOURCE, ZERO_SHOT, Rc3Comparison, key
from raysys.evaluation.rc3_page.paper import Column
from raysys.evaluation.side_by_side.bars import Bars, bar_table, seed_table
from raysys.evaluation.side_by_side.published import CHANCE, Published, percent
from raysys.evaluation.side_by_side.row import Row
from raysys.evaluation.side_by_side.statistics import Summary
from raysys.evaluation.wording import remark

CSS = """
.numbers .task{display:block;font-size:11.5px;color:var(--faint)}
.numbers .number{min-width:62px}
"""
THIS = ("rc3-regions", "rc3-patches", "rc3-combined")
"""The rows that the page is about."""
_ONE_DECIMAL = ("memad", "vl-t5", "vl-bart")
"""Rows whose numbers the paper prints with one digit less, as those who published them did."""


def table_1(data: Rc3Comparison) -> list[Markup]:
    """Scores in English, the language of fine-tuning."""
    return _paper_table(data, paper.RIVAL_ROWS, paper.COLUMNS_1, paper.TABLE_1, _MEASURES)


def table_2(data: Rc3Comparison) -> list[Markup]:
    """Scores in the paper's other languages."""
    return _paper_table(data, paper.RIVAL_ROWS, paper.COLUMNS_2, paper.TABLE_2, f"Fine-tuned in English alone. {_MEASURES}")


def table_3(data: Rc3Comparison) -> list[Markup]:
    """Translation; our own test sets stand before the paper's."""
    own = [column for column in data.columns if column[0] == paper.MMT and column not in paper.COLUMNS_3]
    return _paper_table(data, paper.MMT_ROWS, [*own, *paper.COLUMNS_3], paper.TABLE_3, "BLEU, by sacreBLEU.")


def table_4(data: Rc3Comparison) -> list[Markup]:
    """The ablations, which see regions."""
    return _paper_table(data, paper.ABLATION_ROWS, paper.COLUMNS_4, paper.TABLE_4, _MEASURES)


_MEASURES = "Accuracy in percent, and of ITR the mean of recall@1 from picture to text and from text to picture."


def _paper_table(data: Rc3Comparison, names: Sequence[str], columns: Sequence[Column], published: paper.Table, note: str) -> list[Markup]:
    rows = [row for name in names if (row := data.row(name)) is not None]
    if not rows:
        return []
    keys = {_ours(data, column): column for column in columns}

    def theirs(row: str, metric: str) -> str:
        value = published.get(row, {}).get(keys[metric])
        return "" if value is None else f"{value:.{1 if row in _ONE_DECIMAL else 2}f}"

    return [remark(note + " Mean and deviation over seeds; the best of a column is bold."), _card(data, "", rows, keys, theirs)]


def _ours(data: Rc3Comparison, column: Column) -> str:
    """The key of our test for a column of the paper, which says zh where ours may be zh-Hans."""
    task, test = column
    found = [own for name, own in data.columns if name == task and (own == test or own.split("-")[0] == test)]
    return key(task, found[0] if found else test)


def every_language(data: Rc3Comparison) -> list[Markup]:
    """Each task in all languages that were scored, with the average over those that were not seen in fine-tuning."""
    cards = []
    for task, title in paper.TASKS.items():
        tests = [test for name, test in data.columns if name == task]
        if not tests:
            continue
        keys: dict[str, Column] = {key(task, test): (task, test) for test in tests}
        if data.zero_shot_tests(task):
            keys[key(task, ZERO_SHOT)] = (task, ZERO_SHOT)
        rows = [row for row in data.rows if any(row.summary(task, metric) for metric in keys)]
        cards.append(_card(data, title, rows, keys, lambda row, metric: "", _items(data, task, tests)))
    return cards


def averages(data: Rc3Comparison) -> list[Markup]:
    """Averages over the languages that were not seen in fine-tuning, for each task and over the tasks."""
    tasks = [task for task in paper.ZERO_SHOT_TASKS if data.zero_shot_tests(task)]
    if not tasks:
        return []
    keys: dict[str, Column] = {key(task, ZERO_SHOT): (task, ZERO_SHOT) for task in [*tasks, ALL]}
    rows = [row for row in data.rows if any(row.summary(task, metric) for metric, (task, _) in keys.items())]

    def theirs(row: str, metric: str) -> str:
        value = published_average(row, keys[metric][0])
        return "" if value is None else f"{value:.2f}"

    by_task = {paper.TASKS[task]: ", ".join(map(language_name, data.zero_shot_tests(task))) for task in tasks}
    alike = len(set(by_task.values())) == 1
    languages = by_task[paper.TASKS[tasks[0]]] if alike else "; ".join(f"{task}: {names}" for task, names in by_task.items())
    return [
        remark(
            f"The mean over the languages of each task without {language_name(SOURCE)}, in which it was fine-tuned, and the mean of the "
            f"tasks' means. Here: {languages}. The paper's are computed from its tables, over its languages."
        ),
        _card(data, "", rows, keys, theirs),
        _bars(data, rows),
    ]


def published_average(row: str, task: str) -> float | None:
    """The mean of a task's zero-shot languages in the paper's tables (of `all` that of the tasks), out of 100; None where cells are
    empty there."""
    if task == ALL:
        means = [published_average(row, one) for one in paper.ZERO_SHOT_TASKS]
        known = [mean for mean in means if mean is not None]
        return sum(known) / len(known) if len(known) == len(means) else None
    numbers = paper.TABLE_4.get(row) or paper.TABLE_2.get(row, {})
    values = [value for (name, test), value in numbers.items() if name == task and test != SOURCE]
    return sum(values) / len(values) if values else None


def _bars(data: Rc3Comparison, rows: Sequence[Row]) -> Markup:
    metric = key(ALL, ZERO_SHOT)
    bars = [Bars(CHANCE, [data.chance(ALL, metric)], [None], "floor")]
    for row in rows:
        mean = published_average(row.name, ALL)
        theirs: list[Published | None] = [None if mean is None else percent(mean)]
        values: list[Summary | float | None] = [row.summary(ALL, metric)]
        if values[0] is not None:
            bars.append(Bars(row.label, values, theirs, "this" if row.name in THIS else "", row.note))
    title = "The mean of the tasks"
    return el("div", el("h3", title), bar_table(bars, [""], f"{title} in other languages, by system, in percent"), class_="card split")


def _card(
    data: Rc3Comparison,
    title: str,
    rows: Sequence[Row],
    keys: dict[str, Column],
    theirs: Callable[[str, str], str],
    note: str = "",
) -> Markup:
    scores: dict[str, tuple[str, str]] = {metric: (task, _heading(task, test)) for metric, (task, test) in keys.items()}
    table = number_table(rows, scores, theirs, chance=data.chance, this=THIS)
    bars = [
        Bars(
            row.label,
            [row.summary(task, metric) for metric, (task, _) in keys.items()],
            [percent(float(text)) if (text := theirs(row.name, metric)) else None for metric in keys],
        )
        for row in rows
        if row.seeds
    ]
    seeds = seed_table(bars, [f"{_task(task)} {test}".strip() for task, test in keys.values()]) if bars else None
    return el("div", el("h3", title) if title else None, remark(note) if note else None, table, seeds, class_="card split")


def _heading(task: str, test: str) -> Markup:
    """Two lines: the task, and below it the language."""
    below = "zero-shot" if test == ZERO_SHOT else test
    return Markup(el("span", _task(task), class_="task") + el("span", below))


def _task(task: str) -> str:
    return "mean of tasks" if task == ALL else paper.TASKS[task]


def _items(data: Rc3Comparison, task: str, tests: Sequence[str]) -> str:
    """How many items there are in each test, where the scores tell it."""
    counts: dict[str, int] = {}
    for results in (results for row in data.rows for results in row.seeds.values()):
        counts |= results.get(task, {}).get("items", {})
    known = {counts[test] for test in tests if test in counts}
    if len(known) == 1:
        return f"{known.pop():,} items in each."
    return ", ".join(f"{test}: {counts[test]:,} items" for test in tests if test in counts)
