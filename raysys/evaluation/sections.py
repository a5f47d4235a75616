"""The parts of a report, each from plain data to HTML."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from raysys.evaluation import gallery
from raysys.evaluation.figures import LARGE_CELLS, Curve, heat_map, line_chart
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.naming import language_name
from raysys.evaluation.report_data import ReportData
from raysys.evaluation.table import CHANCE, Column, ScoreTable, format_score, score_table, split_name
from raysys.evaluation.wording import headline, named, remark

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
    "train/loss_text": ("Text", "L_T, nats a sentence"),
    "train/loss_cluster": ("Cluster", "L_C"),
    "train/loss_perceptual": ("Perceptual", "L_P, minus the correlation"),
    "train/loss_cross_modal": ("Cross-modal", "CM"),
    "train/loss_ranking": ("Captions and pictures", "Cap2Img"),
    "train/loss_caption": ("Other captions", "Cap2Cap, nats a caption"),
    "train/loss_mlm": ("Masked words", "L_MLM, nats a word"),
    "train/loss_mclm": ("Translation of masked captions", "decoder's part of L_MCLM, nats a word"),
    "train/loss_itm": ("Image–text matching", "L_ITM"),
    "train/loss_xtcl": ("Contrast of texts", "L_XTCL"),
    "train/loss_rxvtcl": ("Contrast of pictures with texts", "L_R-XVtCL without its regulariser"),
    "train/loss_kl": ("Regulariser", "KL of P_vtr and P_tr"),
    "train/loss_masked_regions": ("Masked regions", "squared error"),
    "train/loss_text_mlm": ("Masked words of texts", "nats a word"),
    "train/loss_pair_mlm": ("Masked words of pairs", "nats a word"),
    "train/loss_translation": ("Translation", "nats a word"),
    "train/loss_infilling": ("Infilling", "nats a word"),
    "train/loss_spans": ("Spans", "nats a word"),
    "train/samples_per_second": ("Samples per second", "throughput"),
    "train/grad_norm": ("Gradient norm", "before clipping"),
}


def build(data: ReportData) -> list[Part]:
    """(anchor, short name, heading, content) of every part; content is empty where there is nothing to show."""
    return [
        ("scores", "Scores", "Scores", _scores(data)),
        ("training", "Training", "Training", _training(data)),
        ("languages", "Languages", "From language to language", _languages(data)),
        ("translations", "Translations", "Nearest translations", gallery.translations(data)),
        ("matches", "Matches", "What ties the languages together", gallery.matches(data)),
        ("failures", "Failures", "Where it fails", gallery.failures(data)),
        ("data", "Data", "Data", _data(data)),
        ("settings", "Settings", "Settings", _settings(data)),
        ("reproduce", "Reproduce", "How to reproduce", _reproduce(data)),
    ]


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
            lines.append(el("span", el("b", f"{value / rival:.2f} ×"), " ", named(data.rival), f" ({format_score(rival)})"))
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
    explained = remark(f"{data.explained} Bars share one scale within a column.")
    return [explained, *(_split_table(data, table, split) for split in splits)]


def _split_table(data: ReportData, table: ScoreTable, split: str) -> Markup:
    shown = [(i, column) for i, column in enumerate(table.columns) if column.split == split]
    rows = [(system, [values[i] for i, _ in shown]) for system, values in table.rows if any(values[i] is not None for i, _ in shown)]
    tops = [max((values[c] or 0.0 for _, values in rows), default=0.0) or 1.0 for c in range(len(shown))]
    result = next(by_split[split] for by_split in data.results.values() if split in by_split)
    head = el("tr", el("th", "System", scope="col"), [el("th", _heading(column), scope="col") for _, column in shown])
    body = [
        el(
            "tr",
            el("th", named(system), scope="row"),
            [_bar(value, top, _heading(c)) for value, top, (_, c) in zip(values, tops, shown, strict=True)],
            class_="this" if system == data.this else "floor" if system == CHANCE else None,
        )
        for system, values in rows
    ]
    note = " · ".join(part for part in (_size(result), data.split_notes.get(split, ""), _lacking(result)) if part)
    return el(
        "div",
        el("h3", headline(split)),
        remark(note),
        el("div", el("table", el("thead", head), el("tbody", body), class_="scores"), class_="scroll"),
        class_="card split",
    )


def _heading(column: Column) -> str:
    return METRIC_NAMES.get(column.metric, column.label)


def _bar(value: float | None, top: float, label: str) -> Markup:
    width = 0.0 if value is None else max(0.0, min(100.0, 100 * value / top))
    meter = el("span", el("i", style=f"width:{width:.1f}%"), class_="meter")
    return el("td", format_score(value), meter, data_label=label)


def _size(result: Any) -> str:
    parts = [f"{result[name]:,} {name}" for name in ("items", "captions") if name in result]
    return ", ".join([*parts, *([f"{len(result['languages'])} languages"] if "languages" in result else [])])


def _lacking(result: Any) -> str:
    """What of the split could not be scored: counts of items, or how to get what is not there."""
    lacking = {name: count for name, count in result.get("lacking", {}).items() if count}
    if any(isinstance(why, str) for why in lacking.values()):
        return "not here: " + "; ".join(f"{name} ({why})" for name, why in lacking.items())
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
        remark(
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
    return el("div", el("h3", title), el("div", named(note) or Markup("&nbsp;"), class_="tag"), chart, class_="card")


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
            maps.append(el("details", el("summary", headline(split)), el("div", shown)))
        else:
            maps.append(el("div", el("h3", headline(split)), shown, class_="card split"))
    if not maps:
        return []
    return [
        remark("Recall@1 by query language (rows) and target language (columns), families together. Point at a cell for its value."),
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
                el("div", el("div", listed, class_="scroll"), remark(f"and {more:,} more, in ledger.jsonl") if more else None),
            )
        )
    elif parts:
        parts.append(remark("Every sample could be read."))
    return parts


def _settings(data: ReportData) -> list[Markup]:
    if not data.settings:
        return []
    return [el("details", el("summary", "All settings of this run (YAML)"), el("div", el("pre", data.settings)))]


def _reproduce(data: ReportData) -> list[Markup]:
    return [part for what, command in data.commands for part in (el("div", what), el("pre", command, class_="command", tabindex="0"))]
