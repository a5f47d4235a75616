"""What was published: the systems in their order, and their scores on the authors' data (Surís, Epstein and Vondrick, CVPR 2022).

The numbers are shares. They were read from a text of the paper in which the figures are no more than lists of numbers, so that some can
be placed only within a range: where two bars stand side by side and the text does not tell which is which, both get both numbers.
"""

from dataclasses import dataclass

CHANCE = "chance"

SYSTEMS = (
    "text-only",
    "lample-conneau",
    "muve",
    "without-image-caption",
    "without-image",
    "without-transitive",
    "without-cloze",
    "globetrotter",
    "supervised",
)
"""From the bottom of Figure 5 to its top."""

EXPECTED = (
    ("supervised", "globetrotter"),
    ("globetrotter", "without-transitive"),
    ("globetrotter", "without-image"),
    ("globetrotter", "without-image-caption"),
    ("globetrotter", "without-cloze"),
    ("globetrotter", "muve"),
    ("muve", "lample-conneau"),
    ("lample-conneau", "text-only"),
    ("text-only", CHANCE),
)
"""(better, worse), as the paper found them. Two of its ablations fall below Sigurdsson et al., so the ablations have no place among the
other systems, only below the whole."""


@dataclass(frozen=True)
class Published:
    """A published score: between `low` and `high`, which are equal where it is known."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = f"{100 * self.low:.1f}", f"{100 * self.high:.1f}"
        return low if low == high else f"{low}–{high}"


def _percent(low: float, high: float | None = None) -> Published:
    return Published(low / 100, (low if high is None else high) / 100)


SENTENCES = {
    CHANCE: _percent(0.5),
    "text-only": _percent(8.9, 9.5),
    "lample-conneau": _percent(15.6),
    "muve": _percent(56.7),
    "without-image": _percent(9.0, 9.5),
    "without-image-caption": _percent(9.0, 9.5),
    "without-transitive": _percent(63.0, 68.4),
    "without-cloze": _percent(63.0, 68.4),
    "globetrotter": _percent(72.3),
    "supervised": _percent(92.5),
}
"""Figure 5: share of the true translations in the top M − 1, 52 languages."""

HUMAN = {
    CHANCE: _percent(0.5),
    "lample-conneau": _percent(15.2),
    "muve": _percent(51),
    "globetrotter": _percent(70.8),
    "supervised": _percent(91),
}
"""Figure 6: the same on 200 captions in 11 languages, translated by people."""

WORDS = {
    ("all", "before"): {CHANCE: _percent(0.27)},
    ("all", "after"): {CHANCE: _percent(0.27), "globetrotter": _percent(57.5)},
    ("disjoint", "before"): {CHANCE: _percent(0.27)},
    ("disjoint", "after"): {CHANCE: _percent(0.27), "globetrotter": _percent(31)},
}
"""Figure 7: recall@10 of words, (vocabulary, before or after Procrustes) → system → score."""

RETRIEVAL = {
    1: {CHANCE: _percent(0.1), "muve": _percent(17.75, 18.22), "globetrotter": _percent(35.11, 37.84)},
    5: {CHANCE: _percent(0.5), "muve": _percent(43.77, 44.75), "globetrotter": _percent(66.19, 67.56)},
    10: {CHANCE: _percent(1.0), "muve": _percent(56.61, 57.53), "globetrotter": _percent(76.11, 77.14)},
}
"""Figure 8: recall@k between 1 000 images and captions → system → score; the two directions within a range."""
