"""One optimizer step on a global batch: every contrastive loss is over the whole of it, however it is divided.

A worker's share is one or several micro-batches. With one, the step is the plain one: forward, gather, loss, backward. With
several, `training.accumulation` chooses:

* ``exact``, where `training.micro_batch` bounds the memory: cached gradients (Gao et al., "Scaling Deep Contrastive Learning Batch
  Size under Memory Limited Setup", 2021). All micro-batches are embedded without a graph, the loss of the global batch gives the
  gradient of every vector, and a second forward pass of each micro-batch, with the random numbers of the first, takes the vectors'
  gradients on to the weights. The result is the gradient of the undivided batch; memory depends on the micro-batch.
* ``exact`` otherwise (there are fewer workers than there may be): the graphs of all micro-batches are kept until the backward pass.
* ``plain``: each micro-batch is a batch of its own, compared with the other workers' micro-batches of the same turn alone.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from raysys.data.batches import Rows
from raysys.data.plan import Plan
from raysys.data.randomness import mix
from raysys.errors import CertainFailure
from raysys.models.statistics import RunningStatistics, StatisticsUntouched
from raysys.training.engine import backward, forget, optimizer_step
from raysys.training.engine_state import EngineState
from raysys.training.failures import Locator, name_samples
from raysys.training.gather import gather_all, gather_rows
from raysys.training.phases import Phases
from raysys.training.settings import TrainingSettings

_STEP = 22  # what a seed is for
_LEAST_LOSS_SCALE = 2.0**-10


@dataclass(frozen=True)
class StepResult:
    """What a step found; the same on all workers."""

    terms: dict[str, float]
    """The loss's terms, not weighted."""
    temperatures: dict[str, float]
    """Those that are learned, by name."""
    loss: float
    gradient_norm: float
    """Before clipping."""
    updated: bool
    """Whether the weights were; false after a fault, and in fp16 where the loss was scaled too high."""
    fault: str | None
    """What was not finite, and for which samples."""


