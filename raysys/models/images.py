"""Images on the training device: the backbone that turns them into vectors, and the views that SimCLR compares."""

from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import pydantic
import torch
from torch import Tensor, nn

from raysys.models.backbones import Network, build_network, save_network
from raysys.models.recompute import recompute_in_backward
from raysys.settings import Settings


class ImageModelSettings(Settings):
    """The image backbone and what of it is trained."""

    backbone: str = "resnet-18"
    """'resnet-18' or 'resnet-10-narrow' (random weights), 'package:efficientnet-lite0' (ImageNet weights), a folder or a hub id."""
    pretrained: bool = True
    """Load the weights that the backbone comes with; false: the same architecture with random weights."""
    frozen: bool = False
    """Never train the backbone; its vectors can then be computed once and kept."""
    batch_norm: Literal["frozen", "local"] = "local"
    """'frozen': stored statistics, so results do not depend on how a batch is split; 'local': statistics of each micro-batch."""


class ImageBackbone(nn.Module):
    """Pixels → one vector per image. Random weights come from torch's global generator: seed it before building.

    Raises (when built):
        UserError: the backbone cannot be had; lists what can.
    """

    def __init__(self, settings: ImageModelSettings):
        super().__init__()
        self.settings = settings
        network = build_network(settings.backbone, settings.pretrained)
        self.network = network.module
        self.hidden_size = network.hidden_size
        # plain numbers, not buffers: an engine that casts a module to bfloat16 would round them
        self.mean, self.std = network.mean, network.std
        if settings.frozen:
            self.requires_grad_(False)
        self.train()

    def forward(self, pixels: Tensor) -> Tensor:
        """Vectors float32 [n, hidden_size].

        Args:
            pixels: RGB [n, 3, H, W], uint8 in 0..255 or floating point in 0..1; normalised here, with the mean and
                deviation that the backbone was trained on.
        """
        if pixels.dtype == torch.uint8:
            pixels = pixels.float() / 255
        elif not pixels.is_floating_point():
            raise TypeError(f"pixels are uint8 or floating point, not {pixels.dtype}")
        with torch.no_grad() if self.settings.frozen else nullcontext():
            pixels = pixels.float()
            mean, std = (pixels.new_tensor(values).view(1, 3, 1, 1) for values in (self.mean, self.std))
            dtype = next(self.network.parameters()).dtype
            # convolutions are up to 1.7 times as fast on a CPU in this order
            pixels = ((pixels - mean) / std).to(dtype, memory_format=torch.channels_last)
            return self.network(pixels).float()

    def train(self, mode: bool = True) -> "ImageBackbone":
        """Training mode for what is trained: not for a frozen backbone, nor for frozen batch normalisation."""
        super().train(mode and not self.settings.frozen)
        if self.settings.batch_norm == "frozen":
            for module in self.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self

    def checkpoint_activations(self) -> None:
        """Recompute activations in the backward pass instead of keeping them; a frozen network keeps none anyway."""
        if not self.settings.frozen:
            recompute_in_backward(self.network)

    def save_pretrained(self, folder: str | Path, image_size: int = 224) -> None:
        """Write a folder that `backbone: <folder>` loads again, and transformers too unless the network is a package's."""
        save_network(Network(self.network, self.hidden_size, self.mean, self.std), Path(folder), image_size)


class SimCLRViewsSettings(Settings):
    """How far two views of one image may differ. Never flipped: captions tell left from right."""

    crop_scale: tuple[float, float] = (0.2, 1.0)
    """Smallest and largest part of the area that a random resized crop keeps."""
    brightness: float = pydantic.Field(0.8, ge=0.0)
    """Strength of the brightness jitter."""
    contrast: float = pydantic.Field(0.8, ge=0.0)
    """Strength of the contrast jitter."""
    saturation: float = pydantic.Field(0.8, ge=0.0)
    """Strength of the saturation jitter."""
    hue: float = pydantic.Field(0.2, ge=0.0, le=0.5)
    """Strength of the hue jitter, as a part of the colour circle."""
    jitter_probability: float = pydantic.Field(0.8, ge=0.0, le=1.0)
    """Share of the images whose colours are jittered."""
    grey_probability: float = pydantic.Field(0.2, ge=0.0, le=1.0)
    """Share of the images that lose their colours."""
    blur_probability: float = pydantic.Field(0.5, ge=0.0, le=1.0)
    """Share of the images that are blurred (Gaussian, kernel a tenth of the image, deviation 0.1 to 2 pixels)."""

    @pydantic.field_validator("crop_scale")
    @classmethod
    def _a_range(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not 0 < value[0] <= value[1] <= 1:
            raise ValueError("crop_scale is two parts of the area, 0 < smallest <= largest <= 1")
        return value


class SimCLRViews(nn.Module):
    """One random view of every image of a batch, each image by its own draw (SimCLR's augmentations, by kornia).

    The draws come from torch's global CPU generator whatever the device of the pixels, so that `torch.manual_seed` makes
    the views reproducible.
    """

    def __init__(self, settings: SimCLRViewsSettings):
        super().__init__()
        self.settings = settings
        self._pipelines: dict[tuple[int, int, bool], nn.Module] = {}

    def forward(self, pixels: Tensor) -> Tensor:
        """uint8 (or float in 0..1) [n, 3, H, W] → float32 [n, 3, H, W] in 0..1, without a graph; call it once per view."""
        height, width = pixels.shape[-2:]
        key = (height, width, pixels.device.type == "cpu")
        if key not in self._pipelines:
            self._pipelines[key] = self._pipeline(*key)
        with torch.no_grad(), torch.autocast(pixels.device.type, enabled=False):
            pixels = pixels.float() / 255 if pixels.dtype == torch.uint8 else pixels.float()
            if len(pixels) == 0:
                return pixels
            return self._pipelines[key](pixels).clamp_(0.0, 1.0)

    def _pipeline(self, height: int, width: int, cpu: bool) -> nn.Module:
        from kornia import augmentation as K

        s = self.settings
        kernel = (max(3, height // 10 | 1), max(3, width // 10 | 1))
        # slicing is three times as fast as resampling on a CPU; on an accelerator it is one small kernel per image
        crop = K.RandomResizedCrop((height, width), scale=s.crop_scale, cropping_mode="slice" if cpu else "resample")
        return nn.Sequential(
            crop,
            K.ColorJitter(s.brightness, s.contrast, s.saturation, s.hue, p=s.jitter_probability),
            K.RandomGrayscale(p=s.grey_probability),
            K.RandomGaussianBlur(kernel, (0.1, 2.0), p=s.blur_probability),
        )
