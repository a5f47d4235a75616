"""Nodes come and go, commands are killed: a run goes on by itself, and its every step is that of the undisturbed run."""

import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import torch
from ray.cluster_utils import Cluster

from raysys.data.batches import BatchFinisher
from raysys.data.builder import Share
from raysys.training.job import Place, TrainingJob
from raysys.training.lease import read
from raysys.training.loop import train
from raysys.training.phases import Phases
from tests.training.elastic_driver import NOTES, make_job, open_gate
from tests.training.processes import run_ranks
from tests.training.test_trainer import IMAGE

pytestmark = pytest.mark.slow
STEPS, EVERY = 25, 5
ELASTIC = {"workers": "1..2", "checkpoint_every": EVERY, "keep_checkpoints": 9, "resize_seconds": 0}


def undisturbed(rank: int, job: TrainingJob) -> None:
    """The same training by one process without Ray."""
    finisher, plan = BatchFinisher(IMAGE, 1, job.builder), job.plan
    shares = [Share(step, plan.epoch_of(step), plan.slice(step, rank, 1)) for step in range(job.total_steps)]
    batches = (finisher(payload) for share in shares for payload in job.builder([share]))
    train(job, Place(rank, 1, torch.device("cpu")), batches, lambda line: None, Phases())


def losses(job: TrainingJob) -> dict[int, float]:
    lines = [(line["step"], line["train/loss"]) for line in job.folder.metrics()]
    assert [step for step, _ in lines] == list(range(1, job.total_steps + 1)), "every step once"
    return dict(lines)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[int, float]:
    job = make_job(tmp_path_factory.mktemp("undisturbed") / "run", STEPS, workers=1, checkpoint_every=EVERY)
    run_ranks(undisturbed, 1, job)
    return losses(job)


class Command:
    """A training command in a process of its own, and what it prints."""

    def __init__(self, folder: Path, address: str | None, *arguments: str):
        self.log = folder / f"printed-{time.time()}.txt"
        environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
        with self.log.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.training.elastic_driver", str(folder / "job.pkl"), *arguments],
                env=environment | ({"RAY_ADDRESS": address} if address else {}),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        return self.log.read_text()

    def ends(self, code: int, seconds: float = 120.0) -> None:
        assert self.process.wait(seconds) == code, self.printed

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Trial:
    """A run, and what is seen of it from outside."""

    def __init__(self, folder: Path, **settings: object):
        self.folder = folder
        self.job = make_job(folder, STEPS, **settings)  # type: ignore[arg-type]
        (folder / "job.pkl").write_bytes(pickle.dumps(self.job))
        self.commands: list[Command] = []

    def start(self, address: str | None, *arguments: str) -> Command:
        self.commands.append(Command(self.folder, address, *arguments))
        return self.commands[-1]

    def passes(self) -> list[tuple[int, int, int, int]]:
        """Step, rank, workers and process of all forward passes."""
        notes = self.folder / NOTES
        lines = notes.read_text().splitlines() if notes.exists() else []
        return [tuple(map(int, line.split())) for line in lines]  # type: ignore[misc]

    def wait_for(self, step: int, workers: int, checkpoint: int, other_than: frozenset[int] = frozenset()) -> frozenset[int]:
        """Return the processes of `workers` workers once all of them are at `step`, and the checkpoint is complete."""

        def there() -> set[tuple[int, int]]:
            seen = {(rank, process) for at, rank, of, process in self.passes() if (at, of) == (step, workers) and process not in other_than}
            return {(rank, process) for rank, process in seen if psutil.pid_exists(process)}

        wait_until(lambda: {rank for rank, _ in there()} == set(range(workers)), self.commands[-1])
        wait_until(lambda: self.job.checkpoints.next_step() == checkpoint, self.commands[-1])
        return frozenset(process for _, process in there())


def wait_until(true: Callable[[], bool], command: Command, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert command.process.poll() is None, command.printed
        assert time.monotonic() < until, command.printed
        time.sleep(0.1)


@pytest.fixture(scope="module")
def head() -> Iterator[Cluster]:
    """A node of one CPU, which notices within a few seconds that another is gone; Ray's defaults need fifteen."""
    quick = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": True, "dashboard_port": port, "_system_config": quick},
    )
    yield cluster
    cluster.shutdown()


@pytest.fixture
def cluster(head) -> Iterator[Cluster]:
    """The head alone, to which a test adds nodes."""
    yield head
    for node in list(head.worker_nodes):
        head.remove_node(node, allow_graceful=False)


