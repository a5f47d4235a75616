"""What checkpoints cost beside training: steps made while one is being written, next to steps made while none is."""

import statistics
import time
from dataclasses import dataclass

import torch.distributed as dist

from raysys.benchmarks.ours import engine_step, random_batches, small_system
from raysys.data.plan import slice_bounds
from raysys.storage import Storage
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.engine import make_engine
from raysys.training.engine_state import EngineState
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings


@dataclass(frozen=True)
class CheckpointCost:
    """Of one checkpoint; seconds."""

    blocked: float
    """Training stands still while the state is copied."""
    slowed: float
    """By which the steps beside the writing took longer, together."""
    written: float
    """From the beginning to the complete checkpoint."""
    step: float
    """Median of a step with no checkpoint being written."""
    size: int
    """Bytes of the checkpoint."""

    @property
    def of_a_minute(self) -> float:
        """Share of training time that goes to checkpoints, at one a minute."""
        return (self.blocked + self.slowed) / 60


def cost_of_checkpoints(
    rank: int, workers: int, folder: str, rounds: int, size: int, batch_size: int, zero_stage: int
) -> list[CheckpointCost]:
    """Train, and write a checkpoint every so often; called by every worker of a group of processes.

    Args:
        rank: of this worker.
        workers: processes of the group.
        folder: for the checkpoints, local or s3://.
        rounds: checkpoints.
        size: of the pictures, pixels.
        batch_size: samples of each worker.
        zero_stage: of the engine.
    """
    total = workers * batch_size
    settings = TrainingSettings.model_validate({"zero_stage": zero_stage, "global_batch": total, "workers": workers})
    engine = make_engine(small_system(), settings, workers)
    engine.train()
    take_step = engine_step(engine, settings, rank, workers)
    bounds = slice_bounds(total, workers)
    batches = [batch.rows(bounds[rank], bounds[rank + 1]) for batch in random_batches(8, size, total)]
    state = EngineState(engine)
    checkpoints = Checkpoints(RunFolder(Storage(), folder), keep=1)

    def timed_step(number: int) -> float:
        started = time.perf_counter()
        take_step(batches[number % len(batches)])
        return time.perf_counter() - started

    for number in range(4):
        timed_step(number)
    found: list[CheckpointCost] = []
    for count in range(1, rounds + 1):
        plain = [timed_step(number) for number in range(12)]
        usual = statistics.median(plain)
        started = time.perf_counter()
        checkpoints.save(state, CheckpointState(count, "benchmark", workers, zero_stage, None))
        blocked = time.perf_counter() - started
        beside: list[float] = []
        complete = False
        while not complete:
            beside.append(timed_step(len(beside)))
            # All workers have to make the same number of steps.
            done: list[bool | None] = [None] * workers
            mine = [state.step for state in checkpoints.all()][-1:] == [count] if rank == 0 else True
            dist.all_gather_object(done, mine)
            complete = all(done)
        written = time.perf_counter() - started
        slowed = sum(seconds - usual for seconds in beside)
        size_of = sum(one.mark.size for one in checkpoints.survey() if one.mark and one.step == count)
        found.append(CheckpointCost(blocked, slowed, written, usual, size_of))
    checkpoints.wait()
    return found
