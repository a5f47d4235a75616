"""The estimate of a run in lines for people."""

import os
from collections.abc import Callable, Sequence

import torch

from raysys.runs.estimate import (
    Measured,
    engine_sizes,
    longest_caption,
    measure_run,
    memory_here,
    micro_batch_counts,
    stage_memory,
    weight_size,
)
from raysys.runs.run import Run
from raysys.training import estimate as model
from raysys.training.estimate import STAGES
from raysys.training.settings import TrainingSettings

GPUS_PER_NODE = 8
"""Taken for a node's GPUs where this machine has none."""


def estimate_run(run: Run) -> list[str]:
    """What a run will take, in lines for people: a table by ZeRO stage, and the time of a step as measured here in some seconds."""
    settings = run.settings.training
    return describe_estimate(settings, micro_batch_counts(run), measure_run(run), memory_here(settings), longest_caption(run))


def describe_estimate(
    settings: TrainingSettings, counts: list[list[int]], measured: Measured, limit: float | None, caption: int
) -> list[str]:
    """The estimate in lines for people."""
    workers, passes, largest = len(counts), max(map(len, counts)), max(map(max, counts))
    cached = passes > 1 and settings.accumulation == "exact"
    memories = {stage: stage_memory(settings, stage, counts, measured) for stage in STAGES}
    per_node = (torch.cuda.device_count() or GPUS_PER_NODE) if settings.gpu else max(1, (os.cpu_count() or 1) // settings.cpus_per_worker)

    def row(name: str, value: Callable[[int], float]) -> tuple[str, list[str]]:
        return name, [in_bytes(value(stage)) for stage in STAGES]

    def sent(stage: int) -> float:
        engine_stage, _ = engine_sizes(settings, stage)
        traffic = model.state_traffic(measured.weights, engine_stage, weight_size(settings), model.weight_fetches(passes, cached))
        return sum(model.ring_bytes(one, workers) for one in traffic)

    whole = [sum(of_worker) for of_worker in counts]
    vectors = model.vector_traffic(measured.row_bytes, measured.gradient_row_bytes, whole)
    forward, backward = (model.ring_bytes(one, workers) for one in vectors)
    rows = [
        row("weights", lambda stage: memories[stage].weights),
        row("gradients", lambda stage: memories[stage].gradients),
        row("optimizer state", lambda stage: memories[stage].optimizer),
        row("communication buffers", lambda stage: memories[stage].buffers),
        row(f"activations of {largest} samples", lambda stage: memories[stage].activations),
        row(f"loss of {sum(whole)} samples", lambda stage: memories[stage].loss),
        row("pixels and tokens", lambda stage: memories[stage].pixels),
    ]
    if measured.process:
        rows.append(row("Python and its libraries", lambda stage: memories[stage].process))
    totals = [memories[stage].total for stage in STAGES]
    rows.append(("at most together", [in_bytes(total) + ("!" if limit and total > limit else "") for total in totals]))
    rows.append(row("sent: weights, gradients", sent))
    rows.append(row("sent: vectors", lambda stage: forward + backward))
    rows.append(row("leaving a node", lambda stage: model.node_bytes(sent(stage) + forward + backward, workers, per_node)))
    heads = [f"ZeRO {stage}" + ("*" if stage == settings.zero_stage else "") for stage in STAGES]
    seconds = model.step_seconds(
        measured.micro_batch.forward_backward,
        measured.micro_batch.forward,
        passes,
        cached,
        measured.losses.seconds,
        measured.update / (workers if engine_sizes(settings, settings.zero_stage)[0] else 1),
    )
    lines = [
        f"estimate for one of {workers} workers, {passes} micro-batch{'es' if passes > 1 else ''} of at most {largest} samples a step, "
        f"captions of {caption} tokens; bytes of a step on nodes of {per_node} workers (* as set{_too_much(totals, limit)}):",
        *table(heads, rows),
        f"a step takes about {in_seconds(seconds)} on this machine's {measured.device} "
        f"({sum(whole) / seconds:.3g} samples/s over all workers), communication left out: "
        f"forward and backward {in_seconds(measured.micro_batch.forward_backward)} a micro-batch"
        + (f", {in_seconds(measured.micro_batch.forward)} more to embed it first" if cached else "")
        + f", losses {in_seconds(measured.losses.seconds)}",
    ]
    if limit is None:
        lines.append("there is no GPU on this machine: compare the memory with that of the GPUs you will use; times are of the CPU")
    return lines


def _too_much(totals: Sequence[float], limit: float | None) -> str:
    if limit is None or max(totals) <= limit:
        return ""
    return f", ! more than the {in_bytes(limit)} that a worker can have here"


def table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Lines with names to the left and columns to the right."""
    first = max(len(name) for name, _ in rows)
    width = max(len(cell) for cells in (heads, *(cells for _, cells in rows)) for cell in cells) + 2
    return [f"  {name:{first}}" + "".join(f"{cell:>{width}}" for cell in cells) for name, cells in (("", heads), *rows)]


def in_bytes(size: float) -> str:
    """Three digits and a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def in_seconds(seconds: float) -> str:
    """In seconds, or in milliseconds below one."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
