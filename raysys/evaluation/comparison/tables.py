"""The order of the systems, options beyond the paper, and the paper's Tables 1 to 3."""

from collections.abc import Mapping, Sequence
from typing import Any

from raysys.evaluation import gallery
from raysys.evaluation.comparison.data import Comparison, Row, WordExample
from raysys.evaluation.comparison.figures import SENTENCES, THIS, TO_LATIN
from raysys.evaluation.comparison.order import Check, check_order, in_percent
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.naming import language_name
from raysys.evaluation.report_data import ReportData
from raysys.evaluation.wording import headline, named, remark

_MARKS = {"holds": ("✓", "yes", "as expected"), "differs": ("✗", "no", "otherwise"), "unknown": ("?", "unknown", "not known")}


def checks(data: Comparison) -> dict[tuple[str, str], list[Check]]:
    """(split, metric) → every expected pair, where anything at all can be told."""
    found = {(split, metric): check_order(data, split, metric) for split in data.splits for metric in (SENTENCES, TO_LATIN)}
    return {key: pairs for key, pairs in found.items() if any(pair.verdict != "unknown" for pair in pairs)}


def order(data: Comparison) -> list[Markup]:
    """Pair by pair, whether the systems stand as in the paper."""
    found = checks(data)
    if not found:
        return []
    cards = [_overview(found)]
    if differing := [(key, pair) for key, pairs in found.items() for pair in pairs if pair.verdict == "differs"]:
        lines = [_line(pair, el("span", _column(*key), ": ")) for key, pair in differing]
        cards.append(el("div", el("h3", "Otherwise than in the paper"), el("ul", lines, class_="order"), class_="card split"))
    for key, pairs in found.items():
        inside = el("div", remark(tally(pairs)), el("ul", [_line(pair) for pair in pairs], class_="order"))
        cards.append(el("details", el("summary", f"{_column(*key)}: {tally(pairs)}"), inside))
    return [
        remark(
            "What the paper's figures lead one to expect: supervised above Globetrotter; Globetrotter above each of its ablations and "
            "above Sigurdsson et al.; these above Lample & Conneau, above text only, above chance. Means over seeds are compared, with the "
            "standard deviation over seeds beside them. Where it is otherwise, that is what was found on these data."
        ),
        *cards,
    ]


def _column(split: str, metric: str) -> str:
    return headline(split) + ("" if metric == SENTENCES else ", non-Latin → Latin")


def _line(pair: Check, before: Markup | None = None) -> Markup:
    return el("li", _mark(pair), el("div", before, named(pair.sentence())))


def _overview(found: Mapping[tuple[str, str], Sequence[Check]]) -> Markup:
    """Pairs in rows, splits in columns: the mark, and the difference in points."""
    pairs = {(pair.better, pair.worse): None for checked in found.values() for pair in checked}
    by_pair = [{(pair.better, pair.worse): pair for pair in checked} for checked in found.values()]
    head = el("tr", el("th", "Expected", scope="col"), [el("th", _column(*key), scope="col") for key in found])
    body = [
        el("tr", el("th", named(f"{better} > {worse}"), scope="row"), [_cell(checked.get((better, worse))) for checked in by_pair])
        for better, worse in pairs
    ]
    table = el("div", el("table", el("thead", head), el("tbody", body), class_="overview"), class_="scroll", tabindex="0")
    note = "The difference of the means in points of percent; ≈ marks one that is within the deviation over seeds."
    return el("div", table, remark(note), class_="card split")


def _cell(pair: Check | None) -> Markup:
    if pair is None or pair.difference is None:
        return el("td", "–")
    unsure = el("span", " ≈", title="within the deviation over seeds") if pair.within_deviation else None
    return el("td", _mark(pair), f" {100 * pair.difference:+.1f}".replace("-", "−"), unsure)


def tally(pairs: Sequence[Check]) -> str:
    """How many pairs stand as expected, in words."""
    count = {verdict: sum(pair.verdict == verdict for pair in pairs) for verdict in _MARKS}
    known = count["holds"] + count["differs"]
    text = f"{count['holds']} of {known} pairs stand as in the paper"
    unsure = sum(pair.within_deviation for pair in pairs)
    text += f" ({unsure} within the deviation)" if unsure else ""
    return text + (f"; {count['unknown']} cannot be told yet." if count["unknown"] else ".")


