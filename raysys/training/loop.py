"""The training loop that every worker runs. It knows no paper: a system gives vectors and named terms."""

import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
import torch.distributed
from torch import Tensor

from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import BatchBuilder, Share
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.plan import Plan, slice_bounds, slice_sizes
from raysys.data.randomness import mix
from raysys.errors import CertainFailure, RunFailed
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.engine import average_statistics, make_engine
from raysys.training.gather import gather_rows
from raysys.training.ledger import Ledger, SampleAccounts
from raysys.training.run_folder import MetricsLog, RunFolder
from raysys.training.settings import TrainingSettings
from raysys.training.tensorboard import EventLog

_WEIGHTS, _STEP = 21, 22  # what a seed is for
Item = TypeVar("Item")


class System(Protocol):
    """What can be trained: a torch module with these methods."""

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        """This worker's rows of what the losses need."""

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Named scalar terms from the global batch's rows."""

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The scalar that is minimised."""


@dataclass(frozen=True)
class Validation:
    """How checkpoints are scored while training goes on."""

    builder: BatchBuilder
    """Makes batches of the validation samples."""
    score: Callable[[dict[str, np.ndarray]], dict[str, float]]
    """All validation samples' vectors → metrics."""
    metric: str
    """The metric by which the best checkpoint is chosen; greater is better."""


@dataclass(frozen=True)
class TrainingJob:
    """All that a worker needs to know; picklable."""

    settings: TrainingSettings
    build: Callable[[], Any]
    """Makes the system, drawing its weights from torch's global generator."""
    plan: Plan
    builder: BatchBuilder
    """Reads the training data."""
    total_steps: int
    folder: RunFolder
    image: ImagePreprocessorSettings
    decode_threads: int
    validation: Validation | None = None

    @property
    def checkpoints(self) -> Checkpoints:
        """The run's checkpoints."""
        return Checkpoints(self.folder, self.settings.keep_checkpoints)

    @property
    def ledger(self) -> Ledger:
        """What is known of bad samples, as the run folder has it."""
        return Ledger(self.folder, [self.builder.samples, *([self.validation.builder.samples] if self.validation else [])])


@dataclass(frozen=True)
class Place:
    """Which of how many workers this is, and its device."""

    rank: int
    workers: int
    device: torch.device

    def barrier(self) -> None:
        """Wait for all workers."""
        if self.workers > 1:
            torch.distributed.barrier()


def train(job: TrainingJob, place: Place, batches: Iterable[Batch], report: Callable[[dict[str, Any]], None]) -> None:
    """Train from the latest checkpoint to the last step.

    Args:
        job: what to do.
        place: of this worker.
        batches: this worker's batches from the step of the latest checkpoint on.
        report: called by rank 0 with every line of metrics.

    Raises:
        RunFailed: a loss that is not finite, or batches that do not continue where the checkpoint ends.
    """
    settings = job.settings
    # Fetching begins before the model is built: the first batch takes longest.
    incoming = prefetch(batches, size=2)
    torch.manual_seed(_seed(settings.seed, _WEIGHTS))
    system = job.build()
    engine = make_engine(system, settings, place.workers, job.total_steps)
    done = job.checkpoints.load(engine)
    log, events = (MetricsLog(job.folder, done), EventLog(job.folder, done)) if place.rank == 0 else (None, None)
    accounts = SampleAccounts(job.ledger, place.rank, place.workers)
    validation_batches = list(_validation_batches(job, place, accounts)) if job.validation else []
    engine.train()

    def note(step: int, values: dict[str, Any]) -> None:
        if log and events:
            line = log.add(step, values)
            events.add(line)
            report(line)

    meter = _Meter()
    for step in range(done, job.total_steps):
        waiting = time.perf_counter()
        batch = next(incoming, None)
        meter.waited += time.perf_counter() - waiting
        if batch is None or batch.step != step:
            raise RunFailed(f"rank {place.rank} expected global batch {step} and got {batch.step if batch else 'the end of the data'}")
        rate = engine.get_lr()[0]
        accounts.note(batch)
        terms, loss, norm = train_step(engine, batch.to(place.device), job, place)
        meter.samples += job.plan.batch_size(step)
        finished = step + 1
        if finished % settings.log_every == 0 or finished in (1, job.total_steps):
            figures = {"epoch": step / job.plan.steps_per_epoch, "train/grad_norm": norm, "train/lr": rate}
            note(finished, _loss_metrics(terms, loss) | figures | meter.take() | accounts.take())
        if finished % settings.checkpoint_every == 0 or finished == job.total_steps:
            accounts.settle()
            average_statistics(engine.module, place.workers)
            metrics = _validate(engine, job, place, validation_batches)
            if metrics:
                note(finished, metrics)
            score = metrics.get(job.validation.metric) if job.validation else None
            score = score if score is not None and math.isfinite(score) else None
            state = CheckpointState(finished, job.builder.samples.fingerprint, place.workers, settings.zero_stage, score)
            if log and events:
                log.flush()
                events.flush()
            job.checkpoints.save(engine, state, place.rank, place.barrier)
            meter.reset()


