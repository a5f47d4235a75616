import pydantic
import pytest
import torch

from raysys.models.images import SimCLRViews, SimCLRViewsSettings

STILL = {
    "crop_scale": (1.0, 1.0),
    "brightness": 0.0,
    "contrast": 0.0,
    "saturation": 0.0,
    "hue": 0.0,
    "jitter_probability": 0.0,
    "grey_probability": 0.0,
    "blur_probability": 0.0,
}


def pixels(n: int = 16, height: int = 48, width: int = 48) -> torch.Tensor:
    return torch.randint(0, 256, (n, 3, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def view(images: torch.Tensor, seed: int = 0, **settings) -> torch.Tensor:
    views = SimCLRViews(SimCLRViewsSettings(**settings))
    torch.manual_seed(seed)
    return views(images)


@pytest.mark.parametrize("size", [(48, 48), (32, 80), (8, 8)])
def test_a_view_keeps_the_shape_and_lies_in_0_to_1(size):
    out = view(pixels(4, *size))
    assert out.shape == (4, 3, *size)
    assert out.dtype == torch.float32
    assert out.min() >= 0
    assert out.max() <= 1
    assert not out.requires_grad


def test_the_seed_reproduces_the_views():
    assert torch.equal(view(pixels(), seed=1), view(pixels(), seed=1))
    assert not torch.equal(view(pixels(), seed=1), view(pixels(), seed=2))


def test_two_calls_give_two_views():
    views = SimCLRViews(SimCLRViewsSettings())
    assert (views(pixels()) - views(pixels())).abs().mean() > 0.02


def test_each_image_gets_its_own_draw():
    out = view(pixels(1).expand(16, -1, -1, -1))
    distances = (out[:, None] - out[None]).abs().mean(dim=(2, 3, 4))
    assert (distances + torch.eye(16)).min() > 1e-3


def test_float_and_uint8_give_the_same_view():
    torch.testing.assert_close(view(pixels()), view(pixels().float() / 255))


def test_half_precision_surroundings_do_not_change_a_view():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = view(pixels())
    assert torch.equal(inside, view(pixels()))


def test_grey_share_and_no_flip():
    grey = view(pixels(256, 16, 16), **{**STILL, "grey_probability": 0.2})
    share = (grey.amax(dim=1) - grey.amin(dim=1)).flatten(1).amax(dim=1).lt(1e-5).float().mean()
    assert 0.1 < share < 0.3
    ramp = torch.arange(0, 240, 5, dtype=torch.uint8).expand(32, 3, 48, 48)
    out = view(ramp, jitter_probability=0.0)
    assert (out[..., -1] - out[..., 0]).mean(dim=(1, 2)).min() > 0


def test_crops_zoom_in():
    ramp = torch.arange(0, 240, 5, dtype=torch.uint8).expand(64, 3, 48, 48)
    out = view(ramp, **{**STILL, "crop_scale": (0.2, 1.0)})
    spans = (out[:, 0, 24, -1] - out[:, 0, 24, 0]) * 255 / 235
    assert spans.min() < 0.65
    assert spans.max() > 0.85


def test_an_empty_batch_passes():
    assert view(pixels(4)[:0]).shape == (0, 3, 48, 48)


@pytest.mark.parametrize("scale", [(0.0, 1.0), (0.5, 0.2), (0.5, 1.5)])
def test_impossible_crops_are_refused(scale):
    with pytest.raises(pydantic.ValidationError, match="crop_scale"):
        SimCLRViewsSettings(crop_scale=scale)


def test_an_accelerators_pipeline_makes_the_same_views():
    # the other way of cropping, tried on the CPU: same draws, nearly the same pixels
    views = SimCLRViews(SimCLRViewsSettings(blur_probability=0.0))
    coarse = torch.rand(8, 3, 4, 4, generator=torch.Generator().manual_seed(2))
    smooth = torch.nn.functional.interpolate(coarse, size=48, mode="bilinear")
    out = []
    for cpu in (True, False):
        torch.manual_seed(4)
        out.append(views._pipeline(48, 48, cpu)(smooth))
    assert (out[0] - out[1]).abs().mean() < 0.03
