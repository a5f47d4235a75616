"""Where a picture's regions are: boxes told beside it, a grid with salient crops, or what a trained detector of transformers finds.

Boxes are float32 [n, 4]: left, top, right, bottom in pixels of the upright picture, within it, each with an area.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor
from torch.nn.functional import interpolate

from raysys.errors import UserError
from raysys.shards.sample import SampleError

_CELLS = 0.72
"""Share of a grid's regions that are cells (25 of 36); the others are the whole picture and salient crops."""
_SALIENCY_SIDE = 128
"""Longest side at which saliency is looked for, in pixels."""
WAYS = "give 'boxes' (those of the samples' json), 'grid', or a folder or hub id of a transformers object detector (DETR, RT-DETR, …)"


@dataclass
class Found:
    """The regions of one picture, the best first."""

    boxes: np.ndarray
    features: np.ndarray | None = None
    """float32 [n, D]: the detector's own; None where it has none."""


class Detector(Protocol):
    """Pictures → regions."""

    feature_size: int | None
    """Numbers in a region's features; None: it gives boxes alone."""

    def __call__(self, pictures: Sequence[Tensor], fields: Sequence[dict[str, Any]]) -> list[Found | SampleError]:
        """The regions of each picture uint8 [3, H, W] of any size, or why it has none.

        Args:
            pictures: upright.
            fields: the json of each one's sample.
        """


def build_detector(name: str, most: int, overlap: float, device: torch.device) -> Detector:
    """The detector that a setting names.

    Args:
        name: `boxes`, `grid`, or a folder or hub id of a detector of transformers.
        most: regions of a picture.
        overlap, device: of :class:`TransformersDetector`.

    Raises:
        UserError: it cannot be had.
    """
    return OneByOne(BY_RULE[name], most) if name in BY_RULE else TransformersDetector(name, most, overlap, device)


class OneByOne:
    """A detector that looks at each picture alone, by a rule."""

    feature_size: int | None = None

    def __init__(self, find: Callable[[Tensor, dict[str, Any], int], np.ndarray], most: int):
        self.find, self.most = find, most

    def __call__(self, pictures: Sequence[Tensor], fields: Sequence[dict[str, Any]]) -> list[Found | SampleError]:
        found: list[Found | SampleError] = []
        for picture, told in zip(pictures, fields, strict=True):
            try:
                found.append(Found(self.find(picture, told, self.most)))
            except SampleError as error:
                found.append(error)
        return found


def boxes_told(picture: Tensor, fields: dict[str, Any], most: int) -> np.ndarray:
    """The field `boxes` of a sample's json, ``[[…, left, top, right, bottom], …]``; of more than `most`, the largest, in stored order.

    Raises:
        SampleError: there are none, or one is no box within the picture.
    """
    told = fields.get("boxes")
    if not isinstance(told, list) or not told:
        raise SampleError("", "it has no field 'boxes' with [left, top, right, bottom] of each region", "json", "layout")
    try:
        boxes = np.array([row[-4:] for row in told], np.float32).reshape(len(told), 4)
    except (TypeError, ValueError):
        raise SampleError("", "field 'boxes' is no list of [left, top, right, bottom] in pixels", "json", "layout") from None
    inside = _within(boxes, picture)
    if (wrong := np.flatnonzero(~(_areas(inside) > 0))).size:  # not a number is no area either
        size = f"{picture.shape[2]} × {picture.shape[1]} pixels"
        raise SampleError("", f"field 'boxes': {told[wrong[0]]} has no area within {size}", "json", "layout")
    return inside[np.sort(np.argsort(-_areas(inside), kind="stable")[:most])]


def grid(picture: Tensor, fields: dict[str, Any], most: int) -> np.ndarray:
    """The whole picture, the cells of a square grid, and crops of what stands out: of 36 regions, 1, 25 and up to 10."""
    height, width = picture.shape[1:]
    side = int((_CELLS * most) ** 0.5)
    boxes = [(0.0, 0.0, width, height)]
    if side > 1 and min(height, width) >= side:
        x, y = np.linspace(0, width, side + 1), np.linspace(0, height, side + 1)
        boxes += [(x[column], y[row], x[column + 1], y[row + 1]) for row in range(side) for column in range(side)]
    return np.concatenate([np.array(boxes, np.float32), salient_boxes(picture, most - len(boxes))])


def salient_boxes(picture: Tensor, most: int) -> np.ndarray:
    """Boxes around connected pixels that stand out from the picture's mean colour, the most salient first; there may be none.

    A pixel stands out where the distance of its colour, slightly blurred, from the mean colour is more than twice the mean distance
    (frequency-tuned saliency, Achanta et al. 2009; in RGB).
    """
    height, width = picture.shape[1:]
    scale = min(1.0, _SALIENCY_SIDE / max(height, width))
    small = interpolate(picture[None].float(), [max(1, round(n * scale)) for n in (height, width)], mode="bilinear", antialias=True)[0]
    blurred = ndimage.gaussian_filter(small.numpy(), (0, 1, 1))
    saliency = np.linalg.norm(blurred - small.mean((1, 2)).numpy()[:, None, None], axis=0)
    labels, count = ndimage.label(saliency > 2 * saliency.mean())
    sums = ndimage.sum_labels(saliency, labels, np.arange(1, count + 1))
    places = ndimage.find_objects(labels)
    boxes = [[x.start, y.start, x.stop, y.stop] for y, x in (places[index] for index in np.argsort(-sums, kind="stable")[: max(0, most)])]
    return np.array(boxes, np.float32).reshape(-1, 4) * np.array([width / small.shape[2], height / small.shape[1]] * 2, np.float32)


BY_RULE = {"boxes": boxes_told, "grid": grid}
"""Detectors that are no networks."""


