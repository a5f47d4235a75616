"""From encoded pictures to what ``.rois.npz`` holds: regions by a detector, and a vector of each."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pydantic
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.errors import UserError
from raysys.models.detectors import BY_RULE, Found, build_detector
from raysys.models.images import ImageBackbone, ImageModelSettings
from raysys.settings import Settings
from raysys.shards.sample import SampleError

OWN = "detector"
DEFAULT_BACKBONE = "package:efficientnet-lite0"
_NO_SIZE = 1 << 20
"""Pixels; no picture is scaled down while it is decoded."""


class RegionSettings(Settings):
    """Which regions pictures have, and what their vectors are."""

    detector: str = "grid"
    """boxes: those in the samples' json (`"boxes": [[…, left, top, right, bottom], …]`, pixels); grid: the whole picture, grid cells and
    salient crops; or a folder or hub id of an object detector of transformers (DETR, RT-DETR, …)."""
    features: str = ""
    """Where a region's vector comes from: an image backbone that sees the region as a picture (`package:efficientnet-lite0`, `resnet-18`,
    a folder or hub id), or `detector`: the state of the detector's own query. Empty: `detector` where that is a network, else
    `package:efficientnet-lite0`."""
    regions: pydantic.PositiveInt = 36
    """Most regions of a picture, the best ones."""
    crop_size: pydantic.PositiveInt = 64
    """Side in pixels of what the backbone sees of a region."""
    overlap: float = pydantic.Field(0.7, ge=0, le=1)
    """Of two regions of a detector with more intersection over union, only the better one is kept."""
    batch_size: pydantic.PositiveInt = 16
    """Pictures that go through the detector together; their regions go through the backbone together."""

    @pydantic.model_validator(mode="after")
    def _own_features(self) -> "RegionSettings":
        if self.features == OWN and self.detector in BY_RULE:
            raise ValueError(f"features: the detector {self.detector!r} has no vectors of its own; name an image backbone")
        return self


class RegionExtractor:
    """Encoded pictures → regions, on a GPU where there is one. Randomly initialised backbones are the same in every process.

    Attributes:
        feature_size: numbers in the vector of a region.

    Raises:
        UserError: a network cannot be had, or cannot read crops of the size that is set.
    """

    def __init__(self, settings: RegionSettings):
        self.settings = settings
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.decode = WholePicture(ImagePreprocessorSettings(size=_NO_SIZE))
        self.detect = build_detector(settings.detector, settings.regions, settings.overlap, self.device)
        self.backbone: ImageBackbone | None = None
        if self.detect.feature_size is None or settings.features not in ("", OWN):
            torch.manual_seed(0)
            self.backbone = ImageBackbone(ImageModelSettings(backbone=settings.features or DEFAULT_BACKBONE, frozen=True)).to(self.device)
        self.feature_size = self.detect.feature_size if self.backbone is None else self._try_out(self.backbone)

    def _try_out(self, backbone: ImageBackbone) -> int:
        """Numbers in the backbone's vectors."""
        side = self.settings.crop_size
        try:
            return backbone(torch.zeros((1, 3, side, side), dtype=torch.uint8, device=self.device)).shape[1]
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:160]
            raise UserError(
                f"features: {self.settings.features!r} cannot read crops of {side} pixels ({reason}); set crop_size to its own size"
            ) from None

    def __call__(self, contents: Sequence[bytes], fields: Sequence[dict[str, Any]]) -> list[bytes | SampleError]:
        """What ``.rois.npz`` holds of each picture: `features` float32 [n, D], `boxes` float32 [n, 4] in pixels, `size` int32 [2].

        In the place of a picture that cannot be used stands a SampleError (cause `image`, or `layout` where boxes were to be told).

        Args:
            contents: encoded pictures.
            fields: the json of each one's sample.
        """
        results: dict[int, bytes | SampleError] = {}
        pictures: dict[int, Tensor] = {}
        for number, content in enumerate(contents):
            try:
                pictures[number] = self.decode(content)
            except ImageError as error:
                results[number] = SampleError("", error.reason, "", "image")
        regions: dict[int, Found] = {}
        for number, found in zip(pictures, self.detect(list(pictures.values()), [fields[number] for number in pictures]), strict=True):
            if isinstance(found, SampleError):
                results[number] = found
            else:
                regions[number] = found
        if self.backbone is not None:
            self._describe(regions, pictures, self.backbone)
        results |= {number: _npz(found, pictures[number]) for number, found in regions.items()}
        return [results[number] for number in range(len(contents))]

    @torch.inference_mode()
    def _describe(self, regions: dict[int, Found], pictures: dict[int, Tensor], backbone: ImageBackbone) -> None:
        """Give all regions the backbone's vectors."""
        seen = [crops(pictures[number], found.boxes, self.settings.crop_size) for number, found in regions.items()]
        if not seen:
            return
        vectors = np.concatenate([backbone(part.to(self.device)).cpu().numpy() for part in torch.cat(seen).split(_CROPS)])
        ends = np.cumsum([len(found.boxes) for found in regions.values()])
        for found, its in zip(regions.values(), np.split(vectors, ends[:-1]), strict=True):
            found.features = its


_CROPS = 128
"""Crops in one pass of the backbone."""


class WholePicture(ImagePreprocessor):
    """A decoder that keeps a picture's size: uint8 [3, H, W], upright."""

    def _fit(self, decoded: Any, out: Tensor | None) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(decoded.pixels)).permute(2, 0, 1)


def crops(picture: Tensor, boxes: np.ndarray, side: int) -> Tensor:
    """Regions of a picture uint8 [3, H, W], stretched to squares: uint8 [n, 3, side, side]. Pixels that a box touches belong to it."""
    edges = np.concatenate([np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])], axis=1).astype(int).tolist()
    pieces = [picture[None, :, top:bottom, left:right] for left, top, right, bottom in edges]
    return torch.cat([interpolate(piece, (side, side), mode="bilinear", antialias=True) for piece in pieces])


def _npz(found: Found, picture: Tensor) -> bytes:
    assert found.features is not None
    buffer = io.BytesIO()
    size = np.array([picture.shape[2], picture.shape[1]], np.int32)
    np.savez(buffer, features=found.features.astype(np.float32), boxes=found.boxes.astype(np.float32), size=size)
    return buffer.getvalue()
