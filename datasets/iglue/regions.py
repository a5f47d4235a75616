"""What a detector found in one image: checked, and stored as the ``rois.npz`` member of a sample."""

import base64
import binascii
import io
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from raysys.shards.sample import IMAGE_EXTENSIONS

DIMENSION = 2048
"""Numbers in the vector of a region."""
MARGIN = 1.0
"""Pixels that a box may reach beyond the image."""

_BASE64 = re.compile(rb"[A-Za-z0-9+/\s]*=*\s*")


class RegionsError(Exception):
    """A record that cannot be used; `cause` is one of few, `detail` says more."""

    def __init__(self, cause: str, detail: str):
        super().__init__(f"{cause}: {detail}")
        self.cause, self.detail = cause, detail


@dataclass(frozen=True)
class Regions:
    """The regions of one image. n regions."""

    image_id: str
    """As published."""
    width: int
    height: int
    """Pixels."""
    features: np.ndarray
    """float32 [n, 2048]"""
    boxes: np.ndarray
    """float32 [n, 4]: left, top, right, bottom in pixels."""

    def npz(self) -> bytes:
        """`features`, `boxes` and `size` (int32 [2]: width, height), uncompressed; equal bytes for equal regions."""
        buffer = io.BytesIO()
        np.savez(buffer, features=self.features, boxes=self.boxes, size=np.array([self.width, self.height], np.int32))
        return buffer.getvalue()


def sample_key(image_id: str) -> str:
    """The key of an image's sample: its id or path without folders and an image's extension; what a key cannot hold is percent-encoded."""
    name = image_id.rpartition("/")[2]
    stem, _, extension = name.rpartition(".")
    name = stem if stem and extension.lower() in IMAGE_EXTENSIONS else name
    return quote(name, safe="-_~ ").replace(".", "%2E").replace("_", "%5F", name.startswith("_"))


def regions(image_id: str, width: Any, height: Any, count: Any, features: Any, boxes: Any) -> Regions:
    """Decode and check one record.

    Args:
        count: number of regions, where the record tells it, else None.
        features, boxes: an array, or the bytes of float32 numbers, raw or in base64.

    Raises:
        RegionsError: sizes that do not fit together, or numbers that cannot be.
    """
    try:
        size = int(width), int(height)
        expected = None if count is None else int(count)
    except (TypeError, ValueError, OverflowError):
        raise RegionsError("size is no number", image_id) from None
    found = Regions(image_id, *size, _floats(features, DIMENSION, "features"), _floats(boxes, 4, "boxes"))
    _check(found, expected)
    return found


def _floats(value: Any, columns: int, what: str) -> np.ndarray:
    """float32 [n, columns]"""
    if isinstance(value, str):
        value = value.encode("ascii", "replace")
    if isinstance(value, bytes | bytearray):
        if value.startswith(b"b'") and value.endswith(b"'"):  # written by a Python 3 that took bytes for text
            value = value[2:-1]
        if _BASE64.fullmatch(value):
            try:
                value = base64.b64decode(value, validate=False)
            except binascii.Error as error:
                raise RegionsError(f"{what} cannot be read", str(error)) from None
        if len(value) % 4:
            raise RegionsError(f"{what} cannot be read", f"{len(value)} bytes are no float32 numbers")
        value = np.frombuffer(value, "<f4")
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        raise RegionsError(f"{what} cannot be read", f"{type(value).__name__} where an array of float numbers was expected")
    if value.size % columns:
        raise RegionsError(f"{what} cannot be read", f"{value.size} numbers are no rows of {columns}")
    return np.ascontiguousarray(value.reshape(-1, columns), np.float32)


def _check(found: Regions, expected: int | None) -> None:
    rows, boxes = len(found.features), found.boxes
    if rows != len(boxes) or expected not in (None, rows):
        raise RegionsError("features and boxes do not fit", f"{rows} features, {len(boxes)} boxes, {expected} told")
    if rows == 0:
        raise RegionsError("no regions", found.image_id)
    if min(found.width, found.height) <= 0:
        raise RegionsError("size is no number", f"{found.width} × {found.height}")
    if not (np.isfinite(found.features).all() and np.isfinite(boxes).all()):
        raise RegionsError("numbers are not finite", found.image_id)
    limits = np.array([found.width, found.height] * 2) + MARGIN
    if (boxes[:, 2:] < boxes[:, :2]).any() or (boxes < -MARGIN).any() or (boxes > limits).any():
        raise RegionsError("boxes do not fit the image", f"not left, top, right, bottom within {found.width} × {found.height} pixels")
    if boxes.max() <= 1 < min(found.width, found.height):
        raise RegionsError("boxes do not fit the image", "they are fractions of its size where pixels were expected")
