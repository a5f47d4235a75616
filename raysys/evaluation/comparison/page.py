"""The page of a comparison: one HTML page that needs nothing but itself."""

from collections.abc import Callable

from raysys.evaluation.comparison import figures, style, tables
from raysys.evaluation.comparison.bars import PAPER
from raysys.evaluation.comparison.data import Comparison
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.report import document
from raysys.evaluation.style import CSS
from raysys.evaluation.wording import headline, named

PARTS: tuple[tuple[str, str, str, Callable[[Comparison], list[Markup]]], ...] = (
    ("order", "Order", "The order of the systems", tables.order),
    ("figure-5", "Sentences", "Figure 5: sentence translation", figures.sentences),
    ("figure-6", "Human", "Figure 6: translations by people", figures.human),
    ("to-latin", "Other scripts", "Without cognates", figures.to_latin),
    ("figure-7", "Words", "Figure 7: word translation", figures.words),
    ("figure-8", "Images", "Figure 8: images and captions", figures.retrieval),
    ("figure-9", "Languages", "Figure 9: from language to language", figures.languages),
    ("beyond", "Beyond", "Beyond the paper", tables.ablations),
    ("table-1", "Examples", "Table 1: sentences", tables.translations),
    ("table-2", "Word samples", "Table 2: words", tables.words),
    ("table-3", "Failures", "Table 3: where it fails", tables.failures),
)
"""(anchor, short name, heading, what makes it) of every part; those with nothing to show are left out."""


def write_comparison(data: Comparison) -> str:
    """The page as HTML text (UTF-8 when stored)."""
    parts = [(anchor, short, heading, content) for anchor, short, heading, make in PARTS if (content := make(data))]
    links = [el("a", short, href=f"#{anchor}") for anchor, short, _, _ in parts]
    commands = [part for what, command in data.commands for part in (el("div", what), el("pre", command, class_="command", tabindex="0"))]
    facts = el("dl", [el("div", el("dt", label), el("dd", value)) for label, value in data.facts], class_="facts")
    body = el(
        "body",
        el(
            "header",
            el(
                "div",
                el("p", "Comparison of systems", class_="eyebrow"),
                el("h1", el("bdi", data.title)),
                el("p", data.summary, class_="lead") if data.summary else None,
                facts if data.facts else None,
                _theirs(),
                _missing(data),
                _tiles(data),
            ),
        ),
        el("nav", el("div", links), aria_label="Parts of this page") if len(links) > 1 else None,
        el(
            "main",
            [el("section", el("h2", heading), content, id=anchor) for anchor, _, heading, content in parts],
            el("section", el("h2", "How to reproduce"), commands) if commands else None,
        ),
        el("footer", "Written by raysys. This page holds all of its pictures and loads nothing."),
    )
    return document(data.title, body, CSS + style.CSS)


def _theirs() -> Markup:
    return el(
        "p",
        el("i", class_="hollow"),
        f" marks what was published: “{PAPER}”. It was measured on 52 languages and 3.15 million pictures, and says how the systems stood "
        "there, not what they should reach here. Some numbers are known only within a range.",
        class_="note legend",
        style="display:block;margin:18px 0 0",
    )


def _missing(data: Comparison) -> Markup | None:
    if not data.missing:
        return None
    lines = [el("li", el("b", name), ": ", why) for name, why in data.missing]
    count = "One run is" if len(lines) == 1 else f"{len(lines)} runs are"
    return el("div", f"{count} missing from this page:", el("ul", lines), class_="notice", role="note")


def _tiles(data: Comparison) -> Markup | None:
    """For every split: how many pairs stand in order, and how far Globetrotter has come."""
    cards = []
    this = data.row(figures.THIS)
    for (split, metric), pairs in tables.checks(data).items():
        score = this.summary(split, metric) if this else None
        if metric != figures.SENTENCES or score is None:
            continue
        known = [pair for pair in pairs if pair.verdict != "unknown"]
        held = sum(pair.verdict == "holds" for pair in known)
        by_chance, ceiling = data.chance(split, metric), data.row("supervised")
        lines = [el("span", el("b", f"{held} of {len(known)}"), " pairs of systems stand as in the paper")]
        if by_chance:
            lines.append(el("span", el("b", f"{score.mean / by_chance:,.0f} ×"), f" chance ({100 * by_chance:.1f} %)"))
        if ceiling and (top := ceiling.summary(split, metric)) and top.mean:
            lines.append(el("span", el("b", f"{100 * score.mean / top.mean:.0f} %"), f" of supervised ({100 * top.mean:.1f} %)"))
        cards.append(
            el(
                "div",
                el("div", named(this.label if this else ""), class_="what"),
                el("div", headline(split), class_="where"),
                el("div", f"{100 * score.mean:.1f} %", class_="figure"),
                el("div", lines, class_="versus"),
                class_="card tile",
            )
        )
    return el("div", cards, class_="grid tiles") if cards else None
