"""Killed at any moment, and gone on with other numbers of workers and ZeRO stages, a run ends as the one that was left alone."""

import contextlib
import functools
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from raysys.data.batches import Batch
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.plan import Plan
from raysys.storage import Storage
from raysys.training.export import load_weights
from raysys.training.job import Place, TrainingJob
from raysys.training.loop import train
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings
from tests.training.processes import run_ranks, start_ranks
from tests.training.worlds import SAMPLES, SEED, Shares, build, model_settings, objective, share_of, tiny_backbone

EPOCHS, GLOBAL_BATCH, PARTS = 3, 4, 3
PLAN = Plan(SAMPLES, GLOBAL_BATCH, SEED, run_length=4, window_steps=2, micro_batches=PARTS)
STEPS = EPOCHS * PLAN.steps_per_epoch
KILLS = int(os.environ.get("RAYSYS_KILLS", "40"))
"""A hundred take eight minutes."""


def make_job(folder: str, backbone: str, stage: int) -> TrainingJob:
    settings = TrainingSettings(
        global_batch=GLOBAL_BATCH,
        seed=SEED,
        zero_stage=stage,  # type: ignore[arg-type]
        learning_rate=1e-3,
        warmup_steps=3,
        schedule="cosine",
        checkpoint_every=2,
        log_every=1,
        ema_decay=0.9,
    )
    return TrainingJob(
        settings=settings,
        build=functools.partial(build, model_settings(backbone, dropout=0.1, frozen=False), objective()),
        plan=PLAN,
        builder=Shares(),  # type: ignore[arg-type]
        total_steps=STEPS,
        folder=RunFolder(Storage(), folder),
        image=ImagePreprocessorSettings(size=32),
        decode_threads=1,
    )


def attempt(rank: int, folder: str, backbone: str, stage: int, started: str) -> None:
    """What a worker does from its start to the end of the run, if it lives."""
    job = make_job(folder, backbone, stage)
    Path(started).touch()
    train(job, place(rank), batches_from(job, rank), lambda line: None, Phases())


def weights_of(job: TrainingJob) -> dict[str, Tensor]:
    system = job.build()
    latest = job.checkpoints.latest()
    assert latest is not None
    assert latest.step == STEPS
    load_weights(system, job.checkpoints, latest)
    return dict(system.state_dict())


def losses(job: TrainingJob) -> list[tuple[int, float]]:
    return [(line["step"], line["train/loss"]) for line in job.folder.metrics() if "train/loss" in line]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


@dataclass(frozen=True)
class Alone:
    """The run that nobody disturbs, by two workers."""

    job: TrainingJob
    seconds: float
    """From the moment when its workers begin to its end."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory, backbone) -> Alone:
    folder = tmp_path_factory.mktemp("alone")
    started = folder / "started"
    run_ranks(attempt, 2, str(folder), backbone, 1, str(started))
    return Alone(make_job(str(folder), backbone, 1), time.time() - started.stat().st_mtime)


def disturbed(folder: Path, backbone: str, seconds: float, choose: random.Random) -> tuple[TrainingJob, list[int]]:
    """A run that is killed once or twice, at moments drawn from `seconds`; the steps of the checkpoints from which it went on."""
    folder.mkdir()
    resumed: list[int] = []
    attempts, planned = 0, choose.choice([1, 1, 2])
    while True:
        workers, stage = choose.randint(1, 3), choose.randint(0, 3)
        job, started = make_job(str(folder / "run"), backbone, stage), folder / f"started-{attempts}"
        attempts += 1
        with tempfile.TemporaryDirectory(prefix="raysys-ranks-") as meeting:
            processes = start_ranks(attempt, workers, meeting, str(folder / "run"), backbone, stage, str(started))
            if attempts <= planned:
                while not started.exists():
                    assert any(process.is_alive() for process in processes)
                    time.sleep(0.005)
                time.sleep(choose.uniform(0, seconds))
                # One worker dies, and the others are ended by who watches them, or the whole node at once.
                for process in choose.sample(processes, choose.choice([1, workers])):
                    process.kill()
                time.sleep(choose.choice([0, 0.05]))
                for process in processes:
                    process.kill()
            for process in processes:
                process.join()
            if all(process.exitcode == 0 for process in processes):
                return job, resumed
            assert attempts <= planned, [process.exitcode for process in processes]
            resumed.append(job.checkpoints.next_step())


def check(found: TrainingJob, expected: TrainingJob, start: dict[str, Tensor]) -> None:
    assert [step for step, _ in losses(found)] == list(range(1, STEPS + 1)), "every step once"
    assert [loss for _, loss in losses(found)] == pytest.approx([loss for _, loss in losses(expected)], rel=2e-3, abs=1e-5)
    wanted, have = weights_of(expected), weights_of(found)
    assert wanted.keys() == have.keys()
    names = [name for name, weight in wanted.items() if weight.is_floating_point() and not name.endswith("key.bias")]
    change = sum(float((wanted[name] - start[name]).square().sum()) for name in names) ** 0.5
    difference = sum(float((wanted[name] - have[name]).square().sum()) for name in names) ** 0.5
    assert difference < 0.02 * change


def cut_everywhere(rank: int, root: str, backbone: str, stage: int) -> None:
    """Runs that are cut before each step, and go on."""
    for cut in [*range(STEPS), None]:
        job = make_job(f"{root}/{cut}", backbone, stage)
        if cut is not None:
            with contextlib.suppress(ConnectionError):
                train(job, place(rank), batches_from(job, rank, cut), lambda line: None, Phases())
            for thread in threading.enumerate():
                if thread.name == "checkpoint":  # which would have ended with its process
                    thread.join()
            dist.barrier()
        train(job, place(rank), batches_from(job, rank), lambda line: None, Phases())


def place(rank: int) -> Place:
    return Place(rank, dist.get_world_size(), torch.device("cpu"))


def batches_from(job: TrainingJob, rank: int, cut: int | None = None) -> Iterator[Batch]:
    """Of the steps that the run still has to make, until the cut."""
    for step in range(job.checkpoints.next_step(), STEPS):
        if step == cut:
            raise ConnectionError("the machine is gone")
        yield share_of(PLAN, step, rank, dist.get_world_size(), pictures=True)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [1, 3])
def test_cut_before_any_step_it_ends_bit_equal(tmp_path, backbone, stage):
    run_ranks(cut_everywhere, 2, str(tmp_path), backbone, stage)
    whole = make_job(f"{tmp_path}/None", backbone, stage)
    expected = weights_of(whole)
    assert [step for step, _ in losses(whole)] == list(range(1, STEPS + 1))
    for cut in range(STEPS):
        job = make_job(f"{tmp_path}/{cut}", backbone, stage)
        assert losses(job) == losses(whole), cut
        for name, weight in weights_of(job).items():
            assert weight.equal(expected[name]), (cut, name)


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_right(tmp_path, backbone, alone):
    start, resumed, number = dict(alone.job.build().state_dict()), list[int](), 0
    while len(resumed) < KILLS:
        job, steps = disturbed(tmp_path / str(number), backbone, alone.seconds, random.Random(number))
        resumed += steps
        number += 1
        check(job, alone.job, start)
    assert len(set(resumed)) > 3, "the moments are spread over the run"
