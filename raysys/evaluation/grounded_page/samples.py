"""Table 2 and Figures 2 and 3: what lies near a sentence, of the textual row beside the grounded one."""

from collections.abc import Sequence

from raysys.evaluation.grounded_page import paper
from raysys.evaluation.grounded_page.data import THIS, GroundedComparison
from raysys.evaluation.grounded_page.examples import Examples, Neighbour, PictureNeighbours, SceneMap
from raysys.evaluation.grounded_page.scene_map import scene_map, scene_names
from raysys.evaluation.markup import Markup, el, picture
from raysys.evaluation.side_by_side.published import PAPER
from raysys.evaluation.wording import named, remark

TEXTUAL = "t"
_SHOWN = 5
"""Neighbours of a caption that are shown."""

CSS = """
.q-n{grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr));margin:0 0 16px}
.q-n .asked{display:grid;grid-template-columns:84px 84px 1fr;gap:12px;align-items:center;padding-bottom:12px;
  border-bottom:1px solid var(--rule)}
.q-n figure{margin:0;font-size:12px;color:var(--soft);text-align:center}
.near{list-style:none;margin:4px 0 0;padding:0;font-size:14px}
.near li{display:grid;grid-template-columns:22px 1fr auto;gap:8px;padding:3px 0;align-items:baseline}
.near b{color:var(--accent)}
.near .n{color:var(--wrong)}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:4px 22px;margin-top:12px}
"""


def shown(data: GroundedComparison) -> list[tuple[str, Examples]]:
    """(label, examples) of the textual row and the grounded one, of those that have any."""
    rows = [row for name in (TEXTUAL, THIS) if (row := data.row(name)) is not None]
    return [(row.label, data.examples[row.name]) for row in rows if row.name in data.examples]


def queries(data: GroundedComparison) -> list[Markup]:
    """Table 2: nearest sentences of queries with abstract words."""
    found = [(label, {one.query: one for one in examples.queries}) for label, examples in shown(data) if examples.queries]
    if not found:
        return []
    head = el("tr", [el("th", named(name), scope="col") for name in ("Query", *(label for label, _ in found))])
    body = []
    for query in dict.fromkeys(query for _, by_query in found for query in by_query):
        asked = next(by_query[query] for _, by_query in found if query in by_query)
        rated = f", {asked.concreteness:.2f}" if asked.concreteness is not None else ""
        note = el("div", el("bdi", asked.word), rated, class_="tag") if asked.word else None
        cells = [el("td", _nearest(by_query[query].found[:3]) if query in by_query else "–") for _, by_query in found]
        body.append(el("tr", el("th", el("bdi", query), note, scope="row"), cells))
    table = el("table", el("thead", head), el("tbody", body), class_="words-table")
    return [
        _of(data, "The nearest sentences of queries with an abstract word, whose concreteness (1 to 5) stands beside it."),
        el("div", el("div", table, class_="scroll", tabindex="0"), class_="card split"),
        el("details", el("summary", f"The paper's Table 2 ({PAPER})"), el("div", _published())),
    ]


def _nearest(found: Sequence[Neighbour]) -> list[Markup]:
    return [el("div", el("bdi", one.text), el("span", f" {one.similarity:.2f}", class_="similarity")) for one in found]


def _published() -> Markup:
    head = el("tr", [el("th", name, scope="col") for name in ("Query", "Textual model", "Grounded model")])
    body = [el("tr", el("th", query, scope="row"), el("td", text), el("td", grounded)) for query, text, grounded in paper.NEIGHBOURS]
    return el("div", el("table", el("thead", head), el("tbody", body), class_="words-table theirs"), class_="scroll", tabindex="0")


def pictures(data: GroundedComparison) -> list[Markup]:
    """Figure 2: neighbours of a caption; those that belong to its picture, or to the nearest picture, are marked."""
    found = [(label, {one.caption: one for one in examples.pictures}) for label, examples in shown(data) if examples.pictures]
    if not found:
        return []
    counts = [(label, *_hits(list(by_caption.values()))) for label, by_caption in found]
    told = "; ".join(f"{label} {hits} of {of}" for label, hits, of in counts)
    cards = [
        _asked(next(by_caption[caption] for _, by_caption in found if caption in by_caption), caption, found)
        for caption in dict.fromkeys(caption for _, by_caption in found for caption in by_caption)
    ]
    return [
        _of(
            data,
            "Q is a picture drawn at random with one of its captions, N the picture nearest to it. Of the captions nearest to that "
            f"caption, those of Q and N are marked; neighbours with a mark: {told}.",
        ),
        el("div", cards, class_="grid q-n"),
    ]


