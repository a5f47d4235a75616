"""A run of the grounded systems: its data and plan, checked before anything is started."""

from typing import Any

import numpy as np

from raysys.data.grouped_plan import GroupedPlan
from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.data.streams import Streams
from raysys.data.triples import Triples
from raysys.models.backbones import check_backbone
from raysys.runs.describe import describe_passes, describe_training
from raysys.runs.grounded.base import check_base
from raysys.runs.grounded.settings import GroundedDataSettings, GroundedSettings
from raysys.runs.run import Log, Run, check_resumable, micro_batches, open_settings
from raysys.systems.grounded.names import losses_of, projection_of
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings


def open_grounded(settings: GroundedSettings, log: Log = print) -> Run:
    """Open the data and make the plan; every fault of settings or data is raised here, before training starts.

    Raises:
        UserError: says what is wrong and what to change.
    """
    settings, folder = open_settings(settings)
    check_resumable(settings, folder)
    data, storage = settings.data, folder.storage
    check_backbone(settings.model.image.backbone, settings.model.image.pretrained)
    check_base(settings, folder)
    triples = None
    if settings.uses_text:
        triples = Triples.load([data.locate(name) for name in data.text], data.language, storage, log, data.max_words, data.policy)
    captions = data.load(data.captions, (data.language,), storage, log) if settings.uses_images else None
    if captions is not None and captions.left_out:
        bad = sum(bool(one.key) for one in captions.bad)  # a shard damaged as a whole is no sample
        log(f"pictures left out: {bad} bad samples, {captions.left_out - bad} without a caption in {data.language}")
    streams = Streams(triples, captions)
    return Run(settings, folder, streams, None, make_plan(settings.training, data, streams, folder, log))


def make_plan(training: TrainingSettings, data: GroundedDataSettings, streams: Streams, folder: RunFolder, log: Log) -> Plan:
    """The order of training: of one kind of samples, or of triples and pictures in every batch by their shares."""
    parts = micro_batches(training, folder, streams.fingerprint, log)
    triples, captions = streams.triples, streams.captions
    lengths = None
    if data.bucket and triples is not None:
        lengths = np.concatenate([triples.lengths, np.zeros(0 if captions is None else len(captions), triples.lengths.dtype)])
    order: Any = (training.global_batch, training.seed, data.run_length, data.window_steps, "drop", parts)
    if triples is None or captions is None:
        return Plan(len(streams), *order, lengths=lengths)
    groups = [range(len(triples)), range(len(triples), len(streams))]
    return GroupedPlan(groups, [data.text_share, data.caption_share], *order, mixed=True, lengths=lengths)


def describe_grounded(run: Run) -> list[str]:
    """The plan in lines for people."""
    streams, plan = run.samples, run.plan
    assert isinstance(streams, Streams)
    told = []
    if streams.triples is not None:
        long = f" ({streams.triples.left_out} with a longer sentence left out)" if streams.triples.left_out else ""
        told.append(f"{len(streams.triples)} triples of sentences of at most {run.settings.data.max_words} words{long}")
    if isinstance(streams.captions, Samples):
        told.append(f"{len(streams.captions)} pictures with captions")
    data = f"data {', '.join(told)}, in {run.settings.data.language}"
    lines = describe_training(run, data, f"losses {', '.join(losses_of(run.settings.system)) or 'none'}, each over the whole global batch")
    if idle := without_effect(run.settings):
        lines.append(f"without effect on the system {run.settings.system}: {', '.join(idle)}")
    if isinstance(plan, GroupedPlan):
        lines.append(describe_passes(plan, ("triples", "pictures")))
    if not run.settings.trained:
        lines = [lines[0], lines[1], f"computed at once from the run {run.settings.model.base}"]
    return lines


def without_effect(settings: GroundedSettings) -> list[str]:
    """Settings that were changed and that the system does not read."""
    losses, plain, model = losses_of(settings.system), GroundedObjectiveSettings(), GroundedModelSettings()
    margins = {"cluster": "cluster" in losses, "cross_modal": "cross_modal" in losses or "ranking" in losses}
    projected = projection_of(settings.system) == "mlp" or margins["cross_modal"]
    unread = {
        **{f"objective.margins.{name}": getattr(settings.objective.margins, name) for name, read in margins.items() if not read},
        **({} if "perceptual" in losses else {"objective.pairs": settings.objective.pairs}),
        **({} if projected else {"model.space": settings.model.space}),
    }
    usual = {
        "objective.margins.cluster": plain.margins.cluster,
        "objective.margins.cross_modal": plain.margins.cross_modal,
        "objective.pairs": plain.pairs,
        "model.space": model.space,
    }
    return [name for name, value in unread.items() if value != usual[name]]
