"""What an encoded picture becomes: regions with vectors, in the published form."""

import io

import numpy as np
import PIL.Image
import pydantic
import pytest
import torch
from transformers import ViTConfig, ViTModel

from raysys.errors import UserError
from raysys.models.images import ImageBackbone, ImageModelSettings
from raysys.models.region_features import RegionExtractor, RegionSettings, crops
from raysys.shards.sample import SampleError
from tests.models.small_detectors import SIZE, save_detr
from tests.shards.tars import picture

NARROW = {"features": "resnet-10-narrow", "crop_size": 32}


def load(content: bytes) -> dict[str, np.ndarray]:
    return dict(np.load(io.BytesIO(content), allow_pickle=False))


def test_the_vector_of_a_region_is_that_of_the_cut_out_picture():
    data = picture(3, (40, 30))
    told = [[4, 5, 20, 25], [0, 0, 40, 30]]
    (content,) = RegionExtractor(RegionSettings(detector="boxes", **NARROW))([data], [{"boxes": told}])
    found = load(content)
    assert {name: (value.dtype.name, value.shape) for name, value in found.items()} == {
        "features": ("float32", (2, 128)),
        "boxes": ("float32", (2, 4)),
        "size": ("int32", (2,)),
    }
    assert found["boxes"].tolist() == told
    assert found["size"].tolist() == [40, 30]
    torch.manual_seed(0)
    backbone = ImageBackbone(ImageModelSettings(backbone="resnet-10-narrow", frozen=True))
    image = PIL.Image.open(io.BytesIO(data))
    for vector, box in zip(found["features"], told, strict=True):
        resized = image.crop(box).resize((32, 32), PIL.Image.Resampling.BILINEAR)
        expected = backbone(torch.from_numpy(np.array(resized)).permute(2, 0, 1)[None])[0].numpy()
        np.testing.assert_allclose(vector, expected, atol=0.05 * np.abs(expected).max())


def test_equal_bytes_again_and_bad_pictures_in_their_places():
    extractor = RegionExtractor(RegionSettings(detector="grid", regions=6, **NARROW))
    data = [picture(1), b"no picture", picture(2, (50, 20)), b""]
    first, second = (extractor(data, [{}] * 4) for _ in range(2))
    assert [one for one in first if isinstance(one, bytes)] == [one for one in second if isinstance(one, bytes)]
    assert [isinstance(one, SampleError) and one.cause for one in first] == [False, "image", False, "image"]
    assert extractor([b"no picture"], [{}])[0].reason.startswith("not an image")
    assert extractor([], []) == []


def test_boxes_of_a_turned_photograph_are_those_of_the_upright_one():
    image = PIL.Image.new("RGB", (40, 20))
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    (content,) = RegionExtractor(RegionSettings(detector="boxes", **NARROW))([buffer.getvalue()], [{"boxes": [[0, 0, 40, 40]]}])
    assert load(content)["size"].tolist() == [20, 40]
    assert load(content)["boxes"].tolist() == [[0, 0, 20, 40]]


def test_crops_hold_every_pixel_that_a_box_touches():
    whole = torch.arange(3 * 6 * 8, dtype=torch.uint8).reshape(3, 6, 8)
    tiny, exact = crops(whole, np.array([[3.4, 2.6, 3.5, 2.7], [2, 1, 6, 5]], np.float32), 4)
    assert (tiny == whole[:, 2, 3][:, None, None]).all()
    assert torch.equal(exact, whole[:, 1:5, 2:6])


def test_a_detectors_own_vectors_or_a_backbones(tmp_path):
    save_detr(tmp_path)
    own = RegionExtractor(RegionSettings(detector=str(tmp_path), regions=5))
    other = RegionExtractor(RegionSettings(detector=str(tmp_path), regions=5, **NARROW))
    assert (own.feature_size, other.feature_size) == (SIZE, 128)
    data = [b"", picture(1, (40, 30))]
    (_, mine), (_, theirs) = (load_all(extractor(data, [{}] * 2)) for extractor in (own, other))
    assert np.array_equal(mine["boxes"], theirs["boxes"])
    assert mine["features"].shape == (len(mine["boxes"]), SIZE)
    assert theirs["features"].shape == (len(mine["boxes"]), 128)


def load_all(contents):
    return [load(one) if isinstance(one, bytes) else one for one in contents]


def test_settings_that_cannot_be(tmp_path):
    with pytest.raises(pydantic.ValidationError, match="'grid' has no vectors of its own"):
        RegionSettings(detector="grid", features="detector")
    ViTModel(
        ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=16)
    ).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="cannot read crops of 8 pixels"):
        RegionExtractor(RegionSettings(detector="grid", features=str(tmp_path), crop_size=8))
