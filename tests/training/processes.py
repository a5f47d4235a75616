"""Groups of real processes for tests of training, started fast: forked from a server that has imported the engine already."""

import gc
import os
import tempfile
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing

# Before the server starts: gloo and DeepSpeed on the CPU, whatever the machine has.
os.environ.setdefault("DS_ACCELERATOR", "cpu")
_PRELOADED = [
    *("torch", "torch._dynamo", "torch._inductor.compile_fx", "deepspeed", "deepspeed.runtime.zero.muon.muon_optimizer", "transformers"),
    *("raysys.systems.globetrotter", "raysys.training.loop"),
]


def run_ranks(work: Callable[..., Any], ranks: int, *arguments: Any) -> list[Any]:
    """Call ``work(rank, *arguments)`` in `ranks` new processes that form a gloo group; returns each rank's result.

    An error in one of them is raised here, with its traceback.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOADED)
    with tempfile.TemporaryDirectory(prefix="raysys-ranks-") as folder:
        multiprocessing.start_processes(_rank, (ranks, folder, work, arguments), nprocs=ranks, start_method="forkserver")
        return [torch.load(f"{folder}/result-{rank}.pt", weights_only=False) for rank in range(ranks)]


def start_ranks(work: Callable[..., Any], ranks: int, folder: str, *arguments: Any) -> list[BaseProcess]:
    """Start the processes of :func:`run_ranks` and leave them running, for tests that kill them.

    Args:
        folder: empty; where they find one another.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    processes = [context.Process(target=_rank, args=(rank, ranks, folder, work, arguments)) for rank in range(ranks)]
    for process in processes:
        process.start()
    return processes


def _rank(rank: int, ranks: int, folder: str, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    gc.freeze()  # ZeRO 3 collects garbage at every turn, and would look at all that was imported each time
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    torch.save(work(rank, *arguments), f"{folder}/result-{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()
