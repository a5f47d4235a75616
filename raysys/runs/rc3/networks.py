"""The network of a pre-training run."""

import json
from collections.abc import Sequence
from typing import Any

import torch

from raysys.models.vocabulary_reduction import KEPT
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.run import SavedRun
from raysys.systems.rc3.build import make_rc3


def build_rc3(settings: Rc3Settings, vocabulary_size: int, mask_id: int | None, kept: Sequence[int] | None) -> Any:
    """The network with the weights that the seed gives, or that it was pretrained with.

    Args:
        settings: of the run.
        vocabulary_size: pieces that the tokenizer has, which may be fewer than were allowed.
        mask_id: the tokenizer's mask token.
        kept: pieces of the pretrained vocabulary that the tokenizer has; None: all, or there is none.
    """
    torch.manual_seed(settings.training.seed)
    sizes = {"vocabulary_size": vocabulary_size, "image_size": settings.data.image.size}
    network = settings.model.network.model_copy(update=sizes)
    model = settings.model.model_copy(update={"network": network})
    return make_rc3(settings.system, model, settings.objective, len(settings.data.languages), kept, mask_id)


def kept_pieces(run: SavedRun) -> list[int] | None:
    """Pieces of the pretrained vocabulary that the run's tokenizer has; None where none was cut down."""
    uri = run.folder.path("tokenizer", KEPT)
    return json.loads(run.folder.storage.read(uri))["kept"] if run.folder.storage.exists(uri) else None
