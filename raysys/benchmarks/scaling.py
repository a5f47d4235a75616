"""The model of docs/scaling.md beside what real processes did: bytes between workers, and memory of each, by ZeRO stage."""

import functools
import gc
import resource
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch
import torch.distributed as dist

from raysys.benchmarks.collectives import CollectiveBytes
from raysys.benchmarks.ours import random_batches
from raysys.benchmarks.processes import run_processes
from raysys.data.batches import Batch
from raysys.data.plan import Plan
from raysys.models.images import ImageModelSettings
from raysys.models.text import TextModelSettings
from raysys.runs.estimate import Measured, engine_sizes, stage_memory, weight_size
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings
from raysys.training import estimate as model
from raysys.training.engine import make_engine, set_learning_rate
from raysys.training.estimate import STAGES
from raysys.training.footprint import count_weights, measure_losses, measure_micro_batch
from raysys.training.live import LiveBytes
from raysys.training.phases import Phases
from raysys.training.settings import TrainingSettings
from raysys.training.step import TrainingStep

if TYPE_CHECKING:
    from raysys.data.samples import Samples

_STEPS = 3
"""The last one is counted: in the first two, ZeRO 3 learns in which order weights are used."""
_PIXELS, _FEATURES = 32, 128
Kinds = dict[str, float]
"""Bytes by kind of collective operation."""


@dataclass(frozen=True)
class Case:
    """A way of training the small system."""

    stage: int
    global_batch: int
    micro_batch: int | None = None
    precision: str = "fp32"
    accumulation: str = "exact"
    pictures: bool = True
    """Train the image network on pictures; false: it is frozen, and its vectors come with the batch."""

    def settings(self, workers: int) -> TrainingSettings:
        """As a run would have them."""
        names = ("global_batch", "micro_batch", "precision", "accumulation")
        values = {name: getattr(self, name) for name in names}
        return TrainingSettings.model_validate({**values, "zero_stage": self.stage, "workers": workers})


@dataclass(frozen=True)
class Use:
    """What one step sent and took, predicted or counted, on one worker."""

    sent: Kinds
    state: float
    """Bytes alive between steps."""
    peak: float
    """The most bytes alive within a step."""
    resident: float = 0.0
    """Most memory of the process so far, as the system counts it."""


@dataclass(frozen=True)
class Compared:
    """One case on some number of workers."""

    case: Case
    workers: int
    predicted: Use
    counted: Use
    """Of the worker that took most; all send the same."""


def _system(pictures: bool) -> Globetrotter:
    torch.manual_seed(0)
    image = ImageModelSettings(backbone="resnet-10-narrow", frozen=not pictures)
    text = TextModelSettings(hidden_size=256, layers=2, heads=4, intermediate_size=512, vocabulary_size=4000)
    return Globetrotter(ModelSettings(image=image, text=text), ObjectiveSettings()).train()


def _batches(pictures: bool, steps: int, size: int) -> list[Batch]:
    batches = list(random_batches(steps, _PIXELS, size))
    if pictures:
        return batches
    return [replace(batch, images=None, features=torch.randn(size, 2, _FEATURES)) for batch in batches]


def usual_cases(global_batch: int, micro_batch: int) -> list[Case]:
    """Every stage with one micro-batch per worker and with cached gradients over several, stage 1 on pictures too, and bfloat16."""
    return [
        *(Case(stage, global_batch, pictures=False) for stage in STAGES),
        *(Case(stage, global_batch, micro_batch, pictures=False) for stage in STAGES),
        *(Case(1, global_batch, size) for size in (None, micro_batch)),
        *(Case(stage, global_batch, precision="bf16", pictures=False) for stage in STAGES if stage),
    ]


def compare(cases: Sequence[Case], workers: int) -> list[Compared]:
    """Predict and count each case on so many processes."""
    results = run_processes(_count_all, workers, list(cases))
    pairs = []
    for index, case in enumerate(cases):
        counted = [of_rank[index] for of_rank in results]
        assert all(one.sent == counted[0].sent for one in counted), "every worker takes part in every operation"
        pairs.append(Compared(case, workers, predict(case, workers), max(counted, key=lambda one: one.peak)))
    return pairs


def _count_all(rank: int, cases: list[Case], steps: int = _STEPS) -> list[Use]:
    return [count(case, rank, dist.get_world_size(), steps) for case in cases]


def count(case: Case, rank: int, workers: int, steps: int) -> Use:
    """Train some steps and count the last one; called by every rank."""
    settings = case.settings(workers)
    plan = Plan(case.global_batch * steps, case.global_batch, seed=0, micro_batches=settings.micro_batches)
    sizes = [sum(of_worker) for of_worker in plan.micro_batch_sizes(case.global_batch, workers)]
    start = sum(sizes[:rank])
    batches = [batch.rows(start, start + sizes[rank]) for batch in _batches(case.pictures, steps, case.global_batch)]
    with LiveBytes() as live:
        engine = make_engine(_system(case.pictures), settings, workers)
        engine.train()
        take_step = TrainingStep(engine, settings, plan, cast("Samples", None), rank, workers, Phases())
        for batch in batches:
            set_learning_rate(engine, settings, steps, batch.step)
            live.forget_peak()
            with CollectiveBytes() as sent:
                take_step(batch)
            gc.collect()
            state = live.now
    peak_resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    engine.destroy()
    # DeepSpeed makes its calls in a group of one as well; nothing is sent by them.
    return Use(dict(sent.bytes) if workers > 1 else {}, state, live.peak, peak_resident)


