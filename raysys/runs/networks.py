"""A run's networks and tokenizer, without its data and without a cluster."""

import io
import tempfile
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from raysys.data.tokenizer import load_tokenizer
from raysys.errors import UserError
from raysys.models.heads import WhitenedHead, Whitening
from raysys.runs.folders import download_folder
from raysys.runs.run import SavedRun
from raysys.runs.settings import GlobetrotterSettings
from raysys.systems.globetrotter import Globetrotter, ModelSettings, ObjectiveSettings


def fitted_model(settings: GlobetrotterSettings, tokenizer: PreTrainedTokenizerFast) -> ModelSettings:
    """The model's settings with an embedding table of the tokenizer's size, which may be less than was allowed."""
    text = settings.model.text.model_copy(update={"vocabulary_size": len(tokenizer)})
    return settings.model.model_copy(update={"text": text})


def build_system(model: ModelSettings, objective: ObjectiveSettings, seed: int, whitening: Whitening | None = None) -> Globetrotter:
    """The networks with the weights that `seed` gives, and the image head, where it is a whitened one, that begins at `whitening`."""
    torch.manual_seed(seed)
    system = Globetrotter(model, objective)
    if whitening is not None and isinstance(system.image_head, WhitenedHead):
        system.image_head.begin(whitening)
    return system


def forget_start(run: SavedRun) -> None:
    """Delete what an attempt without checkpoint has left, which other settings may now make differently."""
    for name in ("tokenizer", _WHITENING):
        run.folder.storage.delete(run.folder.path(name), recursive=True)


_WHITENING = "whitening.npz"


def save_whitening(run: SavedRun, whitening: Whitening) -> None:
    """Keep with the run where its image head began."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: value.numpy() for name, value in whitening._asdict().items()})
    run.folder.storage.write(run.folder.path(_WHITENING), buffer.getvalue())


def saved_whitening(run: SavedRun) -> Whitening | None:
    """Where the run's image head began; None where it began with random weights, or has not begun yet."""
    if run.settings.model.image_head != "whitened" or not run.folder.storage.exists(run.folder.path(_WHITENING)):
        return None
    arrays = np.load(io.BytesIO(run.folder.storage.read(run.folder.path(_WHITENING))))
    return Whitening(*(torch.from_numpy(arrays[name]) for name in Whitening._fields))


def has_tokenizer(run: SavedRun) -> bool:
    """Whether the run's tokenizer has been trained."""
    return run.folder.storage.exists(run.folder.path("tokenizer", "tokenizer.json"))


def saved_tokenizer(run: SavedRun) -> PreTrainedTokenizerFast:
    """The tokenizer that lies in the run's folder. Raises UserError where there is none yet."""
    if not has_tokenizer(run):
        raise UserError(f"the run {run.folder.uri} has no tokenizer yet: let it train to its first checkpoint")
    with tempfile.TemporaryDirectory(prefix="raysys-tokenizer-") as scratch:
        download_folder(run.folder.storage, run.folder.path("tokenizer"), Path(scratch))
        return load_tokenizer(scratch)
