"""A run's encoder, and its export."""

import tempfile
import time
from pathlib import Path
from typing import Literal

from transformers import PreTrainedTokenizerFast

from raysys.runs.folders import download_folder, upload_folder
from raysys.runs.networks import build_system, fitted_model, saved_tokenizer, saved_whitening
from raysys.runs.run import Log, SavedRun
from raysys.storage import Storage, is_remote, join
from raysys.systems.encoder import CARD, Encoder
from raysys.training.checkpoints import CheckpointState
from raysys.training.export import load_weights


def make_encoder(run: SavedRun, tokenizer: PreTrainedTokenizerFast, state: CheckpointState | None) -> Encoder:
    """The networks of a checkpoint as an encoder; without one, as they were before training."""
    model, objective, seed = fitted_model(run.settings, tokenizer), run.settings.objective, run.settings.training.seed
    system = build_system(model, objective, seed, saved_whitening(run))
    if state is not None:
        load_weights(system, run.checkpoints, state)
    info = {
        "run": run.name,
        "step": state.step if state else 0,
        "languages": list(run.settings.data.languages),
        "data_fingerprint": state.fingerprint if state else None,
    }
    return Encoder(system, tokenizer, run.settings.data.image, info)


def export(
    run: SavedRun,
    tokenizer: PreTrainedTokenizerFast,
    log: Log = print,
    to: str | None = None,
    which: int | Literal["best", "latest"] = "best",
) -> Encoder:
    """Export a checkpoint.

    Args:
        run: whose.
        tokenizer: the run's.
        log: takes a line for people.
        to: folder, local or s3://; by default ``export`` in the run's folder.
        which: the checkpoint.

    Raises:
        UserError: there is no such checkpoint, or the folder cannot be written.
    """
    state = run.checkpoint(which)
    started = time.perf_counter()
    encoder = make_encoder(run, tokenizer, state)
    to = to or run.folder.path("export")
    with tempfile.TemporaryDirectory(prefix="raysys-export-") as scratch:
        encoder.save(scratch)
        upload_folder(run.folder.storage, Path(scratch), to, mark=CARD)
    log(f"exported step {state.step} to {to} in {time.perf_counter() - started:.1f} s")
    return encoder


def load_export(storage: Storage, uri: str) -> Encoder:
    """An exported encoder from its folder, local or s3://. Raises UserError where there is none."""
    if not is_remote(uri):
        return Encoder.load(uri)
    with tempfile.TemporaryDirectory(prefix="raysys-export-") as scratch:
        download_folder(storage, uri, Path(scratch))
        return Encoder.load(scratch)


def is_export(storage: Storage, uri: str) -> bool:
    """Whether an exported encoder lies at `uri`."""
    return storage.exists(join(uri, CARD))


def trained_encoder(run: SavedRun, log: Log = print) -> Encoder:
    """The run's export; where it has none, its best checkpoint is exported now. Raises UserError without checkpoint."""
    if is_export(run.folder.storage, run.folder.path("export")):
        return load_export(run.folder.storage, run.folder.path("export"))
    run.checkpoint("best")  # says what to do where there is none
    return export(run, saved_tokenizer(run), log)
