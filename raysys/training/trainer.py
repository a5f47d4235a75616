"""A training job on a Ray cluster: the worker group, its data, and its restarts."""

import contextlib
import hashlib
import logging
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import ray
import ray.data
import ray.train
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig, UserCallback
from ray.train.torch import TorchConfig, TorchTrainer, get_device

from raysys.data.batches import BatchFinisher
from raysys.data.pipeline import DATASET, PlannedData, iterate_batches
from raysys.errors import CertainFailure, RunFailed, UserError
from raysys.training.loop import Place, TrainingJob, train
from raysys.training.progress import ProgressBoard, ProgressDisplay
from raysys.training.resources import check_address, check_cpus, check_gpus, needed_cpus
from raysys.training.settings import RaySettings, TrainingSettings

HEALTH_CHECK = "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"


def start_ray(settings: RaySettings, training: TrainingSettings) -> None:
    """Connect to the cluster given by RAY_ADDRESS, or start a local Ray; check that the workers fit.

    Raises:
        UserError: the workers would need more CPUs or GPUs than there are, or leave none for the data.
    """
    # The group's health is asked for every 0.1 s instead of 2 s, which is what each report and restart waits for.
    os.environ.setdefault(HEALTH_CHECK, "0.1")
    if not ray.is_initialized():
        if address := os.environ.get("RAY_ADDRESS"):
            check_address(address)
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        else:
            cpus = settings.cpus or max(os.cpu_count() or 1, needed_cpus(training))
            check_cpus(cpus, training)
            check_gpus(torch.cuda.device_count(), training)
            # This Ray is ours alone, on the loopback interface, and ends with the job.
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")
            ray.init("local", num_cpus=cpus, include_dashboard=settings.dashboard, log_to_driver=False, logging_level=logging.ERROR)
    for _ in range(_READERS):
        warm_up.options(runtime_env={"env_vars": _INHERITED | {HEALTH_CHECK: os.environ[HEALTH_CHECK]}}).remote()
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    resources = ray.cluster_resources()
    check_cpus(int(resources.get("CPU", 0)), training)
    check_gpus(int(resources.get("GPU", 0)), training)


_READERS = 2
_INHERITED = {"RAY_WARN_BLOCKING_GET_INSIDE_ASYNC": "0"}
"""What Ray Train sets for all that it starts: a process is used again only where such variables are the same."""


@ray.remote(num_cpus=0)
def warm_up() -> None:
    """Make a process ready that Ray keeps for what comes: reading data begins while the workers start."""
    import raysys.data.builder  # noqa: F401


def fit(job: TrainingJob, title: str, started: float) -> None:
    """Train on the cluster until the last step, restarting the worker group after failures.

    Args:
        job: what to do.
        title: how the run is called on the screen.
        started: `time.perf_counter()` when the command was given.

    Raises:
        RunFailed: training ended early; the message carries the first worker's error.
        KeyboardInterrupt: Ctrl-C; the workers were stopped.
    """
    checkpoints = job.checkpoints
    data = PlannedData(job.plan, job.builder, job.total_steps, checkpoints.next_step)
    board = ProgressBoard.remote()  # type: ignore[attr-defined]
    scaling = ScalingConfig(
        num_workers=job.settings.workers,
        use_gpu=job.settings.gpu,
        resources_per_worker={"CPU": job.settings.cpus_per_worker} | ({"GPU": 1} if job.settings.gpu else {}),
    )
    trainer = TorchTrainer(
        run_worker,
        train_loop_config={"job": job, "board": board},
        datasets={DATASET: ray.data.range(1)},  # the real data set is made by PlannedData, for the workers there are
        dataset_config=data,
        scaling_config=scaling,
        torch_config=TorchConfig(backend="nccl" if job.settings.gpu else "gloo"),
        run_config=RunConfig(
            name="ray-train",
            storage_path=_ray_storage(job),
            failure_config=FailureConfig(max_failures=job.settings.max_failures),
            callbacks=[_NoSecondTry()],  # type: ignore[list-item]
        ),
    )
    try:
        with _interruptible(), ProgressDisplay(board, job.total_steps, title, started):
            trainer.fit()
    except ray.train.TrainingFailedError as error:
        raise RunFailed(_cause(error)) from None
    finally:
        ray.kill(board)  # after the display has taken the last lines from it


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, inside the block and after it.

    Ray Train answers it by stopping the workers and ending the process with code 0, and keeps doing so when training is over.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        if in_main_thread:
            signal.signal(signal.SIGINT, handler)


def run_worker(config: dict[str, Any]) -> None:
    """What Ray Train calls in every worker."""
    job: TrainingJob = config["job"]
    context = ray.train.get_context()
    place = Place(context.get_world_rank(), context.get_world_size(), get_device())
    if job.checkpoints.next_step() >= job.total_steps:
        return
    torch.set_num_threads(job.settings.cpus_per_worker)
    finisher = BatchFinisher(job.image, job.decode_threads, job.builder)
    batches = iterate_batches(ray.train.get_dataset_shard(DATASET), finisher)
    try:
        train(job, place, batches, report=config["board"].put.remote)
    except (RunFailed, UserError):
        raise
    except Exception:
        # An exception leaves the worker without its traceback; as text it reaches the person who started the run.
        raise RunFailed(traceback.format_exc().strip()) from None


class _NoSecondTry(UserCallback):
    """Ends the job at a failure that a restart would only meet again: what a callback raises is not retried."""

    def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
        for error in worker_exceptions.values():
            if isinstance(error, CertainFailure | UserError):
                raise error


def _ray_storage(job: TrainingJob) -> str:
    """Where Ray Train keeps its own state; checkpoints and metrics are ours and lie in the run folder."""
    if not job.folder.is_remote:
        return os.path.abspath(job.folder.path(".ray"))
    name = hashlib.blake2b(job.folder.uri.encode(), digest_size=8).hexdigest()
    return os.path.join(os.path.expanduser("~"), "ray_results", f"raysys-{name}")


_LEFT_ALONE = ("Connection closed by peer", "Connection reset by peer")  # what the others see when one worker has gone


def _cause(error: BaseException) -> str:
    if isinstance(fault := getattr(error, "controller_failure", None), CertainFailure | UserError):
        return str(fault)
    failures = [(rank, str(failure).strip()) for rank, failure in sorted(getattr(error, "worker_failures", {}).items())]
    if not failures:
        return str(error).strip()
    first = [failure for failure in failures if not any(sign in failure[1] for sign in _LEFT_ALONE)] or failures
    return "worker {}: {}".format(*first[0])
