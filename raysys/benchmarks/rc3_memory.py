"""What training RC³'s network takes of each worker's memory, beside what ZeRO predicts; and what its negatives cost.

The network is trained as a large one is: bfloat16, ZeRO 3, activation checkpointing, cached gradients over several micro-batches.
"""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch

from raysys.benchmarks.processes import run_processes
from raysys.data.plan import Plan
from raysys.data.rc3_batches import Rc3Batch
from raysys.models.visual_mbart import VisualMBartSettings
from raysys.runs.estimate import Measured, engine_sizes, stage_memory
from raysys.runs.rc3.noise import random_rc3_batch
from raysys.runs.rc3.settings import Rc3DataSettings, Rc3Settings
from raysys.runs.run import Run
from raysys.storage import Storage
from raysys.systems.rc3.build import make_rc3
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings, RxvtclSettings
from raysys.systems.rc3.system import Rc3System
from raysys.training.engine import make_engine, set_learning_rate
from raysys.training.estimate import Memory
from raysys.training.footprint import LossUse, MicroBatchUse, count_weights, measure_losses, measure_micro_batch
from raysys.training.live import LiveBytes
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings
from raysys.training.step import TrainingStep

if TYPE_CHECKING:
    from raysys.data.samples import Samples

SMALL = VisualMBartSettings(
    size=384,
    layers=2,
    decoder_layers=2,
    heads=6,
    feed_forward=1536,
    vocabulary_size=8000,
    max_tokens=16,
    region_size=512,
    regions=6,
    patch=16,
    image_size=32,
)
"""12 million parameters, nearly all of them in tensors that ZeRO 3 divides."""
STREAMS = 3
"""Rows come in turns of each kind, so that micro-batches of a multiple of so many rows are alike."""
_STEPS = 3
"""The last one is counted: in the first two, ZeRO 3 learns in which order weights are used."""
_LANGUAGES = 4


@dataclass(frozen=True)
class Case:
    """A way of training the network."""

    network: VisualMBartSettings = SMALL
    global_batch: int = 24
    micro_batch: int = 3
    near: int | None = 1
    stage: int = 3

    def settings(self, workers: int) -> TrainingSettings:
        """As a run would have them."""
        values = {"global_batch": self.global_batch, "micro_batch": self.micro_batch, "zero_stage": self.stage, "workers": workers}
        return TrainingSettings.model_validate({**values, "precision": "bf16", "activation_checkpointing": True})

    def plan(self, workers: int, steps: int = 1) -> Plan:
        """Over samples of noise."""
        return Plan(self.global_batch * steps, self.global_batch, seed=0, micro_batches=self.settings(workers).micro_batches)

    def system(self) -> Rc3System:
        """The same weights in every process."""
        torch.manual_seed(0)
        objective = Rc3ObjectiveSettings(rxvtcl=RxvtclSettings(near=self.near))
        return make_rc3("rc3", Rc3ModelSettings(network=self.network), objective, _LANGUAGES).train()

    def batch(self, system: Rc3System, step: int = 0) -> Rc3Batch:
        """A global batch of noise: rows of each kind in turns, texts as long and regions as many as there may be."""
        data = Rc3DataSettings(strict=("strict",), weak=("weak",), parallel=("parallel",))
        settings = Rc3Settings(data=data, model=system.model)
        run = Run(settings, RunFolder(Storage(), "runs/none"), None, None, self.plan(1))
        return replace(random_rc3_batch(run, system, self.global_batch, torch.Generator().manual_seed(step)), step=step)


@dataclass(frozen=True)
class Use:
    """Tensors of one worker, in bytes."""

    state: float
    """Alive between steps."""
    peak: float
    """The most within a step."""
    seconds: float = 0.0
    """Of the step."""


@dataclass(frozen=True)
class Shares:
    """One number of workers: what ZeRO predicts, and what was counted."""

    workers: int
    predicted: Memory
    divided: float
    """Bytes of the predicted memory that are a part of weights, gradients and optimizer state, 1 / workers of them."""
    counted: Use
    """Of the worker that took most."""


def compare(case: Case, workers: Sequence[int]) -> list[Shares]:
    """Train on so many processes, and predict the same from measurements in this one."""
    measured = measure(case)
    found = []
    for count in workers:
        counted = run_processes(_count, count, case, count)
        memory = stage_memory(case.settings(count), case.stage, case.plan(count).micro_batch_sizes(case.global_batch, count), measured)
        trained, frozen = measured.weights.trained, measured.weights.frozen
        divided = (2 * (trained + frozen) + 2 * trained + 12 * trained) / count
        found.append(Shares(count, memory, divided, max(counted, key=lambda one: one.peak)))
    return found


