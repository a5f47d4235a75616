"""The projection of sentences into spaces of their own."""

import numpy as np
import pytest
import torch

from raysys.models.projection import Projection


def test_it_is_two_layers_with_a_rectifier_between():
    projection = Projection(4, 6, 3)
    with torch.no_grad():
        projection.dense.bias.normal_()
        projection.out.bias.normal_()
    vectors = torch.randn(5, 4)
    first, second = ((layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in (projection.dense, projection.out))
    hidden = np.maximum(vectors.numpy() @ first[0].T + first[1], 0)
    np.testing.assert_allclose(projection(vectors).detach().numpy(), hidden @ second[0].T + second[1], rtol=1e-4, atol=1e-6)


def test_at_first_nothing_is_common_to_all():
    assert not Projection(4, 6, 3)(torch.zeros(2, 4)).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_what_it_returns_is_float32_whatever_its_weights_are(dtype):
    projection = Projection(4, 6, 3).to(dtype)
    assert projection(torch.randn(2, 4)).dtype == torch.float32
