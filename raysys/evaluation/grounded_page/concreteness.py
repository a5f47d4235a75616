"""Where grounding helps: gain of the grounded model over the textual one against how concrete the words of a benchmark are."""

from dataclasses import dataclass

from raysys.evaluation.figures import nice_ticks
from raysys.evaluation.grounded_page import paper
from raysys.evaluation.grounded_page.data import RELATEDNESS, THIS, GroundedComparison, whole_sets
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.published import PAPER
from raysys.evaluation.side_by_side.statistics import Summary, in_percent
from raysys.evaluation.wording import named, remark

PAIRS = (("t", THIS), ("t", "t-cp-g"))
"""(textual row, grounded row): the paper compares the first pair."""


@dataclass(frozen=True)
class Gain:
    """One benchmark."""

    name: str
    """As in the metric `eval/<name>_spearman`."""
    concreteness: float
    """Mean rating of its words, from 1 to 5."""
    text: Summary | None
    """Spearman's correlation of the textual row."""
    grounded: Summary | None

    @property
    def label(self) -> str:
        """For people."""
        return paper.RELATEDNESS.get(_metric(self.name), self.name)

    @property
    def points(self) -> float | None:
        """The gain, out of 100."""
        return None if self.text is None or self.grounded is None else 100 * (self.grounded.mean - self.text.mean)


def _metric(name: str) -> str:
    return f"eval/{name}_spearman"


def gains(data: GroundedComparison, text: str, grounded: str) -> list[Gain]:
    """Every benchmark whose concreteness is known, the most concrete first. Those without scores have no gain."""
    found: dict[str, float] = {}
    for results in (results for row in data.shown for results in row.seeds.values()):
        found = {**results.get(RELATEDNESS, {}).get("concreteness", {}), **found}
    one, two = data.row(text), data.row(grounded)
    made = []
    for name in sorted(whole_sets(found), key=lambda name: -found[name]):
        before, after = (row.summary(RELATEDNESS, _metric(name)) if row else None for row in (one, two))
        made.append(Gain(name, found[name], before, after))
    return made


def concreteness(data: GroundedComparison) -> list[Markup]:
    """A table and a drawing for each pair of rows."""
    cards = []
    for text, grounded in PAIRS:
        found = [gain for gain in gains(data, text, grounded) if gain.points is not None]
        one, two = data.row(text), data.row(grounded)
        if found and one is not None and two is not None:
            title = f"{two.label} against {one.label}"
            cards.append(
                el(
                    "div",
                    el("h3", named(title)),
                    _table(found, one.label, two.label),
                    _drawing(found, title),
                    _words(found),
                    class_="card split",
                )
            )
    if not cards:
        return []
    theirs = ", ".join(f"{paper.RELATEDNESS[_metric(name)]} {value:.2f}" for name, value in paper.CONCRETENESS.items())
    return [
        remark(
            "Mean concreteness of the words of a benchmark (ratings by people, 1 abstract to 5 concrete) and what grounding gains there in "
            f"Spearman's correlation × 100. {PAPER[0].upper() + PAPER[1:]}: {theirs}; a gain of {paper.CONCRETENESS_GAIN}."
        ),
        *cards,
    ]


def _table(found: list[Gain], text: str, grounded: str) -> Markup:
    head = el(
        "tr",
        el("th", "Benchmark", scope="col"),
        [el("th", named(name), scope="col", class_="number") for name in ("concreteness", text, grounded, "gain, points")],
    )
    body = [
        el(
            "tr",
            el("th", gain.label, scope="row"),
            el("td", f"{gain.concreteness:.2f}", class_="number"),
            [el("td", in_percent(one) if one else "–", class_="number") for one in (gain.text, gain.grounded)],
            el("td", signed(gain.points or 0.0), class_="number"),
        )
        for gain in found
    ]
    return el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll", tabindex="0")


def signed(points: float) -> str:
    """`+4.2`, `−0.3`."""
    return f"{points:+.1f}".replace("-", "−")


def _words(found: list[Gain]) -> Markup | None:
    """Whether the most concrete benchmark gains most."""
    if len(found) < 2:
        return None
    first, last = found[0], found[-1]
    more = round((first.points or 0.0) - (last.points or 0.0), 1) > 0
    names = [gain.label for gain in (first, last)]
    numbers = (
        f"{signed(first.points or 0.0)} points on {names[0]}, the most concrete, and {signed(last.points or 0.0)} on {names[1]}, the least"
    )
    return remark(
        ("As in the paper, grounding gains more where words are concrete: " if more else "Otherwise than in the paper: ") + numbers + "."
    )


def _drawing(found: list[Gain], title: str, width: int = 460, height: int = 220) -> Markup:
    """Gain (up) against concreteness (right)."""
    left, right, top, bottom = 44, 92, 14, 40
    points = [gain.points or 0.0 for gain in found]
    ticks = nice_ticks(min(0.0, *points), max(0.0, *points))
    marks = nice_ticks(min(gain.concreteness for gain in found), max(gain.concreteness for gain in found), 4)

    def x(value: float) -> float:
        return round(left + (value - marks[0]) / (marks[-1] - marks[0]) * (width - left - right), 1)

    def y(value: float) -> float:
        return round(top + (ticks[-1] - value) / (ticks[-1] - ticks[0]) * (height - top - bottom), 1)

    parts = [
        [
            el("line", x1=left, x2=width - right, y1=y(tick), y2=y(tick), class_="grid"),
            el("text", f"{tick:g}".replace("-", "−"), x=left - 6, y=y(tick) + 3.5, text_anchor="end", class_="tick"),
        ]
        for tick in ticks
    ]
    parts += [[el("text", f"{mark:g}", x=x(mark), y=height - 22, text_anchor="middle", class_="tick")] for mark in marks]
    parts.append(
        [el("text", "mean concreteness of its words", x=(left + width - right) / 2, y=height - 6, text_anchor="middle", class_="tick")]
    )
    for gain, value in zip(found, points, strict=True):
        parts.append([el("circle", cx=x(gain.concreteness), cy=y(value), r=3.6, class_="dot")])
        label = gain.label
        parts.append([el("text", label, x=x(gain.concreteness) + 7, y=y(value) + 4, class_="value")])
    summary = f"{title}, gain in points by concreteness: " + ", ".join(
        f"{gain.label} {gain.concreteness:.2f} {signed(value)}" for gain, value in zip(found, points, strict=True)
    )
    return el(
        "svg", parts, viewBox=f"0 0 {width} {height}", width=width, role="img", aria_label=summary, class_="chart", style="max-width:560px"
    )
