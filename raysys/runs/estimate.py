"""What a run will take: memory of a worker by ZeRO stage, bytes over the network, time of a step. Needs neither Ray nor a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import psutil
import torch

from raysys.data.batches import Rows
from raysys.runs.doctor.node import gather
from raysys.runs.outlook import outlook_of
from raysys.runs.run import Run
from raysys.training import estimate as model
from raysys.training.engine import engine_config
from raysys.training.estimate import Buckets, Memory, Weights
from raysys.training.footprint import (
    LossUse,
    MicroBatchUse,
    count_weights,
    measure_losses,
    measure_micro_batch,
    measure_update,
)
from raysys.training.settings import TrainingSettings


@dataclass(frozen=True)
class Measured:
    """What was measured on this machine."""

    device: str
    weights: Weights
    micro_batch: MicroBatchUse
    losses: LossUse
    update: float
    """Seconds of an AdamW step on all trained parameters."""
    row_bytes: int
    """Of a sample's vectors as they are gathered."""
    gradient_row_bytes: int
    """Of those that receive a gradient."""
    pixel_bytes: int
    """Of a sample in a batch."""
    process: int = 0
    """Of the interpreter and its libraries before anything was built; 0 on a GPU, which keeps them elsewhere."""


def micro_batch_counts(run: Run) -> list[list[int]]:
    """Samples in each micro-batch of each worker, where there are as few workers as the settings allow: each then takes most."""
    return run.plan.micro_batch_sizes(run.plan.global_batch, run.settings.training.min_workers)


def longest_caption(run: Run) -> int:
    """Ids of the longest caption that the settings allow; the memory is that of batches full of them."""
    return outlook_of(run.settings).longest(run)


def memory_here(settings: TrainingSettings) -> float | None:
    """Bytes that one worker can have on this machine: its GPU's, or an equal share of free memory; None: for a GPU, and none is here."""
    if settings.gpu:
        return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else None
    return gather(()).memory / settings.min_workers


def measure_run(run: Run) -> Measured:
    """Run the system on random data on this machine: a micro-batch, the losses of a global batch, an update.

    Takes some seconds, most of them to build the networks; needs neither the data nor Ray, and leaves nothing behind.
    """
    settings, micro_batch = run.settings, max(map(max, micro_batch_counts(run)))
    process = psutil.Process().memory_info().rss
    device = torch.device("cuda" if settings.training.gpu and torch.cuda.is_available() else "cpu")
    system = outlook_of(run.settings).starting(run).train()
    if settings.training.activation_checkpointing:
        system.checkpoint_activations()
    weights = count_weights(system, _noise(run, system, 2), engine_sizes(settings.training, 3)[1].persistent)
    system.to(device, torch.bfloat16 if settings.training.precision == "bf16" else None)
    threads = torch.get_num_threads()
    torch.set_num_threads(min(threads, settings.training.cpus_per_worker))
    try:
        measured = _measure(run, system, weights, device, micro_batch)
        return measured if device.type == "cuda" else replace(measured, process=process)
    finally:
        torch.set_num_threads(threads)


def _noise(run: Run, system: Any, samples: int) -> Rows:
    """A batch of noise in the shape of the run's, as it goes into a forward pass; its texts are as long as the settings allow."""
    batch: Rows = outlook_of(run.settings).noise(run, system, samples, torch.Generator().manual_seed(0))
    return batch if system.exchange is None else system.exchange(batch, lambda rows: rows, 0)


def _measure(run: Run, system: Any, weights: Weights, device: torch.device, micro_batch: int) -> Measured:
    training = run.settings.training

    def batch_of(samples: int) -> Rows:
        return _noise(run, system, samples).to(device)

    half = torch.float16 if training.precision == "fp16" else None
    use = measure_micro_batch(system, batch_of, micro_batch, half)
    few = batch_of(2)
    with torch.no_grad(), torch.autocast(device.type, half, enabled=half is not None):
        rows = system(few)
    losses, reached = measure_losses(system, rows, run.plan.global_batch)
    return Measured(
        device="GPU" if device.type == "cuda" else "CPU",
        weights=weights,
        micro_batch=use,
        losses=losses,
        update=measure_update(weights.trained, device),
        row_bytes=sum(value[:1].nbytes for value in rows.values()),
        gradient_row_bytes=reached,
        pixel_bytes=sum(value[:1].nbytes for value in few.tensors().values()),
    )


def stage_memory(settings: TrainingSettings, stage: int, counts: Sequence[Sequence[int]], measured: Measured) -> Memory:
    """Memory of one worker at ZeRO `stage`; `counts` are the samples in each worker's micro-batches."""
    workers, p, weights = len(counts), weight_size(settings), measured.weights
    passes, samples = max(map(len, counts)), sum(map(sum, counts))
    stage, buckets = engine_sizes(settings, stage)
    cached = passes > 1 and settings.accumulation == "exact"
    return Memory(
        weights=model.weight_bytes(weights, stage, workers, p),
        gradients=model.gradient_bytes(weights, stage, workers, p, passes),
        optimizer=model.optimizer_bytes(weights, stage, workers, p, settings.ema_decay is not None),
        buffers=model.buffer_bytes(weights, stage, workers, p, buckets),
        activations=measured.micro_batch.bytes,
        # gathered vectors, and their gradients while they are summed over the workers
        loss=measured.losses.bytes + samples * (measured.row_bytes + measured.gradient_row_bytes),
        pixels=max(map(sum, counts)) * measured.pixel_bytes,
        process=measured.process,
        cached=cached,
    )


def weight_size(settings: TrainingSettings) -> int:
    """p, bytes of a weight in the engine. In fp16 weights stay float32 and forward runs under autocast."""
    return 2 if settings.precision == "bf16" else 4


def engine_sizes(settings: TrainingSettings, stage: int) -> tuple[int, Buckets]:
    """The stage that the engine uses where `stage` is asked for, and DeepSpeed's buffers."""
    config = engine_config(settings.model_copy(update={"zero_stage": stage}), settings.min_workers)["zero_optimization"]
    buckets = Buckets.of(config)
    # The configuration follows the device that is here; the run may be planned on another machine.
    return config["stage"], replace(buckets, contiguous=True) if settings.gpu else buckets
