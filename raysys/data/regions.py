"""Regions of pictures, as a detector found them: the ``.rois.npz`` member of a sample."""

import io
import zipfile
from typing import NamedTuple

import numpy as np

from raysys.errors import UserError
from raysys.shards.reader import RawSample
from raysys.shards.sample import SampleError

MEMBER = "rois.npz"
"""`features` float [r, D], `boxes` float [r, 4] (left, top, right, bottom in pixels) and `size` int [2] (width, height of the picture)."""


class Regions(NamedTuple):
    """The regions of one picture. r regions."""

    features: np.ndarray
    """float [r, D], as stored."""
    boxes: np.ndarray
    """float32 [r, 5]: left, top, right, bottom as fractions of the picture, and the share of it that the box covers."""


def read_regions(sample: RawSample, most: int, size: int) -> Regions:
    """The first `most` regions of a sample.

    Args:
        sample: whose member is read.
        most: detectors give the surest ones first.
        size: numbers in the vector of a region.

    Raises:
        SampleError: there are no regions, or they cannot be read, or their numbers cannot be.
        UserError: vectors of another size.
    """
    if MEMBER not in sample.members:
        raise SampleError(
            sample.where,
            f"it has no regions (.{MEMBER}): add them with jobs/extract_rois.py, or set data.strict_visual to patches",
            cause="layout",
        )
    try:
        with np.load(io.BytesIO(sample.members[MEMBER]), allow_pickle=False) as arrays:
            features, boxes, picture = arrays["features"], arrays["boxes"], arrays["size"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise _error(sample, f"its regions cannot be read: {' '.join(str(error).split())[:200]}") from None
    kinds = (features.dtype.kind, boxes.dtype.kind, picture.dtype.kind)
    if kinds[0] != "f" or kinds[1] not in "fiu" or kinds[2] not in "iu":
        raise _error(sample, f"its features, boxes and size are of the types {features.dtype}, {boxes.dtype} and {picture.dtype}")
    if features.ndim != 2 or boxes.shape != (len(features), 4) or picture.shape != (2,) or not len(features):
        raise _error(
            sample,
            f"its features, boxes and size are {list(features.shape)}, {list(boxes.shape)} and {list(picture.shape)} where [r, D], [r, 4] "
            "and [2] were expected",
        )
    if features.shape[1] != size:
        raise UserError(
            f"model.network.region_size is {size}, but the regions of {sample.where} are vectors of {features.shape[1]} numbers: set it to "
            f"{features.shape[1]}, or extract regions anew with jobs/extract_rois.py"
        )
    features, boxes = features[:most], boxes[:most].astype(np.float32)
    if not (np.isfinite(features).all() and np.isfinite(boxes).all()):
        raise _error(sample, "its regions hold numbers that are not finite")
    if picture.min() < 1 or (boxes[:, 2:] < boxes[:, :2]).any():
        raise _error(sample, f"its boxes are not left, top, right, bottom within a picture of {picture[0]} × {picture[1]} pixels")
    # Detectors' boxes may reach a little beyond the picture.
    fractions = np.clip(boxes / np.tile(picture, 2).astype(np.float32), 0, 1)
    area = (fractions[:, 2] - fractions[:, 0]) * (fractions[:, 3] - fractions[:, 1])
    return Regions(features, np.concatenate([fractions, area[:, None]], axis=1))


def _error(sample: RawSample, reason: str) -> SampleError:
    return SampleError(sample.where, reason, MEMBER, "image")
