"""The paper's Figures 5 to 9, redrawn with the scores of the runs."""

from collections.abc import Mapping, Sequence

from raysys.evaluation.comparison import paper
from raysys.evaluation.comparison.data import Comparison
from raysys.evaluation.figures import heat_map
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.bars import Bars, bar_table, seed_table
from raysys.evaluation.side_by_side.published import CHANCE, Published
from raysys.evaluation.table import split_name
from raysys.evaluation.word_scores import WORDS
from raysys.evaluation.wording import headline, remark

SENTENCES = "eval/sentence_translation"
TO_LATIN = "eval/translation_R@1_non_latin_to_latin"
THIS = "globetrotter"

_Scores = Mapping[str, Published]
"""System → published score."""


def sentences(data: Comparison) -> list[Markup]:
    """Figure 5: sentence translation on captions that no one translated by hand for this."""
    cards = _cards(data, [split for split in data.splits if split not in data.human], SENTENCES, paper.SENTENCES)
    return _with_remark(
        "Each caption of each language asks for its translations among those of the M − 1 other languages taken together; the score is the "
        "share of the M − 1 true translations among the first M − 1.",
        cards,
    )


def human(data: Comparison) -> list[Markup]:
    """Figure 6: the same, translated by people."""
    cards = _cards(data, [split for split in data.splits if split in data.human], SENTENCES, paper.HUMAN)
    return _with_remark("The same score on sentences that people translated.", cards)


def to_latin(data: Comparison) -> list[Markup]:
    """Directions in which no word is spelt alike."""
    return _with_remark(
        "From languages in other scripts to languages in Latin script, recall@1. Words that are spelt alike in two languages flatter even "
        "an untrained encoder; here there are none. The paper has no such figure.",
        _cards(data, data.splits, TO_LATIN, {}),
    )


def _with_remark(text: str, cards: list[Markup]) -> list[Markup]:
    return [remark(text), *cards] if cards else []


def _cards(data: Comparison, splits: Sequence[str], metric: str, published: _Scores) -> list[Markup]:
    return [
        card
        for split in splits
        if (card := figure(data, split, {"": metric}, {"": published}, headline(split), _size(data, split))) is not None
    ]


def figure(
    data: Comparison, split: str, metrics: Mapping[str, str], published: Mapping[str, _Scores], title: str, note: str = ""
) -> Markup | None:
    """One figure: every system that has one of the metrics, with chance first. None where none has.

    Args:
        data: the comparison.
        split: whose scores.
        metrics: name of a series → metric.
        published: name of a series → system → published score.
        title: heading.
        note: small print under it.
    """
    if not any(row.summary(split, metric) for row in [*data.rows, *data.references] for metric in metrics.values()):
        return None
    theirs = [published.get(name, {}) for name in metrics]
    bars = [Bars(CHANCE, [data.chance(split, metric) for metric in metrics.values()], [one.get(CHANCE) for one in theirs], "floor")]
    for row in [*data.references, *data.rows]:
        values = [row.summary(split, metric) for metric in metrics.values()]
        # A system that was to be trained and is not there keeps its place; one that has no such score by nature does not.
        if any(values) or (row in data.rows and not row.seeds):
            kind = "reference" if row in data.references else "this" if row.name == THIS else ""
            bars.append(Bars(row.label, values, [one.get(row.name) for one in theirs], kind, row.note))
    names = list(metrics)
    what = f"{title}: {', '.join(name for name in names if name) or 'scores'} by system, in percent"
    return el(
        "div", el("h3", title), remark(note) if note else None, bar_table(bars, names, what), seed_table(bars, names), class_="card split"
    )


def _size(data: Comparison, split: str) -> str:
    runs = [results for row in [*data.rows, *data.references] for results in row.seeds.values()]
    result = next((results[split] for results in runs if split in results), None)
    return f"{result['items']:,} items, {len(result['languages'])} languages" if result else ""


