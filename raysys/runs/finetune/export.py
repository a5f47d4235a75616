"""The fine-tuned network of a run, and its export."""

import tempfile
import time
from pathlib import Path
from typing import Literal

from transformers import PreTrainedTokenizerFast

from raysys.runs.finetune.base import check_base
from raysys.runs.finetune.build import build_task, saved_answers, task_inputs
from raysys.runs.folders import download_folder, upload_folder
from raysys.runs.run import Log, SavedRun
from raysys.storage import Storage, is_remote
from raysys.systems.encoder import CARD
from raysys.systems.export.agreement import same_tensors
from raysys.systems.rc3.task_model import TaskModel
from raysys.training.checkpoints import CheckpointState
from raysys.training.export import load_weights


def task_model(run: SavedRun, tokenizer: PreTrainedTokenizerFast, state: CheckpointState) -> TaskModel:
    """The network of a checkpoint. The base has to be at hand, as it knows the network's sizes."""
    base, answers = check_base(run.settings, run.folder), saved_answers(run)
    system = build_task(run.settings, base, len(answers))
    load_weights(system, run.checkpoints, state)
    info = {
        "run": run.name,
        "base": base.uri,
        "step": state.step,
        "languages": list(run.settings.data.languages),
        "data_fingerprint": state.fingerprint,
    }
    return TaskModel(system, tokenizer, task_inputs(run.settings, base.network, answers), info)


def export_finetuned(
    run: SavedRun,
    tokenizer: PreTrainedTokenizerFast,
    log: Log = print,
    to: str | None = None,
    which: int | Literal["best", "latest"] = "best",
) -> TaskModel:
    """Export a checkpoint; what was written is loaded again and compared before anything is stored.

    Args:
        run: whose.
        tokenizer: the run's.
        log: takes a line for people.
        to: folder, local or s3://; by default ``export`` in the run's folder.
        which: the checkpoint.

    Raises:
        UserError: there is no such checkpoint, the base has gone, or the folder cannot be written.
        RunFailed: what was written differs from what was trained.
    """
    started, uri = time.perf_counter(), to or run.folder.path("export")
    model = task_model(run, tokenizer, run.checkpoint(which))
    with tempfile.TemporaryDirectory(prefix="raysys-export-") as scratch:
        model.save(scratch)
        same_tensors("the export", model.system.state_dict(), TaskModel.load(scratch).system.state_dict())
        upload_folder(run.folder.storage, Path(scratch), uri, mark=CARD)
    log(f"exported step {model.info['step']} to {uri} in {time.perf_counter() - started:.1f} s")
    return model


def load_task_model(storage: Storage, uri: str) -> TaskModel:
    """An exported model from its folder, local or s3://. Raises UserError where there is none."""
    if not is_remote(uri):
        return TaskModel.load(uri)
    with tempfile.TemporaryDirectory(prefix="raysys-export-") as scratch:
        download_folder(storage, uri, Path(scratch))
        return TaskModel.load(scratch)


def finetuned_model(run: SavedRun, tokenizer: PreTrainedTokenizerFast, log: Log = print) -> TaskModel:
    """The run's export; where it has none, its best checkpoint is exported now. Raises UserError without checkpoint."""
    if run.folder.storage.exists(run.folder.path("export", CARD)):
        return load_task_model(run.folder.storage, run.folder.path("export"))
    return export_finetuned(run, tokenizer, log)
