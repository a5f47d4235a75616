"""EfficientNet-Lite0 for transformers (`AutoModel`, with `trust_remote_code=True`). Needs torch and transformers.

Architecture: Tan and Le 2019 (EfficientNet), without squeeze-and-excitation and with ReLU6, as Google published it as "Lite0".
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

# how often, kernel, stride of the first, expansion, channels
STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320))
STEM, HEAD = 32, 1280


class Lite0Config(PretrainedConfig):
    """There is one size."""

    model_type = "efficientnet-lite0"
    hidden_size: int = HEAD


class _SameConv(nn.Conv2d):
    """Padding as TensorFlow has it ("SAME"): with stride 2 and an even size, one more at the end than at the beginning."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1):
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)
        before = (kernel - stride) // 2
        self.around = (before, kernel - stride - before) * 2

    def forward(self, maps: Tensor) -> Tensor:
        return super().forward(F.pad(maps, self.around) if any(self.around) else maps)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class _Block(nn.Module):
    """Expand, filter each channel, project; with a way past it where the shape stays."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int):
        super().__init__()
        inner = inputs * expansion
        self.expands, self.skips = expansion > 1, stride == 1 and inputs == outputs
        if self.expands:
            self._expand_conv, self._bn0 = _SameConv(inputs, inner, 1), _norm(inner)
        self._depthwise_conv, self._bn1 = _SameConv(inner, inner, kernel, stride, groups=inner), _norm(inner)
        self._project_conv, self._bn2 = _SameConv(inner, outputs, 1), _norm(outputs)

    def forward(self, maps: Tensor) -> Tensor:
        inner = F.relu6(self._bn0(self._expand_conv(maps))) if self.expands else maps
        inner = F.relu6(self._bn1(self._depthwise_conv(inner)))
        projected = self._bn2(self._project_conv(inner))
        return maps + projected if self.skips else projected


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = _SameConv(3, STEM, 3, 2), _norm(STEM)
        blocks, channels = [], STEM
        for repeats, kernel, stride, expansion, outputs in STAGES:
            for index in range(repeats):
                blocks.append(_Block(channels, outputs, kernel, 1 if index else stride, expansion))
                channels = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = _SameConv(channels, HEAD, 1), _norm(HEAD)

    def forward(self, pixels: Tensor) -> Tensor:
        maps = F.relu6(self._bn0(self._conv_stem(pixels)))
        for block in self._blocks:
            maps = block(maps)
        return F.relu6(self._bn1(self._conv_head(maps)))


class Lite0Model(PreTrainedModel):
    """Normalised pixels [n, 3, H, W] → maps [n, 1280, H/32, W/32], and their mean [n, 1280]."""

    config_class = Lite0Config
    main_input_name = "pixel_values"

    def __init__(self, config: Lite0Config):
        super().__init__(config)
        self.network = _Network()
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """torch's own beginnings are kept."""

    def forward(self, pixel_values: Tensor, **kwargs: Any) -> BaseModelOutputWithPooling:
        """`last_hidden_state`: the maps; `pooler_output`: their mean."""
        maps = self.network(pixel_values)
        return BaseModelOutputWithPooling(last_hidden_state=maps, pooler_output=maps.mean(dim=(2, 3)))
