"""The plan laid out on Ray Data: tasks read and tokenise, each training worker receives its share of every global batch.

One row of the Ray data set is one worker's share of one step, so that every block has the same number of rows whatever
the samples are. With order preserved, ``streaming_split(W, equal=False)`` then deals blocks out in turn: block j goes to
worker j mod W. The layout is made in :meth:`PlannedData.configure`, which Ray Train calls with the actual number of
workers whenever a worker group starts.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import ray
import ray.data
from ray.train import DataConfig

from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import BatchBuilder
from raysys.data.plan import Plan

DATASET = "train"
_NO_STEP = -1  # row that only makes a block as long as the others


class PlannedData(DataConfig):
    """Ray Train's hook: how a worker group's data is laid out.

    Args:
        plan: which samples, in which order.
        builder: makes a worker's share of a batch.
        last_step: where training ends.
        first_step: called at every start of the worker group; the step that training resumes at.
    """

    def __init__(self, plan: Plan, builder: BatchBuilder, last_step: int, first_step: Callable[[], int]):
        super().__init__()
        self.plan = plan
        self.builder = builder
        self.last_step = last_step
        self.first_step = first_step

    def configure(
        self, datasets: Any, world_size: int, worker_handles: Any = None, worker_node_ids: Any = None, **kwargs: Any
    ) -> list[dict]:
        first_step = self.first_step()
        if first_step >= self.last_step:
            return [{} for _ in range(world_size)]
        dataset = planned_dataset(self.plan, self.builder, first_step, self.last_step, world_size)
        return [{DATASET: iterator} for iterator in dataset.streaming_split(world_size, equal=False)]


def planned_dataset(plan: Plan, builder: BatchBuilder, first_step: int, last_step: int, workers: int) -> ray.data.Dataset:
    """The Ray data set of steps `first_step` … `last_step` − 1 for `workers` workers.

    A block holds the steps of one window for one worker, windows in order and, within a window, workers in order. Columns:
    `step` int64 and `payload` binary.
    """
    first_window, last_window = plan.window_of(first_step), plan.window_of(last_step - 1)
    blocks = (last_window - first_window + 1) * workers

    def read_block(units: dict[str, np.ndarray]) -> dict[str, Any]:
        window, rank = divmod(int(units["id"][0]) // plan.window_steps, workers)
        steps = [step for step in plan.steps_of(first_window + window) if first_step <= step < last_step]
        payloads = [builder(step, plan.epoch_of(step), plan.slice(step, rank, workers)) for step in steps]
        padding = plan.window_steps - len(steps)
        return {
            "step": np.array(steps + [_NO_STEP] * padding, dtype=np.int64),
            "payload": pa.array(payloads + [b""] * padding, type=pa.large_binary()),
        }

    dataset = ray.data.range(blocks * plan.window_steps, override_num_blocks=blocks).map_batches(read_block, batch_size=None)
    dataset.context.execution_options.preserve_order = True
    # A task's output must stay one block, or the blocks would no longer be dealt out one to a worker.
    dataset.context.target_max_block_size = 2**40
    return dataset


def iterate_batches(shard: ray.data.DataIterator, finisher: BatchFinisher, prefetch: int = 2) -> Iterator[Batch]:
    """A worker's batches, in the order of steps."""
    for table in shard.iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=prefetch):
        if table["step"][0].as_py() != _NO_STEP:
            yield finisher(table["payload"][0].as_buffer())
