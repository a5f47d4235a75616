"""What was published: the systems in their order, and their scores on the authors' data (Surís, Epstein and Vondrick, CVPR 2022).

The numbers are shares. They were read from a text of the paper in which the figures are no more than lists of numbers, so that some can
be placed only within a range: where two bars stand side by side and the text does not tell which is which, both get both numbers.
"""

from raysys.evaluation.side_by_side.published import CHANCE, percent

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


SENTENCES = {
    CHANCE: percent(0.5),
    "text-only": percent(8.9, 9.5),
    "lample-conneau": percent(15.6),
    "muve": percent(56.7),
    "without-image": percent(9.0, 9.5),
    "without-image-caption": percent(9.0, 9.5),
    "without-transitive": percent(63.0, 68.4),
    "without-cloze": percent(63.0, 68.4),
    "globetrotter": percent(72.3),
    "supervised": percent(92.5),
}
"""Figure 5: share of the true translations in the top M − 1, 52 languages."""

HUMAN = {
    CHANCE: percent(0.5),
    "lample-conneau": percent(15.2),
    "muve": percent(51),
    "globetrotter": percent(70.8),
    "supervised": percent(91),
}
"""Figure 6: the same on 200 captions in 11 languages, translated by people."""

WORDS = {
    ("all", "before"): {CHANCE: percent(0.27)},
    ("all", "after"): {CHANCE: percent(0.27), "globetrotter": percent(57.5)},
    ("disjoint", "before"): {CHANCE: percent(0.27)},
    ("disjoint", "after"): {CHANCE: percent(0.27), "globetrotter": percent(31)},
}
"""Figure 7: recall@10 of words, (vocabulary, before or after Procrustes) → system → score."""

RETRIEVAL = {
    1: {CHANCE: percent(0.1), "muve": percent(17.75, 18.22), "globetrotter": percent(35.11, 37.84)},
    5: {CHANCE: percent(0.5), "muve": percent(43.77, 44.75), "globetrotter": percent(66.19, 67.56)},
    10: {CHANCE: percent(1.0), "muve": percent(56.61, 57.53), "globetrotter": percent(76.11, 77.14)},
}
"""Figure 8: recall@k between 1 000 images and captions → system → score; the two directions within a range."""