def words(data: Comparison) -> list[Markup]:
    """Figure 7: word translation, recall@10, all and disjoint vocabularies, before and after Procrustes."""
    cards = []
    for ground, title in (("", "Right are words that occur together"), ("_dictionary", "Right is what a dictionary says")):
        for scaling, way in (("", "by cosine"), ("_csls", "by CSLS")):
            for vocabulary, of in (("all", "all words"), ("disjoint", "words that the two languages do not share")):
                metrics = {when: _word_metric(ground, vocabulary, when, scaling) for when in ("before", "after")}
                # The paper's own numbers are of words that occur together, by cosine.
                published = {when: paper.WORDS[vocabulary, when] for when in metrics} if not ground and not scaling else {}
                card = figure(data, WORDS, metrics, published, f"{title}: {of}, nearest {way}")
                if card is not None:
                    cards.append(card)
    return _with_remark(
        "Recall@10 between the vocabularies of every two languages, by the vectors of the words' pieces alone: before and after one "
        "rotation of each language onto the others (Procrustes).",
        cards,
    )


def held_out(data: Comparison) -> list[Markup]:
    """Languages that no training caption was in."""
    cards = []
    for split in data.splits:
        metrics = {"from": "eval/transfer_R@1_from_held_out", "to": "eval/transfer_R@1_to_held_out"}
        if card := figure(data, split, metrics, {}, headline(split), _size(data, split)):
            cards.append(card)
    return _with_remark(
        "Recall@1 from languages that training never saw into those it did, and back, mean over directions. The paper has no such figure.",
        cards,
    )


def anti_hubs(data: Comparison) -> list[Markup]:
    """Sentences that are nobody's neighbour."""
    return _with_remark(
        "Share of the sentences that are among the ten nearest neighbours of no sentence of another language: few sentences, hubs, then "
        "stand in their places. Less is better. The paper has no such figure.",
        _cards(data, data.splits, "eval/anti_hubs", {}),
    )


def _word_metric(ground: str, vocabulary: str, when: str, scaling: str) -> str:
    disjoint = "_disjoint" if vocabulary == "disjoint" else ""
    procrustes = "_procrustes" if when == "after" else ""
    return f"eval/word_translation{ground}_R@10{disjoint}{procrustes}{scaling}"


def retrieval(data: Comparison) -> list[Markup]:
    """Figure 8: retrieval between images and captions, both ways."""
    cards = []
    for split in data.splits:
        for way, title in (("text_to_image", "from captions to images"), ("image_to_text", "from images to captions")):
            metrics = {f"R@{k}": f"eval/{way}_R@{k}" for k in paper.RETRIEVAL}
            published = {f"R@{k}": scores for k, scores in paper.RETRIEVAL.items()}
            card = figure(data, split, metrics, published, f"{headline(split)}, {title}", _size(data, split))
            if card is not None:
                cards.append(card)
    return _with_remark(
        "Recall among the pairs of one language, at most 1,000, averaged over languages. Systems without images are not there.", cards
    )


def languages(data: Comparison) -> list[Markup]:
    """Figure 9: query language × target language."""
    row = data.row(THIS)
    maps: list[Markup] = []
    for split in data.splits if row else ():
        assert row is not None
        found = row.matrix(split, "share")
        if found is None:
            continue
        tags, matrix = found
        drawn = heat_map(tags, matrix, data.chance(split, SENTENCES))
        shown = el("div", drawn, class_="scroll", tabindex="0", role="region", aria_label=f"Heat map, {split_name(split)}")
        body = el("div", shown, _matrix_table(tags, matrix))
        # One is enough to look at; the others are there for those who ask.
        maps.append(
            el("details", el("summary", headline(split)), el("div", body))
            if maps
            else el("div", el("h3", headline(split)), body, class_="card split")
        )
    seeds = len(row.seeds) if row else 0
    which = f"mean of {seeds} seeds" if seeds > 1 else "one seed"
    return _with_remark(
        "Share of the true translations in the target language that are among the first M − 1 of all languages together, by query "
        f"language (rows) and target language (columns), families together; Globetrotter, {which}. Point at a cell for its value.",
        maps,
    )


def _matrix_table(tags: Sequence[str], matrix: Sequence[Sequence[float | None]]) -> Markup:
    head = el("tr", el("th", "query ↓ target →", scope="col"), [el("th", tag, scope="col", class_="number") for tag in tags])
    body = [
        el(
            "tr",
            el("th", tag, scope="row"),
            [el("td", "–" if value is None else f"{100 * value:.1f}", class_="number") for value in row],
        )
        for tag, row in zip(tags, matrix, strict=True)
    ]
    table = el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll", tabindex="0")
    return el("details", el("summary", f"The same as a table of {len(tags)} × {len(tags)} numbers, in %"), el("div", table))
