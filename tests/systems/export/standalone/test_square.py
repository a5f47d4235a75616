"""Pictures by Pillow alone are those of training."""

import io

import numpy as np
import pytest
from PIL import Image

from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
from raysys.systems.export.agreement import pictures
from raysys.systems.export.standalone.square import to_square


def noise(width: int, height: int, kind: str, mode: str = "RGB", orientation: int = 1) -> bytes:
    channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
    random = np.random.default_rng(width * height)
    image = Image.fromarray(random.integers(0, 256, (8, 8, *channels), dtype=np.uint8), mode).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    buffer, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    image.save(buffer, kind, exif=exif, **({"quality": 95} if kind == "JPEG" else {}))
    return buffer.getvalue()


CASES = {
    **{f"picture {number}": data for number, data in enumerate(pictures(48))},
    **{f"orientation {number}": noise(310, 200, "JPEG", orientation=number) for number in range(1, 9)},
    "very wide": noise(900, 60, "PNG"),
    "very tall": noise(60, 900, "JPEG"),
    "grey": noise(70, 50, "PNG", "L"),
    "transparent": noise(70, 50, "PNG", "RGBA"),
    "one pixel": noise(1, 1, "PNG"),
    "broken EXIF": noise(100, 80, "JPEG").replace(b"Exif\0\0MM\0*", b"Exif\0\0MM\0\xff").replace(b"Exif\0\0II*\0", b"Exif\0\0II\xff\0"),
}


@pytest.mark.parametrize("fit", ["crop", "pad"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_pixels_as_in_training(case, fit):
    expected = ImagePreprocessor(ImagePreprocessorSettings(size=48, fit=fit))(CASES[case]).permute(1, 2, 0).numpy().astype(int)
    found = to_square(Image.open(io.BytesIO(CASES[case])), 48, fit)
    assert found.dtype == np.uint8
    differences = np.abs(found.astype(int) - expected)
    assert differences.max() <= 1, "each value is rounded once more or once less"


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_grey_of_more_than_8_bits_is_refused(mode):
    with pytest.raises(ValueError, match=f"a picture of mode {mode}: convert it to 8 bits first"):
        to_square(Image.new(mode, (4, 4)), 8, "crop")
