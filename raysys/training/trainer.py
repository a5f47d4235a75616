"""A training job on a Ray cluster: the worker group, its data, and its restarts."""

import contextlib
import functools
import hashlib
import logging
import math
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import ray
import ray.data
import ray.train
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, get_device
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raysys.data.batches import BatchFinisher
from raysys.data.pipeline import DATASET, PlannedData, iterate_batches
from raysys.errors import CertainFailure, RunFailed, UserError
from raysys.training.failures import explain_failure
from raysys.training.gauges import RayGauges
from raysys.training.job import Place, TrainingJob
from raysys.training.lease import Lease
from raysys.training.loop import train
from raysys.training.phases import Phases
from raysys.training.progress import ProgressBoard, ProgressDisplay, explain_silence
from raysys.training.resources import check_address, check_cpus, check_gpus, needed_cpus
from raysys.training.restarts import Growth, Resized, Restarts, SpentFailures, batches_of_group, cancel_reservations, refresh_reservations
from raysys.training.settings import RaySettings, TrainingSettings
from raysys.training.trackers import check_trackers
from raysys.training.watchdog import Standstill, Watchdog, verdict

HEALTH_CHECK = "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"
START_TIMEOUT = "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"


def start_ray(settings: RaySettings, training: TrainingSettings) -> None:
    """Connect to the cluster given by RAY_ADDRESS, or start a local Ray; check that the workers fit.

    Raises:
        UserError: the workers would need more CPUs or GPUs than there are, or leave none for the data; a tracker is not installed.
    """
    check_trackers(training.trackers)
    # Health is asked for more often than every 2 s, which is what each report and restart waits for: of ten workers every 0.1 s.
    os.environ.setdefault(HEALTH_CHECK, f"{min(2.0, max(0.1, training.max_workers / 100)):g}")
    if training.elastic:
        # Ray Train looks at the nodes every 20 s only, and asks for those that are gone by then: in vain, for 60 s by its default.
        os.environ.setdefault(START_TIMEOUT, "5")
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
    inherited = _INHERITED | {name: os.environ[name] for name in (HEALTH_CHECK, START_TIMEOUT) if name in os.environ}
    for _ in range(_READERS):
        warm_up.options(runtime_env={"env_vars": inherited}).remote()
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


