"""Pictures of the recipes: drawn or scaled to one size, on white, stored as lossless WebP.

Lossless WebP takes less space than PNG for drawings and decodes faster; of its efforts the quickest is used, as packing twice as
long would save a quarter of a few megabytes.
"""

import io
from collections.abc import Sequence

import numpy as np
import resvg_py
from PIL import Image

ENCODING = "webp"

_THUMBNAIL = 16


def render_svg(svg: str, size: int, background: str = "#ffffff") -> Image.Image:
    """Draw an SVG on `background`, its longest side `size` pixels; fonts of the machine are not used, so that every machine draws the same.

    Raises:
        ValueError: not a drawing.
    """
    png = resvg_py.svg_to_bytes(svg_string=svg, width=size, height=size, background=background, skip_system_fonts=True, dpi=96)
    return Image.open(io.BytesIO(bytes(png))).convert("RGB")


def read_raster(data: bytes, size: int, background: str = "#ffffff") -> Image.Image:
    """A stored picture on `background`, scaled down (never up) until its longest side is at most `size` pixels."""
    image = Image.open(io.BytesIO(data)).convert("RGBA")
    if max(image.size) > size:
        scale = size / max(image.size)
        scaled = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(scaled, Image.Resampling.LANCZOS, reducing_gap=3.0)
    ground = Image.new("RGBA", image.size, background)
    ground.alpha_composite(image)
    return ground.convert("RGB")


def square(image: Image.Image) -> Image.Image:
    """The picture centred on a white square, so that nothing of it is cut off where squares are wanted."""
    if image.width == image.height:
        return image
    canvas = Image.new("RGB", (max(image.size),) * 2, "white")
    canvas.paste(image, ((canvas.width - image.width) // 2, (canvas.height - image.height) // 2))
    return canvas


def encode(image: Image.Image) -> bytes:
    """Lossless WebP."""
    buffer = io.BytesIO()
    image.save(buffer, format="WEBP", lossless=True, method=0)
    return buffer.getvalue()


def thumbnail(image: Image.Image) -> np.ndarray:
    """The picture in small, centred on a white square.

    Returns:
        float32 [16, 16, 3], 0..1.
    """
    return np.asarray(square(image).resize((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BOX), dtype=np.float32) / 255


def alike(thumbnails: Sequence[np.ndarray], threshold: float) -> list[tuple[int, int]]:
    """Pairs of pictures that are one drawing: equal when one of them may be mirrored and turned by right angles.

    Args:
        thumbnails: float32 [n, n, 3] each.
        threshold: root-mean-square difference of pixel values (0..1) below which two drawings are one.
    """
    upright = np.stack(thumbnails)
    turned = [np.rot90(upright, turns, axes=(1, 2)) for turns in range(4)]
    views = [view.reshape(len(upright), -1) for picture in turned for view in (picture, picture[:, :, ::-1])]
    flat = views[0]
    norms = (flat**2).sum(1)
    smallest = np.full((len(flat), len(flat)), np.inf, dtype=np.float32)
    for view in views:
        np.minimum(smallest, norms[:, None] + norms[None] - 2 * flat @ view.T, out=smallest)
    # The expansion above loses the last digits, which is where equal drawings lie: measure the candidates exactly.
    candidates = np.argwhere(np.triu(smallest < (2 * threshold + 0.01) ** 2 * flat.shape[1], k=1))
    return [(int(i), int(j)) for i, j in candidates if min(np.mean((flat[i] - view[j]) ** 2) for view in views) < threshold**2]
