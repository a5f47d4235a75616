"""The page of Globetrotter's comparison."""

from raysys.evaluation.comparison import figures, tables
from raysys.evaluation.comparison.data import Comparison
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.frame import Part, write_page
from raysys.evaluation.wording import headline, named

PARTS: tuple[Part[Comparison], ...] = (
    ("order", "Order", "The order of the systems", tables.order),
    ("figure-5", "Sentences", "Figure 5: sentence translation", figures.sentences),
    ("figure-6", "Human", "Figure 6: translations by people", figures.human),
    ("to-latin", "Other scripts", "Without cognates", figures.to_latin),
    ("figure-7", "Words", "Figure 7: word translation", figures.words),
    ("figure-8", "Images", "Figure 8: images and captions", figures.retrieval),
    ("figure-9", "Languages", "Figure 9: from language to language", figures.languages),
    ("held-out", "Held out", "Languages held out of training", figures.held_out),
    ("anti-hubs", "Hubs", "Sentences that are never found", figures.anti_hubs),
    ("beyond", "Beyond", "Beyond the paper", tables.ablations),
    ("table-1", "Examples", "Table 1: sentences", tables.translations),
    ("table-2", "Word samples", "Table 2: words", tables.words),
    ("table-3", "Failures", "Table 3: where it fails", tables.failures),
)

THEIRS = (
    "measured on 52 languages and 3.15 million pictures, and says how the systems stood there, not what they should reach here. "
    "Some numbers are known only within a range."
)


def write_comparison(data: Comparison) -> str:
    """The page as HTML text (UTF-8 when stored)."""
    return write_page(data, PARTS, THEIRS, _tiles(data))


def _tiles(data: Comparison) -> list[Markup]:
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
    return cards
