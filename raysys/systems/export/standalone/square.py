"""A picture as the image network was shown it: upright, on white, a square. Needs NumPy and Pillow."""

import contextlib
from typing import Literal

import numpy as np
from PIL import Image, ImageOps

LONGEST_ASPECT = 4
"""With fit "crop", a longer picture loses its ends before it is resized."""


def to_square(image: Image.Image, size: int, fit: Literal["crop", "pad"]) -> np.ndarray:
    """RGB uint8 [size, size, 3].

    EXIF orientation is applied, transparency put on white, and a JPEG much larger than the square decoded at a half, quarter or eighth of
    its size, as in training. What differs from training is the rounding of Pillow's resizing, mostly 1 of 255.

    Args:
        image: the picture, in a mode of 8 bits; as `Image.open` gives it, so that the size at which a JPEG is decoded can be chosen.
        size: side of the square in pixels.
        fit: "crop": resize the shorter side, keep the centre; "pad": resize the longer side, fill up with white.

    Raises:
        ValueError: grey of more than 8 bits, which Pillow would turn white.
    """
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        raise ValueError(f"a picture of mode {image.mode}: convert it to 8 bits first")
    shortest, longest = sorted(image.size)
    shown, factor = shortest if fit == "crop" else longest, 1
    while factor < 8 and shown >= 2 * factor * size:
        factor *= 2
    # rounded down, or Pillow would not take the smaller decode, whose size is rounded up
    image.draft("RGB", (max(1, image.width // factor), max(1, image.height // factor)))
    with contextlib.suppress(Exception):  # broken EXIF raises whatever its bytes lead to; the picture is as good as one without
        image = ImageOps.exif_transpose(image)
    image = _on_white(image)
    # the picture's own sides decide: those of a smaller decode are rounded up
    width, height = (shortest, longest) if image.height > image.width else (longest, shortest)
    if fit == "crop" and longest > LONGEST_ASPECT * shortest:
        image = _centre(image, LONGEST_ASPECT * min(image.size))
        width, height = (min(length, LONGEST_ASPECT * shortest) for length in (width, height))
    side = min(width, height) if fit == "crop" else max(width, height)
    width, height = (max(1, round(length * size / side)) for length in (width, height))
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    square = Image.new("RGB", (size, size), "white")
    sign = -1 if fit == "crop" else 1
    square.paste(image, (sign * (abs(width - size) // 2), sign * (abs(height - size) // 2)))
    return np.array(square)


def _centre(image: Image.Image, longest: int) -> Image.Image:
    left, top = (max(0, length - longest) // 2 for length in image.size)
    return image.crop((left, top, left + min(image.width, longest), top + min(image.height, longest)))


def _on_white(image: Image.Image) -> Image.Image:
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")
