"""Whether the workers fit, asked before anything is started."""

from raysys.errors import UserError
from raysys.training.settings import TrainingSettings

CPUS_FOR_DATA = 1
"""Ray Data needs at least this many CPUs, or the workers wait for ever."""


def needed_cpus(training: TrainingSettings) -> int:
    """Logical CPUs that training takes: those of the workers, and one for reading data."""
    return training.workers * training.cpus_per_worker + CPUS_FOR_DATA


def check_cpus(cpus: int | None, training: TrainingSettings) -> None:
    """Raise UserError where the workers, and one CPU for the data, do not fit into `cpus`; None: as many as are needed."""
    if cpus is not None and needed_cpus(training) > cpus:
        raise UserError(
            f"training.workers: {training.workers} workers of {training.cpus_per_worker} CPU and {CPUS_FOR_DATA} CPU for reading data "
            f"need {needed_cpus(training)} CPUs, but Ray has {cpus}: use fewer workers, or raise --ray.cpus where Ray is started here"
        )


def check_gpus(gpus: int, training: TrainingSettings) -> None:
    """Raise UserError where the workers want more GPUs than there are."""
    if training.gpu and training.workers > gpus:
        raise UserError(f"training.gpu: {training.workers} workers need as many GPUs, but Ray has {gpus}")
