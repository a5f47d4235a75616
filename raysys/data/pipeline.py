"""The plan laid out on Ray Data: tasks read and tokenise, each training worker receives its share of every global batch.

One row of the Ray data set is one worker's share of one step, so that every block has the same number of rows whatever
the samples are. With order preserved, ``streaming_split(W, equal=False)`` then deals blocks out in turn: block j goes to
worker j mod W. The layout is made in :meth:`PlannedData.configure`, which Ray Train calls with the actual number of
workers whenever a worker group starts.
"""

import functools
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import ray
import ray.data
from ray.data.block import BlockMetadata
from ray.data.datasource import ReadTask
from ray.train import DataConfig

from raysys.data.plan import Plan
from raysys.data.shares import Payload, Share, ShareBuilder
from raysys.errors import RunFailed, UserError

DATASET = "train"
Item = TypeVar("Item")
_FREE_READERS = 1  # reading tasks for each worker where they ask for no CPU
_NO_STEP = -1  # row that only makes a block as long as the others
_FAULT = -2  # row whose header is an error: through Ray Data it would reach the training worker as pages of text


class PlannedData(DataConfig):
    """Ray Train's hook: how a worker group's data is laid out.

    Args:
        plan: which samples, in which order.
        builder: makes a worker's share of a batch.
        last_step: where training ends.
        first_step: called at every start of the worker group; the step that training resumes at.
        reader_cpus: CPUs that a reading task asks for. 0 where the number of workers follows the cluster: Ray Train then takes every CPU
            for workers, and tasks that ask for one would wait for ever.
    """

    def __init__(self, plan: Plan, builder: ShareBuilder, last_step: int, first_step: Callable[[], int], reader_cpus: int = 1):
        super().__init__()
        self.reader_cpus = reader_cpus
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
        # The workers have their CPUs by now: where they left none, a task that asks for one would wait for ever.
        cpus = self.reader_cpus if ray.available_resources().get("CPU", 0) >= self.reader_cpus else 0
        dataset = planned_dataset(self.plan, self.builder, first_step, self.last_step, world_size, cpus)
        return [{DATASET: iterator} for iterator in dataset.streaming_split(world_size, equal=False)]


def planned_dataset(
    plan: Plan, builder: ShareBuilder, first_step: int, last_step: int, workers: int, reader_cpus: int = 1
) -> ray.data.Dataset:
    """The Ray data set of steps `first_step` … `last_step` − 1 for `workers` workers.

    A block holds the steps of one window for one worker, windows in order and, within a window, workers in order. Columns are
    the parts of a :class:`raysys.data.shares.Payload`.
    """
    first_window, last_window = plan.window_of(first_step), plan.window_of(last_step - 1)
    blocks, rows = (last_window - first_window + 1) * workers, plan.window_steps
    shared = ray.put((plan, builder))  # a plan by groups has as many numbers as there are samples

    def read_block(number: int) -> list[pa.Table]:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a task has one CPU
        window, rank = divmod(number, workers)
        plan, builder = _kept(shared)
        steps = [step for step in plan.steps_of(first_window + window) if first_step <= step < last_step]
        try:
            payloads = builder([Share(step, plan.draw_of(step), plan.slice(step, rank, workers)) for step in steps])
        except (RunFailed, UserError) as error:
            payloads = [Payload(_FAULT, pickle.dumps(error), ())] * len(steps)
        return [to_table(payloads + [Payload(_NO_STEP, b"", ())] * (rows - len(steps)))]

    dataset = ray.data.read_datasource(
        _Blocks(read_block, blocks, rows),
        override_num_blocks=blocks,
        num_cpus=reader_cpus,
        concurrency=None if reader_cpus else _FREE_READERS * workers,
    )
    dataset.context.execution_options.preserve_order = True
    # A task's output must stay one block, or the blocks would no longer be dealt out one to a worker.
    dataset.context.target_max_block_size = 2**40
    return dataset


class _Blocks(ray.data.Datasource):
    """Blocks by their numbers, one for each reading task."""

    def __init__(self, read: Callable[[int], list[pa.Table]], blocks: int, rows: int):
        super().__init__()
        self.read, self.blocks, self.rows = read, blocks, rows

    def estimate_inmemory_data_size(self) -> None:
        """Not known before it is read."""

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None) -> list[ReadTask]:
        """A task for each block."""
        facts = BlockMetadata(num_rows=self.rows, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(functools.partial(self.read, number), facts) for number in range(self.blocks)]


_unpacked: dict[ray.ObjectRef, tuple[Plan, ShareBuilder]] = {}


def _kept(shared: ray.ObjectRef) -> tuple[Plan, ShareBuilder]:
    """The plan and the builder behind `shared`, unpacked once in a process: anew for every task, manifests and a tokenizer cost more than
    reading."""
    if shared not in _unpacked:
        _unpacked.clear()
        _unpacked[shared] = ray.get(shared)
    return _unpacked[shared]


def to_table(payloads: Sequence[Payload]) -> pa.Table:
    """A row for each payload; the bytes of pictures are copied once."""
    pictures = [picture for payload in payloads for picture in payload.pictures]
    ends = np.cumsum([0] + [len(picture) for picture in pictures], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(pictures))]
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(pictures), buffers)
    rows = np.cumsum([0] + [len(payload.pictures) for payload in payloads], dtype=np.int64)
    return pa.table(
        {
            "step": np.array([payload.step for payload in payloads], dtype=np.int64),
            "header": pa.array([payload.header for payload in payloads], type=pa.large_binary()),
            "pictures": pa.LargeListArray.from_arrays(pa.array(rows), values),
        }
    )


def iterate_batches(shard: ray.data.DataIterator, finisher: Callable[[Payload], Item], prefetch: int = 2) -> Iterator[Item]:
    """What `finisher` makes of a worker's shares, in the order of steps; raises what reading them raised."""
    for table in shard.iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=prefetch):
        step = table["step"][0].as_py()
        if step == _FAULT:
            raise pickle.loads(table["header"][0].as_py())
        if step != _NO_STEP:
            yield finisher(Payload(step, table["header"][0].as_py(), table["pictures"][0].as_py()))
