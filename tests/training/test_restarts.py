import pickle
import socket

import pytest
import ray

from raysys.data.bad import BadDataError
from raysys.errors import RunFailed, UserError
from raysys.training.lease import Taken
from raysys.training.progress import ProgressBoard
from raysys.training.restarts import Growth, Resized, Restarts, SpentFailures, batches_of_group


@pytest.fixture(scope="module")
def board(ray_session):
    handle = ProgressBoard.remote()
    yield handle
    ray.kill(handle)


class Run:
    """Stands for a run whose latest checkpoint is of `step`."""

    step = 0

    def next_step(self) -> int:
        return self.step


class Reclaimed(Exception):
    """What Ray raises for a worker whose node is taken away with notice has this flag."""

    preempted = True


def lose_a_node(restarts: Restarts) -> None:
    """As if a node had been there when last looked, whose port takes no connections now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        restarts._nodes["abcdef0123456789"] = ("127.0.0.1", free.getsockname()[1])


def test_failures_are_counted_and_one_more_ends_the_run(board):
    restarts = Restarts(2, Run().next_step, board)
    failed = {0: RunFailed("rank 0 failed"), 1: OSError("gone")}
    restarts.after_exception(None, failed)
    restarts.after_exception(None, {1: Resized(5)})
    restarts.after_exception(None, failed)
    restarts.after_exception(None, {1: Reclaimed()})
    with pytest.raises(SpentFailures) as spent:
        restarts.after_exception(None, failed)
    assert spent.value.worker_failures == failed


@pytest.mark.parametrize("certain", [BadDataError("000000.tar, sample 's': cut"), UserError("no such file")])
def test_what_a_restart_would_meet_again_ends_the_run_at_once(board, certain):
    restarts = Restarts(2, Run().next_step, board)
    with pytest.raises(type(certain), match=str(certain)):
        restarts.after_exception(None, {0: OSError("connection closed"), 1: certain})


def test_lost_nodes_do_not_count_as_long_as_the_run_gets_on(board):
    run = Run()
    restarts = Restarts(1, run.next_step, board)
    ray.get(board.take.remote())
    for run.step in (0, 10, 20, 30):
        lose_a_node(restarts)
        restarts.after_exception(None, {1: OSError("the actor's node has died")})
    told = ray.get(board.take.remote()).texts
    assert told[-1] == "lost node 127.0.0.1 (abcdef01); the run goes on from step 30 with the nodes that are left"
    assert len(told) == 4
    lose_a_node(restarts)
    restarts.after_exception(None, {1: OSError("the actor's node has died")})  # no checkpoint since: it counts
    lose_a_node(restarts)
    with pytest.raises(SpentFailures):
        restarts.after_exception(None, {1: OSError("the actor's node has died")})


def test_a_group_grows_where_there_is_room(ray_session):
    cpus = int(ray.cluster_resources()["CPU"])

    def grows(group: tuple[int, int], most: int, seconds: float = 0.0, each: dict[str, float] | None = None) -> bool:
        return Growth(most, each or {"CPU": 1.0}, seconds).grows_at(group, 20)

    assert grows((cpus - 1, 0), most=64)
    assert not grows((cpus, 0), most=64), "all CPUs of the cluster"
    assert not grows((2, 0), most=2), "all workers that are wanted"
    assert not grows((1, 0), most=64, seconds=100.0), "looked too short a time ago"
    assert not grows((1, 0), most=64, each={"CPU": 1.0, "GPU": 1.0})
    assert not grows((1, 0), most=64, each={"CPU": float(cpus)})


def test_all_workers_of_a_group_are_told_the_same(ray_session):
    cpus = int(ray.cluster_resources()["CPU"])
    growth = Growth(64, {"CPU": 1.0}, seconds=0.0)
    assert growth.grows_at((1, 0), 10)
    growth._most = 1  # as if the room had gone between the questions of two workers
    assert growth.grows_at((1, 0), 10)
    assert not growth.grows_at((1, 0), 20)
    assert not growth.grows_at((1, 10), 10), "another group is told anew"
    growth._most = cpus
    assert growth.grows_at((1, 10), 20)


class Step:
    """As much of a batch as is looked at."""

    def __init__(self, step: int):
        self.step = step


def test_the_batches_of_a_group_end_at_the_checkpoint_at_which_it_grows():
    asked: list[tuple[int, int]] = []

    def grows_at(first_step: int, step: int) -> bool:
        asked.append((first_step, step))
        return step in (10, 20)

    given = batches_of_group(map(Step, range(10, 40)), 5, grows_at, lambda: None)  # type: ignore[arg-type]
    assert [next(given).step for _ in range(10)] == list(range(10, 20)), "the checkpoint that it began at does not end it"
    with pytest.raises(Resized) as resized:
        next(given)
    assert resized.value.step == 20
    assert str(pickle.loads(pickle.dumps(resized.value))) == "there is room for more workers, who begin after step 20"
    assert asked == [(10, 10), (10, 15), (10, 20)]


def test_a_run_that_was_taken_over_gets_no_more_batches():
    def check() -> None:
        raise Taken("the run is now trained by process 7")

    with pytest.raises(Taken, match="process 7"):
        next(batches_of_group(map(Step, range(3)), 5, lambda first_step, step: False, check))  # type: ignore[arg-type]
