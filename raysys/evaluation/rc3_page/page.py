"""The page of RC³."""

from raysys.evaluation.grounded_page import numbers
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.rc3_page import curves, order, paper, runs, tables
from raysys.evaluation.rc3_page.data import ALL, ZERO_SHOT, Rc3Comparison, key
from raysys.evaluation.side_by_side.frame import Part, write_page

PARTS: tuple[Part[Rc3Comparison], ...] = (
    ("order", "Order", "What the objectives add in other languages", order.order),
    ("zero-shot", "Zero-shot", "Averages over languages not seen in fine-tuning", tables.averages),
    ("table-1", "English", "Table 1: in English", tables.table_1),
    ("table-2", "Other languages", "Table 2: zero-shot", tables.table_2),
    ("table-3", "Translation", "Table 3: translation with pictures", tables.table_3),
    ("table-4", "Ablations", "Table 4: ablations", tables.table_4),
    ("languages", "Every language", "Every language that was scored", tables.every_language),
    ("curves", "Losses", "Losses of pre-training", curves.curves),
    ("table-5", "Weak data", "Table 5: weakly aligned data", runs.table_5),
    ("runs", "Runs", "Reports of the runs", runs.links),
)

THEIRS = (
    "measured with networks of 12 + 12 layers that began as mBART-50, on 2.8 million pictures with captions in six languages, pictures of "
    "Wikipedia and the published test sets; that is other data and another size than here, and says how the systems stood there, not what "
    "they should reach here."
)


def write_rc3_page(data: Rc3Comparison) -> str:
    """The page as HTML text (UTF-8 when stored)."""
    return write_page(data, PARTS, THEIRS, _tiles(data), numbers.CSS + order.CSS + tables.CSS + curves.CSS + runs.CSS)


def _tiles(data: Rc3Comparison) -> list[Markup]:
    """How far RC³ has come in other languages: over all tasks, and on each."""
    best, least = data.row(paper.ORDER[0][0]), data.row(paper.ORDER[-1][1])
    cards = []
    for task in (ALL, *paper.ZERO_SHOT_TASKS):
        metric = key(task, ZERO_SHOT)
        score = best.summary(task, metric) if best else None
        if best is None or score is None:
            continue
        lines = []
        if (chance := data.chance(task, metric)) is not None:
            lines.append(el("span", el("b", f"{100 * chance:.1f}"), " by chance"))
        if least and (other := least.summary(task, metric)):
            lines.append(el("span", el("b", f"{100 * other.mean:.1f}"), f" {least.label}"))
        cards.append(
            el(
                "div",
                el("div", best.label, class_="what"),
                el("div", f"{'mean of tasks' if task == ALL else paper.TASKS[task]}, zero-shot", class_="where"),
                el("div", f"{100 * score.mean:.1f}", class_="figure"),
                el("div", lines, class_="versus"),
                class_="card tile",
            )
        )
    return cards