class TrainingStep:
    """Takes steps; lives in a training worker.

    Args:
        engine: the DeepSpeed engine around the system.
        settings: of the training.
        plan: which samples, and their micro-batches.
        samples: behind the plan, to name those of a step that went wrong.
        rank: of this worker.
        workers: how many there are.
        phases: is told what goes on.
    """

    def __init__(self, engine: Any, settings: TrainingSettings, plan: Plan, samples: Locator, rank: int, workers: int, phases: Phases):
        self.engine, self.settings, self.plan, self.samples = engine, settings, plan, samples
        self.rank, self.workers, self.phases = rank, workers, phases
        self.statistics = RunningStatistics(engine.module)
        self._seen: list[dict[str, Tensor]] = []  # the rows that the latest step's losses were computed from

    def __call__(self, batch: Rows) -> StepResult:
        """One optimizer step on the global batch of which `batch` is this worker's share; called by every rank."""
        sizes = self.plan.micro_batch_sizes(self.plan.batch_size(batch.step), self.workers)
        way = self._way(max(map(len, sizes)))
        if way != self._plain:
            batch = self._exchanged(batch, list(map(sum, sizes)))
        parts = list(self._micro_batches(batch, sizes))
        self.statistics.begin()
        self._seen = []
        result = way(batch, parts, sizes)
        if result.updated:
            self.statistics.end(sum(size > 0 for of_rank in sizes for size in of_rank), self.workers)
        else:
            self.statistics.restore()
        return result

    def remember(self, batch: Rows, state: EngineState) -> None:
        """Let the system keep the samples of the step just made as neighbours of those to come, where it wants any; called by every rank.

        Args:
            batch: of that step.
            state: with the moving average of the weights, brought up to date.
        """
        keys = self.engine.module.neighbour_keys
        if keys == "momentum":
            with StatisticsUntouched(self.engine.module), state.averaged(), torch.no_grad():
                sizes = self.plan.micro_batch_sizes(self.plan.batch_size(batch.step), self.workers)
                local = self._embedded(batch, list(self._micro_batches(batch, sizes)))
                self._seen = [gather_all(local, list(map(sum, sizes)))]
        if keys:
            for vectors in self._seen:
                self.engine.module.remember(vectors)
        self._seen = []

    def _embedded(self, batch: Rows, parts: Sequence[tuple[Rows, int]]) -> dict[str, Tensor]:
        """This worker's vectors of all its micro-batches, without a graph."""
        kept: list[dict[str, Tensor]] = []
        with torch.no_grad():
            for part, number in parts:
                kept.append({name: rows[: part.count] for name, rows in self._forward(part, batch.step, number).items()})
                self.statistics.restore()
        return {name: torch.cat([rows[name] for rows in kept]) for name in kept[0]}

    def _way(self, turns: int) -> Callable[[Rows, Sequence[tuple[Rows, int]], list[list[int]]], StepResult]:
        if turns == 1 or self.settings.accumulation == "plain":
            return self._plain
        return self._kept if self.settings.micro_batch is None else self._exact

    def _micro_batches(self, batch: Rows, sizes: list[list[int]]) -> Iterator[tuple[Rows, int]]:
        """This worker's micro-batches, each with the number that seeds its random draws.

        Every worker takes as many turns, for in ZeRO 3 a forward pass is an affair of all: who has fewer makes up with padding.
        """
        first, _ = self.plan.micro_batch_range(self.rank, self.workers)
        turns = max(map(len, sizes))
        if turns == 1 and sizes[self.rank]:
            yield batch, first
            return
        start = 0
        for turn in range(turns):
            size = sizes[self.rank][turn] if turn < len(sizes[self.rank]) else 0
            yield batch.rows(start, start + size), first + turn
            start += size

    def _exchanged(self, batch: Rows, counts: list[int]) -> Rows:
        """The rows that losses are computed over, with what they need of one another."""
        exchange = self.engine.module.exchange
        if exchange is None:
            return batch
        with self.phases("gather"):
            exchanged: Rows = exchange(batch, lambda rows: gather_rows(rows.to(self.engine.device), counts), sum(counts[: self.rank]))
        return exchanged

    def _forward(self, batch: Rows, step: int, number: int) -> dict[str, Tensor]:
        torch.manual_seed(seed_of(self.settings.seed, _STEP, step, number))
        with self.phases("forward"):
            return self.engine(batch.to(self.engine.device))

    def _plain(self, batch: Rows, parts: Sequence[tuple[Rows, int]], sizes: list[list[int]]) -> StepResult:
        found, whole = [], sum(map(sum, sizes))
        for turn, (part, number) in enumerate(parts):
            counts = [of_rank[turn] if turn < len(of_rank) else 0 for of_rank in sizes]
            part = self._exchanged(part, counts)
            vectors = self._forward(part, batch.step, number)
            self._count_statistics(part)
            with self.phases("gather"):
                gathered = gather_all(vectors, counts)
            loss, values = self._loss(batch, gathered, part.ids, counts)
            found.append((sum(counts) / whole, values))
            if values.fault:
                forget(self.engine)
                break
            with self.phases("backward"):
                backward(self.engine, loss * found[-1][0], last=turn == len(parts) - 1)
        return self._update(batch, _mean(found))

    def _count_statistics(self, part: Rows) -> None:
        if part.count:
            self.statistics.collect()
        else:  # padding that only keeps step with the others
            self.statistics.restore()

    def _kept(self, batch: Rows, parts: Sequence[tuple[Rows, int]], sizes: list[list[int]]) -> StepResult:
        kept: list[dict[str, Tensor]] = []
        for part, number in parts:
            kept.append({name: rows[: part.count] for name, rows in self._forward(part, batch.step, number).items()})
            self._count_statistics(part)
        counts = list(map(sum, sizes))
        with self.phases("gather"):
            gathered = gather_all({name: torch.cat([rows[name] for rows in kept]) for name in kept[0]}, counts)
        loss, values = self._loss(batch, gathered, batch.ids[: batch.count], counts)
        if not values.fault:
            with self.phases("backward"):
                backward(self.engine, loss)
        return self._update(batch, values)

    def _exact(self, batch: Rows, parts: Sequence[tuple[Rows, int]], sizes: list[list[int]]) -> StepResult:
        local = self._embedded(batch, parts)
        leaves = {name: rows.requires_grad_() if rows.is_floating_point() else rows for name, rows in local.items()}
        counts = list(map(sum, sizes))
        with self.phases("gather"):
            gathered = gather_all(leaves, counts)
        loss, values = self._loss(batch, gathered, batch.ids[: batch.count], counts)
        if values.fault:
            return self._update(batch, values)
        with self.phases("loss"):
            loss.backward()
        gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
        start = 0
        for turn, (part, number) in enumerate(parts):
            vectors = self._forward(part, batch.step, number)
            self._count_statistics(part)
            rows = slice(start, start + part.count)
            with self.phases("backward"):
                pairs = [(vectors[name][: part.count], gradient[rows]) for name, gradient in gradients.items()]
                surrogate = torch.stack([(vector * gradient).sum() for vector, gradient in pairs]).sum()
                backward(self.engine, surrogate, last=turn == len(parts) - 1)
            start += part.count
        return self._update(batch, values)

    def _loss(self, batch: Rows, gathered: dict[str, Tensor], ids: Tensor, counts: list[int]) -> tuple[Tensor, "_Values"]:
        """The weighted sum of the terms, and what it is in numbers; `ids` are this rank's samples."""
        learned = {name: rows.mean() for name, rows in gathered.items() if name.startswith(("temperature_", "bias_"))}
        self._seen.append({name: rows.detach() for name, rows in gathered.items()})
        with self.phases("loss"):
            terms = self.engine.module.losses(gathered)
            loss = self.engine.module.total(terms)
            # Read together: each reading waits for the device.
            numbers = torch.stack([loss, *terms.values(), *learned.values()]).tolist()
        split = 1 + len(terms)
        values = _Values(numbers[0], dict(zip(terms, numbers[1:split], strict=True)), dict(zip(learned, numbers[split:], strict=True)))
        if not math.isfinite(values.loss):
            told = values.terms | self.engine.module.temperature_values(gathered)
            values.fault = f"the loss is not finite at step {batch.step + 1} ({_told(told)}); {self._blame(gathered, ids, counts)}"
        return loss, values

    def _blame(self, gathered: dict[str, Tensor], ids: Tensor, counts: list[int]) -> str:
        """Which vectors of which samples are not finite; called by every rank."""
        broken = [rows for rows in gathered.values() if rows.is_floating_point() and not torch.isfinite(rows).all()]
        if not broken:
            return "all vectors are finite"
        names = [name for name, rows in gathered.items() if any(rows is one for one in broken)]
        numbers = gather_rows(ids.to(broken[0].device), counts)
        affected = torch.stack([~torch.isfinite(rows).flatten(1).all(dim=1) for rows in broken]).any(dim=0)
        return f"not finite: {', '.join(names)} of {name_samples(numbers[affected].tolist(), self.samples)}"

    def _update(self, batch: Rows, values: "_Values") -> StepResult:
        if values.fault:
            return StepResult(values.terms, values.temperatures, values.loss, math.nan, False, values.fault)
        with self.phases("step"):
            norm, updated = optimizer_step(self.engine)
        # In float16 a gradient now and then overflows until the loss is scaled down; where that does not help, it is a fault.
        scaler, fault = self.engine.loss_scaler, None
        if not (updated or (scaler and scaler.value >= _LEAST_LOSS_SCALE)):
            samples = name_samples(batch.ids[: batch.count].tolist(), self.samples)
            told = _told(values.terms | values.temperatures)
            fault = (
                f"the gradient is not finite at step {batch.step + 1}, though the loss is ({told}); samples of rank {self.rank}: {samples}"
            )
        return StepResult(values.terms, values.temperatures, values.loss, norm, updated, fault)


