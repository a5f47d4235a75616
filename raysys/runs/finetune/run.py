"""A run of fine-tuning: its base, records and plan, checked before anything is started."""

from collections.abc import Sequence

from raysys.data.images import ImagePreprocessorSettings
from raysys.data.plan import Plan
from raysys.data.task_images import TaskImages
from raysys.data.task_records import TaskRecords
from raysys.errors import UserError
from raysys.models.visual_mbart import VisualMBartSettings
from raysys.runs.describe import describe_training
from raysys.runs.finetune.base import check_base
from raysys.runs.finetune.settings import TABLE_6, FinetuneSettings
from raysys.runs.run import Log, Run, check_resumable, micro_batches, open_settings
from raysys.shards.manifest import load_or_build
from raysys.storage import Storage
from raysys.systems.rc3.tasks import TASK_TITLES


def open_finetune(settings: FinetuneSettings, log: Log = print) -> Run:
    """Open the data and make the plan; every fault of settings, base or data is raised here, before training starts.

    Raises:
        UserError: says what is wrong and what to change.
        BadDataError: samples are bad, and the policy does not allow them.
    """
    settings, folder = open_settings(settings)
    base = check_base(settings, folder)
    settings = as_base(settings, base.network, base.image)
    check_resumable(settings, folder)
    data, training, storage = settings.data, settings.training, folder.storage
    records = load_records(settings, data.train, storage, log)
    if records.left_out:
        told = f"{len(records.bad)} bad, {records.left_out - len(records.bad)} without a text in {' and '.join(data.languages)}"
        log(f"records left out: {told}")
    load_images(settings, records, storage).check_regions(base.network.region_size)
    validation = load_records(settings, data.validation, storage, log) if data.validation else None
    if validation is not None:
        load_images(settings, validation, storage)
    parts = micro_batches(training, folder, records.fingerprint, log)
    plan = Plan(len(records), training.global_batch, training.seed, data.run_length, data.window_steps, "drop", parts)
    return Run(settings, folder, records, validation, plan)


def as_base(settings: FinetuneSettings, network: VisualMBartSettings, image: ImagePreprocessorSettings) -> FinetuneSettings:
    """The settings with pictures prepared as the base's were, and no longer texts than its network reads.

    Args:
        settings: of the run.
        network: of the base.
        image: how its pictures were prepared.

    Raises:
        UserError: longer texts are asked for.
    """
    most, asked = network.max_tokens, settings.data.max_tokens
    if asked is not None and asked > most:
        raise UserError(f"data.max_tokens: {asked} pieces, and the network of {settings.base} reads {most} at most")
    data = {"image": image, "max_tokens": min(asked or TABLE_6[settings.system].max_tokens, most)}
    return settings.model_copy(update={"data": settings.data.model_copy(update=data)})


def load_records(
    settings: FinetuneSettings, folders: Sequence[str], storage: Storage, log: Log = print, test: str | None = None
) -> TaskRecords:
    """The records of some folders: for training and validation those in the language of training, for a test those in all languages.

    Args:
        settings: of the run.
        folders: beneath the data folder.
        storage: the door to them.
        log: takes a line for people.
        test: name of the test; None: they are for training.
    """
    data, task = settings.data, settings.system
    source: str | None = data.source
    target = data.target
    if test is not None:
        source, target = data.pair_of(test) if task == "mmt" else (None, None)
    return TaskRecords.load(task, [data.locate(name) for name in folders], storage, source, target, data.policy, log)


def load_images(settings: FinetuneSettings, records: TaskRecords, storage: Storage, test: str | None = None) -> TaskImages:
    """Where the images of records lie.

    Raises:
        UserError: an image is missing, or has no regions though they are to be read.
    """
    data = settings.data
    folders = data.test_images.get(test or "", data.images)
    manifests = [load_or_build(storage, data.locate(name), lambda line: None) for name in folders]
    return TaskImages(records, manifests, settings.visual, storage)


def described_data(run: Run) -> str:
    """What the run is trained on, in words."""
    settings, records = run.settings, run.samples
    languages = f"{settings.data.source} to {settings.data.target}" if settings.data.target else settings.data.source
    return f"{len(records)} records of {TASK_TITLES[settings.system]} in {languages}, images as {settings.visual}"


def describe_finetune(run: Run) -> list[str]:
    """The plan in lines for people."""
    return describe_training(run, f"data {described_data(run)}", f"beginning with the network of {run.settings.base}")
