"""Names of the scores: each value beside what a random ranking gets, as ``scores.json`` and the tables have them."""

import math
from collections.abc import Collection, Mapping

import numpy as np

from raysys.evaluation.hubness import Hubness
from raysys.evaluation.retrieval import CrossModal
from raysys.evaluation.translation import SentenceTranslation

ENGLISH = "en"
NAMED_DIRECTIONS = (("ru", ENGLISH), ("hi", ENGLISH), ("ja", ENGLISH))
"""Directions reported by name: three scripts that share no word with English."""


class Metrics:
    """Values and chances by name, ``eval/…``; a value that is NaN, having nothing to count, is left out."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.chances: dict[str, float] = {}

    def add(self, name: str, value: float, by_chance: float) -> None:
        if not math.isnan(value):
            self.values[f"eval/{name}"], self.chances[f"eval/{name}"] = float(value), float(by_chance)


def add_translation(measured: Metrics, got: SentenceTranslation) -> None:
    """Means over all languages of `got`, and what each of them gets as query."""
    measured.add("sentence_translation", got.score, got.chance)
    for k in got.recall:
        measured.add(f"translation_R@{k}", got.mean_recall(k), got.mean_recall_chance(k))
    for name, subset in (("both_seen", got.both_seen), ("some_unseen", got.some_unseen)):
        if subset is not None:
            measured.add(f"translation_R@1_{name}", subset.recall, subset.chance)
    to_latin = got.non_latin_to_latin()
    measured.add("translation_R@1_non_latin_to_latin", *got.mean_over(to_latin))
    if ENGLISH in got.languages:
        english = np.array([language == ENGLISH for language in got.languages])
        measured.add(f"translation_R@1_non_latin_to_{ENGLISH}", *got.mean_over(to_latin & english[None, :]))
    for i, language in enumerate(got.languages):
        row = np.zeros_like(to_latin)
        row[i] = True
        measured.add(f"{language}/translation_R@1", *got.mean_over(row))
        if got.queries[i].any():
            # Weighted by queries: a language that few items have must not weigh as much as the others.
            weight = got.queries[i] / got.queries[i].sum()
            share, by_chance = (float((np.nan_to_num(matrix[i]) * weight).sum()) for matrix in (got.share, got.share_chance))
            measured.add(f"{language}/sentence_translation", share, by_chance)


def add_named_directions(measured: Metrics, got: SentenceTranslation) -> None:
    """Recall@1 of the directions that are reported by name, where `got` has them."""
    for query, target in NAMED_DIRECTIONS:
        if query in got.languages and target in got.languages:
            cell = got.pair(query, target)
            measured.add(f"{query}-{target}/translation_R@1", got.recall[1][cell], got.recall_chance[1][cell])


def add_transfer(measured: Metrics, got: SentenceTranslation, held_out: Collection[str]) -> None:
    """Recall@1 between the languages held out of training and the others, and of each held-out language as query."""
    apart = np.array([language in held_out for language in got.languages])
    from_held_out = apart[:, None] & ~apart[None, :]
    measured.add("transfer_R@1_from_held_out", *got.mean_over(from_held_out))
    measured.add("transfer_R@1_to_held_out", *got.mean_over(from_held_out.T))
    for i in np.flatnonzero(apart):
        own = np.zeros_like(from_held_out)
        own[i] = from_held_out[i]
        measured.add(f"{got.languages[i]}/translation_R@1", *got.mean_over(own))


def add_hubness(measured: Metrics, got: Mapping[str, Hubness]) -> None:
    """Means over target languages."""
    if got:
        each = list(got.values())
        skewness, by_chance = np.mean([(one.skewness, one.skewness_chance) for one in each], axis=0)
        measured.add("hubness_skewness", skewness, by_chance)
        share, by_chance = np.mean([(one.anti_hubs, one.anti_hubs_chance) for one in each], axis=0)
        measured.add("anti_hubs", share, by_chance)


def add_retrieval(measured: Metrics, got: CrossModal, prefix: str = "") -> None:
    """Recall@k both ways: `prefix` with the mean over languages, and each language."""
    for name, mean, each in (
        ("text_to_image", got.mean_text_to_image, got.text_to_image),
        ("image_to_text", got.mean_image_to_text, got.image_to_text),
    ):
        for start, recall in [(prefix, mean), *((f"{language}/", recall) for language, recall in each.items())]:
            if recall is not None:
                for k in recall.at:
                    measured.add(f"{start}{name}_R@{k}", recall.at[k], recall.chance[k])
