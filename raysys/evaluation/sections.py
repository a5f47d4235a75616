"""The parts of a report, each from plain data to HTML."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from raysys.evaluation.examples import Retrieved, Side, TransitiveMatch, TranslationExample
from raysys.evaluation.figures import LARGE_CELLS, Curve, heat_map, line_chart
from raysys.evaluation.markup import Markup, el, escape, join, picture
from raysys.evaluation.naming import language_name
from raysys.evaluation.report_data import ReportData
from raysys.evaluation.table import CHANCE, Column, ScoreTable, format_score, score_table, split_name

Part = tuple[str, str, str, list[Markup]]
MOST_BAD_SAMPLES = 50

METRIC_NAMES = {
    "eval/translation_R@1": "Translation R@1",
    "eval/translation_R@1_both_seen": "R@1, both strings seen, never together",
    "eval/translation_R@1_non_latin_to_en": "R@1, non-Latin → English",
    "eval/sentence_translation": "Share in top M − 1",
    "eval/text_to_image_R@1": "Text → image R@1",
}
TERM_NAMES = {
    "train/loss": ("All terms", "the weighted sum that is minimised"),
    "train/loss_transitive": ("Caption–caption", "L_t, transitive"),
    "train/loss_image": ("Image–image", "L_v, two views of a picture"),
    "train/loss_image_caption": ("Image–caption", "L_x"),
    "train/loss_cloze": ("Cloze", "L_c, masked word pieces"),
    "train/samples_per_second": ("Samples per second", "throughput"),
    "train/grad_norm": ("Gradient norm", "before clipping"),
}
KINDS = {
    "match": (
        "Taken as translations",
        "The images are alike and each caption fits its image, so training pulls the two captions together.",
    ),
    "weak caption": (
        "Turned down: a caption does not fit its image",
        "The images are alike, but at least one caption says something else than its picture.",
    ),
    "different images": (
        "Turned down: the images differ",
        "Each caption fits its own image, but the images have too little in common.",
    ),
}


def build(data: ReportData) -> list[Part]:
    """(anchor, short name, heading, content) of every part; content is empty where there is nothing to show."""
    return [
        ("scores", "Scores", "Scores", _scores(data)),
        ("training", "Training", "Training", _training(data)),
        ("languages", "Languages", "From language to language", _languages(data)),
        ("translations", "Translations", "Nearest translations", _translations(data)),
        ("matches", "Matches", "What ties the languages together", _matches(data)),
        ("failures", "Failures", "Where it fails", _failures(data)),
        ("data", "Data", "Data", _data(data)),
        ("settings", "Settings", "Settings", _settings(data)),
        ("reproduce", "Reproduce", "How to reproduce", _reproduce(data)),
    ]


def _note(*text: object) -> Markup:
    return el("p", *text, class_="note")


def _named(name: str) -> Markup:
    """A name in which `L_t` and its like get their index lowered."""
    return Markup(re.sub(r"\bL_([a-z])\b", r"L<sub>\1</sub>", escape(name)))


def _title(split: str) -> str:
    name = split_name(split)
    return name[:1].upper() + name[1:]


# --- scores ---------------------------------------------------------------------------------------------------------------


def tiles(data: ReportData) -> Markup | None:
    """The figures to remember: of each split the first one or two scores, against chance and the rival."""
    own = data.results.get(data.this, {})
    preferred = ("eval/translation_R@1_both_seen", "eval/translation_R@1", "eval/sentence_translation")
    chosen = [(split, next((m for m in preferred if m in result["metrics"]), None)) for split, result in own.items()]
    first_with_images = next((s for s, r in own.items() if "eval/text_to_image_R@1" in r["metrics"]), None)
    if first_with_images is not None:
        chosen.append((first_with_images, "eval/text_to_image_R@1"))
    cards = []
    for split, metric in chosen[:4]:
        if metric is None:
            continue
        value, by_chance = own[split]["metrics"][metric], own[split]["chance"][metric]
        lines = [el("span", el("b", f"{value / by_chance:,.0f} ×"), f" chance ({format_score(by_chance)})")] if by_chance else []
        rival = data.results.get(data.rival, {}).get(split, {}).get("metrics", {}).get(metric)
        if rival:
            lines.append(el("span", el("b", f"{value / rival:.2f} ×"), " ", _named(data.rival), f" ({format_score(rival)})"))
        cards.append(
            el(
                "div",
                el("div", METRIC_NAMES.get(metric, metric), class_="what"),
                el("div", split_name(split), class_="where"),
                el("div", format_score(value), class_="figure"),
                el("div", lines, class_="versus"),
                class_="card tile",
            )
        )
    return el("div", cards, class_="grid tiles") if cards else None


def _scores(data: ReportData) -> list[Markup]:
    if not data.results:
        return []
    table = score_table(data.results)
    splits = list(dict.fromkeys(column.split for column in table.columns))
    explained = _note(
        "R@1 is the share of sentences whose nearest sentence in another language is its translation, averaged over ordered pairs "
        "of languages. “Share in top M − 1” ranks the sentences of all M − 1 other languages together and counts the true translations "
        "among the first M − 1. "
        "Ties count with the expected value of a random order. Bars share one scale within a column."
    )
    return [explained, *(_split_table(data, table, split) for split in splits)]


def _split_table(data: ReportData, table: ScoreTable, split: str) -> Markup:
    shown = [(i, column) for i, column in enumerate(table.columns) if column.split == split]
    rows = [(system, [values[i] for i, _ in shown]) for system, values in table.rows if any(values[i] is not None for i, _ in shown)]
    tops = [max((values[c] or 0.0 for _, values in rows), default=0.0) or 1.0 for c in range(len(shown))]
    result = next(by_split[split] for by_split in data.results.values() if split in by_split)
    size = f"{result['items']:,} items, {len(result['languages'])} languages"
    head = el("tr", el("th", "System", scope="col"), [el("th", _heading(column), scope="col") for _, column in shown])
    body = [
        el(
            "tr",
            el("th", _named(system), scope="row"),
            [_bar(value, top, _heading(c)) for value, top, (_, c) in zip(values, tops, shown, strict=True)],
            class_="this" if system == data.this else "floor" if system == CHANCE else None,
        )
        for system, values in rows
    ]
    note = " · ".join(part for part in (size, data.split_notes.get(split, ""), _lacking(result)) if part)
    return el(
        "div",
        el("h3", _title(split)),
        _note(note),
        el("div", el("table", el("thead", head), el("tbody", body), class_="scores"), class_="scroll"),
        class_="card split",
    )


def _heading(column: Column) -> str:
    return METRIC_NAMES.get(column.metric, column.label)


def _bar(value: float | None, top: float, label: str) -> Markup:
    width = 0.0 if value is None else max(0.0, min(100.0, 100 * value / top))
    meter = el("span", el("i", style=f"width:{width:.1f}%"), class_="meter")
    return el("td", format_score(value), meter, data_label=label)


def _lacking(result: Any) -> str:
    lacking = {name: count for name, count in result["lacking"].items() if count}
    return "left out for want of a caption or image: " + ", ".join(f"{k} {v}" for k, v in lacking.items()) if lacking else ""


# --- training -------------------------------------------------------------------------------------------------------------


def _training(data: ReportData) -> list[Markup]:
    names = list(dict.fromkeys(name for line in data.metrics for name in line))
    losses = [n for n in names if n.startswith("train/loss")]
    validation = [n for n in names if n.startswith("eval/") and n.count("/") == 1]
    others = [n for n in ("train/samples_per_second", "train/grad_norm") if n in names]
    charts = [chart for name in sorted(losses) + validation[:4] + others if (chart := _curve(data, name)) is not None]
    if not charts:
        return []
    return [
        _note(
            "Each term over the steps of training: single steps faint, their running mean strong, the last value at the end of the line."
        ),
        el("div", charts, class_="grid charts"),
    ]


def _curve(data: ReportData, name: str) -> Markup | None:
    points = [(int(line["step"]), float(line[name])) for line in data.metrics if line.get(name) is not None and "step" in line]
    if not points:
        return None
    fallback = name.removeprefix("train/").removeprefix("eval/").removeprefix("loss_").replace("_", " ")
    title, note = TERM_NAMES.get(name, (fallback[:1].upper() + fallback[1:], "validation" if name.startswith("eval/") else ""))
    chart = line_chart(Curve(title, [s for s, _ in points], [v for _, v in points]))
    return el("div", el("h3", title), el("div", _named(note) or Markup("&nbsp;"), class_="tag"), chart, class_="card")


# --- languages ------------------------------------------------------------------------------------------------------------


def _languages(data: ReportData) -> list[Markup]:
    maps: list[Markup] = []
    for split, result in data.results.get(data.this, {}).items():
        matrix = result.get("matrices", {}).get("recall@1")
        if not matrix:
            continue
        figure = heat_map(result["languages"], matrix, result["chance"].get("eval/translation_R@1"))
        shown = el(
            "div",
            el("div", figure, class_="scroll", tabindex="0", role="region", aria_label=f"Heat map, {split_name(split)}"),
            _extremes(result["languages"], matrix),
            class_="map" if len(result["languages"]) <= LARGE_CELLS else "map wide",
        )
        if maps:
            maps.append(el("details", el("summary", _title(split)), el("div", shown)))
        else:
            maps.append(el("div", el("h3", _title(split)), shown, class_="card split"))
    if not maps:
        return []
    return [
        _note("Recall@1 by query language (rows) and target language (columns), families together. Point at a cell for its value."),
        *maps,
    ]


def _extremes(languages: Sequence[str], matrix: Sequence[Sequence[float | None]], count: int = 5) -> Markup:
    """The easiest and the hardest directions in words."""
    cells = [(value, languages[i], languages[j]) for i, row in enumerate(matrix) for j, value in enumerate(row) if value is not None]
    cells.sort(key=lambda cell: -cell[0])
    count = min(count, len(cells) // 2)

    def listed(title: str, chosen: Sequence[tuple[float, str, str]]) -> Markup:
        rows = [
            el("tr", el("td", f"{language_name(a)} → {language_name(b)}"), el("td", format_score(value), class_="number"))
            for value, a, b in chosen
        ]
        return el("div", el("h4", title), el("table", el("tbody", rows)))

    if not count:
        return Markup("")
    return el("div", listed("Easiest directions", cells[:count]), listed("Hardest directions", cells[::-1][:count]), class_="extremes")


# --- examples -------------------------------------------------------------------------------------------------------------


def _said(text: str, language: str, class_: str) -> Markup:
    """A sentence of any language: its own direction, its own language for the font."""
    return el("div", el("bdi", text, lang=language), class_=class_, dir="auto")


def _query(example: TranslationExample) -> Markup:
    return el(
        "div",
        picture(example.image, f"Picture of: {example.gloss or example.text}"),
        el(
            "div",
            el("div", language_name(example.language), class_="tag"),
            _said(example.text, example.language, "sentence"),
            el("div", example.gloss, class_="gloss", lang="en") if example.gloss else None,
        ),
        class_="query",
    )


def _mark(right: bool) -> Markup:
    return el(
        "span", "✓" if right else "✗", class_="mark yes" if right else "mark no", role="img", aria_label="right" if right else "wrong"
    )


def _found(found: Retrieved) -> Markup:
    expected = None
    if not found.right:
        expected = el(
            "div", f"right, at place {found.expected_rank} of {found.candidates}: ", el("bdi", found.expected, lang=found.language)
        )
        expected = el("div", expected, class_="expected")
    return el(
        "li",
        _mark(found.right),
        picture(found.image, f"Picture that belongs to: {found.text}", size=80),
        el("div", el("div", language_name(found.language), class_="tag"), _said(found.text, found.language, "text")),
        el("div", _signed(found.similarity), class_="similarity", title="similarity β"),
        expected,
    )


def _translations(data: ReportData) -> list[Markup]:
    parts: list[Markup] = []
    for split, examples in data.translations.items():
        if examples:
            cards = [el("article", _query(e), el("ul", [_found(f) for f in e.retrieved], class_="found"), class_="card") for e in examples]
            parts += [el("h3", _title(split), class_="kind"), _tally(examples)]
            parts.append(el("div", cards, class_="grid examples", style="margin-bottom:26px"))
    if not parts:
        return []
    return [
        _note(
            "Sentences drawn at random, not chosen for success. The encoder sees text alone; pictures are shown for the reader. ",
            "The number is the similarity β of the two sentences.",
        ),
        *parts,
    ]


def _tally(examples: Sequence[TranslationExample]) -> Markup:
    found = [f.right for example in examples for f in example.retrieved]
    return _note(f"{sum(found)} of {len(found)} shown here are right.")


def _matches(data: ReportData) -> list[Markup]:
    if not data.matches:
        return []
    parts = [
        _note(
            "No translation is given in training. Two captions of different languages count as alike as far as α says: the product of "
            "how well each caption fits its image (",
            _symbol("α^x"),
            ") and how alike the images are (",
            _symbol("α^v"),
            f"), less a margin of {data.margin:g}. β is what the trained encoder then says of the two captions alone.",
        )
    ]
    for kind, (title, explained) in KINDS.items():
        cards = [_match(match) for match in data.matches if match.kind == kind]
        if cards:
            parts += [el("h3", title, class_="kind"), _note(explained), el("div", cards, class_="grid matches")]
    return parts


def _match(match: TransitiveMatch) -> Markup:
    weaker = min(match.left.image_caption, match.right.image_caption)

    def down(side: Side) -> Markup:
        return _edge("down", "α^x", side.image_caption, low=match.kind == "weak caption" and side.image_caption <= weaker + 0.05)

    def words(side: Side) -> Markup:
        return el(
            "div",
            el("div", language_name(side.language), class_="tag"),
            _said(side.text, side.language, "sentence"),
            el("div", side.gloss, class_="gloss", lang="en") if side.gloss else None,
            class_="words",
        )

    return el(
        "article",
        picture(match.left.image, f"Picture of: {match.left.gloss or match.left.text}"),
        _edge("across", "α^v", match.images, low=match.kind == "different images"),
        picture(match.right.image, f"Picture of: {match.right.gloss or match.right.text}"),
        down(match.left),
        el("div", "α", el("b", f"{match.transitive:.2f}"), class_="alpha"),
        down(match.right),
        words(match.left),
        _edge("across", "β", match.captions, low=False),
        words(match.right),
        class_="card match",
    )


def _edge(direction: str, name: str, value: float, low: bool) -> Markup:
    strength = f"--w:{max(0.15, min(1.0, value)):.2f}"
    label = el("span", _symbol(name), f" {_signed(value)}")
    return el("div", label, class_=f"edge {direction}" + (" low" if low else ""), style=strength)


def _symbol(name: str) -> Markup:
    """`α^x` with its index raised."""
    base, _, raised = name.partition("^")
    return join([base, el("sup", raised) if raised else None])


def _signed(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def _failures(data: ReportData) -> list[Markup]:
    if not data.failures:
        return []
    cards = [_failure(example) for example in data.failures]
    return [
        _note("The worst of those examined: a wrong sentence lies much nearer than the true translation."),
        el("div", cards, class_="grid examples"),
    ]


def _failure(example: TranslationExample) -> Markup:
    found = example.retrieved[0]
    place = f"right, at place {found.expected_rank:,} of {found.candidates:,}"
    lines = [
        (False, found.image, f"found in {language_name(found.language)}", found.text, found.similarity),
        (True, example.image, place, found.expected, found.expected_similarity),
    ]
    rows = [
        el(
            "li",
            _mark(right),
            picture(image, f"Picture that belongs to: {text}", size=80),
            el("div", el("div", label, class_="tag"), _said(text, found.language, "text")),
            el("div", _signed(similarity), class_="similarity", title="similarity β"),
        )
        for right, image, label, text, similarity in lines
    ]
    return el("article", _query(example), el("ul", rows, class_="found"), class_="card")


# --- data, settings, commands ---------------------------------------------------------------------------------------------


def _data(data: ReportData) -> list[Markup]:
    parts: list[Markup] = []
    if data.samples:
        splits = list(data.samples)
        languages = sorted({tag for counts in data.samples.values() for tag in counts}, key=language_name)
        head = el(
            "tr", el("th", "Samples with a caption in", scope="col"), [el("th", split, scope="col", class_="number") for split in splits]
        )
        body = [
            el(
                "tr",
                el("th", language_name(tag), el("span", f"  {tag}", class_="tag"), scope="row"),
                [el("td", f"{data.samples[split].get(tag, 0):,}", class_="number") for split in splits],
            )
            for tag in languages
        ]
        table = el("div", el("table", el("thead", head), el("tbody", body)), class_="scroll", tabindex="0")
        if len(languages) > 16:
            parts.append(el("details", el("summary", f"Samples of {len(languages)} languages in {len(splits)} splits"), el("div", table)))
        else:
            parts.append(el("div", table, class_="card split"))
    if data.bad_samples:
        causes = Counter(reason for _, reason in data.bad_samples).most_common()
        shown = data.bad_samples[:MOST_BAD_SAMPLES]
        listed = el("table", el("tbody", [el("tr", el("td", where), el("td", reason)) for where, reason in shown]))
        more = len(data.bad_samples) - len(shown)
        parts.append(
            el(
                "details",
                el(
                    "summary",
                    f"{len(data.bad_samples):,} samples could not be used: " + ", ".join(f"{n} × {reason}" for reason, n in causes[:3]),
                ),
                el("div", el("div", listed, class_="scroll"), _note(f"and {more:,} more, in ledger.jsonl") if more else None),
            )
        )
    elif parts:
        parts.append(_note("Every sample could be read."))
    return parts


def _settings(data: ReportData) -> list[Markup]:
    if not data.settings:
        return []
    return [el("details", el("summary", "All settings of this run (YAML)"), el("div", el("pre", data.settings)))]


def _reproduce(data: ReportData) -> list[Markup]:
    return [part for what, command in data.commands for part in (el("div", what), el("pre", command, class_="command", tabindex="0"))]
