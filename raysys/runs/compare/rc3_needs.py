"""What the networks of a comparison need that no machine at hand can measure: memory, GPUs and hours, by closed forms."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from raysys.models.visual_mbart import VisualMBart, VisualMBartSettings
from raysys.runs.compare.entries import Entry
from raysys.runs.estimate import engine_sizes, weight_size
from raysys.runs.estimate_table import in_bytes, table
from raysys.runs.rc3.run import shares_of, with_batch
from raysys.runs.rc3.settings import Rc3Settings
from raysys.storage import is_remote
from raysys.systems.rc3.names import RC3_TITLES, losses_of
from raysys.training import estimate as model
from raysys.training.estimate import STAGES, Memory, Weights
from raysys.training.settings import TrainingSettings


@dataclass(frozen=True)
class Reads:
    """What a row of a batch is read for: passes of the encoder with a picture and without, and of the decoder."""

    visual: float
    text: float
    decoder: float


def reads_of(system: str, kind: str, near: int) -> Reads:
    """Passes for a row of a stream, by the losses that the system has.

    Args:
        system: which.
        kind: strict, weak or parallel.
        near: rows before and after it whose texts a row meets.
    """
    losses = set(losses_of(system))
    contrast = 2 + 4 * near if "rxvtcl" in losses else 0
    if kind == "weak":
        return Reads(contrast, 2 if "kl" in losses else 0, 0)
    if kind == "parallel":
        return Reads(0, 2 * ("xtcl" in losses) + ("text_mlm" in losses) + ("translation" in losses), "translation" in losses)
    words = len(losses & {"mlm", "pair_mlm", "translation", "infilling", "spans"})
    matching = 2 if "itm" in losses and not contrast else 0
    written = len(losses & {"mclm", "translation", "infilling", "spans"})
    return Reads(words + matching + contrast, 2 * ("xtcl" in losses), written)


def needs_cluster(training: TrainingSettings) -> bool:
    """Whether there are fewer GPUs on this machine than a run begins with, and no cluster is named."""
    return not os.environ.get("RAY_ADDRESS") and training.gpu and training.min_workers > torch.cuda.device_count()


def needs(base: Rc3Settings, made: Sequence[Entry[Any]], again: str, flops: float) -> list[str]:
    """GPUs, memory by ZeRO stage and hours in lines for people, and how the comparison is submitted.

    Args:
        base: settings of pre-training.
        made: all runs.
        again: the command.
        flops: floating-point operations a second that a GPU is assumed to do.
    """
    training, network = base.training, network_of(base)
    networks = [entry for entry in made if isinstance(entry.settings, Rc3Settings)]
    systems = list(dict.fromkeys(entry.system for entry in networks))
    gpus, weights = training.min_workers, network_weights(network, training)
    lines = [
        f"each pre-training run: {gpus} GPUs, {weights.trained / 1e6:,.0f} million weights (with {network.vocabulary_size:,} pieces; a "
        "pretrained vocabulary is cut to those in use)",
        f"memory of one GPU by closed forms, {_largest(training)} rows at a time, without the losses of the global batch (* as set):",
        *_memory_table(base, weights, max(systems, key=lambda system: row_flops(base, system))),
    ]
    if training.steps:
        hours = {system: pretraining_seconds(base, system, flops) / 3600 for system in systems}
        total = sum(hours[entry.system] for entry in networks)
        lines += [
            f"time of {training.steps:,} steps of up to {training.global_batch} rows, if each GPU does {flops / 1e12:g} · 10¹² operations "
            "a second, which is assumed and not measured (--teraflops), and waits for nothing:",
            *(f"  {RC3_TITLES[system]}: {of:,.1f} hours, {of * gpus:,.0f} GPU hours" for system, of in hours.items()),
            f"  all {len(networks)} pre-training runs: {total * gpus:,.0f} GPU hours",
            "  the paper took ten days on 64 V100, 15,360 GPU hours, for one run; it does not say how many negatives it computed for a row",
        ]
    lines.append(f"besides {len(made) - len(networks)} fine-tuning runs, as long as their data is large, which is not opened here")
    return [*lines, *_submission(base, again)] if needs_cluster(training) else lines


def _submission(base: Rc3Settings, again: str) -> list[str]:
    stays = "" if is_remote(base.run.storage) else " --storage s3://YOUR-BUCKET/rc3/runs"
    here = torch.cuda.device_count()
    return [
        f"this machine has {here or 'no'} GPU{'s' * (here != 1)} and RAY_ADDRESS names no cluster: nothing is begun; submit it there with",
        f"  ray job submit --address http://HEAD:8265 --working-dir . -- {again}{stays}",
    ]


def network_of(base: Rc3Settings) -> VisualMBartSettings:
    """Its settings, for pictures of the size that they are prepared to."""
    return base.model.network.model_copy(update={"image_size": base.data.image.size})


def network_weights(network: VisualMBartSettings, training: TrainingSettings) -> Weights:
    """Its sizes, without making it."""
    with torch.device("meta"):
        parameters = list(VisualMBart(network.model_copy(update={"pretrained": None})).parameters())
    threshold = engine_sizes(training, 3)[1].persistent
    small = sum(one.numel() for one in parameters if one.numel() < threshold)
    return Weights(trained=sum(one.numel() for one in parameters), frozen=0, persistent=small)


def _largest(training: TrainingSettings) -> int:
    """Most rows of one forward pass."""
    return -(-training.global_batch // training.micro_batches)


def _lengths(network: VisualMBartSettings) -> tuple[int, int]:
    """(places of the encoder with a picture, tokens of a text), of the longest."""
    patches = (network.image_size // network.patch) ** 2
    return 1 + max(network.regions, patches) + network.max_tokens, network.max_tokens


def activation_bytes(base: Rc3Settings, system: str) -> float:
    """Kept between forward and backward of a micro-batch: s b h (34 + 5 a s / h) bytes a layer in half precision (Korthikanti et al. 2022,
    *Reducing Activation Recomputation in Large Transformer Models*), twice that in single; recomputed, the input of each layer and one
    layer whole."""
    network, training = network_of(base), base.training
    p = weight_size(training)
    seen, text = _lengths(network)
    # A decoder layer attends twice.
    reads = reads_of(system, "strict", base.objective.rxvtcl.near or training.global_batch - 1)
    parts = [
        (reads.visual, seen, network.layers, 1.0),
        (reads.text, text, network.layers, 1.0),
        (reads.decoder, text, network.decoder_layers, 1.5),
    ]
    total = 0.0
    for passes, places, layers, attentions in parts:
        whole = attentions * p / 2 * places * network.size * (34 + 5 * network.heads * places / network.size)
        kept = layers * p * places * network.size + whole if training.activation_checkpointing else layers * whole
        total += passes * kept
    return _largest(training) * total


def row_flops(base: Rc3Settings, system: str) -> float:
    """Operations of an average row: 2 for each weight of a layer and each token forward, twice that backward, and as many forward again
    where activations are recomputed and where gradients are cached."""
    network, training = network_of(base), base.training
    layer = 4 * network.size**2 + 2 * network.size * network.feed_forward
    encoder, decoder = network.layers * layer, network.decoder_layers * (layer + 4 * network.size**2)
    seen, text = _lengths(network)
    shares = dict(zip(("strict", "weak", "parallel"), shares_of(base.data), strict=True))
    near = base.objective.rxvtcl.near or training.global_batch - 1
    cached = training.micro_batches > training.min_workers and training.accumulation == "exact"
    times = 2 * (3 + training.activation_checkpointing + cached)
    used = {kind: share for kind, share in shares.items() if (reads := reads_of(system, kind, near)).visual + reads.text + reads.decoder}
    total = 0.0
    for kind, share in used.items():
        reads = reads_of(system, kind, near)
        words = text * (reads.decoder + 0.15 * (kind == "strict"))
        total += share * (
            encoder * (reads.visual * seen + reads.text * text)
            + decoder * reads.decoder * text
            + words * network.size * network.vocabulary_size
        )
    return times * total / sum(used.values())


def pretraining_seconds(base: Rc3Settings, system: str, flops: float) -> float:
    """Of a whole run on as many GPUs as it begins with, without waiting for data or for one another."""
    training = with_batch(base, system).training
    return (training.steps or 0) * training.global_batch * row_flops(base, system) / (flops * training.min_workers)


def _memory_table(base: Rc3Settings, weights: Weights, system: str) -> list[str]:
    training = base.training
    workers, p = training.min_workers, weight_size(training)
    passes = -(-training.micro_batches // workers)

    def memory(stage: int) -> Memory:
        stage, buckets = engine_sizes(training, stage)
        return Memory(
            weights=model.weight_bytes(weights, stage, workers, p),
            gradients=model.gradient_bytes(weights, stage, workers, p, passes),
            optimizer=model.optimizer_bytes(weights, stage, workers, p, training.ema_decay is not None),
            buffers=model.buffer_bytes(weights, stage, workers, p, buckets),
            activations=activation_bytes(base, system),
            loss=0.0,
            pixels=0.0,
        )

    memories = [memory(stage) for stage in STAGES]
    names = {"weights": "weights", "gradients": "gradients", "optimizer": "optimizer state", "buffers": "communication buffers"}
    rows = [(label, [in_bytes(getattr(one, name)) for one in memories]) for name, label in names.items()]
    rows += [("activations", [in_bytes(one.activations) for one in memories]), ("together", [in_bytes(one.total) for one in memories])]
    return table([f"ZeRO {stage}" + ("*" if stage == training.zero_stage else "") for stage in STAGES], rows)
