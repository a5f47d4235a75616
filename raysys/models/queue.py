"""A queue of the latest samples' vectors, more neighbours than a batch has ("Momentum Contrast", He et al. 2020)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Neighbours(NamedTuple):
    """Vectors of samples of earlier steps; constants."""

    captions: Tensor
    """float32 [K, d], in which captions are compared with captions."""
    images: Tensor
    """float32 [K, e], in which images are compared with images."""
    image_caption: Tensor
    """float32 [K], cosine of each image with its own caption."""
    image_ids: Tensor
    """int64 [K]; equal numbers mean the same image, 0 an image like no other."""


class NeighbourQueue(nn.Module):
    """The latest `size` samples' vectors, the oldest of which give way to new ones.

    They lie in buffers, so that they are part of every checkpoint, on every rank the same. Whoever pushes must push the rows of
    the whole global batch, in their order, on all ranks, once the step is done: within a step the queue stays as it is, however many
    forward passes the step takes.

    Args:
        size: samples, K.
        width: entries of a vector.
    """

    captions: Tensor
    images: Tensor
    image_caption: Tensor
    image_ids: Tensor
    pushed: Tensor

    def __init__(self, size: int, width: int):
        super().__init__()
        self.size = size
        self.register_buffer("captions", torch.zeros(size, width))
        self.register_buffer("images", torch.zeros(size, width))
        self.register_buffer("image_caption", torch.zeros(size))
        self.register_buffer("image_ids", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("pushed", torch.zeros((), dtype=torch.int64))  # samples, ever

    @torch.no_grad()
    def push(self, captions: Tensor, images: Tensor, image_captions: Tensor, image_ids: Tensor) -> None:
        """Take in the samples of a global batch.

        Args:
            captions, images, image_captions: unit vectors [N, width]; of captions as compared with captions, of images, and of captions
                as compared with images.
            image_ids: int64 [N].
        """
        rows = len(image_ids)
        last = slice(max(0, rows - self.size), rows)
        places = (self.pushed + torch.arange(rows, device=image_ids.device)[last]) % self.size
        self.captions[places] = captions[last].float()
        self.images[places] = images[last].float()
        self.image_caption[places] = (images[last].float() * image_captions[last].float()).sum(dim=-1)
        self.image_ids[places] = image_ids[last]
        self.pushed += rows

    def neighbours(self) -> Neighbours:
        """What is there so far, in no particular order; fewer than `size` samples at the beginning."""
        filled = min(self.size, int(self.pushed))
        return Neighbours(self.captions[:filled], self.images[:filled], self.image_caption[:filled], self.image_ids[:filled])
