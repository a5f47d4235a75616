import pytest
import torch

from raysys.models.temperature import LearnedTemperature


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_column_that_begins_exactly_where_it_was_set(dtype):
    temperature = LearnedTemperature(0.07).to(dtype)
    column = temperature(3)
    assert column.dtype == torch.float32
    assert column.equal(torch.full((3,), 0.07))
    assert [parameter.shape for parameter in temperature.parameters()] == [(1,)]


def test_half_precision_resolves_small_changes_at_the_start():
    temperature = LearnedTemperature(0.07).bfloat16()
    torch.nn.init.constant_(temperature.log_ratio, -1e-4)
    assert temperature(1).item() == pytest.approx(0.07 * (1 - 1e-4), rel=1e-6)


def test_the_mean_of_the_column_has_the_gradient_of_the_logarithm():
    temperature = LearnedTemperature(0.5)
    torch.nn.init.constant_(temperature.log_ratio, 0.3)
    temperature(7).mean().backward()
    assert temperature.log_ratio.grad.item() == pytest.approx(temperature(1).item(), rel=1e-6), "dτ/ds = τ"
