"""A table of numbers out of 100: systems in rows, scores in columns, what was published beneath ours."""

from collections.abc import Callable, Collection, Mapping, Sequence

from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.published import CHANCE, PAPER
from raysys.evaluation.side_by_side.row import Row
from raysys.evaluation.side_by_side.statistics import in_percent
from raysys.evaluation.wording import named

CSS = """
.numbers td,.numbers thead .number{white-space:nowrap;vertical-align:top;padding-left:8px;padding-right:8px}
.numbers th[scope=row]{min-width:120px;vertical-align:top;position:sticky;left:0;background:var(--card)}
.numbers .small,.numbers .theirs{display:block;font-size:12px;line-height:1.35}
.numbers .theirs{color:var(--soft)}
.numbers .theirs .hollow{position:static;display:inline-block;width:6px;height:6px;margin:0 4px 1px 0;border-width:1.3px}
.numbers .best{font-weight:680}
.numbers .best .theirs{font-weight:400}
.numbers .this th{color:var(--accent);font-weight:650}
.numbers .floor,.numbers .reference{color:var(--soft)}
.numbers .group th{color:var(--soft);font-size:13px;font-weight:550;padding-top:14px}
.small{color:var(--soft);font-weight:400}
"""


def number_table(
    rows: Sequence[Row],
    scores: Mapping[str, tuple[str, str]],
    published: Callable[[str, str], str],
    *,
    chance: Callable[[str, str], float | None] = lambda split, metric: None,
    chance_name: str = CHANCE,
    low: Collection[str] = (),
    marks: Callable[[str, str], str] = lambda row, metric: "",
    after: Callable[[Row, str], str] = lambda row, metric: "",
    references: Sequence[Row] = (),
    this: Collection[str] = (),
) -> Markup:
    """The rows with their means and deviations; the best mean of each column is bold.

    Args:
        rows: from top to bottom.
        scores: metric → (split, heading).
        published: row and metric → number as it is printed; empty where there is none.
        chance: split and metric → what is reached without training.
        chance_name: what that row is called.
        low: metrics that are the better the lower they are.
        marks: row and metric → what follows the number, such as a star.
        after: row and metric → a second number beside the first.
        references: rows beside which the others stand, first; they compete for nothing.
        this: names of the rows that the page is about.
    """
    best = {metric: _best(rows, split, metric, metric in low) for metric, (split, _) in scores.items()}
    floors = {metric: chance(split, metric) for metric, (split, _) in scores.items()}
    body = []
    if any(value is not None for value in floors.values()):
        cells = [el("td", "–" if value is None else f"{100 * value:.1f}", class_="number") for value in floors.values()]
        body.append(el("tr", el("th", chance_name, scope="row"), cells, class_="floor"))
    for row in [*references, *rows]:
        cells = []
        for metric, (split, _) in scores.items():
            summary = row.summary(split, metric)
            theirs = published(row.name, metric)
            cells.append(
                el(
                    "td",
                    "–" if summary is None else in_percent(summary) + after(row, metric) + marks(row.name, metric),
                    el("span", el("i", class_="hollow"), theirs, class_="theirs", title=PAPER) if theirs else None,
                    class_="number best" if row not in references and summary is not None and summary.mean == best[metric] else "number",
                )
            )
        kind = "reference" if row in references else "this" if row.name in this else None
        note = el("span", row.note, class_="small") if row.note else None
        body.append(el("tr", el("th", named(row.label), note, scope="row"), cells, class_=kind))
    head = el(
        "tr", el("th", "Model", scope="col"), [el("th", named(heading), scope="col", class_="number") for _, heading in scores.values()]
    )
    return el("div", el("table", el("thead", head), el("tbody", body), class_="numbers"), class_="scroll", tabindex="0")


def _best(rows: Sequence[Row], split: str, metric: str, low: bool) -> float | None:
    means = [summary.mean for row in rows if (summary := row.summary(split, metric)) is not None]
    if len(means) < 2:
        return None
    return min(means) if low else max(means)
