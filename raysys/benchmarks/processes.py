"""Groups of real processes on this machine, as training workers are: gloo between them, one thread each."""

import os
import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing


def run_processes(work: Callable[..., Any], workers: int, *arguments: Any) -> list[Any]:
    """Call ``work(rank, *arguments)`` in `workers` new processes that form a group; returns the results in rank order.

    An error in one of them ends the others and is raised here, with its traceback.

    Args:
        work: a function of a module, with a picklable result.
        workers: processes.
        arguments: picklable.
    """
    with tempfile.TemporaryDirectory(prefix="raysys-benchmark-") as folder:
        multiprocessing.start_processes(_work, (workers, folder, work, arguments), nprocs=workers, start_method="spawn")
        return [torch.load(f"{folder}/result-{rank}.pt", weights_only=False) for rank in range(workers)]


def _work(rank: int, workers: int, folder: str, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "DS_ACCELERATOR": "cpu",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(workers),
        "LOCAL_WORLD_SIZE": str(workers),
    }
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=workers)
    torch.save(work(rank, *arguments), f"{folder}/result-{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()