def _mark(pair: Check) -> Markup:
    sign, class_, label = _MARKS[pair.verdict]
    return el("span", sign, class_=f"mark {class_}", role="img", aria_label=label)


def ablations(data: Comparison) -> list[Markup]:
    """Runs with options beyond the paper, beside Globetrotter and the supervised system."""
    if not data.also:
        return []
    this, best = data.row(THIS), data.row("supervised")
    splits = [split for split in data.splits if any(row.summary(split, SENTENCES) for row in data.also)]
    head = el(
        "tr",
        el("th", "Run", scope="col"),
        el("th", "Changed from Globetrotter", scope="col"),
        [el("th", f"{headline(split)}, %", scope="col", class_="number") for split in splits],
        [el("th", f"gap closed, {headline(split)}", scope="col", class_="number") for split in splits] if this and best else None,
    )
    body = [
        el(
            "tr",
            el("th", named(row.label), scope="row"),
            el("td", _changes(row.changes)),
            [el("td", in_percent(score) if (score := row.summary(split, SENTENCES)) else "–", class_="number") for split in splits],
            [el("td", _share(closed(row, this, best, split)), class_="number") for split in splits] if this and best else None,
            class_="this" if row is this else None,
        )
        for row in [*(row for row in (this, best) if row), *data.also]
    ]
    table = el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll", tabindex="0")
    return [
        remark(
            "Sentence translation, mean and deviation over seeds. The gap closed is (run − Globetrotter) / (supervised − Globetrotter): 0 "
            "for Globetrotter as in the paper, 1 for the supervised system."
        ),
        el("div", table, class_="card split"),
    ]


def closed(row: Row, this: Row, best: Row, split: str, metric: str = SENTENCES) -> float | None:
    """Share of the gap between Globetrotter and the supervised system that a run closes; None where there is no gap to close."""
    found = [one.summary(split, metric) for one in (row, this, best)]
    run, low, high = (one.mean if one else None for one in found)
    if run is None or low is None or high is None or high <= low:
        return None
    return (run - low) / (high - low)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def _changes(changes: Mapping[str, tuple[Any, Any]]) -> list[Markup]:
    return [el("div", el("code", key), f": {before} → {after}") for key, (before, after) in changes.items()] or [el("span", "–")]


def translations(data: Comparison) -> list[Markup]:
    """Table 1: sentences and what was found for them."""
    return _of(data, gallery.translations(ReportData(title="", translations=data.translations)))


def failures(data: Comparison) -> list[Markup]:
    """Table 3: the worst translations."""
    return _of(data, gallery.failures(ReportData(title="", failures=data.failures)))


def words(data: Comparison) -> list[Markup]:
    """Table 2: words and what was found for them."""
    if not data.words:
        return []
    targets = list(dict.fromkeys(found.language for example in data.words for found in example.found))
    head = el("tr", el("th", "Word", scope="col"), [el("th", f"nearest in {language_name(tag)}", scope="col") for tag in targets])
    body = [
        el(
            "tr",
            el("th", el("bdi", example.word, lang=example.language), el("div", language_name(example.language), class_="tag"), scope="row"),
            [_found(example, tag) for tag in targets],
        )
        for example in data.words
    ]
    table = el("div", el("table", el("thead", head), el("tbody", body), class_="words-table"), class_="scroll", tabindex="0")
    return _of(data, [remark("Words drawn at random, not chosen for success, after Procrustes."), el("div", table, class_="card split")])


def _found(example: WordExample, language: str) -> Markup:
    found = next((one for one in example.found if one.language == language), None)
    if found is None:
        return el("td", "–")
    sign, class_, label = ("✓", "yes", "right") if found.right else ("✗", "no", "wrong")
    return el(
        "td",
        el("span", sign, class_=f"mark {class_}", role="img", aria_label=label),
        el("bdi", found.word, lang=language),
        el("div", "right: ", el("bdi", found.expected, lang=language), class_="expected") if found.expected and not found.right else None,
    )


def _of(data: Comparison, parts: list[Markup]) -> list[Markup]:
    return [remark(named(f"Of {data.example_of}.")), *parts] if parts and data.example_of else parts
