"""The page of the grounded systems."""

from raysys.evaluation.grounded_page import concreteness, numbers, order, paper, samples, scene_map, tables
from raysys.evaluation.grounded_page.data import THIS, GroundedComparison
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.frame import Part, write_page
from raysys.evaluation.wording import headline, named

PARTS: tuple[Part[GroundedComparison], ...] = (
    ("order", "Findings", "What the paper found, and what is found here", order.order),
    ("table-1", "Structure", "Table 1: structure of the space", tables.structure),
    ("table-1-relatedness", "Relatedness", "Table 1: semantic relatedness", tables.relatedness),
    ("concreteness", "Concreteness", "Where grounding helps", concreteness.concreteness),
    ("table-3", "SentEval", "Table 3: classification", tables.classification),
    ("table-2", "Abstract words", "Table 2: neighbours of abstract sentences", samples.queries),
    ("figure-2", "Neighbours", "Figure 2: neighbours of a caption", samples.pictures),
    ("figure-3", "Scenes", "Figure 3: scenes", samples.scenes),
)

THEIRS = (
    "measured with 74 million sentences of BookCorpus and the 118 thousand pictures of MS COCO, and says how the systems stood there, not "
    "what they should reach here."
)


def write_grounded_page(data: GroundedComparison) -> str:
    """The page as HTML text (UTF-8 when stored)."""
    return write_page(data, PARTS, THEIRS, _tiles(data), numbers.CSS + samples.CSS + scene_map.CSS)


def _tiles(data: GroundedComparison) -> list[Markup]:
    """For every test split of pictures: how many pairs stand as in the paper, and how much of the neighbourhood is kept."""
    cards = []
    this, text = data.row(THIS), data.row("t")
    found = order.checks(data)
    for split in data.structures:
        score = this.summary(split, "eval/mNNO") if this else None
        if this is None or score is None:
            continue
        known = [pair for by_split in found.values() for pair in by_split.get(split, ()) if pair.verdict != "unknown"]
        held = sum(pair.verdict == "holds" for pair in known)
        lines = [el("span", el("b", f"{held} of {len(known)}"), " pairs of rows stand as in the paper")] if known else []
        if chance := data.chance(split, "eval/mNNO"):
            lines.append(el("span", el("b", f"{score.mean / chance:,.1f} ×"), f" chance ({100 * chance:.1f})"))
        if text and (before := text.summary(split, "eval/mNNO")):
            lines.append(el("span", el("b", f"{100 * before.mean:.1f}"), named(f" of {text.label}")))
        cards.append(
            el(
                "div",
                el("div", named(f"{this.label}, {paper.STRUCTURE['eval/mNNO']} × 100"), class_="what"),
                el("div", headline(split), class_="where"),
                el("div", f"{100 * score.mean:.1f}", class_="figure"),
                el("div", lines, class_="versus"),
                class_="card tile",
            )
        )
    return cards
