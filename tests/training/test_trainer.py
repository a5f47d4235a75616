"""Training on Ray: a worker that dies costs time and nothing else; a worker's error is the run's."""

import functools
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from raysys.data.bad import BadDataError
from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import BatchBuilder, Share
from raysys.data.encoding import TextForm
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.plan import Plan
from raysys.errors import RunFailed, UserError
from raysys.models.text import TextModelSettings
from raysys.storage import Storage
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings
from raysys.training.job import Place, TrainingJob
from raysys.training.lease import claimed
from raysys.training.loop import train
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.settings import RaySettings, TrainingSettings
from raysys.training.trainer import _cause, fit, start_ray
from raysys.training.watchdog import Standstill
from tests.training.pictures import MAX_TOKENS, small_samples, small_tokenizer
from tests.training.processes import run_ranks
from tests.training.worlds import SEED, build, model_settings, objective, tiny_backbone

SAMPLES, STEPS, WORKERS = 24, 6, 2
IMAGE = ImagePreprocessorSettings(size=32)


class Mortal(Globetrotter):
    """Ends its process at step 3 on rank 1, the first time."""

    def __init__(self, model: ModelSettings, wanted: ObjectiveSettings, mark: str):
        super().__init__(model, wanted)
        self.mark = Path(mark)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        if batch.step == 3 and dist.get_rank() == 1 and not self.mark.exists():
            self.mark.touch()
            os._exit(1)
        return super().forward(batch)


class Faulty(Mortal):
    """Cannot do step 1 on rank 1."""

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        if batch.step == 1 and dist.get_rank() == 1:
            self.mark.touch()
            raise ValueError("the colour octarine cannot be seen")
        return super().forward(batch)


def build_marked(kind: type[Mortal], model: ModelSettings, wanted: ObjectiveSettings, mark: str) -> Globetrotter:
    torch.manual_seed(SEED)
    return kind(model, wanted, mark)


class Stuck(Mortal):
    """Stands still on rank 1, at step 4 and after the restart at step 6."""

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        if dist.get_rank() == 1 and batch.step == (5 if self.mark.exists() else 3):
            self.mark.touch()
            while True:
                pass
        return super().forward(batch)


def make_job(folder: Path, builder: BatchBuilder, system: Any, max_failures: int = 1, **more: Any) -> TrainingJob:
    settings = TrainingSettings(
        global_batch=7,
        steps=STEPS,
        workers=WORKERS,
        zero_stage=1,
        checkpoint_every=2,
        log_every=1,
        max_failures=max_failures,
        **more,
    )
    return TrainingJob(
        settings=settings,
        build=system,
        plan=Plan(SAMPLES, 7, 0, run_length=4, window_steps=2, last_batch="keep"),
        builder=builder,
        total_steps=STEPS,
        folder=RunFolder(Storage(), str(folder)),
        image=IMAGE,
        decode_threads=1,
    )


def undisturbed(rank: int, job: TrainingJob) -> None:
    """The same training without Ray."""
    finisher, plan = BatchFinisher(IMAGE, 1, job.builder), job.plan
    shares = [Share(step, plan.epoch_of(step), plan.slice(step, rank, WORKERS)) for step in range(STEPS)]
    batches = (finisher(payload) for share in shares for payload in job.builder([share]))
    train(job, Place(rank, WORKERS, torch.device("cpu")), batches, lambda line: None, Phases())


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("trainer")


@pytest.fixture(scope="module")
def builder(root) -> BatchBuilder:
    samples = small_samples(root / "train", SAMPLES)
    return BatchBuilder(samples, small_tokenizer(samples), TextForm(MAX_TOKENS), seed=0)


@pytest.fixture(scope="module")
def networks(root, builder) -> tuple[ModelSettings, ObjectiveSettings]:
    model = model_settings(tiny_backbone(root / "backbone"), dropout=0.1, frozen=False)
    text = TextModelSettings(**{**model.text.model_dump(), "vocabulary_size": builder.tokenizer.get_vocab_size()})
    return model.model_copy(update={"text": text}), objective()


def figures(job: TrainingJob) -> list[dict[str, Any]]:
    measured = ("train/samples_per_second", "data/wait_fraction", "train/memory_gib", "train/seconds_")
    return [{name: value for name, value in line.items() if not name.startswith(measured)} for line in job.folder.metrics()]


def test_a_run_whose_worker_died_is_the_undisturbed_one(ray_session, root, builder, networks, capsys):
    reference = make_job(root / "undisturbed", builder, functools.partial(build, *networks))
    run_ranks(undisturbed, WORKERS, reference)
    mark = root / "died"
    job = make_job(root / "mortal", builder, functools.partial(build_marked, Mortal, *networks, str(mark)))
    with claimed(job.folder) as lease:
        fit(job, "mortal", time.perf_counter(), lease)
    assert mark.exists()
    assert [line["step"] for line in figures(job)] == list(range(1, STEPS + 1))
    assert figures(job) == figures(reference)
    assert [state.step for state in job.checkpoints.all()] == [4, 6]
    shown = capsys.readouterr().out
    assert "mortal: first step after" in shown
    assert f"mortal: step {STEPS}/{STEPS}  loss " in shown


