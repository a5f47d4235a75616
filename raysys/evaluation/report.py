"""The report of a run: one HTML page that needs nothing but itself."""

from collections.abc import Sequence

from raysys.evaluation import sections
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.report_data import ReportData
from raysys.evaluation.style import CSS

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""The browser itself refuses any request that the page could make."""


def write_report(data: ReportData) -> str:
    """The report as HTML text (UTF-8 when stored)."""
    parts = [part for part in sections.build(data) if part[-1]]
    links = [el("a", short, href=f"#{anchor}") for anchor, short, _, _ in parts]
    body = el(
        "body",
        el(
            "header",
            el(
                "div",
                el("p", "Training report", class_="eyebrow"),
                el("h1", el("bdi", data.title)),
                el("p", data.summary, class_="lead", dir="auto") if data.summary else None,
                _facts(data.facts),
                sections.tiles(data),
            ),
        ),
        el("nav", el("div", links), aria_label="Parts of this report") if len(links) > 1 else None,
        el("main", [el("section", el("h2", heading), content, id=anchor) for anchor, _, heading, content in parts]),
        el("footer", "Written by raysys. This page holds all of its pictures and loads nothing."),
    )
    return document(data.title, body, CSS)


def document(title: str, body: Markup, css: str) -> str:
    """A whole HTML page that loads nothing."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("title", title),
        el("style", Markup(css)),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _facts(facts: Sequence[tuple[str, str]]) -> Markup | None:
    if not facts:
        return None
    return el("dl", [el("div", el("dt", label), el("dd", value)) for label, value in facts], class_="facts")
