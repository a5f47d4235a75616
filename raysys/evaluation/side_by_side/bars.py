"""A figure that is a table: each row has its bars and, beside them, their numbers as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from raysys.evaluation.figures import nice_ticks
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.published import PAPER, Published
from raysys.evaluation.side_by_side.statistics import Summary, in_percent
from raysys.evaluation.wording import named


@dataclass(frozen=True)
class Bars:
    """One row of a figure."""

    label: str
    values: Sequence[Summary | float | None]
    """One per series: over seeds; or a number alone, such as chance; None where there is none."""
    published: Sequence[Published | None]
    """One per series."""
    kind: str = ""
    """`this` for the system that the page is about, `reference`, `floor` for chance."""
    note: str = ""
    """Small print under the label."""


def bar_table(rows: Sequence[Bars], series: Sequence[str], what: str) -> Markup:
    """The rows with their bars on one scale from 0.

    Args:
        rows: from top to bottom.
        series: names of the bars that each row has.
        what: what the numbers are, for those who do not see the bars.
    """
    top = max([_high(value) for row in rows for value in row.values] + [p.high for row in rows for p in row.published if p], default=0.0)
    ticks = [tick for tick in nice_ticks(0.0, min(1.0, top) or 1.0, 5) if tick <= 1.0]
    # Numbers of the paper have columns of their own only where there are any.
    published = [i for i in range(len(series)) if any(row.published[i] for row in rows)]
    single = len(series) == 1
    ours = ["here, %"] if single else [f"{name}, %" for name in series]
    theirs = [f"{PAPER}, %" if single else f"{series[i]}: {PAPER}, %" for i in published]
    head = el(
        "tr",
        el("th", "System", scope="col"),
        el("th", el("span", "Bars", class_="unseen"), scope="col", class_="plot"),
        [el("th", heading, scope="col", class_="number") for heading in [*ours, *theirs]],
    )
    body = [
        el(
            "tr",
            el("th", named(row.label), el("span", row.note, class_="small") if row.note else None, scope="row"),
            el("td", [_track(*pair, ticks) for pair in zip(row.values, row.published, strict=True)], class_="plot"),
            [el("td", _number(value), class_="number", data_label=name) for value, name in zip(row.values, ours, strict=True)],
            [
                el("td", str(row.published[i] or "–"), class_="number theirs", data_label=name)
                for i, name in zip(published, theirs, strict=True)
            ],
            class_=row.kind or None,
        )
        for row in rows
    ]
    axis = [el("span", f"{100 * tick:g}", style=f"left:{_place(tick, ticks)}%") for tick in ticks]
    foot = el(
        "tr", el("td"), el("td", el("div", axis, class_="axis"), class_="plot"), [el("td") for _ in [*ours, *theirs]], aria_hidden="true"
    )
    caption = el("caption", what, class_="unseen")
    table = el("table", caption, el("thead", head), el("tbody", body), el("tfoot", foot), class_=f"bars series-{len(series)}")
    return el("div", _legend(series, bool(published)), table)


def seed_table(rows: Sequence[Bars], series: Sequence[str]) -> Markup:
    """Every number of a figure as text: each seed, mean, deviation and what was published."""
    seeds = sorted({seed for row in rows for value in row.values if isinstance(value, Summary) for seed in value.values})
    names = ["System", *([""] if len(series) > 1 else []), *(f"seed {seed}" for seed in seeds), "mean", "deviation", PAPER]
    body = []
    for row in rows:
        for name, value, published in zip(series, row.values, row.published, strict=True):
            own = value.values if isinstance(value, Summary) else {}
            mean = value.mean if isinstance(value, Summary) else value
            deviation = value.deviation if isinstance(value, Summary) else None
            numbers = [own.get(seed) for seed in seeds] + [mean, deviation]
            body.append(
                el(
                    "tr",
                    el("th", named(row.label), scope="row"),
                    el("td", name) if len(series) > 1 else None,
                    [el("td", _percent(number), class_="number") for number in numbers],
                    el("td", str(published or "–"), class_="number theirs"),
                )
            )
    head = el("tr", [el("th", name, scope="col", class_="number" if i >= 1 + (len(series) > 1) else None) for i, name in enumerate(names)])
    table = el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll", tabindex="0")
    return el("details", el("summary", "Numbers of every seed, in %"), el("div", table))


def _high(value: Summary | float | None) -> float:
    return value.high if isinstance(value, Summary) else value or 0.0


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}".replace("-", "−")


def _number(value: Summary | float | None) -> str:
    return in_percent(value) if isinstance(value, Summary) else _percent(value)


def _place(value: float, ticks: Sequence[float]) -> float:
    return round(100 * max(0.0, min(1.0, value / ticks[-1])), 2)


def _track(value: Summary | float | None, published: Published | None, ticks: Sequence[float]) -> Markup:
    marks: list[Markup] = [el("i", class_="line", style=f"left:{_place(tick, ticks)}%") for tick in ticks]

    def span(class_: str, low: float, high: float) -> Markup:
        start, end = _place(low, ticks), _place(high, ticks)
        return el("i", class_=class_, style=f"left:{start}%;width:{round(end - start, 2)}%")

    mean = value.mean if isinstance(value, Summary) else value
    if mean is not None:
        marks.append(span("fill", 0.0, mean))
    if isinstance(value, Summary):
        if value.deviation is not None:
            marks.append(span("whisker", value.mean - value.deviation, value.mean + value.deviation))
        marks += [el("i", class_="seed", style=f"left:{_place(one, ticks)}%") for one in value.values.values()]
    if published:
        if published.high > published.low:
            marks.append(span("range", published.low, published.high))
        marks += [el("i", class_="hollow", style=f"left:{_place(end, ticks)}%") for end in sorted({published.low, published.high})]
    return el("div", marks, class_="track", aria_hidden="true")


def _legend(series: Sequence[str], published: bool) -> Markup:
    parts = [el("span", el("i", class_="seed"), " a seed"), el("span", "├─┤ deviation")]
    if published:
        parts.append(el("span", el("i", class_="hollow"), f" {PAPER}"))
    if len(series) > 1:
        parts.insert(0, el("span", "from top to bottom: " + ", ".join(series)))
    return el("div", parts, class_="legend", aria_hidden="true")
