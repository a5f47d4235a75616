"""Sizes of images beside what Pillow says."""

import io

import numpy as np
import PIL.Image
import pytest

from raysys.shards.pictures import explain_image_error, measure
from raysys.shards.sample import IMAGE_EXTENSIONS

PIXELS = np.random.default_rng(0).integers(0, 256, (21, 37, 3), dtype=np.uint8)
KINDS = {
    "JPEG": ("JPEG", "RGB", {}),
    "progressive JPEG": ("JPEG", "RGB", {"progressive": True}),
    "grey JPEG": ("JPEG", "L", {}),
    "CMYK JPEG": ("JPEG", "CMYK", {}),
    "JPEG with EXIF": ("JPEG", "RGB", {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"}),
    "PNG": ("PNG", "RGBA", {}),
    "palette PNG": ("PNG", "P", {}),
    "16-bit PNG": ("PNG", "I;16", {}),
    "WebP": ("WEBP", "RGB", {}),
    "lossless WebP": ("WEBP", "RGB", {"lossless": True}),
    "transparent WebP": ("WEBP", "RGBA", {}),
    "WebP with EXIF": ("WEBP", "RGB", {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"}),
    "GIF": ("GIF", "P", {}),
    "BMP": ("BMP", "RGB", {}),
    "TIFF": ("TIFF", "RGB", {}),
}


def encoded(kind: str, mode: str, size: tuple[int, int] = (37, 21), **options) -> bytes:
    image = PIL.Image.fromarray(PIXELS).resize(size)
    image = image.convert("L").convert(mode) if mode == "I;16" else image.convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(("kind", "mode", "options"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("size", [(37, 21), (1, 1), (300, 2)])
def test_as_pillow_says(kind, mode, options, size):
    data = encoded(kind, mode, size, **options)
    assert measure(data) == (kind, *size) == (PIL.Image.open(io.BytesIO(data)).format, *size)


def test_all_known_extensions_are_kinds_that_are_measured():
    assert {PIL.Image.registered_extensions()[f".{extension}"] for extension in IMAGE_EXTENSIONS} == {kind for kind, _, _ in KINDS.values()}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_damaged_headers_are_no_images(kind):
    data = encoded(kind, "RGB")
    for cut in range(12):
        with pytest.raises((OSError, SyntaxError)) as fault:
            measure(data[:cut])
        assert explain_image_error(fault.value, data[:cut])
    assert explain_image_error(PIL.UnidentifiedImageError(), data[:20]) == "it begins like an image, but its header is damaged or cut"
    assert explain_image_error(PIL.UnidentifiedImageError(), b"<html>") == "no image begins with the bytes b'<html>'"


def test_a_png_whose_size_was_damaged_is_refused():
    data = bytearray(encoded("PNG", "RGB"))
    data[19] ^= 4
    with pytest.raises(Exception, match="identify"):
        measure(bytes(data))
