"""What the tests of the objectives share: batches with repeated images, permutations, the cross-entropy in plain loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

BLOCKS = st.sampled_from([1, 20, 2**24])  # pairs: a row at a time, a few, all at once
quick = settings(max_examples=25, deadline=None)
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)


def vectors(seed: int, rows: int, width: int = 5) -> np.ndarray:
    return np.random.default_rng([seed, 1]).normal(size=(rows, width))


def image_ids(seed: int, rows: int) -> np.ndarray:
    """Rows draw their image from few, so that some images repeat; 0, no image, may be among them."""
    return np.random.default_rng([seed, 2]).integers(-1, max(1, rows - 2), rows)


def same(ids: np.ndarray, i: int, j: int) -> bool:
    return i == j or ids[i] == ids[j] != 0


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def log_softmax(logits: dict[int, float], of: int) -> float:
    """log [ exp(logits[of]) / Σ exp ] over the candidates given."""
    return logits[of] - math.log(sum(math.exp(value) for value in logits.values()))


def loss_and_gradients(objective, *inputs: torch.Tensor, **others) -> tuple[float, list[torch.Tensor]]:
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    loss = objective(*leaves, **others)
    loss.backward()
    return loss.item(), [leaf.grad for leaf in leaves]


def assert_computed_in_float32(objective, dtype: torch.dtype) -> None:
    """In half precision, under any autocast, the objective of two lots of vectors is that of the same numbers in float64."""
    one, two, ids = torch.randn(6, 16).to(dtype), torch.randn(6, 16).to(dtype), torch.zeros(6)
    for surroundings in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=surroundings):
            loss, gradients = loss_and_gradients(objective, one, two, temperature=0.01, image_ids=ids)
        exact, wanted = loss_and_gradients(objective, one.double(), two.double(), temperature=0.01, image_ids=ids)
        assert loss == pytest.approx(exact, rel=1e-5)
        for gradient, right in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(gradient, right.to(dtype))
    assert objective(one, two, 0.01, ids).dtype == torch.float32
