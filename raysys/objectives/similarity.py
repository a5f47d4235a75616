"""What the contrastive objectives share: unit vectors, temperatures, precision and one cross-entropy."""

import functools
from collections.abc import Callable
from typing import ParamSpec

import torch
from torch import Tensor

MINIMUM_TEMPERATURE = 0.01
"""Temperatures below this count as this one: logits of cosines then stay within ±100, far from where float32 exponentials fail."""

SMALLEST_NORM = 1e-12
"""Vectors shorter than this have no direction; they count as zero vectors."""

Parameters = ParamSpec("Parameters")


def full_precision(function: Callable[Parameters, Tensor]) -> Callable[Parameters, Tensor]:
    """Let `function` compute in float32 whatever it is given, autocast included; float64 stays float64."""

    def widen(value: object) -> object:
        narrow = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
        return value.float() if narrow else value  # type: ignore[attr-defined]

    @functools.wraps(function)
    def wide(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Tensor:
        device = next(value.device.type for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        with torch.autocast(device, enabled=False):
            return function(*map(widen, args), **{name: widen(value) for name, value in kwargs.items()})  # type: ignore[arg-type]

    return wide


def unit_vectors(vectors: Tensor) -> Tensor:
    """L2-normalise rows: float [n, d] → [n, d]. A zero vector stays zero and receives no gradient.

    Dividing by a norm clamped from below would multiply a zero vector's gradient by 1 / clamp instead. NaN stays NaN.
    """
    norms = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    zero = norms <= SMALLEST_NORM
    return torch.where(zero, 0, vectors / torch.where(zero, 1, norms))


@full_precision
def cosine_similarity(left: Tensor, right: Tensor) -> Tensor:
    """Cosines of all pairs of rows: [n, d], [m, d] → [n, m], at least float32; 0 where a vector is zero."""
    return unit_vectors(left) @ unit_vectors(right).T


def same_image_pairs(image_ids: Tensor) -> Tensor:
    """Which rows show the same image: int [n] → bool [n, n], with a true diagonal. Id 0 (no image) equals no other row."""
    same = (image_ids[:, None] == image_ids[None, :]) & (image_ids != 0)[:, None]
    return with_diagonal(same)


def with_diagonal(pairs: Tensor) -> Tensor:
    """`pairs` (bool [n, n]) with every row paired with itself."""
    return pairs.bool() | torch.eye(len(pairs), dtype=torch.bool, device=pairs.device)


def scale_by_temperature(similarity: Tensor, temperature: float | Tensor) -> Tensor:
    """Logits: `similarity` / max(temperature, MINIMUM_TEMPERATURE).

    The temperature may be a learned tensor [1]. Below the minimum its gradient is that at the minimum, not zero, so that
    training can lead it back.
    """
    if isinstance(temperature, Tensor):
        temperature = temperature.to(similarity.dtype)
        return similarity / (temperature + (temperature.clamp(min=MINIMUM_TEMPERATURE) - temperature).detach())
    return similarity / max(temperature, MINIMUM_TEMPERATURE)


def weighted_cross_entropy(logits: Tensor, weights: Tensor, excluded: Tensor | None = None) -> Tensor:
    """−(1/Σw) Σ_ij w_ij · log softmax_j(logits_ij), a scalar; 0 with zero gradient where no weight is positive.

    Args:
        logits: float [n, m].
        weights: float [n, m], not negative, constant.
        excluded: bool [n, m], pairs that are neither targets nor in the denominator.
    """
    if excluded is not None:
        # The lowest finite number, not −inf: a row without any candidate then gives 0 instead of NaN.
        logits = logits.masked_fill(excluded, torch.finfo(logits.dtype).min)
        weights = weights.masked_fill(excluded, 0)
    log_probabilities = torch.log_softmax(logits, dim=-1)
    if excluded is not None:
        log_probabilities = log_probabilities.masked_fill(excluded, 0)
    total = weights.sum()
    return -(weights * log_probabilities).sum() / torch.where(total > 0, total, 1)


def uniform_targets(positives: Tensor, dtype: torch.dtype) -> Tensor:
    """Spread each row's target evenly over its positives: bool [n, m] → [n, m] with rows that sum to 1 (or 0 without positives)."""
    return positives.to(dtype) / positives.sum(dim=-1, keepdim=True).clamp(min=1)
