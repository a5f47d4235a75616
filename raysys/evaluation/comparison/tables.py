"""The order of the systems, options beyond the paper, and the paper's Tables 1 to 3."""

from collections.abc import Mapping
from typing import Any

from raysys.evaluation import gallery
from raysys.evaluation.comparison.data import Comparison, WordExample
from raysys.evaluation.comparison.figures import SENTENCES, THIS, TO_LATIN
from raysys.evaluation.comparison.order import check_order
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.naming import language_name
from raysys.evaluation.report_data import ReportData
from raysys.evaluation.side_by_side.check import Check
from raysys.evaluation.side_by_side.row import Row
from raysys.evaluation.side_by_side.statistics import in_percent
from raysys.evaluation.side_by_side.verdicts import verdicts
from raysys.evaluation.wording import headline, named, remark


def checks(data: Comparison) -> dict[tuple[str, str], list[Check]]:
    """(split, metric) → every expected pair, where anything at all can be told."""
    found = {(split, metric): check_order(data, split, metric) for split in data.splits for metric in (SENTENCES, TO_LATIN)}
    return {key: pairs for key, pairs in found.items() if any(pair.verdict != "unknown" for pair in pairs)}


def order(data: Comparison) -> list[Markup]:
    """Pair by pair, whether the systems stand as in the paper."""
    found = checks(data)
    if not found:
        return []
    return [
        remark(
            "What the paper's figures lead one to expect: supervised above Globetrotter; Globetrotter above each of its ablations and "
            "above Sigurdsson et al.; these above Lample & Conneau, above text only, above chance. Means over seeds are compared, with the "
            "standard deviation over seeds beside them. Where it is otherwise, that is what was found on these data."
        ),
        *verdicts({_column(*key): pairs for key, pairs in found.items()}),
    ]


def _column(split: str, metric: str) -> str:
    return headline(split) + ("" if metric == SENTENCES else ", non-Latin → Latin")


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
