"""Whether the systems stand in the order that the paper found."""

from raysys.evaluation.comparison.data import Comparison
from raysys.evaluation.comparison.paper import EXPECTED
from raysys.evaluation.side_by_side.check import Check
from raysys.evaluation.side_by_side.published import CHANCE
from raysys.evaluation.side_by_side.statistics import Summary


def check_order(data: Comparison, split: str, metric: str) -> list[Check]:
    """Every expected pair, on one metric of one split. Systems that are not on the page at all are left out."""
    checks = []
    for better, worse in EXPECTED:
        first, second = data.row(better), data.row(worse)
        if first is None or (second is None and worse != CHANCE):
            continue
        summary = first.summary(split, metric)
        chance = data.chance(split, metric)
        if second is None:
            known = summary is not None and chance is not None
            other = Summary(dict.fromkeys(summary.values, chance or 0.0)) if known and summary else None
            checks.append(Check(first.label, CHANCE, summary, other))
        else:
            by_language = _by_language(data, split, metric, better, worse)
            checks.append(Check(first.label, second.label, summary, second.summary(split, metric), by_language))
    return checks


def _by_language(data: Comparison, split: str, metric: str, better: str, worse: str) -> list[tuple[str, float]]:
    """Differences of the means by query language, of metrics that are kept by language."""
    first, second = data.row(better), data.row(worse)
    assert first is not None
    assert second is not None
    languages = dict.fromkeys(tag for results in first.seeds.values() for tag in results.get(split, {}).get("languages", ()))
    found = []
    for language in languages:
        name = f"eval/{language}/{metric.removeprefix('eval/')}"
        one, two = first.summary(split, name), second.summary(split, name)
        if one and two:
            found.append((language, one.mean - two.mean))
    return sorted(found, key=lambda entry: entry[1])
