"""Checks of the paper's order as parts of a page: one overview, what differs in words, and every pair for those who ask."""

from collections.abc import Mapping, Sequence

from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.check import Check
from raysys.evaluation.wording import named, remark

_MARKS = {"holds": ("✓", "yes", "as expected"), "differs": ("✗", "no", "otherwise"), "unknown": ("?", "unknown", "not known")}


def verdicts(found: Mapping[str, Sequence[Check]]) -> list[Markup]:
    """All checks.

    Args:
        found: column, such as a test split, as it is called on the page → its checks.
    """
    cards = [el("div", overview(found), class_="card split")]
    if differing := [(column, pair) for column, pairs in found.items() for pair in pairs if pair.verdict == "differs"]:
        lines = [line(pair, el("span", column, ": ")) for column, pair in differing]
        cards.append(el("div", el("h3", "Otherwise than in the paper"), el("ul", lines, class_="order"), class_="card split"))
    for column, pairs in found.items():
        inside = el("div", remark(tally(pairs)), el("ul", [line(pair) for pair in pairs], class_="order"))
        cards.append(el("details", el("summary", f"{column}: {tally(pairs)}"), inside))
    return cards


def line(pair: Check, before: Markup | None = None) -> Markup:
    """A check in words, as an item of a list of the class `order`."""
    return el("li", mark(pair), el("div", before, named(pair.sentence())))


def overview(found: Mapping[str, Sequence[Check]]) -> list[Markup]:
    """Pairs in rows, columns such as test splits: the mark, and the difference in points."""
    by_column = [{pair.expected: pair for pair in pairs} for pairs in found.values()]
    head = el("tr", el("th", "Expected", scope="col"), [el("th", column, scope="col") for column in found])
    body = [
        el("tr", el("th", named(expected), scope="row"), [_cell(pairs.get(expected)) for pairs in by_column])
        for expected in dict.fromkeys(expected for pairs in by_column for expected in pairs)
    ]
    table = el("div", el("table", el("thead", head), el("tbody", body), class_="overview"), class_="scroll", tabindex="0")
    note = "The difference of the means in points of percent; ≈ marks one that is within the deviation over seeds."
    return [table, remark(note)]


def _cell(pair: Check | None) -> Markup:
    if pair is None or pair.difference is None:
        return el("td", "–")
    unsure = el("span", " ≈", title="within the deviation over seeds") if pair.within_deviation else None
    return el("td", mark(pair), f" {100 * pair.difference:+.1f}".replace("-", "−"), unsure)


def tally(pairs: Sequence[Check]) -> str:
    """How many pairs stand as expected, in words."""
    count = {verdict: sum(pair.verdict == verdict for pair in pairs) for verdict in _MARKS}
    known = count["holds"] + count["differs"]
    text = f"{count['holds']} of {known} pairs stand as in the paper"
    unsure = sum(pair.within_deviation for pair in pairs)
    text += f" ({unsure} within the deviation)" if unsure else ""
    return text + (f"; {count['unknown']} cannot be told yet." if count["unknown"] else ".")


def mark(pair: Check) -> Markup:
    """A tick, a cross or a question mark."""
    sign, class_, label = _MARKS[pair.verdict]
    return el("span", sign, class_=f"mark {class_}", role="img", aria_label=label)


def check_record(pair: Check) -> dict[str, object]:
    """A check for programs: JSON values only."""
    return {
        "better": pair.better,
        "worse": pair.worse,
        "verdict": pair.verdict,
        "difference": pair.difference,
        "within_deviation": pair.within_deviation,
        "wins": pair.wins[0],
        "seeds": pair.wins[1],
        "sentence": pair.sentence(),
    }
