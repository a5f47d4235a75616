"""Encoded pictures → square uint8 tensors: one way for training, evaluation and serving."""

import contextlib
import io
import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pydantic
import simplejpeg
from PIL import Image

from raysys.errors import RunFailed
from raysys.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

ORIENTATION = 0x0112
# by content, never by name; formats that run other programs (EPS) or are no pictures stay out
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM")
LONGEST_ASPECT = 4
"""With fit "crop", a longer picture loses its ends before it is resized, or 1 × 10 000 pixels would become 224 × 2 240 000."""


class ImageError(RunFailed):
    """A picture that cannot be used. The message names the picture (`where`) and the reason."""

    def __init__(self, where: str, reason: str):
        super().__init__(where, reason)
        self.where, self.reason = where, reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}" if self.where else self.reason


class ImagePreprocessorSettings(Settings):
    """From an encoded picture to the square that the image backbone sees."""

    size: pydantic.PositiveInt = 224
    """Side of the square in pixels."""
    fit: Literal["crop", "pad"] = "crop"
    """'crop': resize the shorter side, keep the centre; 'pad': resize the longer side, fill up with white."""
    max_pixels: int = pydantic.Field(Image.MAX_IMAGE_PIXELS or 89_478_485, ge=1, le=178_956_970)
    """Pictures that declare more pixels are refused before they are decoded."""


class _Decoded(NamedTuple):
    pixels: np.ndarray
    """RGB uint8 [H, W, 3], upright; smaller than the picture after a scaled decode"""
    height: int
    """of the picture itself"""
    width: int


