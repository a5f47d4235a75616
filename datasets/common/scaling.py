"""Pictures of any size, scaled down to what training needs."""

import io
from dataclasses import dataclass

import PIL.Image
import PIL.ImageOps

from raysys.shards.pictures import explain_image_error

from .described import EXTENSIONS, PictureError, check_picture

QUALITY = 92
"""Of the JPEGs that scaled pictures are stored as."""

_PLAIN = ("1", "L", "P", "RGB", "CMYK", "YCbCr")
_TRANSPARENT = ("LA", "PA", "RGBA", "RGBa", "La")


@dataclass(frozen=True)
class Picture:
    """An encoded picture."""

    data: bytes
    extension: str
    """Without a dot."""


def scale_down(data: bytes, longest_side: int) -> Picture:
    """The picture as it is if no side is longer than `longest_side` pixels; else scaled, as JPEG, or as PNG where it is transparent.

    A scaled picture stands as its EXIF orientation says. Formats that the reader of shards does not know are
    converted likewise. Pictures with more than 8 bits a channel are left as they are.

    Raises:
        PictureError: not an image, or one that cannot be read.
    """
    try:
        image: PIL.Image.Image = PIL.Image.open(io.BytesIO(data))
    except Exception as error:  # Pillow's format readers raise errors of any kind on damaged headers
        raise PictureError("not an image", explain_image_error(error, data)) from None
    fits = max(image.size) <= longest_side and image.format in EXTENSIONS
    if fits or image.mode not in (*_PLAIN, *_TRANSPARENT):
        return Picture(data, check_picture(data))
    transparent = image.mode in _TRANSPARENT or "transparency" in image.info
    try:
        if image.mode in ("1", "P", "PA", "La", "RGBa"):
            image = image.convert("RGBA" if transparent else "RGB")
        image.thumbnail((longest_side, longest_side), PIL.Image.Resampling.LANCZOS, reducing_gap=3.0)
        image = PIL.ImageOps.exif_transpose(image)
    except Exception as error:  # as above, while decoding
        raise PictureError("image cannot be read", explain_image_error(error, data)) from None
    buffer = io.BytesIO()
    if transparent:
        image.convert("RGBA").save(buffer, "PNG")
        return Picture(buffer.getvalue(), "png")
    (image if image.mode == "L" else image.convert("RGB")).save(buffer, "JPEG", quality=QUALITY)
    return Picture(buffer.getvalue(), "jpg")
