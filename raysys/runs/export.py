"""A run's encoder, and its export."""

import tempfile
import time
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from raysys.errors import UserError
from raysys.runs.build import build_system, fitted_model
from raysys.runs.folders import upload_folder
from raysys.runs.run import Log, Run
from raysys.systems.encoder import Encoder
from raysys.training.checkpoints import CheckpointState
from raysys.training.export import load_weights


def make_encoder(run: Run, tokenizer: PreTrainedTokenizerFast, state: CheckpointState | None) -> Encoder:
    """The networks of a checkpoint as an encoder; without one, as they were before training."""
    system = build_system(fitted_model(run.settings, tokenizer), run.settings.objective, run.settings.training.seed)
    if state is not None:
        load_weights(system, run.checkpoints, state)
    info = {
        "run": run.settings.run.name,
        "step": state.step if state else 0,
        "languages": list(run.samples.languages),
        "data_fingerprint": run.samples.fingerprint,
    }
    return Encoder(system, tokenizer, run.settings.data.image, info)


def export(run: Run, tokenizer: PreTrainedTokenizerFast, log: Log = print) -> Encoder:
    """Export the best checkpoint into the run's folder. Raises UserError where there is no checkpoint yet."""
    state = run.checkpoints.best()
    if state is None:
        raise UserError(f"the run {run.folder.uri} has no checkpoint yet: let it train to its first one")
    started = time.perf_counter()
    encoder = make_encoder(run, tokenizer, state)
    with tempfile.TemporaryDirectory(prefix="raysys-export-") as scratch:
        encoder.save(scratch)
        upload_folder(run.folder.storage, Path(scratch), run.folder.path("export"))
    log(f"exported step {state.step} to {run.folder.path('export')} in {time.perf_counter() - started:.1f} s")
    return encoder
