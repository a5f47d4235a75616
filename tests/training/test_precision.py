import copy

import pytest
import torch
from torch import nn

from raysys.training.precision import use_half_precision


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3), nn.BatchNorm2d(2, affine=False))

    def forward(self, pictures):
        self.inner = self.layers(pictures)
        return {"vectors": self.inner.mean(dim=(2, 3)) + pictures.mean(), "numbers": torch.arange(len(pictures))}


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_inside_is_half_precision_and_what_comes_out_is_float32(precision, dtype):
    plain = Pictures()
    system = copy.deepcopy(plain)
    if precision == "bf16":
        for parameter in system.parameters():
            parameter.data = parameter.data.bfloat16()  # as DeepSpeed casts: buffers stay
    use_half_precision(system, precision, torch.device("cpu"))
    pictures = torch.randn(5, 3, 8, 8)
    given = pictures.bfloat16() if precision == "bf16" else pictures
    for step in range(3):
        expected, found = plain(pictures + step), system(given + step)
        assert system.inner.dtype == dtype
        assert found["vectors"].dtype == torch.float32
        torch.testing.assert_close(found["vectors"], expected["vectors"], rtol=0.02, atol=0.03)
        assert torch.equal(found["numbers"], expected["numbers"])
    for name, buffer in plain.named_buffers():
        assert system.get_buffer(name).dtype == buffer.dtype
        torch.testing.assert_close(system.get_buffer(name), buffer, rtol=0.02, atol=0.02)
    found["vectors"].sum().backward()
    assert all(parameter.grad.dtype == parameter.dtype for parameter in system.parameters())
    plain.eval()
    system.eval()
    torch.testing.assert_close(system(given)["vectors"], plain(pictures)["vectors"], rtol=0.02, atol=0.03)