def fit(job: TrainingJob, title: str, started: float, lease: Lease) -> None:
    """Train on the cluster until the last step, restarting the worker group after failures.

    Args:
        job: what to do.
        title: how the run is called on the screen.
        started: `time.perf_counter()` when the command was given.
        lease: the right to train this run.

    Raises:
        RunFailed: training ended early; the message carries the first worker's error.
        KeyboardInterrupt: Ctrl-C; the workers were stopped.
    """
    settings, checkpoints = job.settings, job.checkpoints
    data = PlannedData(job.plan, job.builder, job.total_steps, checkpoints.next_step, reader_cpus=0 if settings.elastic else 1)
    # The board stands beside this process, whose node is the one that the run cannot lose.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    board = ProgressBoard.options(scheduling_strategy=here).remote()  # type: ignore[attr-defined]
    each = {"CPU": float(settings.cpus_per_worker)} | ({"GPU": 1.0} if settings.gpu else {})
    growth = None
    if settings.elastic:
        actor = ray.remote(num_cpus=0)(Growth).options(scheduling_strategy=here)
        growth = actor.remote(settings.max_workers, each, settings.resize_seconds)
        refresh_reservations()  # a node that has come a moment ago counts
    between = settings.min_workers, settings.max_workers
    scaling = ScalingConfig(
        num_workers=between if settings.elastic else settings.max_workers,  # type: ignore[arg-type]
        use_gpu=settings.gpu,
        resources_per_worker=each,
        # Ray Train would throw away the steps since the last checkpoint: see Growth.
        elastic_resize_monitor_interval_s=math.inf,  # type: ignore[call-arg]
    )
    trainer = TorchTrainer(
        run_worker,
        train_loop_config={"job": job, "board": board, "growth": growth, "lease": lease},
        datasets={DATASET: ray.data.range(1)},  # the real data set is made by PlannedData, for the workers there are
        dataset_config=data,
        scaling_config=scaling,
        torch_config=TorchConfig(backend="nccl" if settings.gpu else "gloo"),
        run_config=RunConfig(
            name="ray-train",
            storage_path=_ray_storage(job),
            failure_config=FailureConfig(max_failures=-1),
            callbacks=[Restarts(settings.max_failures, checkpoints.next_step, board)],  # type: ignore[list-item]
        ),
    )
    lease.note(trainer.train_run_context.run_id)  # type: ignore[attr-defined]
    if lease.former:
        cancel_reservations(lease.former.ray_run)
    silence = functools.partial(explain_silence, settings.min_workers, each)
    try:
        with _interruptible(), ProgressDisplay(board, job.total_steps, title, started, silence):
            trainer.fit()
    except ray.train.TrainingFailedError as error:
        raise RunFailed(_cause(error, ray.get(board.still.remote()))) from None
    finally:
        ray.kill(board)  # after the display has taken the last lines from it
        if growth:
            ray.kill(growth)  # type: ignore[arg-type]


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
    board = config["board"]
    context = ray.train.get_context()
    place = Place(context.get_world_rank(), context.get_world_size(), get_device())
    if job.checkpoints.next_step() >= job.total_steps:
        return
    if place.rank == 0:
        board.begin.remote()
    torch.set_num_threads(job.settings.cpus_per_worker)
    finisher = BatchFinisher(job.image, job.decode_threads, job.builder)
    phases, gauges = Phases(place.device), RayGauges(job.folder, place.rank)

    def report(line: dict[str, Any]) -> None:
        gauges.add(line)
        if place.rank == 0:
            board.put.remote(line)

    def grows_at(first_step: int, step: int) -> bool:
        return config["growth"] is not None and ray.get(config["growth"].grows_at.remote((place.workers, first_step), step))

    beat = board.beat.remote if place.rank == 0 else None
    with (
        Watchdog(phases, place.rank, place.workers, job.settings.watchdog_seconds, job.folder, board.stands_still.remote, beat),
        explain_failure(place.rank, phases, job.builder.samples),
        config["lease"].kept(by="worker") if place.rank == 0 else contextlib.nullcontext(lambda: None) as check_lease,
    ):
        fetched = iterate_batches(ray.train.get_dataset_shard(DATASET), finisher)
        batches = batches_of_group(fetched, job.settings.checkpoint_every, grows_at, check_lease)
        try:
            train(job, place, batches, report, phases, board.tell.remote)
        except Resized as resized:
            if place.rank == 0:
                board.tell.remote(str(resized))
            raise


def _ray_storage(job: TrainingJob) -> str:
    """Where Ray Train keeps its own state; checkpoints and metrics are ours and lie in the run folder."""
    if not job.folder.is_remote:
        return os.path.abspath(job.folder.path(".ray"))
    name = hashlib.blake2b(job.folder.uri.encode(), digest_size=8).hexdigest()
    return os.path.join(os.path.expanduser("~"), "ray_results", f"raysys-{name}")


_LEFT_ALONE = ("Connection closed by peer", "Connection reset by peer")  # what the others see when one worker has gone


def _cause(error: BaseException, still: Sequence[Standstill] = ()) -> str:
    """What ended the run, for people: a worker's own error, else a standstill, else what is known of the workers that are gone."""
    if isinstance(fault := getattr(error, "controller_failure", None), CertainFailure | UserError):
        return str(fault)
    failures = sorted(getattr(fault if isinstance(fault, SpentFailures) else error, "worker_failures", {}).items())
    first_hand = [(rank, fault) for rank, fault in failures if not any(sign in str(fault) for sign in _LEFT_ALONE)]
    told = [(rank, fault) for rank, fault in first_hand if isinstance(fault, RunFailed | UserError)]
    if still and not told:
        return verdict(still)
    if not failures:
        return str(error).strip()
    rank, fault = (told or first_hand or failures)[0]
    text = str(fault).strip()
    return text if text.startswith("rank ") else f"worker {rank}: {text}"
