"""Whether the workers fit, asked before anything is started."""

import socket

from raysys.errors import UserError
from raysys.training.settings import TrainingSettings


def cpus_for_data(training: TrainingSettings) -> int:
    """CPUs that Ray Data needs, or the workers wait for ever; none where workers take what they find, and reading tasks ask for nothing."""
    return 0 if training.elastic else 1


def needed_cpus(training: TrainingSettings) -> int:
    """Logical CPUs without which training does not begin: those of the fewest workers, and what reading the data needs."""
    return training.min_workers * training.cpus_per_worker + cpus_for_data(training)


def check_cpus(cpus: int | None, training: TrainingSettings) -> None:
    """Raise UserError where the workers and the reading of data do not fit into `cpus`; None: as many as are needed."""
    if cpus is not None and needed_cpus(training) > cpus:
        data = f" and {cpus_for_data(training)} CPU for reading data" if cpus_for_data(training) else ""
        raise UserError(
            f"training.workers: {training.min_workers} workers of {training.cpus_per_worker} CPU{data} "
            f"need {needed_cpus(training)} CPUs, but Ray has {cpus}: use fewer workers, or raise --ray.cpus where Ray is started here"
        )


def check_address(address: str, seconds: float = 5.0) -> None:
    """Raise UserError where nothing answers at RAY_ADDRESS within some seconds: Ray itself would wait for minutes.

    Args:
        address: ``host:port`` or ``ray://host:port``; others (``auto``, empty) are left to Ray.
        seconds: how long to wait.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except OSError as error:
        raise UserError(
            f"RAY_ADDRESS is {address}, where nothing answers ({error.strerror or error}): "
            "is the head running, and does a firewall let this machine reach it?"
        ) from None


def check_gpus(gpus: int, training: TrainingSettings) -> None:
    """Raise UserError where the workers want more GPUs than there are."""
    if training.gpu and training.min_workers > gpus:
        raise UserError(f"training.gpu: {training.min_workers} workers need as many GPUs, but Ray has {gpus}")