def test_the_error_of_one_worker_is_the_error_of_the_run(ray_session, root, builder, networks):
    mark = root / "failed"
    job = make_job(root / "faulty", builder, functools.partial(build_marked, Faulty, *networks, str(mark)), max_failures=0)
    with pytest.raises(RunFailed) as failure, claimed(job.folder) as lease:
        fit(job, "faulty", time.perf_counter(), lease)
    assert str(failure.value).startswith(
        "rank 1 failed at step 2 in phase forward: ValueError: the colour octarine cannot be seen\nsamples of this rank: "
    )
    named = str(failure.value).splitlines()[1].removeprefix("samples of this rank: ")
    ids = job.plan.slice(1, 1, WORKERS)
    assert named == ", ".join("/".join(builder.samples.locate(sample)) for sample in ids[:4])
    assert "in forward" in str(failure.value)
    assert "ValueError: the colour octarine cannot be seen" in str(failure.value)
    assert time.time() - mark.stat().st_mtime < 60, "the other worker, which waits for this one, does not hold up the news"
    assert job.checkpoints.all() == []


@pytest.mark.slow
def test_a_run_that_stands_still_is_started_again_and_says_why_it_ended(ray_session, root, builder, networks, capsys):
    mark = root / "stood still"
    system = functools.partial(build_marked, Stuck, *networks, str(mark))
    job = make_job(root / "stuck", builder, system, max_failures=1, watchdog_seconds=8)
    with pytest.raises(RunFailed) as failure, claimed(job.folder) as lease:
        fit(job, "stuck", time.perf_counter(), lease)
    assert re.match(r"rank 1 stood still for [89] s at step 6 in phase forward \(test_trainer\.py:\d+ in forward\); ", str(failure.value))
    assert str(failure.value).endswith(f"; stacks in {root / 'stuck' / 'watchdog'}")
    assert [state.step for state in job.checkpoints.all()] == [2, 4], "it went on from the first one"
    shown = capsys.readouterr().out
    for step in (4, 6):
        assert re.search(rf"stuck: rank 1: no progress for [89] s at step {step} in phase forward .*: look here first; stacks in ", shown)
        assert re.search(rf"stuck: rank 0: no progress for [89] s at step {step} in phase gather .*; it waits for other ranks", shown)
    stacks = [path.read_text() for path in sorted((root / "stuck" / "watchdog").iterdir())]
    assert sum("in forward" in text and "in phase forward" in text for text in stacks) == 2


class Refusing(Mortal):
    """Meets bad data at step 1 on rank 1; notes how often."""

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        if batch.step == 1 and dist.get_rank() == 1:
            with self.mark.open("a") as file:
                file.write("met\n")
            raise BadDataError("000000.tar, sample 's': cut")
        return super().forward(batch)


@pytest.mark.slow
def test_bad_data_is_not_tried_again(ray_session, root, builder, networks):
    mark = root / "refused"
    job = make_job(root / "refusing", builder, functools.partial(build_marked, Refusing, *networks, str(mark)), max_failures=2)
    with pytest.raises(RunFailed, match=r"^000000\.tar, sample 's': cut$"), claimed(job.folder) as lease:
        fit(job, "refusing", time.perf_counter(), lease)
    assert mark.read_text() == "met\n"


def test_the_cause_is_not_what_the_others_saw_of_it():
    failures = {0: OSError("[gloo] Connection closed by peer [127.0.0.1]"), 1: OSError("disk full\n"), 2: OSError("disk full, too")}
    assert _cause(TrainingFailedError("", failures)) == "worker 1: disk full"
    assert _cause(TrainingFailedError("", {0: failures[0]})) == "worker 0: [gloo] Connection closed by peer [127.0.0.1]"
    refused = TrainingFailedError("Training failed due to controller error", {})
    refused.controller_failure = BadDataError("000000.tar, sample 's': cut")
    assert _cause(refused) == "000000.tar, sample 's': cut"
    assert _cause(RuntimeError(" no worker started ")) == "no worker started"
    still = [Standstill(0, 2, 6, "gather", 600.0, True, "gather.py:7", "/run/watchdog/a.txt")]
    still.append(Standstill(1, 2, 6, "data", 600.0, False, "loader.py:7 in read", "/run/watchdog/b.txt"))
    told = "rank 1 stood still for 600 s at step 6 in phase data (loader.py:7 in read); rank 0 waited at step 6 in phase gather; "
    ended = {0: OSError("rank 0 failed at step 6: Connection closed by peer"), 1: OSError("The actor died")}
    assert _cause(TrainingFailedError("", ended), still).startswith(told)
    explained = {0: OSError("The actor died"), 1: RunFailed("rank 1 failed at step 6 in phase data: OSError: gone")}
    assert _cause(TrainingFailedError("", explained), still) == "rank 1 failed at step 6 in phase data: OSError: gone"


class TrainingFailedError(Exception):
    """With what Ray's has: the workers' errors by rank, or the controller's."""

    controller_failure: Exception | None = None

    def __init__(self, message: str, worker_failures: dict[int, Exception]):
        super().__init__(message)
        self.worker_failures = worker_failures


def test_workers_that_do_not_fit_are_refused_before_anything_starts(ray_session):
    with pytest.raises(UserError, match=r"training\.workers: 4 workers .* need 5 CPUs, but Ray has 4"):
        start_ray(RaySettings(), TrainingSettings(workers=4))
    start_ray(RaySettings(), TrainingSettings(workers=3))
