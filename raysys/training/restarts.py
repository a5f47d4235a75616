"""When a worker group is started again, and when its end is that of the run."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray
from ray.data._internal.cluster_autoscaler.default_autoscaling_coordinator import get_or_create_autoscaling_coordinator
from ray.exceptions import RayError
from ray.train import UserCallback

from raysys.data.batches import Rows
from raysys.errors import CertainFailure, RunFailed, UserError

NODE_SECONDS = 60.0
"""For how long Ray may take to notice that a node is gone; by its defaults it takes 15 to 25 s."""
_ANSWER_SECONDS = 3.0


class Resized(RunFailed):
    """Not a failure: the worker group ends at the checkpoint of `step`, to begin again with more workers."""

    def __init__(self, step: int):
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"there is room for more workers, who begin after step {self.step}"


class SpentFailures(Exception):
    """One failure more than allowed.

    Args:
        worker_failures: the workers' errors by rank.
    """

    def __init__(self, worker_failures: dict[int, Exception]):
        super().__init__(worker_failures)
        self.worker_failures = worker_failures


class Restarts(UserCallback):
    """Counts the failures of worker groups in place of Ray Train, for which a lost node is a failure like any other.

    A failure that a restart would only meet again ends the run. A lost node does not count, as long as a checkpoint was written since
    the one lost before: otherwise a training that itself brings nodes down would go on doing so for ever.

    What a callback raises ends the run; other errors of workers do not, since Ray Train is told to try again without end.

    Args:
        max_failures: that count, after which the run still goes on.
        next_step: the step at which training would go on.
        board: handle of a :class:`raysys.training.progress.ProgressBoard`, where people are told of lost nodes.
    """

    def __init__(self, max_failures: int, next_step: Callable[[], int], board: Any):
        self.max_failures, self.next_step, self.board = max_failures, next_step, board
        self._failures = 0
        self._lost_at = -1  # the step of the checkpoint that was the latest when the last node was lost
        self._nodes = _alive()

    def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
        """Called by Ray Train with the errors of one or more workers, by rank; the group is started again unless this raises."""
        errors = list(worker_exceptions.values())
        for error in errors:
            if isinstance(error, CertainFailure | UserError):
                raise error
        if any(_preempted(error) for error in errors):
            return  # asked again and again until the node has gone
        resized = any(isinstance(error, Resized) for error in errors)
        lost = [] if resized else self._lost_nodes()
        self._nodes = _alive()
        if resized or lost:
            refresh_reservations()
        if resized:
            return
        step = self.next_step()
        if lost:
            self.board.tell.remote(f"lost {' and '.join(lost)}; the run goes on from step {step} with the nodes that are left")
        if lost and step > self._lost_at:
            self._lost_at = step
            return
        self._failures += 1
        if self._failures > self.max_failures:
            raise SpentFailures(worker_exceptions)

    def _lost_nodes(self) -> list[str]:
        """The nodes that have gone since this was last asked, for people; returns when Ray knows of it too.

        Until Ray does, it would lay the next group out on them, and wait for their workers.
        """
        with ThreadPoolExecutor(16) as threads:
            answers = dict(zip(self._nodes, threads.map(lambda node: _answers(*node), self._nodes.values()), strict=True))
        gone = {name for name, answer in answers.items() if not answer}
        until = time.monotonic() + NODE_SECONDS
        while gone & _alive().keys() and time.monotonic() < until:
            time.sleep(0.2)
        gone |= self._nodes.keys() - _alive().keys()
        return [f"node {self._nodes[name][0]} ({name[:8]})" for name in sorted(gone)]


def _alive() -> dict[str, tuple[str, int]]:
    """The nodes that Ray believes to be there: identity → address and port."""
    return {node["NodeID"]: (node["NodeManagerAddress"], node["NodeManagerPort"]) for node in ray.nodes() if node["Alive"]}


# Ray's own book of who may have which nodes is kept by an actor inside of Ray. Should it be another one some day, the two functions below
# do nothing, and it takes longer until a group starts: 20 s after a node was lost or gained, three minutes after a command was killed.
_UNKNOWN = (RayError, TypeError, AttributeError)


def refresh_reservations() -> None:
    """Have Ray look at its nodes now: where worker groups of a range are laid out is decided with a view that may be 20 s old."""
    with contextlib.suppress(*_UNKNOWN):
        ray.get(get_or_create_autoscaling_coordinator().get_reserved_resources.remote("", recompute=True), timeout=10)


def cancel_reservations(run_id: str) -> None:
    """Free the nodes that were promised to a run of Ray Train whose command was killed: the promise is kept for three minutes."""
    with contextlib.suppress(*_UNKNOWN):
        ray.get(get_or_create_autoscaling_coordinator().cancel_request.remote(f"train-{run_id}"), timeout=10)


def _answers(address: str, port: int) -> bool:
    """Whether a node takes connections."""
    with contextlib.suppress(OSError):
        socket.create_connection((address, port), _ANSWER_SECONDS).close()
        return True
    return False


def _preempted(error: Exception) -> bool:
    """Whether the worker's node was taken away with notice, which Ray Train counts apart and without a limit."""
    return bool(getattr(getattr(error, "health_check_failure", error), "preempted", False))


class Growth:
    """Tells a worker group at which checkpoint it ends, to begin again with more workers. As an actor, it tells all workers the same.

    Ray Train's own way is to end the group at any moment, and with it the steps since the last checkpoint.

    Args:
        most: workers there may be.
        each: what one needs, such as ``{"CPU": 1, "GPU": 1}``.
        seconds: between two looks at the cluster, at least.
    """

    def __init__(self, most: int, each: dict[str, float], seconds: float):
        self._most, self._each, self._seconds = most, each, seconds
        self._group: tuple[int, int] | None = None
        self._answers: dict[int, bool] = {}
        self._looked = 0.0

    def grows_at(self, group: tuple[int, int], step: int) -> bool:
        """Whether a group, given as its number of workers and its first step, ends at the checkpoint of `step`."""
        if group != self._group:
            self._group, self._answers, self._looked = group, {}, time.monotonic()
        if step not in self._answers:
            due = time.monotonic() - self._looked >= self._seconds
            self._answers[step] = due and self._room_for(group[0]) > group[0]
            if due:
                self._looked = time.monotonic()
        return self._answers[step]

    def _room_for(self, workers: int) -> int:
        """How many workers the group could have instead of `workers`."""
        whole = sum(_fitting(node["Resources"], self._each) for node in ray.nodes() if node["Alive"])
        return min(self._most, whole, workers + _fitting(ray.available_resources(), self._each))


def _fitting(resources: dict[str, float], each: dict[str, float]) -> int:
    return int(min(resources.get(name, 0.0) // amount for name, amount in each.items()))


def batches_of_group(
    batches: Iterable[Rows], checkpoint_every: int, grows_at: Callable[[int, int], bool], check: Callable[[], None]
) -> Iterator[Rows]:
    """The batches of a worker up to the checkpoint at which its group gives way to a larger one.

    Args:
        batches: from the group's first step on.
        checkpoint_every: steps between checkpoints.
        grows_at: whether the group, given by its first step, ends at the checkpoint of a step; gives every worker the same answer.
        check: called before each batch; may raise.

    Raises:
        Resized: in place of the first batch that is left to the next group.
    """
    first_step = None
    for batch in batches:
        check()
        first_step = batch.step if first_step is None else first_step
        if batch.step % checkpoint_every == 0 and grows_at(first_step, batch.step) and batch.step > first_step:
            raise Resized(batch.step)
        yield batch
