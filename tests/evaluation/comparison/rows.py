"""Comparisons made up for tests, with scores in the shape that runs write."""

from raysys.evaluation.comparison.data import Comparison
from raysys.evaluation.side_by_side.row import Row
from raysys.systems.settings import TITLES

SENTENCES = "eval/sentence_translation"
TO_LATIN = "eval/translation_R@1_non_latin_to_latin"


def result(value, languages=("de", "en", "ru"), **more):
    """Scores of one split: `value` for sentence translation, and for each language."""
    metrics = {SENTENCES: value, TO_LATIN: value / 2} | {f"eval/{language}/sentence_translation": value for language in languages} | more
    share = [[None if a == b else value for b in languages] for a in languages]
    return {
        "items": 40,
        "languages": list(languages),
        "lacking": {},
        "metrics": metrics,
        "chance": dict.fromkeys(metrics, 0.025),
        "matrices": {"share": share},
    }


def row(name, *values, split="test-unseen", wanted=0):
    """A system with a seed per value; None leaves the seed out."""
    seeds = {seed: {split: result(value)} for seed, value in enumerate(values) if value is not None}
    return Row(name, TITLES.get(name, name), seeds, wanted or len(values))


def comparison(split="test-unseen", **values):
    """Systems by name (with _ for -) → values of their seeds."""
    rows = [row(name.replace("_", "-"), *each, split=split) for name, each in values.items()]
    return Comparison(title="made up", rows=rows)