class TransformersDetector:
    """Any object detector of transformers whose decoder has queries (DETR and its kin, RT-DETR, YOLOS).

    A region's features are the decoder's last state of its query. Pictures of one size go through the network together, so that none is
    padded for the sake of another.

    Args:
        name: folder saved with save_pretrained (model and image processor), or hub id.
        most: regions of a picture, the best by score.
        overlap: of two regions whose intersection is a larger part of their union, the better one alone is kept, whatever their classes.
        device: where the network lies.

    Raises:
        UserError: it cannot be had, or is no such detector.
    """

    def __init__(self, name: str, most: int, overlap: float, device: torch.device):
        self.most, self.overlap, self.device = most, overlap, device
        self.processor, self.model = _load(name)
        self.model.to(device).eval()
        try:
            self.feature_size: int | None = self._run([torch.zeros((3, 64, 64), dtype=torch.uint8)])[2].shape[-1]
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise UserError(f"detector {name!r} ({type(self.model).__name__}) gives no boxes of queries ({error}); {WAYS}") from None

    def __call__(self, pictures: Sequence[Tensor], fields: Sequence[dict[str, Any]]) -> list[Found | SampleError]:
        found: list[Found | SampleError] = [SampleError("", "the detector finds no region in it", "", "image")] * len(pictures)
        sizes: dict[tuple[int, ...], list[int]] = {}
        for number, picture in enumerate(pictures):
            sizes.setdefault(tuple(picture.shape), []).append(number)
        for (_, height, width), numbers in sizes.items():
            scores, centred, states = self._run([pictures[number] for number in numbers])
            middle, extent = centred[..., :2], centred[..., 2:] / 2
            corners = np.concatenate([middle - extent, middle + extent], axis=-1) * np.array([width, height] * 2, np.float32)
            for row, number in enumerate(numbers):
                boxes = _within(corners[row], pictures[number])
                real = np.flatnonzero((_areas(boxes) > 0) & np.isfinite(scores[row]))
                kept = real[best_apart(boxes[real], scores[row, real], self.most, self.overlap)]
                if len(kept):
                    found[number] = Found(boxes[kept], states[row, kept])
        return found

    @torch.inference_mode()
    def _run(self, pictures: Sequence[Tensor]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores [n, Q], boxes as centre, width and height in fractions [n, Q, 4], and states [n, Q, D] of all queries."""
        images = [picture.numpy() for picture in pictures]
        inputs = self.processor(images=images, input_data_format="channels_first", return_tensors="pt")
        output = self.model(**{name: inputs[name].to(self.device) for name in ("pixel_values", "pixel_mask") if name in inputs})
        logits, queries = output.logits.float(), output.logits.shape[1]
        # A class more than there are labels means "nothing here": probabilities of classes that exclude one another.
        exclusive = logits.shape[-1] == self.model.config.num_labels + 1
        scores = (logits.softmax(-1)[..., :-1] if exclusive else logits.sigmoid()).amax(-1)
        states = output.last_hidden_state[:, -queries:]  # YOLOS has its queries behind the patches
        return scores.cpu().numpy(), output.pred_boxes.float().cpu().numpy(), states.float().cpu().numpy()


def best_apart(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float) -> np.ndarray:
    """Greedy non-maximum suppression without regard to classes: rows of the best `most`, the best first.

    Args:
        boxes: float32 [n, 4].
        scores: float [n].
        most: rows that are kept.
        overlap: intersection over union with a better box above which a box is left out.
    """
    rest = np.argsort(-scores, kind="stable")
    areas = _areas(boxes)
    kept: list[int] = []
    while rest.size and len(kept) < most:
        best, rest = rest[0], rest[1:]
        kept.append(int(best))
        common = np.minimum(boxes[best, 2:], boxes[rest, 2:]) - np.maximum(boxes[best, :2], boxes[rest, :2])
        shared = common.clip(0).prod(axis=1)
        rest = rest[shared <= overlap * (areas[best] + areas[rest] - shared)]
    return np.array(kept, np.int64)


def _within(boxes: np.ndarray, picture: Tensor) -> np.ndarray:
    return boxes.clip(0, np.array([picture.shape[2], picture.shape[1]] * 2, np.float32)).astype(np.float32)


def _areas(boxes: np.ndarray) -> np.ndarray:
    """0 where right or bottom do not lie behind left or top."""
    return (boxes[:, 2:] - boxes[:, :2]).clip(0).prod(axis=1)


def _load(name: str) -> tuple[Any, Any]:
    """The image processor and the network."""
    from huggingface_hub import HfApi
    from transformers import AutoConfig, AutoImageProcessor, AutoModelForObjectDetection

    folder = Path(name).expanduser()
    local = folder.is_dir()
    source = str(folder) if local else name
    try:
        if not local:
            try:
                AutoConfig.from_pretrained(name, local_files_only=True)
            except OSError:
                # asked once, before the client's own retries, which last half a minute where there is no network
                HfApi().model_info(name, timeout=10)
        processor = AutoImageProcessor.from_pretrained(source, local_files_only=local)
        arguments = {"dtype": torch.float32, "local_files_only": local, "output_loading_info": True}
        model, info = AutoModelForObjectDetection.from_pretrained(source, **arguments)
    except Exception as error:  # the hub client, the parsers and the weight readers each raise kinds of their own
        place = "cannot be loaded from this folder" if local else "is neither a folder here nor to be had from the Hugging Face hub"
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"detector {name!r} {place} ({type(error).__name__}: {reason}); {WAYS}") from None
    if info["missing_keys"]:
        raise UserError(f"detector {name!r}: the weights lack {len(info['missing_keys'])} tensors, such as {min(info['missing_keys'])!r}")
    return processor, model