def _count(rank: int, case: Case, workers: int) -> Use:
    """Train some steps and count the last one; called by every rank."""
    settings, plan = case.settings(workers), case.plan(workers, _STEPS)
    sizes = [sum(of_worker) for of_worker in plan.micro_batch_sizes(case.global_batch, workers)]
    start = sum(sizes[:rank])
    system = case.system()
    batches = [case.batch(system, step).rows(start, start + sizes[rank]) for step in range(_STEPS)]
    with LiveBytes() as live:
        system = case.system()
        system.checkpoint_activations()
        engine = make_engine(system, settings, workers)
        engine.train()
        take_step = TrainingStep(engine, settings, plan, cast("Samples", None), rank, workers, Phases())
        for batch in batches:
            set_learning_rate(engine, settings, _STEPS, batch.step)
            gc.collect()
            live.forget_peak()
            begun = time.perf_counter()
            take_step(batch)
            seconds = time.perf_counter() - begun
        gc.collect()
        use = Use(live.now, live.peak, seconds)
    engine.destroy()
    return use


def measure(case: Case) -> Measured:
    """The network's sizes, and what a micro-batch and the losses of the global batch take, in this process."""
    system = case.system()
    whole = exchanged(case, system)
    weights = count_weights(system, whole.rows(0, STREAMS), engine_sizes(case.settings(1), 3)[1].persistent)
    system.to(torch.bfloat16)
    system.checkpoint_activations()
    use = measure_micro_batch(system, lambda rows: whole.rows(0, rows), case.micro_batch)
    with torch.no_grad():
        rows = system(whole.rows(0, STREAMS))
    losses, reached = measure_losses(system, rows, case.global_batch)
    pixels = sum(value[:1].nbytes for value in whole.tensors().values())
    return Measured("CPU", weights, use, losses, 0.0, sum(value[:1].nbytes for value in rows.values()), reached, pixels)


def exchanged(case: Case, system: Rc3System) -> Rc3Batch:
    """A global batch with the texts of near rows."""
    assert system.exchange is not None
    return system.exchange(case.batch(system), lambda rows: rows, 0)


@dataclass(frozen=True)
class NearUse:
    """What meeting more of the other rows' texts costs, on one worker."""

    near: int | None
    global_batch: int
    met: int
    """Other rows whose texts a row's image is read with."""
    micro_batch: MicroBatchUse
    row_bytes: int
    """Of one row, as gathered from all workers."""
    losses: LossUse
    """Of the global batch."""


def compare_near(case: Case, nears: Sequence[int | None], global_batches: Sequence[int]) -> list[NearUse]:
    """Memory and time of a micro-batch and of the losses, by how many rows meet and by global batch."""
    return [_near_use(replace(case, near=near, global_batch=size)) for size in global_batches for near in nears]


def _near_use(case: Case) -> NearUse:
    found = measure(case)
    met = exchanged(case, case.system()).near_rows
    assert met is not None
    return NearUse(case.near, case.global_batch, int((met >= 0).sum(dim=1).max()), found.micro_batch, found.row_bytes, found.losses)


def shares_table(found: Sequence[Shares]) -> str:
    """A table for people, in MB."""
    lines = [
        f"{'':8}{'predicted':^66}{'counted':^27}",
        "workers   divided  whole gradients  activations and losses  other     peak  between steps     peak  of one  seconds",
    ]
    first = found[0].counted.peak
    for one in found:
        memory = one.predicted
        passing = max(memory.activations, memory.loss) if memory.cached else memory.activations + memory.loss
        whole = memory.weights + memory.gradients + memory.optimizer - one.divided
        other = memory.total - one.divided - whole - passing
        cells = (one.divided, whole, passing, other, memory.total, one.counted.state, one.counted.peak)
        widths = (10, 17, 24, 7, 9, 15, 9)
        told = "".join(f"{value / 1e6:{width}.1f}" for value, width in zip(cells, widths, strict=True))
        lines.append(f"{one.workers:7}{told}{one.counted.peak / first:8.2f}{one.counted.seconds:9.2f}")
    return "\n".join(lines)


def near_table(found: Sequence[NearUse]) -> str:
    """A table for people."""
    lines = ["near  global batch  rows met  micro-batch of   MB  seconds  gathered kB a row  losses MB  seconds"]
    for one in found:
        use = one.micro_batch
        lines.append(
            f"{'all' if one.near is None else one.near:>4}{one.global_batch:14}{one.met:10}{use.size:16}{use.bytes / 1e6:5.0f}"
            f"{use.forward_backward:9.2f}{one.row_bytes / 1e3:19.1f}{one.losses.bytes / 1e6:11.1f}{one.losses.seconds:9.3f}"
        )
    return "\n".join(lines)