def train_step(engine: Any, batch: Batch, job: TrainingJob, place: Place) -> tuple[dict[str, Tensor], Tensor, float | None]:
    """One optimizer step on the global batch of which `batch` is this worker's share.

    Returns:
        The terms, their weighted sum, and the norm of the gradient before clipping (None where ZeRO does not compute it,
        because nothing is clipped).
    """
    torch.manual_seed(_seed(job.settings.seed, _STEP, batch.step, place.rank))
    vectors = engine(batch)
    gathered = gather_all(vectors, slice_sizes(job.plan.batch_size(batch.step), place.workers))
    terms = engine.module.losses(gathered)
    loss = engine.module.total(terms)
    if not torch.isfinite(loss):
        named = ", ".join(f"{name} = {float(term):g}" for name, term in terms.items())
        raise CertainFailure(
            f"the loss is not finite at step {batch.step} ({named}); samples {batch.ids.tolist()[:16]} of rank {place.rank}"
        )
    engine.backward(loss)
    norm = _plain_gradient_norm(engine)
    engine.step()
    if norm is None:
        norm = engine.get_global_grad_norm()
    return {name: term.detach() for name, term in terms.items()}, loss.detach(), None if norm is None else float(norm)


def _plain_gradient_norm(engine: Any) -> Tensor | None:
    """Without ZeRO and bfloat16 the gradients lie in the parameters, and DeepSpeed does not tell their norm."""
    if engine.zero_optimization() or engine.bfloat16_enabled():
        return None
    return torch.nn.utils.get_total_norm([parameter.grad for parameter in engine.module.parameters() if parameter.grad is not None])


def gather_all(vectors: dict[str, Tensor], counts: list[int]) -> dict[str, Tensor]:
    """Every tensor's rows from all workers, in the order of the global batch; differentiable."""
    return {name: gather_rows(rows, counts) for name, rows in vectors.items()}


def prefetch(items: Iterable[Item], size: int) -> Iterator[Item]:
    """Iterate in a thread that runs at most `size` items ahead, starting now; an error is raised where its item would be."""
    waiting: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(size)

    def work() -> None:
        try:
            for item in items:
                waiting.put((item, None))
            waiting.put((None, None))
        except BaseException as error:
            waiting.put((None, error))

    threading.Thread(target=work, daemon=True, name="prefetch").start()

    def results() -> Iterator[Item]:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item

    return results()


class _Meter:
    """Throughput and the share of time spent waiting for data, since the last look."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.started, self.samples, self.waited = time.perf_counter(), 0, 0.0

    def take(self) -> dict[str, float]:
        elapsed = max(time.perf_counter() - self.started, 1e-9)
        figures = {"train/samples_per_second": self.samples / elapsed, "data/wait_fraction": self.waited / elapsed}
        self.reset()
        return figures


def _loss_metrics(terms: dict[str, Tensor], loss: Tensor) -> dict[str, float]:
    return {"train/loss": float(loss), **{f"train/loss_{name}": float(term) for name, term in terms.items()}}


def _validation_batches(job: TrainingJob, place: Place, accounts: SampleAccounts) -> Iterator[tuple[Batch, list[int]]]:
    """This worker's shares of the validation samples, in global batches, each with all workers' counts."""
    assert job.validation is not None
    builder = job.validation.builder
    finisher = BatchFinisher(job.image, job.decode_threads, builder)
    samples = len(builder.samples)
    size = job.settings.global_batch
    for index, start in enumerate(range(0, samples, size)):
        ids = np.arange(start, min(start + size, samples))
        bounds = slice_bounds(len(ids), place.workers)
        (payload,) = builder([Share(index, 0, ids[bounds[place.rank] : bounds[place.rank + 1]])])
        batch = finisher(payload)
        accounts.note_left_out(batch)
        yield batch, slice_sizes(len(ids), place.workers)


def _validate(engine: Any, job: TrainingJob, place: Place, batches: list[tuple[Batch, list[int]]]) -> dict[str, float]:
    if job.validation is None:
        return {}
    engine.eval()
    parts: list[dict[str, np.ndarray]] = []
    with torch.no_grad():
        for batch, counts in batches:
            sound = torch.ones(len(batch.ids), dtype=torch.bool, device=place.device)
            sound[[one.row for one in batch.replaced]] = False
            gathered = gather_all({**engine(batch.to(place.device)), "sound": sound}, counts)
            kept = gathered.pop("sound")
            vectors = {name: rows[kept] for name, rows in gathered.items()}
            parts.append(
                {name: rows.float().cpu().numpy() if rows.is_floating_point() else rows.cpu().numpy() for name, rows in vectors.items()}
            )
    engine.train()
    return job.validation.score({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _seed(*address: int) -> int:
    return int(mix(*address) >> np.uint64(1))
