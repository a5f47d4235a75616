import io
import pickle
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pydantic
import pytest
import torch
from PIL import Image, ImageOps

from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def preprocessor(size: int = 64, **settings) -> ImagePreprocessor:
    return ImagePreprocessor(ImagePreprocessorSettings(size=size, **settings))


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    """Smooth colours, edges and some grain, as photographs have."""
    draw = np.random.default_rng(seed)
    small = draw.integers(0, 256, (max(2, height // 24), max(2, width // 24), 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)).astype(float)
    smooth[height // 3 : height // 2, width // 4 : width // 2] = draw.integers(0, 256, 3)
    return Image.fromarray((smooth + draw.normal(0, 4, smooth.shape)).clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def corners(kind: str = "PNG", **options) -> bytes:
    """32 × 48 pixels (wide × high): red, green above blue, white."""
    pixels = np.zeros((48, 32, 3), np.uint8)
    pixels[:24, :16], pixels[:24, 16:], pixels[24:, :16], pixels[24:, 16:] = RED, GREEN, BLUE, WHITE
    return encoded(Image.fromarray(pixels), kind, **options)


def difference(tensor: torch.Tensor, image: Image.Image) -> float:
    return float(np.abs(tensor.permute(1, 2, 0).numpy().astype(float) - np.asarray(image.convert("RGB")).astype(float)).mean())


def pillow(data: bytes, size: int, fit: str) -> Image.Image:
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    side = min(image.size) if fit == "crop" else max(image.size)
    width, height = (max(1, round(length * size / side)) for length in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    if fit == "crop":
        left, top = (width - size) // 2, (height - size) // 2
        return image.crop((left, top, left + size, top + size))
    square = Image.new("RGB", (size, size), WHITE)
    square.paste(image, ((size - width) // 2, (size - height) // 2))
    return square


@pytest.mark.parametrize("fit", ["crop", "pad"])
@pytest.mark.parametrize(("width", "height"), [(100, 75), (75, 101), (64, 64), (40, 30), (127, 90)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "TIFF"])
def test_equals_pillow(kind, width, height, fit):
    data = encoded(photo(width, height), kind)
    out = preprocessor(fit=fit)(data)
    assert out.shape == (3, 64, 64)
    assert out.dtype == torch.uint8
    assert out.is_contiguous()
    assert difference(out, pillow(data, 64, fit)) < 0.5


@pytest.mark.parametrize("fit", ["crop", "pad"])
@pytest.mark.parametrize("scale", [2, 2.344, 3, 4.3, 9])
def test_scaled_decoding_stays_close_to_pillow(scale, fit):
    data = encoded(photo(round(64 * scale), round(80 * scale), seed=4), "JPEG", quality=92)
    assert difference(preprocessor(fit=fit)(data), pillow(data, 64, fit)) < 2.0


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = corners(kind, exif=exif)
    assert difference(preprocessor(fit="pad")(data), pillow(data, 64, "pad")) < 1.0


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rest", [b"garbage", b"II*\0\xff\xff\xff\xff", b"II*\0\x08\0\0\0\x09\0\x12\x01", b""])
def test_broken_exif_is_ignored(kind, rest):
    assert difference(preprocessor(fit="pad")(corners(kind, exif=b"Exif\0\0" + rest)), pillow(corners(), 64, "pad")) < 6.0


def test_orientation_out_of_range_is_ignored():
    exif = Image.Exif()
    exif[0x0112] = 77
    assert torch.equal(preprocessor()(corners("PNG", exif=exif)), preprocessor()(corners()))


def half_transparent(mode: str) -> Image.Image:
    image = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    image.paste((255, 0, 0, 255), (0, 0, 32, 64))
    return image.convert(mode) if mode != "RGBA" else image


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_transparent_is_white(kind):
    out = preprocessor()(encoded(half_transparent("RGBA"), kind, **({"lossless": True} if kind == "WEBP" else {})))
    assert tuple(out[:, 10, 10].tolist()) == RED
    assert tuple(out[:, 10, 60].tolist()) == WHITE


def test_grey_with_alpha_palette_with_alpha_and_colour_key():
    assert preprocessor()(encoded(half_transparent("LA")))[:, 5, 60].tolist() == [255] * 3
    palette = Image.new("P", (64, 64), 0)
    palette.putpalette([0, 0, 0, 255, 0, 0, 0, 0, 255])
    palette.paste(1, (0, 0, 32, 64))
    for data in (
        encoded(palette, transparency=0),
        encoded(palette, transparency=bytes([0, 255, 255])),
        encoded(palette, "GIF", transparency=0),
    ):
        out = preprocessor()(data)
        assert tuple(out[:, 5, 5].tolist()) == RED
        assert tuple(out[:, 5, 60].tolist()) == WHITE
    key = preprocessor()(encoded(Image.new("RGB", (64, 64), GREEN), transparency=GREEN))
    assert (key == 255).all()


def test_half_alpha_mixes_with_white():
    out = preprocessor()(encoded(Image.new("RGBA", (64, 64), (0, 100, 200, 128))))
    assert out[:, 3, 3].tolist() == pytest.approx([127, 177, 227], abs=1)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled(kind):
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (64, 1))
    out = preprocessor()(encoded(Image.fromarray(ramp), kind))
    assert out[0, 0].tolist() == pytest.approx((ramp[0] / 257).tolist(), abs=1)
    assert torch.equal(out[0], out[2])


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [(0, 1, np.float32), (0, 255, np.float32), (0, 65535, np.float32), (-3, 5, np.float32), (0, 9e6, np.float32), (0, 65535, np.int32)],
)
def test_float_and_wide_integers_are_scaled(low, high, kind):
    ramp = np.tile(np.linspace(low, high, 64).astype(kind), (64, 1))
    out = preprocessor()(encoded(Image.fromarray(ramp), "TIFF"))
    assert out[0, 0].tolist() == pytest.approx(np.linspace(0, 255, 64).tolist(), abs=1)


def test_float_with_nan_is_finite():
    values = np.full((64, 64), 0.5, np.float32)
    values[0, 0] = np.nan
    values[0, 1] = np.inf
    assert preprocessor()(encoded(Image.fromarray(values), "TIFF"))[0, 9, 9] == 128


def test_one_bit_and_grey():
    assert preprocessor()(encoded(Image.new("1", (64, 64), 1)))[:, 0, 0].tolist() == [255] * 3
    for kind in ("PNG", "JPEG"):
        assert preprocessor()(encoded(Image.new("L", (64, 64), 90), kind))[:, 8, 8].tolist() == [90] * 3


@pytest.mark.parametrize("options", [{}, {"quality": 95, "subsampling": 0}])
def test_cmyk_jpeg(options):
    data = encoded(photo(80, 64).convert("CMYK"), "JPEG", **options)
    assert difference(preprocessor()(data), pillow(data, 64, "crop")) < 0.5
    white = preprocessor()(encoded(Image.new("CMYK", (64, 64), (0, 0, 0, 0)), "JPEG"))
    assert (white > 250).all()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_first_frame_of_an_animation(kind):
    frames = [Image.new("RGB", (64, 64), colour) for colour in (RED, BLUE)]
    out = preprocessor()(encoded(frames[0], kind, save_all=True, append_images=frames[1:]))
    assert out[:, 30, 30].tolist() == pytest.approx(RED, abs=6)


@pytest.mark.parametrize("fit", ["crop", "pad"])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 5000), (5000, 1), (3, 700), (2, 1)])
def test_extreme_shapes(width, height, fit):
    for kind in ("PNG", "JPEG"):
        out = preprocessor(fit=fit)(encoded(Image.new("RGB", (width, height), (10, 20, 30)), kind))
        assert out.shape == (3, 64, 64)
        assert out[:, 31, 31].tolist() == pytest.approx([10, 20, 30], abs=4)
    white = fit == "pad" and max(width, height) >= 2 * min(width, height)
    assert (out[:, 0, 0] == 255).all() == white


def test_crop_keeps_the_centre_and_pad_the_whole():
    pixels = np.zeros((64, 192, 3), np.uint8)
    pixels[:, :64], pixels[:, 64:128], pixels[:, 128:] = RED, GREEN, BLUE
    data = encoded(Image.fromarray(pixels))
    cropped = preprocessor()(data)
    assert (cropped == torch.tensor(GREEN, dtype=torch.uint8).view(3, 1, 1)).all()
    padded = preprocessor(fit="pad")(data)
    assert [tuple(padded[:, 32, x].tolist()) for x in (5, 32, 60)] == [RED, GREEN, BLUE]
    assert (padded[:, :20] == 255).all()


def png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [1001, 20_000])
def test_too_many_pixels_are_refused_by_the_header(side):
    with pytest.raises(ImageError, match=r"limit of 1000000 \(max_pixels\)"):
        preprocessor(max_pixels=1_000_000)(png_header(side, side), "a.tar: k: png")


def test_too_many_pixels_in_a_jpeg():
    with pytest.raises(ImageError, match="100 x 50 pixels are more than the limit of 4999"):
        preprocessor(max_pixels=4999)(encoded(photo(100, 50), "JPEG"))


@pytest.mark.parametrize(
    "data",
    [b"<!DOCTYPE html><html>404</html>", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\0" * 64, b"x", b"%!PS-Adobe-3.0 EPSF-3.0\n"],
)
def test_not_an_image(data):
    with pytest.raises(ImageError) as caught:
        preprocessor()(data, "shard 000000.tar, key cat, member jpg")
    assert str(caught.value).startswith("shard 000000.tar, key cat, member jpg: not an image")
    assert caught.value.reason.startswith("not an image")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP"])
def test_cut_pictures_are_named(kind):
    data = encoded(photo(200, 150), kind)
    for part in (0.98 if kind == "BMP" else 0.7, 0.3):
        with pytest.raises(ImageError, match=r"000001\.tar, dog, "):
            preprocessor()(data[: int(len(data) * part)], "000001.tar, dog, x")


def test_no_bytes_and_magic_alone():
    for data in (b"", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0" + b"\0" * 50, b"\x89PNG\r\n\x1a\n"):
        with pytest.raises(ImageError):
            preprocessor()(data)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_damage_gives_a_picture_or_an_image_error():
    draw = np.random.default_rng(1)
    work = preprocessor(32)
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP"):
        whole = encoded(photo(60, 50), kind)
        for _ in range(40):
            data = bytearray(whole)
            for place in draw.integers(0, min(len(data), 600), 4):
                data[place] = draw.integers(0, 256)
            try:
                assert work(bytes(data)).shape == (3, 32, 32)
            except ImageError:
                continue


def test_threads_give_the_same_pictures():
    work = preprocessor()
    data = [encoded(photo(100 + i, 90, seed=i), kind) for i in range(6) for kind in ("JPEG", "PNG")]
    expected = [work(one) for one in data]
    with ThreadPoolExecutor(4) as threads:
        assert all(torch.equal(a, b) for a, b in zip(threads.map(work, data * 5), expected * 5, strict=True))


def test_errors_and_preprocessors_travel_between_processes():
    error = pickle.loads(pickle.dumps(ImageError("a", "b")))
    assert (str(error), error.where, error.reason) == ("a: b", "a", "b")
    assert torch.equal(pickle.loads(pickle.dumps(preprocessor()))(corners()), preprocessor()(corners()))


def test_impossible_settings_are_refused():
    for wrong in ({"size": 0}, {"fit": "stretch"}, {"max_pixels": 10**10}):
        with pytest.raises(pydantic.ValidationError):
            ImagePreprocessorSettings(**wrong)
