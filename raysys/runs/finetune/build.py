"""What a run of fine-tuning is made of: tokenizer, answers, network, and the job that its workers do."""

import functools
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerFast

from raysys.data.encoding import TextForm
from raysys.data.language_codes import language_ids
from raysys.data.task_builder import TaskBuilder, TaskInputs
from raysys.data.task_records import TaskRecords
from raysys.data.tokenizer import load_tokenizer
from raysys.evaluation.tasks.validation import validation_score
from raysys.models.visual_mbart import VisualMBart, VisualMBartSettings
from raysys.runs.finetune.base import Base, base_export, check_base
from raysys.runs.finetune.run import load_images
from raysys.runs.finetune.settings import FinetuneSettings
from raysys.runs.folders import upload_folder
from raysys.runs.networks import ANSWERS, has_tokenizer, saved_tokenizer
from raysys.runs.run import Log, Run, SavedRun
from raysys.storage import Storage
from raysys.systems.rc3.tasks import TaskSystem
from raysys.training.job import TrainingJob, Validation

_CLASSES = {"xvnli": ("contradiction", "entailment", "neutral"), "marvl": ("false", "true")}
_OTHERS = 7
"""Other texts that a validation image's own one is told apart from."""


def get_tokenizer(run: SavedRun) -> PreTrainedTokenizerFast:
    """The run's tokenizer, which is that of its base; saved with it now where it has none."""
    if not has_tokenizer(run):
        base = check_base(run.settings, run.folder)
        with tempfile.TemporaryDirectory(prefix="raysys-tokenizer-") as scratch, base_export(base.uri, run.folder.storage) as export:
            load_tokenizer(export / "text").save_pretrained(scratch)
            upload_folder(run.folder.storage, Path(scratch), run.folder.path("tokenizer"), mark="tokenizer.json")
    return saved_tokenizer(run)


def known_answers(run: Run) -> tuple[str, ...]:
    """The answers that can be given: of xgqa those of the training records, in order; none in tasks without classes."""
    if run.settings.system == "xgqa":
        return tuple(sorted(set(run.samples.answers())))
    return _CLASSES.get(run.settings.system, ())


def saved_answers(run: SavedRun) -> tuple[str, ...]:
    """The answers that the run was trained to give."""
    return tuple(json.loads(run.folder.read_text(ANSWERS)))


def make_job(run: Run, tokenizer: PreTrainedTokenizerFast, log: Log = print) -> TrainingJob:
    """What the workers are told."""
    settings = run.settings
    base, answers = check_base(settings, run.folder), known_answers(run)
    run.folder.write_text(ANSWERS, json.dumps(answers, ensure_ascii=False, indent=0) + "\n")
    inputs = task_inputs(settings, base.network, answers)
    training = make_builder(settings, inputs, tokenizer, run.samples, run.folder.storage, spares=run.plan.spares)
    validation = None
    if run.validation is not None:
        others = _OTHERS if settings.system == "itr" else 0
        builder = make_builder(settings, inputs, tokenizer, run.validation, run.folder.storage, others=others)
        validation = Validation(builder, *validation_score(settings.system))
    return TrainingJob(
        settings=settings.training,
        build=functools.partial(build_task, settings, base, len(answers)),
        plan=run.plan,
        builder=training,
        total_steps=run.total_steps,
        folder=run.folder,
        image=settings.data.image,
        decode_threads=1,
        validation=validation,
    )


def starting_task(run: Run) -> TaskSystem:
    """The networks of a run as they are before training."""
    return build_task(run.settings, check_base(run.settings, run.folder), len(known_answers(run)))


def task_inputs(settings: FinetuneSettings, network: VisualMBartSettings, answers: tuple[str, ...]) -> TaskInputs:
    """How records become what the network reads."""
    return TaskInputs(TextForm(settings.max_tokens), settings.data.image, network.regions, network.region_size, answers)


def make_builder(
    settings: FinetuneSettings,
    inputs: TaskInputs,
    tokenizer: PreTrainedTokenizerFast,
    records: TaskRecords,
    storage: Storage,
    test: str | None = None,
    spares: Callable[[int, int], Iterator[int]] | None = None,
    others: int = 0,
) -> TaskBuilder:
    """What makes batches of records.

    Args:
        settings: of the run.
        inputs: how records become what the network reads.
        tokenizer: the run's.
        records: of training, validation or a test.
        storage: the door to their images.
        test: name of the test; None: they are for training.
        spares, others: as :class:`raysys.data.task_builder.TaskBuilder` has them.

    Raises:
        UserError: the tokenizer has no token for a language of the records.
    """
    tags = language_ids(tokenizer, [*records.languages, *([records.target] if records.target else [])])
    return TaskBuilder(records, load_images(settings, records, storage, test), tokenizer, tags, inputs, spares, others)


def build_task(settings: FinetuneSettings, base: Base, answers: int) -> TaskSystem:
    """The base's network on the task.

    Args:
        settings: of the run.
        base: where its export lies.
        answers: how many there are.
    """
    with base_export(base.uri, Storage(settings.storage)) as export:
        network, heads = VisualMBart.load(export / "text"), load_file(export / "heads.safetensors")
    torch.manual_seed(settings.training.seed)
    system = TaskSystem(settings.system, network, settings.visual, answers, settings.model.near, base.gated)
    system.begin(heads)
    return system
