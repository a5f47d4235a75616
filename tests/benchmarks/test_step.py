import math

import pytest
import torch
from torch import Tensor, nn

from raysys.benchmarks.step import StepTimes, greatest_difference, plain_step, step_table, time_steps


class Line(nn.Module):
    """A system of the smallest kind, with random numbers in it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([3.0, -2.0]))
        self.fixed = nn.Parameter(torch.tensor([1.0]), requires_grad=False)
        self.noise = nn.Dropout(0.25)
        self.dtypes: list[torch.dtype] = []

    def forward(self, batch: Tensor) -> dict[str, Tensor]:
        product = self.noise(batch) @ self.weight[:, None]
        self.dtypes.append(product.dtype)
        return {"value": product}

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"square": vectors["value"].float().square().mean()}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        return terms["square"]


BATCHES = list(torch.randn(12, 8, 2, generator=torch.Generator().manual_seed(0)))


def test_a_plain_step_is_clipped_adamw():
    system = Line().eval()
    gradient = torch.autograd.grad(system.losses(system(BATCHES[0]))["square"], system.weight)[0]
    reference = nn.Parameter(system.weight.detach().clone())
    reference.grad = gradient * (0.5 / gradient.norm())
    optimizer = torch.optim.AdamW([reference], lr=0.01)
    optimizer.step()
    loss = plain_step(system, learning_rate=0.01, clip=0.5)(BATCHES[0])
    assert loss == pytest.approx((BATCHES[0] @ torch.tensor([3.0, -2.0])).square().mean().item(), rel=1e-6)
    torch.testing.assert_close(system.weight, reference)
    assert system.fixed.item() == 1


def test_precision():
    system = Line()
    plain_step(system, precision=torch.bfloat16)(BATCHES[0])
    plain_step(system)(BATCHES[0])
    assert system.dtypes == [torch.bfloat16, torch.float32]


def test_the_same_network_shows_the_same_losses_whoever_trains_it():
    results = time_steps({"one": plain_step(Line()), "other": plain_step(Line())}, BATCHES, warm_up=2)
    assert [len(times.seconds) for times in results.values()] == [10, 10]
    assert all(seconds > 0 for times in results.values() for seconds in times.seconds)
    assert greatest_difference(results, "one") == 0
    results = time_steps({"one": plain_step(Line()), "other": plain_step(Line(), learning_rate=0.1)}, BATCHES, warm_up=2)
    assert greatest_difference(results, "one") > 0.01


def test_a_broken_loss_is_not_hidden():
    results = {"one": StepTimes([1.0], [1.0]), "other": StepTimes([1.0], [math.nan])}
    assert math.isnan(greatest_difference(results, "one"))


def test_contenders_take_turns():
    order: list[str] = []
    time_steps({name: lambda _, name=name: order.append(name) or 0.0 for name in "ab"}, range(3), warm_up=0)
    assert order == list("abbaab")


def test_table():
    results = {"plain": StepTimes([1.0, 2.0], [3.0, 2.5]), "engine": StepTimes([1.1, 2.2], [3.0, 2.5])}
    assert [line.split() for line in step_table(results, "plain").splitlines()[1:]] == [
        ["plain", "1.5000", "1.000", "2.5000"],
        ["engine", "1.6500", "1.100", "2.5000"],
    ]