class ImagePreprocessor:
    """Decode, turn upright, put on white, resize. Keeps no state: one object serves many threads."""

    def __init__(self, settings: ImagePreprocessorSettings):
        self.settings = settings

    def __call__(self, data: bytes, where: str = "", out: "Tensor | None" = None) -> "Tensor":
        """RGB uint8 [3, size, size].

        The format is recognised by content. EXIF orientation is applied, and ignored where EXIF is broken. Transparency
        (alpha, palettes) is put on white; CMYK is converted; grey of 16 or 32 bits or float is scaled to 0..255; of an
        animation the first frame is taken.

        Args:
            data: the encoded picture.
            where: what errors call it, such as shard, key and member.
            out: where the result goes, such as a row of a batch; a new tensor if not given.

        Raises:
            ImageError: not a picture, cut, damaged, or of more than `max_pixels`.
        """
        if not data:
            raise ImageError(where, "the picture has no bytes")
        decoded = self._decode_jpeg(data, where) if data[:3] == b"\xff\xd8\xff" else None
        return self._fit(decoded or self._decode_any(data, where), out)

    def _check_size(self, width: int, height: int, where: str) -> None:
        if width * height > self.settings.max_pixels:
            raise ImageError(where, f"{width} x {height} pixels are more than the limit of {self.settings.max_pixels} (max_pixels)")

    def _decode_jpeg(self, data: bytes, where: str) -> _Decoded | None:
        """Perhaps at a half, quarter or eighth of the size; None where only Pillow can tell."""
        try:
            height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
        except ValueError:
            return None
        self._check_size(width, height, where)
        if colours not in ("YCbCr", "RGB", "Gray"):
            return None
        shown = min(height, width) if self.settings.fit == "crop" else max(height, width)
        factor = 1
        while factor < 8 and shown >= 2 * factor * self.settings.size:
            factor *= 2
        try:
            pixels = simplejpeg.decode_jpeg(data, "RGB", min_height=math.ceil(height / factor), min_width=math.ceil(width / factor))
        except ValueError:
            return None
        orientation = 1
        if b"Exif\0\0" in data[:131_072]:
            # Pillow's parsers raise kinds of their own on a broken header, which the pixels survived
            with contextlib.suppress(Exception), Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
                orientation = _orientation(image)
        return _upright(pixels, height, width, orientation)

    def _decode_any(self, data: bytes, where: str) -> _Decoded:
        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                self._check_size(*image.size, where)
                image.load()
                # TIFF is upright once it is loaded, so the size is asked for again
                return _upright(_to_rgb(image), image.height, image.width, _orientation(image))
        except ImageError:
            raise
        except Image.DecompressionBombError:
            raise ImageError(where, f"declares more pixels than the limit of {self.settings.max_pixels} (max_pixels)") from None
        except Image.UnidentifiedImageError:
            raise ImageError(where, f"not an image (it begins with {data[:16]!r})") from None
        except Exception as error:  # each of Pillow's decoders raises kinds of its own on damaged data
            raise ImageError(where, f"cannot be decoded ({' '.join(str(error).split()) or type(error).__name__})") from None

    def _fit(self, decoded: _Decoded, out: "Tensor | None") -> "Tensor":
        import torch  # takes seconds, which those who only carry these settings about need not wait
        from torch.nn.functional import interpolate

        size, crop = self.settings.size, self.settings.fit == "crop"
        pixels, height, width = decoded
        if crop and max(height, width) > LONGEST_ASPECT * min(height, width):
            pixels = _centre(pixels, LONGEST_ASPECT * min(pixels.shape[:2]))
            height, width = (min(length, LONGEST_ASPECT * min(height, width)) for length in (height, width))
        # the picture's own sides decide: those of a scaled decode are rounded up, and would shift the result
        side = min(height, width) if crop else max(height, width)
        target = [max(1, round(length * size / side)) for length in (height, width)]
        # a [H, W, C] picture seen as [1, C, H, W] is channels-last: the fast uint8 kernel, and no copy
        image = torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1)[None]
        if target != list(pixels.shape[:2]):
            image = interpolate(image, size=target, mode="bilinear", antialias=True)
        top, left = (abs(length - size) // 2 for length in target)
        square = torch.empty((3, size, size), dtype=torch.uint8) if out is None else out
        if crop:
            return square.copy_(image[0, :, top : top + size, left : left + size])
        square.fill_(255)[:, top : top + target[0], left : left + target[1]] = image[0]
        return square


def _centre(pixels: np.ndarray, longest: int) -> np.ndarray:
    top, left = (max(0, length - longest) // 2 for length in pixels.shape[:2])
    return pixels[top : top + longest, left : left + longest]


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except Exception:  # broken EXIF raises whatever its bytes lead to; the picture is as good as one without
        return 1


def _upright(pixels: np.ndarray, height: int, width: int, orientation: int) -> _Decoded:
    """Apply EXIF orientation 1 to 8; other values mean nothing."""
    if orientation in (5, 6, 7, 8):
        pixels, height, width = pixels.transpose(1, 0, 2), width, height
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return _Decoded(pixels, height, width)


def _to_rgb(image: Image.Image) -> np.ndarray:
    """RGB uint8 [H, W, 3] of an image in any of Pillow's modes."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        grey = _grey_to_bytes(np.array(image), image.mode)
        return np.repeat(grey[..., None], 3, axis=2)
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        if image.mode == "La":
            image = image.convert("LA")
        rgba = np.array(image.convert("RGBA"))
        alpha = rgba[..., 3:].astype(np.uint32)
        return ((rgba[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)
    return np.array(image.convert("RGB"))


def _grey_to_bytes(values: np.ndarray[Any, Any], mode: str) -> np.ndarray:
    """Grey of more than 8 bits as uint8: by the range of its type, or of its values where the type has none."""
    if mode.startswith("I;16"):
        low, high = 0.0, 65535.0
    else:
        values = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        low, high = 0.0, float(values.max())
        ranges = (1.0, 255.0, 65535.0) if mode == "F" else (255.0, 65535.0)
        high = next((limit for limit in ranges if high <= limit), high)
        if values.min() < 0:
            low, high = float(values.min()), float(values.max())
    scaled = (values.astype(np.float64) - low) * (255 / max(high - low, 1e-12))
    return np.rint(scaled).clip(0, 255).astype(np.uint8)
