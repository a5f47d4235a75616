"""RC³'s contrastive objectives as loops in NumPy over the equations, one negative at a time."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Factors = dict[Any, float]
"""λ of each anchor and negative. It is a constant, so derivatives are taken with those of the point."""


def interpolated(
    anchor: np.ndarray, positive: np.ndarray, negatives: dict[Any, np.ndarray], power: float, factors: Factors, row: Any
) -> float:
    """Equations 5, 6 and 7, or 9: L̃ of one anchor."""
    d_plus = np.linalg.norm(positive - anchor)
    total = np.exp(-d_plus)
    for name, negative in negatives.items():
        d_minus = np.linalg.norm(negative - anchor)
        if (row, name) not in factors:
            factors[row, name] = (d_plus / d_minus) ** power if d_minus > d_plus else 1.0
        nearer = anchor + factors[row, name] * (negative - anchor)
        total += np.exp(-np.linalg.norm(nearer - anchor))
    return float(-np.log(np.exp(-d_plus) / total))


def strangers(row: int, image_ids: np.ndarray, texts: np.ndarray) -> list[int]:
    """Rows of other images without a text in common."""
    return [
        other
        for other in range(len(texts))
        if other != row and not (image_ids[row] and image_ids[row] == image_ids[other]) and not set(texts[row]) & set(texts[other])
    ]


def xtcl(vectors: dict[str, np.ndarray], image_ids: np.ndarray, texts: np.ndarray, power: float, factors: Factors) -> float:
    first, second = vectors["first"], vectors["second"]
    losses = []
    for row in range(len(first)):
        others = strangers(row, image_ids, texts)
        negatives = {("first", m): first[m] for m in others} | {("second", m): second[m] for m in others}
        if negatives:
            losses.append(interpolated(first[row], second[row], negatives, power, factors, row))
    return float(np.mean(losses)) if losses else 0.0


def rxvtcl(
    vectors: dict[str, np.ndarray], near: np.ndarray, image_ids: np.ndarray, texts: np.ndarray, power: float, factors: Factors
) -> float:
    losses = []
    for row in range(len(near)):
        negatives = {}
        for other in range(len(near)):
            for name in ("first", "second"):
                for k in range(near.shape[1]):
                    if near[row, k] == other:
                        negatives[name, "same image", other] = vectors[f"near_{name}"][row, k]
                    if near[other, k] == row:
                        negatives[name, "same text", other] = vectors[f"near_{name}"][other, k]
                if other in strangers(row, image_ids, texts):
                    negatives[name, "neither", other] = vectors[name][other]
        if negatives:
            losses.append(interpolated(vectors["first"][row], vectors["second"][row], negatives, power, factors, row))
    return float(np.mean(losses)) if losses else 0.0


def relevance(vectors: dict[str, np.ndarray], near: np.ndarray) -> float:
    """Equations 10 to 12."""

    def softmax(scores: list[float]) -> np.ndarray:
        return np.exp(scores) / np.exp(scores).sum()

    of_rows = []
    for row in range(len(near)):
        found = []
        for k, other in enumerate(near[row]):
            if other < 0:
                continue
            anchor, alone = vectors["first"][row], vectors["text_first"][row]
            seen = [vectors["second"][row], vectors["near_first"][row, k], vectors["near_second"][row, k]]
            read = [vectors["text_second"][row], vectors["text_first"][other], vectors["text_second"][other]]
            p_vtr = softmax([-np.linalg.norm(one - anchor) for one in seen])
            p_tr = softmax([-np.linalg.norm(one - alone) for one in read])
            found.append(sum(p * np.log(p / q) for p, q in zip(p_vtr, p_tr, strict=True)))
        if found:
            of_rows.append(np.mean(found))
    return float(np.mean(of_rows)) if of_rows else 0.0


def derivatives(function: Callable[[dict[str, np.ndarray]], float], vectors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of `function` by every number, from differences."""
    found = {name: np.zeros_like(value) for name, value in vectors.items()}
    for name, place in _places(vectors):
        values = []
        for change in (1e-5, -1e-5):
            moved = {key: value.copy() for key, value in vectors.items()}
            moved[name][place] += change
            values.append(function(moved))
        found[name][place] = (values[0] - values[1]) / 2e-5
    return found


def _places(vectors: dict[str, np.ndarray]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, value in vectors.items():
        for place in np.ndindex(value.shape):
            yield name, place
