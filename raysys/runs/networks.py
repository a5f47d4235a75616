"""A run's networks and tokenizer, without its data and without a cluster."""

import io
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedTokenizerFast

from raysys.data.tokenizer import load_tokenizer
from raysys.data.word_vectors import WordVectors
from raysys.errors import UserError
from raysys.models.heads import WhitenedHead, Whitening
from raysys.models.images import ImageBackbone, SimCLRViews
from raysys.runs.folders import download_folder
from raysys.runs.grounded import base
from raysys.runs.grounded.networks import build_grounded
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.rc3.networks import build_rc3, kept_pieces
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.run import SavedRun
from raysys.runs.settings import GlobetrotterSettings
from raysys.systems.build import make_system
from raysys.systems.muve import Muve
from raysys.systems.settings import ModelSettings


class Start(NamedTuple):
    """Where those parts of a system begin that are made from the data before training."""

    whitening: Whitening | None = None
    """Of the image head."""
    words: WordVectors | None = None
    """Of the languages."""


def fitted_model(settings: GlobetrotterSettings, tokenizer: PreTrainedTokenizerFast, start: Start) -> ModelSettings:
    """The model's settings with embedding tables of the size that the data gave: of the tokenizer, which may be less than was allowed,
    and of the languages' word vectors."""
    model = settings.model
    changed: dict[str, Any] = {"text": model.text.model_copy(update={"vocabulary_size": len(tokenizer)})}
    if start.words is not None:
        changed["muve"] = model.muve.model_copy(update={"rows": len(start.words)})
    return model.model_copy(update=changed)


def build_system(settings: GlobetrotterSettings, model: ModelSettings, start: Start) -> Any:
    """The networks with the weights that the seed gives, but for what begins at `start`.

    Args:
        settings: of the run, with all its languages.
        model: as :func:`fitted_model` has it.
        start: what was made from the data.
    """
    torch.manual_seed(settings.training.seed)
    system: Any = make_system(settings.system, model, settings.objective, len(settings.data.languages))
    if start.whitening is not None and isinstance(getattr(system, "image_head", None), WhitenedHead):
        system.image_head.begin(start.whitening)
    if start.words is not None and isinstance(system, Muve):
        system.begin(start.words)
    return system


def starting_system(run: SavedRun, tokenizer: PreTrainedTokenizerFast) -> Any:
    """The networks of a run as they were before training."""
    if isinstance(run.settings, GroundedSettings):
        return build_grounded(run.settings, len(tokenizer), base.saved_start(run))
    if isinstance(run.settings, Rc3Settings):
        return build_rc3(run.settings, len(tokenizer), tokenizer.mask_token_id, kept_pieces(run))
    start = saved_start(run)
    return build_system(run.settings, fitted_model(run.settings, tokenizer, start), start)


def forget_start(run: SavedRun) -> None:
    """Delete what an attempt without checkpoint has left, which other settings may now make differently."""
    for name in ("tokenizer", _WHITENING, _WORDS, *base.FILES, ANSWERS):
        run.folder.storage.delete(run.folder.path(name), recursive=True)


_WHITENING, _WORDS = "whitening.npz", "word-vectors.npz"
ANSWERS = "answers.json"
"""The file of answers that can be given in the folder of a run that is fine-tuned on questions."""


def save_start(run: SavedRun, start: Start) -> None:
    """Keep with the run where its parts began."""
    if start.whitening is not None:
        buffer = io.BytesIO()
        np.savez(buffer, **{name: value.numpy() for name, value in start.whitening._asdict().items()})
        run.folder.storage.write(run.folder.path(_WHITENING), buffer.getvalue())
    if start.words is not None:
        run.folder.storage.write(run.folder.path(_WORDS), start.words.dumps())


def saved_start(run: SavedRun) -> Start:
    """Where the run's parts began; None for those that began with random weights, or have not begun yet."""
    whitening = words = None
    if run.settings.model.image_head == "whitened" and (data := _read(run, _WHITENING)):
        arrays = np.load(io.BytesIO(data))
        whitening = Whitening(*(torch.from_numpy(arrays[name]) for name in Whitening._fields))
    if run.settings.system == "muve" and (data := _read(run, _WORDS)):
        words = WordVectors.loads(data)
    return Start(whitening, words)


def _read(run: SavedRun, name: str) -> bytes | None:
    uri = run.folder.path(name)
    return run.folder.storage.read(uri) if run.folder.storage.exists(uri) else None


def build_images(model: ModelSettings, seed: int) -> nn.Module:
    """The image network and the views of every system with these settings: a system builds them first, from the same seed."""
    torch.manual_seed(seed)
    images = nn.Module()
    images.image, images.views = ImageBackbone(model.image), SimCLRViews(model.views)
    return images


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
