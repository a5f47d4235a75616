"""Batches of two kinds of rows: three neighbouring sentences, and captions of one picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from raysys.data.batches import Rows


@dataclass(frozen=True)
class GroundedBatch(Rows):
    """n rows, each a triple or a picture's captions. A text that a row does not have is of length 0: its mask is 0 everywhere.

    Which fields are None is the same in all batches of a run. A batch without any row of a kind still has its texts, [n, 0].
    """

    texts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "attention_mask": ("input_ids",),
        "previous_mask": ("previous_ids",),
        "next_mask": ("next_ids",),
        "other_mask": ("other_ids",),
    }

    image_ids: Tensor
    """int64 [n]; equal numbers mean the same picture, 0 no picture: a triple."""
    draws: Tensor
    """float32 [n], uniform in [0, 1), by address of seed, pass and sample: chooses what a row is told apart from."""
    input_ids: Tensor
    """int64 [n, L], tokens of the sentence in the middle, or of a caption s."""
    attention_mask: Tensor
    """int64 [n, L], 1 at tokens, 0 at padding."""
    previous_ids: Tensor | None = None
    """int64 [n, P], tokens of the sentence before, in rows of triples; None in runs without triples."""
    previous_mask: Tensor | None = None
    """int64 [n, P]."""
    next_ids: Tensor | None = None
    """int64 [n, Q], tokens of the sentence after, in rows of triples; None in runs without triples."""
    next_mask: Tensor | None = None
    """int64 [n, Q]."""
    other_ids: Tensor | None = None
    """int64 [n, K], tokens of s⁺, another caption of the same picture, where there is one; None in runs without captions."""
    other_mask: Tensor | None = None
    """int64 [n, K]."""
    features: Tensor | None = None
    """float32 [n, D], the frozen image network's vector of the picture, zeros in rows of triples; None in runs without captions."""
