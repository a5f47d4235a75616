"""The page on which systems stand side by side: one HTML page that needs nothing but itself."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from raysys.evaluation.markup import Markup, el
from raysys.evaluation.report import document
from raysys.evaluation.side_by_side import style
from raysys.evaluation.side_by_side.published import PAPER
from raysys.evaluation.side_by_side.row import SideBySide
from raysys.evaluation.style import CSS

Data = TypeVar("Data", bound=SideBySide)
Part = tuple[str, str, str, Callable[[Data], list[Markup]]]
"""(anchor, short name, heading, what makes it) of a part of the page; nothing to show leaves it out."""


def write_page(data: Data, parts: Sequence[Part[Data]], theirs: str, tiles: Sequence[Markup], css: str = "") -> str:
    """The page as HTML text (UTF-8 when stored).

    Args:
        data: what it shows.
        parts: in their order.
        theirs: what the published numbers were measured on, in a sentence that goes on from "It was".
        tiles: cards with the main numbers.
        css: what the page adds to the style sheet.
    """
    made = [(anchor, short, heading, content) for anchor, short, heading, make in parts if (content := make(data))]
    links = [el("a", short, href=f"#{anchor}") for anchor, short, _, _ in made]
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
                _theirs(theirs),
                _missing(data),
                el("div", tiles, class_="grid tiles") if tiles else None,
            ),
        ),
        el("nav", el("div", links), aria_label="Parts of this page") if len(links) > 1 else None,
        el(
            "main",
            [el("section", el("h2", heading), content, id=anchor) for anchor, _, heading, content in made],
            el("section", el("h2", "How to reproduce"), commands) if commands else None,
        ),
        el("footer", "Written by raysys. This page holds all of its pictures and loads nothing."),
    )
    return document(data.title, body, CSS + style.CSS + css)


def _theirs(measured: str) -> Markup:
    return el(
        "p",
        el("i", class_="hollow"),
        f" marks what was published: “{PAPER}”. It was {measured}",
        class_="note legend",
        style="display:block;margin:18px 0 0",
    )


def _missing(data: SideBySide) -> Markup | None:
    if not data.missing:
        return None
    lines = [el("li", el("b", name), ": ", why) for name, why in data.missing]
    count = "One run is" if len(lines) == 1 else f"{len(lines)} runs are"
    return el("div", f"{count} missing from this page:", el("ul", lines), class_="notice", role="note")
