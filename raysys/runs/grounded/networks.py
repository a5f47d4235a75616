"""The networks of a grounded run."""

from typing import Any

import torch
from torch import nn

from raysys.models.images import ImageBackbone
from raysys.runs.grounded.base import GroundedStart
from raysys.runs.grounded.settings import GroundedSettings
from raysys.systems.grounded.build import make_grounded
from raysys.systems.grounded.settings import GroundedModelSettings


def build_grounded(settings: GroundedSettings, vocabulary_size: int, start: GroundedStart) -> Any:
    """The networks with the weights that the seed gives, but for what begins at `start`.

    Args:
        settings: of the run.
        vocabulary_size: words that the tokenizer has, which may be fewer than were allowed.
        start: what was taken from the base.
    """
    torch.manual_seed(settings.training.seed)
    text = settings.model.text.model_copy(update={"vocabulary_size": vocabulary_size})
    system: Any = make_grounded(settings.system, settings.model.model_copy(update={"text": text}), settings.objective)
    if start.base is not None:
        system.begin(start.base)
    if start.fitted is not None:
        system.load_state_dict(start.fitted, strict=False)
    return system


def build_pictures(model: GroundedModelSettings, seed: int) -> nn.Module:
    """The image network of every system with these settings: a system builds it first, from the same seed."""
    torch.manual_seed(seed)
    pictures = nn.Module()
    pictures.image = ImageBackbone(model.image)
    return pictures