@dataclass
class _Values:
    """A loss in numbers."""

    loss: float
    terms: dict[str, float]
    temperatures: dict[str, float]
    fault: str | None = None


def _mean(found: Sequence[tuple[float, _Values]]) -> _Values:
    """The mean over the turns of plain accumulation, each with its share; the fault of the last."""
    last = found[-1][1]
    terms = {name: sum(share * values.terms[name] for share, values in found) for name in last.terms}
    return _Values(sum(share * values.loss for share, values in found), terms, last.temperatures, last.fault)


class Tolerance:
    """How many steps a run may leave out (`training.on_nonfinite`, `training.max_skipped_steps`).

    Args:
        settings: of the training.
        skipped: steps that were left out before the checkpoint at which this attempt begins.
    """

    def __init__(self, settings: TrainingSettings, skipped: int):
        self.most = settings.max_skipped_steps if settings.on_nonfinite == "skip" else 0
        self.skipped = skipped

    def check(self, fault: str) -> None:
        """Raise CertainFailure if the step just left out, and counted in `skipped`, was one too many; the message begins with `fault`."""
        if self.skipped > self.most:
            allowed = f"; {self.most} steps may be skipped (training.max_skipped_steps)" if self.most else ""
            raise CertainFailure(fault + allowed)


def seed_of(*address: int) -> int:
    """A seed for torch from numbers that say what it is for."""
    return int(mix(*address) >> np.uint64(1))


def _told(values: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in values.items())
