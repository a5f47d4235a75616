"""L_ITM against torch's binary cross-entropy."""

import pytest
import torch
import torch.nn.functional as F

from raysys.objectives.matching import matching_loss


def test_as_many_of_either_by_binary_cross_entropy():
    matching, other = torch.tensor([2.0, -1.0, 90.0]), torch.tensor([0.5, 3.0, 90.0])
    counted = torch.tensor([True, True, False])
    scores, labels = torch.cat([matching[:2], other[:2]]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    expected = F.binary_cross_entropy(torch.sigmoid(scores), labels)
    assert matching_loss(matching, other, counted).item() == pytest.approx(expected.item(), rel=1e-6)


def test_without_rows_it_is_zero_with_a_gradient():
    matching = torch.tensor([3.0], requires_grad=True)
    loss = matching_loss(matching, matching, torch.tensor([False]))
    loss.backward()
    assert (loss.item(), matching.grad.item()) == (0.0, 0.0)
