"""A run's encoder, and its export."""

import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal

from transformers import PreTrainedTokenizerFast

from raysys.data.vector_files import read_vectors
from raysys.errors import UserError
from raysys.runs.card import data_facts, score_text, training_facts
from raysys.runs.folders import download_folder, upload_folder
from raysys.runs.networks import saved_tokenizer, starting_system
from raysys.runs.run import Log, SavedRun
from raysys.storage import Storage, is_remote, join
from raysys.systems.encoder import CARD, Encoder
from raysys.systems.export.model_card import FILE, Measured, model_card
from raysys.systems.export.onnx_export import export_onnx
from raysys.systems.export.sentence_transformers_export import export_sentence_transformers
from raysys.systems.export.transformers_export import export_transformers
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.grounded.encoder import GroundedEncoder
from raysys.training.checkpoints import CheckpointState
from raysys.training.export import load_weights

_BESIDE: dict[str, Callable[[Encoder, Path], float]] = {
    "sentence-transformers": export_sentence_transformers,
    "onnx": export_onnx,
}
"""Formats that lie in a folder of their name, within the export."""
FORMATS = ("transformers", *_BESIDE)
"""What :func:`export` can write."""


def make_encoder(run: SavedRun, tokenizer: PreTrainedTokenizerFast, state: CheckpointState | None) -> Encoder:
    """The networks of a checkpoint as an encoder; without one, as they were before training."""
    system = starting_system(run, tokenizer)
    if state is not None:
        load_weights(system, run.checkpoints, state)
    if isinstance(system, GroundedEncoder):
        system.leave_out_decoders()
    info = {
        "run": run.name,
        "system": run.settings.system,
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
    formats: Collection[str] = ("transformers",),
) -> Encoder:
    """Export a checkpoint, with a model card. Each format is loaded again and compared with the live encoder before anything is stored.

    Args:
        run: whose.
        tokenizer: the run's.
        log: takes a line for people.
        to: folder, local or s3://; by default ``export`` in the run's folder.
        which: the checkpoint.
        formats: those of transformers are always written, since raysys reads them itself; others lie in folders of their name beside
            them. What an earlier export has left of them at `to` is removed.

    Raises:
        UserError: there is no such checkpoint, the folder cannot be written, or the packages that a format needs are not installed.
        RunFailed: what was written differs from the trained encoder.
    """
    encoder = make_encoder(run, tokenizer, run.checkpoint(which) if run.settings.trained else None)
    if isinstance(encoder.system, GroundedEncoder) and (expansion := run.settings.model.text.expansion):
        large = read_vectors(run.settings.data.locate(expansion), run.folder.storage)
        encoder.tokenizer = encoder.system.expand(encoder.tokenizer, large)
        log(f"the encoder reads {len(encoder.tokenizer):,} words, {len(encoder.tokenizer) - len(tokenizer):,} of them from {expansion}")
    store(run, encoder, to or run.folder.path("export"), formats, log)
    return encoder


def store(run: SavedRun, encoder: Encoder, to: str, formats: Collection[str], log: Log = print) -> None:
    """Write the export of a run's encoder; the rest as :func:`export`."""
    started, storage, step = time.perf_counter(), run.folder.storage, encoder.info["step"]
    with tempfile.TemporaryDirectory(prefix="raysys-export-") as scratch:
        measured = write_formats(encoder, Path(scratch), formats)
        card = model_card(encoder, data_facts(run), training_facts(run), measured, score_text(run, step))
        (Path(scratch) / FILE).write_text(card, encoding="utf-8")
        if is_export(storage, to):
            for name in _BESIDE:  # they would be of other weights
                storage.delete(join(to, name), recursive=True)
        upload_folder(storage, Path(scratch), to, mark=CARD)
    log(f"exported step {step} to {to} in {time.perf_counter() - started:.1f} s")
    for name, difference in measured.differences.items():
        log(f"  {name}: {join(to, name) if name in _BESIDE else to} (largest difference from the trained encoder {difference:.1e})")


def write_formats(encoder: Encoder, folder: Path, formats: Collection[str]) -> Measured:
    """Write an export, all but its card, to a local folder and check it. Raises as :func:`export`."""
    if (others := sorted(_BESIDE.keys() & set(formats))) and not isinstance(encoder.system, Globetrotter):
        raise UserError(f"{', '.join(others)}: written of Globetrotter alone; this system is exported in the format transformers")
    exported = export_transformers(encoder, folder)
    differences = {"transformers": exported.difference}
    for name, write in _BESIDE.items():
        if name in formats:
            differences[name] = write(encoder, folder / name)
    return Measured(differences, exported.picture_cosine)


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
    if run.settings.trained:
        run.checkpoint("best")  # says what to do where there is none
    return export(run, saved_tokenizer(run), log)
