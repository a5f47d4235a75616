"""What the paper concludes, checked pair by pair on the scores of the runs."""

from collections.abc import Mapping, Sequence

from raysys.evaluation.grounded_page import paper
from raysys.evaluation.grounded_page.data import RELATEDNESS, SENTEVAL, GroundedComparison
from raysys.evaluation.markup import Markup, el
from raysys.evaluation.side_by_side.check import Check
from raysys.evaluation.side_by_side.verdicts import line, overview
from raysys.evaluation.table import split_name
from raysys.evaluation.wording import named, remark

_HEADINGS = {**paper.STRUCTURE, **paper.RELATEDNESS, paper.task_metric(paper.AVERAGE): "average accuracy"}
_NAMES = {RELATEDNESS: "likeness of sentences", SENTEVAL: "SentEval"}


def column(split: str) -> str:
    """A split of scores as it is called on the page."""
    return _NAMES.get(split) or split_name(split)


def checks(data: GroundedComparison) -> dict[str, dict[str, list[Check]]]:
    """Claim of the paper → split → every pair of rows that it speaks of; claims and splits of which nothing can be told are left out."""
    splits = {"structure": data.structures, "relatedness": [RELATEDNESS], "senteval": [SENTEVAL]}
    found: dict[str, dict[str, list[Check]]] = {}
    for kind, findings in paper.FINDINGS.items():
        for finding in findings:
            for split in splits[kind]:
                if pairs := [
                    Check(
                        better.label,
                        worse.label,
                        better.summary(split, metric),
                        worse.summary(split, metric),
                        (),
                        finding.low,
                        _HEADINGS[metric],
                    )
                    for metric in finding.metrics
                    for name, other in finding.pairs
                    if (better := data.row(name)) is not None and (worse := data.row(other)) is not None
                ]:
                    found.setdefault(finding.claim, {}).setdefault(split, []).extend(pairs)
    told = {
        claim: {split: pairs for split, pairs in by_split.items() if any(pair.verdict != "unknown" for pair in pairs)}
        for claim, by_split in found.items()
    }
    return {claim: by_split for claim, by_split in told.items() if by_split}


def verdict(pairs: Sequence[Check]) -> str:
    """Whether a claim holds, in words."""
    known = [pair for pair in pairs if pair.verdict != "unknown"]
    held = sum(pair.verdict == "holds" for pair in known)
    unsure = sum(pair.within_deviation for pair in known)
    lacking = len(pairs) - len(known)
    word = "holds" if held == len(known) else "does not hold" if not held else "holds in part"
    text = f"{word}: {held} of {len(known)} pairs" + (f", {unsure} within the deviation over seeds" if unsure else "")
    return text + (f"; {lacking} cannot be told yet" if lacking else "")


def order(data: GroundedComparison) -> list[Markup]:
    """Each claim, where it holds and where not."""
    found = checks(data)
    if not found:
        return []
    return [
        remark(
            "What the paper concludes from its Tables 1 and 3, one card for each conclusion: whether it holds here, by the means over "
            "seeds, and in words where it is otherwise. What is otherwise is what was found on these data."
        ),
        *(_claim(claim, by_split) for claim, by_split in found.items()),
    ]


def _claim(claim: str, by_split: Mapping[str, Sequence[Check]]) -> Markup:
    words = [el("li", _mark(pairs), el("div", column(split), ": ", verdict(pairs), ".")) for split, pairs in by_split.items()]
    differing = [(split, pair) for split, pairs in by_split.items() for pair in pairs if pair.verdict == "differs"]
    lines = [line(pair, el("span", column(split), ": ")) for split, pair in differing]
    return el(
        "div",
        el("h3", named(claim)),
        el("ul", words, class_="order"),
        el(
            "details",
            el("summary", f"Otherwise than in the paper: {_counted(len(lines))}"),
            el("div", el("ul", lines, class_="order")),
            open=True,
        )
        if lines
        else None,
        el("details", el("summary", "Every pair"), el("div", overview({column(split): pairs for split, pairs in by_split.items()}))),
        class_="card split",
    )


def _counted(pairs: int) -> str:
    return "one pair" if pairs == 1 else f"{pairs} pairs"


def _mark(pairs: Sequence[Check]) -> Markup:
    known = [pair for pair in pairs if pair.verdict != "unknown"]
    held = sum(pair.verdict == "holds" for pair in known)
    sign, class_, label = (
        ("✓", "yes", "holds") if held == len(known) else ("✗", "no", "does not hold") if not held else ("~", "unknown", "in part")
    )
    return el("span", sign, class_=f"mark {class_}", role="img", aria_label=label)
