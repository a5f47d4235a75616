"""The training loop that every worker runs. It knows no paper: a system gives vectors and named terms."""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch

from raysys.data.batches import Rows
from raysys.errors import RunFailed
from raysys.training.checkpoints import CheckpointState
from raysys.training.engine import make_engine, set_learning_rate
from raysys.training.engine_state import EngineState
from raysys.training.job import Place, TrainingJob
from raysys.training.ledger import SampleAccounts
from raysys.training.phases import Phases
from raysys.training.profiling import StepProfiler
from raysys.training.restarts import Resized
from raysys.training.run_folder import MetricsLog
from raysys.training.step import StepResult, Tolerance, TrainingStep, seed_of
from raysys.training.trackers import Trackers, open_trackers
from raysys.training.validation import validate, validation_batches

_WEIGHTS = 21  # what a seed is for
Item = TypeVar("Item")


def train(
    job: TrainingJob,
    place: Place,
    batches: Iterable[Rows],
    report: Callable[[dict[str, Any]], Any],
    phases: Phases,
    tell: Callable[[str], Any] = print,
) -> None:
    """Train from the latest checkpoint to the last step.

    Args:
        job: what to do.
        place: of this worker.
        batches: this worker's batches from the step of the latest checkpoint on.
        report: called with every line of metrics, by every worker with its own times.
        phases: is told what goes on.
        tell: takes a line for people.

    Raises:
        RunFailed: a loss that is not finite, or batches that do not continue where the checkpoint ends.
        Resized: the group gives way to a larger one, and what it did is in a checkpoint.
    """
    settings = job.settings
    # Fetching begins before the model is built: the first batch takes longest.
    incoming = prefetch((batch.pinned() for batch in batches) if place.device.type == "cuda" else batches, size=2)
    torch.manual_seed(seed_of(settings.seed, _WEIGHTS))
    system = job.build()
    if settings.activation_checkpointing:
        system.checkpoint_activations()
    engine = make_engine(system, settings, place.workers)
    state, checkpoints = EngineState(engine, settings.ema_decay), job.checkpoints
    began = checkpoints.load(state, phases.tick)
    done, tolerance = (began.step, Tolerance(settings, began.skipped_steps)) if began else (0, Tolerance(settings, 0))
    first = place.rank == 0
    log = MetricsLog(job.folder, done) if first else None
    trackers = open_trackers(job.folder, settings.trackers, done, tell) if first else Trackers()
    profiled = settings.profile_steps if first or settings.profile_all_workers else 0
    profiler = StepProfiler(job.folder, place.rank, profiled, settings.profile_from, phases, tell)
    accounts = SampleAccounts(job.ledger, place.rank, place.workers)
    to_validate = validation_batches(job, place, accounts, phases)
    take_step = TrainingStep(engine, settings, job.plan, job.builder.samples, place.rank, place.workers, phases)
    engine.train()

    def note(step: int, values: dict[str, Any]) -> None:
        line = log.add(step, values) if log else {"step": step, **values}
        trackers.add(line)
        report(line)

    def keep(step: int) -> None:
        """Validate, and write a checkpoint beside the steps that follow."""
        accounts.settle()
        with phases("validation"), state.averaged():
            metrics, score = validate(engine, job, place, to_validate, phases)
        if metrics:
            note(step, metrics)
        if log:
            log.flush()
        trackers.flush()
        with phases("checkpoint"):
            what = CheckpointState(
                step=step,
                fingerprint=job.builder.samples.fingerprint,
                workers=place.workers,
                zero_stage=engine.zero_optimization_stage(),
                score=score,
                micro_batches=job.plan.micro_batches or place.workers,
                skipped_steps=tolerance.skipped,
            )
            checkpoints.save(state, what, phases.tick)

    gives_way: Resized | None = None
    phases.reset()
    with checkpoints.kept(), trackers, profiler, log or contextlib.nullcontext():
        for step in range(done, job.total_steps):
            phases.step = step + 1  # as the metrics count
            profiler.begin_step()
            with phases("data"):
                try:
                    phases.batch = batch = next(incoming, None)
                except Resized as resized:
                    gives_way = resized
                    break
            if batch is None or batch.step != step:
                raise RunFailed(f"rank {place.rank} expected global batch {step} and got {batch.step if batch else 'the end of the data'}")
            rate = set_learning_rate(engine, settings, job.total_steps, step)
            accounts.note(batch)
            result = take_step(batch)
            if result.updated:
                state.after_step()
                take_step.remember(batch, state)
            phases.samples += job.plan.batch_size(step)
            checkpoints.check()
            finished = step + 1
            tolerance.skipped += result.fault is not None
            if result.fault or finished % settings.log_every == 0 or finished in (1, job.total_steps):
                figures = {"epoch": step / job.plan.steps_per_epoch, "train/lr": rate, "train/skipped_steps": tolerance.skipped}
                note(finished, loss_metrics(result) | figures | phases.take() | accounts.take())
            if result.fault:
                tolerance.check(result.fault)
            if finished % settings.checkpoint_every == 0 or finished == job.total_steps:
                keep(finished)
        with phases("checkpoint"):
            checkpoints.wait(phases.tick)
            place.barrier()
    if gives_way:
        raise gives_way


def loss_metrics(result: StepResult) -> dict[str, float]:
    """What a step found, by the names under which it is logged."""
    terms = {f"train/loss_{name}": term for name, term in result.terms.items()}
    learned = {f"train/{name}": temperature for name, temperature in result.temperatures.items()}
    return {"train/loss": result.loss, **terms, **learned, "train/grad_norm": result.gradient_norm}


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
