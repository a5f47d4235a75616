import torch

from raysys.models.bias import LearnedBias


def test_it_begins_where_it_is_told_to_and_moves_in_tens():
    bias = LearnedBias(-10.0)
    assert bias(3).tolist() == [-10.0] * 3
    bias(4).mean().backward()
    assert bias.tens.grad.tolist() == [10.0]
    with torch.no_grad():
        bias.tens += 0.25
    assert bias(1).tolist() == [-7.5]


def test_in_half_precision_it_begins_exactly_and_is_float32():
    assert LearnedBias(-6.7).bfloat16()(2).tolist() == torch.full((2,), -6.7).tolist()