def predict(case: Case, workers: int) -> Use:
    """The same figures by the formulas of :mod:`raysys.training.estimate`, from measurements in this one process."""
    settings, counts = case.settings(workers), _counts(case, workers)
    measured = _measure(case.precision, case.pictures, max(map(max, counts)), case.global_batch, engine_sizes(settings, 3)[1].persistent)
    weights, p = measured.weights, weight_size(settings)
    stage, buckets = engine_sizes(settings, case.stage)
    passes = max(map(len, counts))
    traffic = [
        *model.state_traffic(weights, stage, p, model.weight_fetches(passes, passes > 1 and case.accumulation == "exact")),
        *model.vector_traffic(measured.row_bytes, measured.gradient_row_bytes, list(map(sum, counts))),
    ]
    sent = {kind: sum(one.bytes for one in traffic if one.kind == kind) for kind in ("all_reduce", "all_gather", "reduce_scatter")}
    state = model.weight_bytes(weights, stage, workers, p) + model.optimizer_bytes(weights, stage, workers, p)
    if stage == 3:
        state += model.gradient_bytes(weights, stage, workers, p) + (p * buckets.reduce if buckets.contiguous else 0)
    memory = stage_memory(settings, case.stage, counts, measured)
    return Use(sent if workers > 1 else {}, state, memory.total - memory.pixels)


def _counts(case: Case, workers: int) -> list[list[int]]:
    plan = Plan(case.global_batch, case.global_batch, seed=0, micro_batches=case.settings(workers).micro_batches)
    return plan.micro_batch_sizes(case.global_batch, workers)


@functools.cache
def _measure(precision: str, pictures: bool, micro_batch: int, global_batch: int, persistent: int) -> Measured:
    system = _system(pictures)
    weights = count_weights(system, _batches(pictures, 1, 2)[0], persistent)
    if precision == "bf16":
        system.to(torch.bfloat16)

    def batch_of(samples: int) -> Batch:
        return _batches(pictures, 1, samples)[0]

    use = measure_micro_batch(system, batch_of, micro_batch)
    with torch.no_grad():
        rows = system(batch_of(2))
    losses, reached = measure_losses(system, rows, global_batch)
    row_bytes = sum(value[:1].nbytes for value in rows.values())
    return Measured("CPU", weights, use, losses, 0.0, row_bytes, reached, 0)


def peaks(global_batches: Sequence[int], micro_batch: int) -> list[tuple[Use, Use]]:
    """Memory of one step of one worker by global batch: in micro-batches with cached gradients, and undivided; each in a new process."""

    def use(case: Case) -> Use:
        ((found,),) = run_processes(_count_all, 1, [case], 1)
        return found

    return [(use(Case(0, size, micro_batch)), use(Case(0, size))) for size in global_batches]


def scaling_table(results: Sequence[Compared]) -> str:
    """A table for people, in MB: the model beside what was counted."""
    kinds = ("all_reduce", "all_gather", "reduce_scatter")
    heads = "".join(f"{name.replace('_', '-'):>18}" for name in (*kinds, "between steps", "at most"))
    lines = [f"workers  ZeRO  micro-batches  precision{heads}", " " * 40 + "   model  counted" * 5]
    for one in results:
        passes = max(map(len, _counts(one.case, one.workers)))
        way = f"{passes} {one.case.accumulation}" if passes > 1 else "1"
        pairs = [(one.predicted.sent.get(kind, 0), one.counted.sent.get(kind, 0)) for kind in kinds]
        pairs += [(one.predicted.state, one.counted.state), (one.predicted.peak, one.counted.peak)]
        cells = "".join(f"{model / 1e6:9.2f}{counted / 1e6:9.2f}" for model, counted in pairs)
        lines.append(
            f"{one.workers:7}  {one.case.stage:4}  {way:>13}  {one.case.precision:>9} {cells}" + ("  pictures" if one.case.pictures else "")
        )
    return "\n".join(lines)


def peaks_table(global_batches: Sequence[int], micro_batch: int, results: Sequence[tuple[Use, Use]]) -> str:
    """A table for people, in MB: tensors alive at most within a step, beyond what is alive between steps; and the whole process."""
    lines = ["global batch   micro-batches of " + f"{micro_batch:<4} (process)   undivided (process)"]
    for size, uses in zip(global_batches, results, strict=True):
        cells = "".join(f"{(use.peak - use.state) / 1e6:14.0f} {f'({use.resident / 1e6:.0f})':>11}" for use in uses)
        lines.append(f"{size:12}{cells}")
    return "\n".join(lines)
