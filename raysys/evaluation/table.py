"""The table that a run ends with: systems in rows, scores on each test split in columns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CHANCE = "chance"
SPLIT_NAMES = {
    "test-seen": "seen concepts, unseen style",
    "test-unseen": "unseen concepts",
    "test": "test",
    "words": "words, one by one",
}


def split_name(split: str) -> str:
    """A test split for readers: `emoji/test-seen` → `emoji: seen concepts, unseen style`."""
    data, _, name = split.rpartition("/")
    return f"{data}: {SPLIT_NAMES.get(name, name)}" if data else SPLIT_NAMES.get(name, name)


@dataclass(frozen=True)
class Column:
    """One score of one split: `metric` is its name in the results, `label` its heading."""

    split: str
    metric: str
    label: str


@dataclass(frozen=True)
class ScoreTable:
    """Values [system][column]; None where a system has no such score."""

    columns: list[Column]
    rows: list[tuple[str, list[float | None]]]


HEADLINES = (
    ("eval/translation_R@1", "R@1"),
    ("eval/translation_R@1_both_seen", "R@1 both seen"),
    ("eval/translation_R@1_non_latin_to_en", "R@1 non-Latin→en"),
    ("eval/sentence_translation", "top M−1"),
    ("eval/text_to_image_R@1", "text→image R@1"),
    ("eval/transfer_R@1_from_held_out", "R@1 from held out"),
    ("eval/word_translation_R@10", "R@10"),
    ("eval/word_translation_R@10_procrustes", "…Procrustes"),
    ("eval/word_translation_R@10_disjoint", "disjoint"),
    ("eval/word_translation_R@10_disjoint_procrustes", "…Procrustes"),
    ("eval/word_translation_dictionary_R@10", "dictionary"),
    ("eval/word_translation_dictionary_R@10_procrustes", "…Procrustes"),
    ("eval/accuracy", "accuracy"),
    ("eval/recall", "recall@1"),
    ("eval/bleu", "BLEU"),
    ("eval/mNNO", "mNNO"),
    ("eval/rho_vis", "ρ_vis"),
    ("eval/C_inter", "C_inter"),
    ("eval/C_intra", "C_intra"),
)
"""What the table shows of each split, where the split has it."""
_SENTENCES = re.compile(r"eval/(?:senteval_(?P<task>.+)_accuracy|(?P<rated>SICK|STS_[^_]+)_spearman)")
"""Metrics whose names depend on which data sets there are: accuracy of a task, and correlation with the pairs of a whole set."""


def headlines_of(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[tuple[str, str]]:
    """`HEADLINES`, and one for each task and each set of rated pairs in `results`."""
    names = dict.fromkeys(name for by_split in results.values() for split in by_split.values() for name in split["metrics"])
    found = {name: match for name in names if (match := _SENTENCES.fullmatch(name))}
    return [*HEADLINES, *((name, match["task"] or match["rated"].replace("_", "/", 1)) for name, match in found.items())]


def score_table(
    results: Mapping[str, Mapping[str, Mapping[str, Any]]], headlines: Sequence[tuple[str, str]] | None = None, chance: bool = True
) -> ScoreTable:
    """Arrange results of :func:`raysys.evaluation.scores.score`.

    Args:
        results: system → split → result; rows and columns keep this order.
        headlines: (metric, heading) pairs to show of each split; by default those of :func:`headlines_of`.
        chance: put a first row with what a random ranking gets.
    """
    splits = list(dict.fromkeys(split for by_split in results.values() for split in by_split))
    columns = [
        Column(split, metric, label)
        for split in splits
        for metric, label in (headlines_of(results) if headlines is None else headlines)
        if any(metric in by_split.get(split, {}).get("metrics", {}) for by_split in results.values())
    ]
    rows = [
        (system, [by_split.get(column.split, {}).get("metrics", {}).get(column.metric) for column in columns])
        for system, by_split in results.items()
    ]
    if chance and results:
        first = [
            next((r[c.split]["chance"][c.metric] for r in results.values() if c.metric in r.get(c.split, {}).get("chance", {})), None)
            for c in columns
        ]
        rows.insert(0, (CHANCE, first))
    return ScoreTable(columns, rows)


def format_score(value: float | None) -> str:
    """A share as it is printed: `.123`, `1.000`, `–` where there is none."""
    if value is None:
        return "–"
    text = f"{value:.3f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def render(table: ScoreTable) -> str:
    """The table as plain text: one block per test split, so that it fits an 80-column terminal."""
    name = max([len(system) for system, _ in table.rows] + [6])
    blocks = []
    for split in dict.fromkeys(column.split for column in table.columns):
        shown = [(i, column) for i, column in enumerate(table.columns) if column.split == split]
        widths = [max(len(column.label), 5) for _, column in shown]
        last = split.rpartition("/")[2]
        lines = [split + (f"  ({SPLIT_NAMES[last]})" if SPLIT_NAMES.get(last, last) != last else "")]
        lines.append("  " + " " * name + "".join(f"  {column.label:>{w}}" for (_, column), w in zip(shown, widths, strict=True)))
        for system, values in table.rows:
            cells = "".join(f"  {format_score(values[i]):>{w}}" for (i, _), w in zip(shown, widths, strict=True))
            lines.append(f"  {system:<{name}}{cells}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
