import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.objectives.contrast import log_weights_of_negatives, sigmoid_contrast, softmax_contrast
from raysys.objectives.similarity import leave_out_itself
from tests.objectives.cases import quick, seeds, sizes

hardnesses = st.sampled_from([0.0, 0.3, 2.0])
CONTRASTS = {"softmax": softmax_contrast, "sigmoid": sigmoid_contrast}


def table(seed: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits without the diagonal, some of them tied, and soft targets of which about half are 0."""
    random = np.random.default_rng(seed)
    logits = random.integers(-3, 4, (rows, rows + 2)) * 0.7
    targets = np.clip(random.uniform(-1, 1, logits.shape), 0, 1)
    np.fill_diagonal(targets, 0)
    return leave_out_itself(torch.from_numpy(logits), slice(0, rows)), torch.from_numpy(targets)


def weights_by_loops(logits: list[float], targets: list[float], own: int, hardness: float) -> dict[int, float]:
    negatives = [j for j, target in enumerate(targets) if target == 0 and j != own]
    drawn = {j: math.exp(hardness * logits[j]) for j in negatives}
    return {j: drawn[j] * len(negatives) / sum(drawn.values()) for j in negatives}


def by_loops(kind: str, logits: torch.Tensor, targets: torch.Tensor, hardness: float) -> tuple[torch.Tensor, float]:
    """The losses' sum, differentiable, and the weights', pair by pair."""
    loss, weight = logits.new_zeros(()), 0.0
    for i, (row, wanted) in enumerate(zip(logits, targets.tolist(), strict=True)):
        counted = weights_by_loops(row.tolist(), wanted, i, hardness) if hardness else {}
        others = [j for j in range(len(row)) if j != i]
        if kind == "softmax":
            below = torch.stack([counted.get(k, 1.0) * row[k].exp() for k in others]).sum()
            loss = loss - sum(wanted[j] * (row[j].exp() * counted.get(j, 1.0) / below).log() for j in others)
            weight += sum(wanted)
        else:
            for j in others:
                chance = 1 / (1 + (-row[j]).exp())
                loss = loss - counted.get(j, 1.0) * (wanted[j] * chance.log() + (1 - wanted[j]) * (1 - chance).log())
            weight += max(1.0, sum(wanted))
    return loss, weight


@pytest.mark.parametrize("kind", CONTRASTS)
@quick
@given(seeds, st.integers(1, 5), hardnesses)
def test_values_and_gradients_equal_the_equations(kind, seed, rows, hardness):
    logits, targets = table(seed, rows)
    one, other = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss, weight = CONTRASTS[kind](one, targets, hardness)
    right, of_loops = by_loops(kind, other, targets, hardness)
    assert loss.item() == pytest.approx(right.item(), rel=1e-9, abs=1e-12)
    assert weight.item() == pytest.approx(of_loops, rel=1e-12)
    kept = leave_out_itself(torch.ones_like(logits), slice(0, rows)) > 0
    torch.testing.assert_close(
        torch.autograd.grad(loss, one)[0] * kept, torch.autograd.grad(right, other)[0].nan_to_num() * kept, rtol=1e-9, atol=1e-12
    )


@quick
@given(seeds, sizes)
def test_negatives_weigh_one_on_average_and_the_rest_is_left_alone(seed, rows):
    logits, targets = table(seed, rows)
    weights = log_weights_of_negatives(logits, targets, 1.5).exp()
    negatives = (targets == 0) & (logits > torch.finfo(logits.dtype).min)
    assert weights[~negatives].eq(1).all()
    for row, of_row, counted in zip(weights, logits, negatives, strict=True):
        if counted.any():
            assert row[counted].mean().item() == pytest.approx(1, rel=1e-9)
            assert torch.equal(row[counted].argsort(stable=True), of_row[counted].argsort(stable=True)), "the more alike, the more"


def test_equal_negatives_weigh_the_same_and_no_negatives_are_no_trouble():
    targets = torch.tensor([[0.0, 0, 0, 1], [1, 1, 1, 1]])
    assert log_weights_of_negatives(torch.full((2, 4), 3.0), targets, 5.0).abs().max() < 1e-6
    alone = leave_out_itself(torch.zeros(1, 1), slice(0, 1))
    for contrast in CONTRASTS.values():
        assert contrast(alone, torch.zeros(1, 1), 2.0)[0] == 0
        assert contrast(torch.full((2, 4), math.nan), targets, 2.0)[0].isnan()


def test_an_easy_negative_is_never_pulled_nearer():
    """What the weights of hard negatives are made of is constant: else training would raise the mean that they are measured by."""
    logits = torch.tensor([[2.0, 1.5, -3.0, -3.0]], requires_grad=True)
    for contrast in CONTRASTS.values():
        loss, _ = contrast(logits, torch.tensor([[1.0, 0, 0, 0]]), 1.0)
        (gradient,) = torch.autograd.grad(loss, logits)
        assert gradient[0, 0] < 0 < gradient[0, 2] < gradient[0, 1] / 50


def test_a_sigmoid_with_hardly_any_match_is_not_blown_up():
    loss, weight = sigmoid_contrast(torch.zeros(3, 5), torch.full((3, 5), 1e-9))
    assert weight == 3
    assert loss.item() == pytest.approx(15 * math.log(2))


def test_large_logits_stay_finite():
    logits, targets = torch.tensor([[1e4, -1e4]]), torch.tensor([[0.0, 1.0]])
    assert sigmoid_contrast(logits, targets)[0].item() == 2e4
    assert sigmoid_contrast(logits, 1 - targets)[0].item() == 0
