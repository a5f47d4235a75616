"""Table 5 of the weakly aligned data, and where the runs' own reports lie."""

from collections.abc import Sequence

from raysys.evaluation.markup import Markup, el
from raysys.evaluation.naming import language_name
from raysys.evaluation.rc3_page import paper
from raysys.evaluation.rc3_page.data import Rc3Comparison
from raysys.evaluation.side_by_side.published import PAPER
from raysys.evaluation.wording import named, remark

PRE_TRAINING = "pre-training"
CSS = ".links td a{display:inline-block;padding:2px 6px;margin:-2px 2px;color:var(--accent)}"


def table_5(data: Rc3Comparison) -> list[Markup]:
    """Pictures of the weakly aligned data that have texts in two languages."""
    if data.weak is None:
        return []
    return [
        remark(
            f"How many pictures of the weakly aligned data ({data.weak.folder}) have texts in both languages and are pairs to learn from; "
            "on the diagonal, texts in the one language."
        ),
        el("div", _pairs(data.weak.languages, data.weak.counts.tolist()), class_="card split"),
        el(
            "details",
            el("summary", el("i", class_="hollow"), f" What the paper had from Wikipedia ({PAPER})"),
            el("div", _pairs(paper.LANGUAGES_5, paper.TABLE_5)),
        ),
    ]


def _pairs(languages: Sequence[str], counts: Sequence[Sequence[int]]) -> Markup:
    head = el("tr", el("td"), [el("th", tag, scope="col", class_="number") for tag in languages])
    body = [
        el("tr", el("th", language_name(tag), scope="row"), [el("td", f"{count:,}", class_="number") for count in row])
        for tag, row in zip(languages, counts, strict=True)
    ]
    return el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll", tabindex="0")


def links(data: Rc3Comparison) -> list[Markup]:
    """A table of links: systems in rows; pre-training and tasks in columns; seeds in cells."""
    if not data.links:
        return []
    columns = list(dict.fromkeys(link.task for link in data.links))
    rows = list(dict.fromkeys(link.row for link in data.links))

    def cell(row: str, task: str) -> Sequence[Markup]:
        found = sorted((link for link in data.links if (link.row, link.task) == (row, task)), key=lambda link: link.seed)
        name = task or PRE_TRAINING
        return [el("a", str(link.seed), href=link.href, aria_label=f"{row}, {name}, seed {link.seed}") for link in found]

    head = el("tr", el("th", "System", scope="col"), [el("th", column or PRE_TRAINING, scope="col") for column in columns])
    body = [el("tr", el("th", named(row), scope="row"), [el("td", cell(row, column) or "–") for column in columns]) for row in rows]
    table = el("div", el("table", el("thead", head), el("tbody", body), class_="links"), class_="scroll", tabindex="0")
    return [remark("The report of each run, by its seed."), el("div", table, class_="card split")]
