"""A run's networks and tokenizer, without its data and without a cluster."""

import tempfile
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast

from raysys.data.tokenizer import load_tokenizer
from raysys.errors import UserError
from raysys.runs.folders import download_folder
from raysys.runs.run import SavedRun
from raysys.runs.settings import GlobetrotterSettings
from raysys.systems.globetrotter import Globetrotter, ModelSettings, ObjectiveSettings


def fitted_model(settings: GlobetrotterSettings, tokenizer: PreTrainedTokenizerFast) -> ModelSettings:
    """The model's settings with an embedding table of the tokenizer's size, which may be less than was allowed."""
    text = settings.model.text.model_copy(update={"vocabulary_size": len(tokenizer)})
    return settings.model.model_copy(update={"text": text})


def build_system(model: ModelSettings, objective: ObjectiveSettings, seed: int) -> Globetrotter:
    """The networks with the weights that `seed` gives."""
    torch.manual_seed(seed)
    return Globetrotter(model, objective)


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
