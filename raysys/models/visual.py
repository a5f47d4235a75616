"""Pictures as an encoder's input: regions of interest, patches or both, as vectors beside those of the words."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

BOX_NUMBERS = 5
"""Left, top, right and bottom of a region as fractions of the picture, and its area."""


@dataclass
class Visual:
    """One picture of each of n rows; a row may lack regions, pixels or both."""

    regions: Tensor | None = None
    """float [n, R, D]: a detector's features"""
    boxes: Tensor | None = None
    """float [n, R, 5]: left, top, right, bottom as fractions of the picture, and the area"""
    region_mask: Tensor | None = None
    """int64 [n, R]: 1 at regions, 0 where there is none"""
    pixels: Tensor | None = None
    """uint8 [n, 3, H, W]: RGB"""
    has_pixels: Tensor | None = None
    """bool [n]: whether the row has pixels"""

    def rows(self, index: Tensor) -> "Visual":
        """The pictures of the rows `index`, int64 [k], in that order; a row may come several times."""
        parts = (self.regions, self.boxes, self.region_mask, self.pixels, self.has_pixels)
        return Visual(*(None if part is None else part[index] for part in parts))


class VisualInputs(nn.Module):
    """Pictures as vectors for an encoder: `[CLS] regions [SEP] patches [SEP'] regions [SEP] patches` of one or two pictures.

    Regions are projected by a fully connected layer, and patches of raw pixels by another (RC³ §2.2). A region's place is its box and a
    patch's place a learned vector [ours]: both projections are normalised before they are added, since nothing is known of the scale of
    a detector's features. The second picture has a learned vector of its own for all its inputs [ours]; nothing else would tell which of
    two pictures a region belongs to.

    Args:
        size: of the vectors.
        region_size: of a region's features.
        patch: height and width of a patch in pixels.
        image_size: height and width of a picture in pixels, a multiple of `patch`.
        deviation: of the learned vectors at the start.
    """

    def __init__(self, size: int, region_size: int, patch: int, image_size: int, deviation: float):
        super().__init__()
        self.patch, self.image_size = patch, image_size
        self.marks = nn.Embedding(3, size)
        self.picture = nn.Embedding(2, size)
        self.of_region, self.region_norm = nn.Linear(region_size, size), nn.LayerNorm(size)
        self.of_box, self.box_norm = nn.Linear(BOX_NUMBERS, size), nn.LayerNorm(size)
        self.of_patch, self.patch_norm = nn.Linear(3 * patch**2, size), nn.LayerNorm(size)
        self.places = nn.Embedding((image_size // patch) ** 2, size)
        for vectors in (self.marks, self.picture, self.places):
            nn.init.normal_(vectors.weight, std=deviation)

    def forward(self, images: Sequence[Visual], always: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors float [n, P, size] and mask int64 [n, P]: 0 at regions, patches and separators that a row has not.

        Args:
            images: one picture of each row, or two.
            always: int64 [n, 1], ones: the mask of [CLS].

        Raises:
            ValueError: more than two pictures, or one that this network does not read.
        """
        if len(images) > 2:
            raise ValueError(f"the network reads one picture or two, not {len(images)}")
        marks = self.marks(torch.arange(3, device=always.device))
        cls, sep, sep_images = (mark.expand(len(always), 1, -1) for mark in marks)
        parts, seen = [(cls, always)], torch.zeros_like(always)
        for number, image in enumerate(images):
            vectors, mask = self._picture(image, number, sep)
            has = mask.bool().any(dim=1, keepdim=True).long()
            if number:
                parts.append((sep_images, has & seen))
            parts.append((vectors, mask))
            seen |= has
        return torch.cat([vectors for vectors, _ in parts], dim=1), torch.cat([mask for _, mask in parts], dim=1)

    def _picture(self, image: Visual, number: int, sep: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors and mask of one picture's inputs."""
        parts: list[tuple[Tensor, Tensor]] = []
        if image.regions is not None:
            parts.append(self._regions(image, sep.dtype))
        if image.pixels is not None:
            parts.append(self._patches(image, sep.dtype))
        if len(parts) == 2:
            both = parts[0][1].bool().any(dim=1, keepdim=True).long() & parts[1][1][:, :1]
            parts.insert(1, (sep, both))
        if not parts:
            raise ValueError(f"picture {number} of the rows has neither regions nor pixels")
        vectors = torch.cat([vectors for vectors, _ in parts], dim=1)
        which = torch.full((1,), number, device=vectors.device)
        return vectors + self.picture(which), torch.cat([mask for _, mask in parts], dim=1)

    def _regions(self, image: Visual, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        regions, boxes, mask = image.regions, image.boxes, image.region_mask
        if regions is None or boxes is None or mask is None:
            raise ValueError("regions come with their boxes and their mask")
        if regions.shape[2] != self.of_region.in_features:
            raise ValueError(f"regions have features of size {regions.shape[2]}, and the network reads {self.of_region.in_features}")
        # Zeros where there is no region: a mask does not keep what is no number out of attention's gradient.
        there = mask.bool().unsqueeze(2)
        features = self.region_norm(self.of_region(regions.where(there, 0).to(dtype)))
        # From −1 to 1: of numbers that are all positive, what boxes have in common would be nearly all that is left of them.
        places = boxes.where(there, 0) * 2 - 1
        return features + self.box_norm(self.of_box(places.to(dtype))), mask.long()

    def _patches(self, image: Visual, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        pixels, side = image.pixels, self.image_size
        assert pixels is not None
        if pixels.shape[1:] != (3, side, side):
            raise ValueError(f"pictures are of shape {list(pixels.shape[1:])}, and the network reads {[3, side, side]}")
        squares = pixels.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)  # [n, 3, h, w, patch, patch]
        flat = squares.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        patches = self.patch_norm(self.of_patch(flat.to(dtype) / 127.5 - 1))
        has = torch.ones(len(pixels), device=pixels.device) if image.has_pixels is None else image.has_pixels
        places = self.places(torch.arange(patches.shape[1], device=pixels.device))
        return patches + places, has.long()[:, None].expand(-1, patches.shape[1])