def _hits(found: Sequence[PictureNeighbours]) -> tuple[int, int]:
    near = [one for example in found for one in example.found[:_SHOWN]]
    return sum(bool(one.of) for one in near), len(near)


def _asked(example: PictureNeighbours, caption: str, found: Sequence[tuple[str, dict[str, PictureNeighbours]]]) -> Markup:
    images = [
        el("figure", picture(data or None, what, 168), el("figcaption", name))
        for name, data, what in (("Q", example.picture, caption), ("N", example.nearest, example.nearest_caption or "nearest picture"))
    ]
    words = el("div", el("div", el("bdi", caption), class_="text"), el("div", "N: ", el("bdi", example.nearest_caption), class_="gloss"))
    near = [
        el("div", el("h4", named(label)), el("ol", [_near(one) for one in by_caption[caption].found[:_SHOWN]], class_="near"))
        for label, by_caption in found
        if caption in by_caption
    ]
    return el("div", el("div", images, words, class_="asked"), el("div", near, class_="beside"), class_="card")


def _near(one: Neighbour) -> Markup:
    mark = el("b", one.of, class_=one.of.lower()) if one.of else el("span", "·")
    return el("li", mark, el("bdi", one.text), el("span", f"{one.similarity:.2f}", class_="similarity"))


def scenes(data: GroundedComparison) -> list[Markup]:
    """Figure 3: the maps side by side, and how closely each scene keeps together."""
    rows = [row for name in (TEXTUAL, THIS) if (row := data.row(name)) is not None]
    found = [(row, found) for row in rows if row.name in data.examples and (found := data.examples[row.name].scenes) is not None]
    if not found:
        return []
    names = list(dict.fromkeys(point.scene for _, one in found for point in one.points))
    maps = [
        el("div", el("h3", named(row.label)), scene_map(one, names, row.label), _measures(row.name, one), class_="card")
        for row, one in found
    ]
    return [
        _of(data, "Sentences of scenes drawn at random, by t-SNE; point at one for its text. Only what lies near what means anything."),
        scene_names(names),
        el("div", maps, class_="grid maps"),
        *_by_scene([(row.label, one) for row, one in found], names),
    ]


def _measures(row: str, found: SceneMap) -> Markup:
    theirs = paper.SCENES.get(row)
    text = f"C_inter {100 * found.inter:.1f}, C_intra {100 * found.intra:.1f} before t-SNE"
    beside = f"C_inter {theirs['eval/C_inter']:g}, C_intra {theirs['eval/C_intra']:g}" if theirs else ""
    return el(
        "p",
        named(text),
        el("br"),
        el("span", el("i", class_="hollow"), named(f"{PAPER}: {beside}"), class_="theirs legend", style="display:block")
        if theirs
        else None,
        class_="note",
    )


def _by_scene(found: Sequence[tuple[str, SceneMap]], names: Sequence[str]) -> list[Markup]:
    if not any(one.scenes for _, one in found):
        return []
    headings = [f"{label}: {measure}" for label, _ in found for measure in ("C_intra", "C_inter")]
    head = el("tr", el("th", "Scene", scope="col"), [el("th", named(name), scope="col", class_="number") for name in headings])
    body = [
        el(
            "tr",
            el("th", name, scope="row"),
            [
                el("td", f"{100 * value:.1f}".replace("-", "−") if value is not None else "–", class_="number")
                for _, one in found
                for value in one.scenes.get(name, (None, None))
            ],
        )
        for name in names
    ]
    table = el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll", tabindex="0")
    return [el("details", el("summary", "Scene by scene"), el("div", table))]


def _of(data: GroundedComparison, text: str) -> Markup:
    found = [examples for _, examples in shown(data)]
    seed = f" Runs with seed {data.examples_seed}." if data.examples_seed is not None else ""
    searched = next((one.searched for one in found if one.searched), "")
    return remark(named(f"{text}{f' Searched in {searched}.' if searched else ''}{seed}"))
