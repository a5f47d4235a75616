"""An image processor for transformers that shows pictures as in training (`AutoImageProcessor`, with `trust_remote_code=True`)."""

from typing import Any, Literal

import numpy as np
from PIL import Image
from transformers.image_processing_base import BatchFeature, ImageProcessingMixin

from raysys.systems.export.standalone.square import to_square


class SquareImageProcessor(ImageProcessingMixin):
    """Pictures → normalised pixels.

    Args:
        size: side of the square in pixels.
        fit: as :func:`to_square` takes it.
        image_mean: of R, G, B, in 0..1.
        image_std: of R, G, B, in 0..1.
    """

    model_input_names = ("pixel_values",)

    def __init__(
        self,
        size: int = 224,
        fit: Literal["crop", "pad"] = "crop",
        image_mean: tuple[float, ...] = (0.0,) * 3,
        image_std: tuple[float, ...] = (1.0,) * 3,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.size, self.fit = size, fit
        self.image_mean, self.image_std = list(image_mean), list(image_std)

    def __call__(self, images: Any, return_tensors: str | None = None, **kwargs: Any) -> BatchFeature:
        """`pixel_values`, float32 [n, 3, size, size], of one picture or several: Pillow images, or uint8 arrays [H, W, 3]."""
        pictures = images if isinstance(images, list | tuple) else [images]
        squares = [
            to_square(image if isinstance(image, Image.Image) else Image.fromarray(image), self.size, self.fit) for image in pictures
        ]
        mean, std = np.array(self.image_mean, np.float32), np.array(self.image_std, np.float32)
        pixels = ((np.stack(squares).astype(np.float32) / 255 - mean) / std).transpose(0, 3, 1, 2)
        return BatchFeature({"pixel_values": np.ascontiguousarray(pixels)}, tensor_type=return_tensors)