@pytest.fixture
def make_trial(tmp_path) -> Iterator[Callable[..., Trial]]:
    trials: list[Trial] = []

    def make(**settings: object) -> Trial:
        trials.append(Trial(tmp_path / "run", **settings))
        return trials[-1]

    yield make
    for trial in trials:
        for command in trial.commands:
            command.kill()


def test_a_group_follows_the_nodes(cluster, make_trial, expected):
    node = cluster.add_node(num_cpus=1)
    trial = make_trial(**ELASTIC, max_failures=0)
    open_gate(trial.folder, 12)
    command = trial.start(cluster.address)
    trial.wait_for(12, workers=2, checkpoint=10)

    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    began = time.monotonic()
    trial.wait_for(12, workers=1, checkpoint=10)
    print(f"with one worker {time.monotonic() - began:.0f} s after the node was lost")

    cluster.worker_nodes.remove(node)
    node = cluster.add_node(num_cpus=1)
    open_gate(trial.folder, 22)
    began = time.monotonic()
    trial.wait_for(22, workers=2, checkpoint=20)
    print(f"with two workers {time.monotonic() - began:.0f} s later")
    assert {step for step, _, workers, _ in trial.passes() if workers == 1} == set(range(10, 20)), "no step was done twice to grow"

    cluster.remove_node(node)
    trial.wait_for(22, workers=1, checkpoint=20)
    open_gate(trial.folder, STEPS)
    command.ends(0)
    assert losses(trial.job) == pytest.approx(expected, rel=2e-3, abs=1e-5)
    assert [(state.step, state.workers) for state in trial.job.checkpoints.all()] == [(5, 2), (10, 2), (15, 1), (20, 1), (25, 1)]
    told = r"^elastic: lost node \S+ \(\w{8}\); the run goes on from step ([12]0) with the nodes that are left$"
    assert re.findall(told, command.printed, re.M) == ["10", "20"]
    assert "elastic: there is room for more workers, who begin after step 20" in command.printed


def test_an_error_of_one_rank_ends_the_run(cluster, make_trial):
    cluster.add_node(num_cpus=1)
    command = make_trial(**ELASTIC, max_failures=0, fault=3).start(cluster.address)
    command.ends(1)
    # Ray Train may begin with one worker, where it does not know yet of the node that has come.
    assert re.search(r"^failed: rank [01] failed at step 4 in phase forward: ValueError: the colour octarine", command.printed, re.M)
    assert "lost node" not in command.printed


def test_a_fixed_number_of_workers_waits_for_a_node_and_says_so(cluster, make_trial, expected):
    node = cluster.add_node(num_cpus=2)
    trial = make_trial(workers=2, checkpoint_every=EVERY, max_failures=0)
    open_gate(trial.folder, 12)
    command = trial.start(cluster.address, "--silence", "5")
    trial.wait_for(12, workers=2, checkpoint=10)
    cluster.remove_node(node)
    wanted = "2 workers together need 2 CPU; free in Ray now: 1 of 1 CPU. They are starting, or wait for what"
    wait_until(lambda: wanted in command.printed, command)
    cluster.add_node(num_cpus=2)
    open_gate(trial.folder, STEPS)
    command.ends(0)
    assert losses(trial.job) == pytest.approx(expected, rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("where", ["on a cluster", "on a local Ray"])
def test_a_killed_command_is_followed_by_another_and_never_joined(request, make_trial, expected, where):
    if where == "on a cluster":
        cluster = request.getfixturevalue("cluster")
        cluster.add_node(num_cpus=1)
        address, arguments = cluster.address, ()
    else:
        address, arguments = None, ("--cpus", "3")
    trial = make_trial(**(ELASTIC if address else ELASTIC | {"workers": 2}))
    open_gate(trial.folder, 12)
    first = trial.start(address, *arguments)
    old = trial.wait_for(12, workers=2, checkpoint=10)
    # Ray's agents look now and then whether their node is still there, and may stay for minutes.
    started_by_it = [one for one in psutil.Process(first.process.pid).children(recursive=True) if "Agent" not in one.name()]

    second = trial.start(address, *arguments)
    second.ends(2)
    assert f"error: the run {trial.job.folder.uri} is being trained by process {first.process.pid} on " in second.printed
    assert read(trial.job.folder) is not None

    first.kill()
    third = trial.start(address, *arguments)
    trial.wait_for(12, workers=2, checkpoint=10, other_than=old)
    assert not [one for one in old if psutil.pid_exists(one) and alive(psutil.Process(one))], "workers of the dead command"
    wait_until(lambda: not any(map(alive, started_by_it)), third, 30)
    open_gate(trial.folder, STEPS)
    third.ends(0)
    assert losses(trial.job) == pytest.approx(expected, rel=2e-3, abs=1e-5)
    assert read(trial.job.folder) is None


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
