import pytest

from raysys.errors import UserError
from raysys.training.resources import check_cpus, check_gpus, needed_cpus
from raysys.training.settings import TrainingSettings


def test_the_workers_and_one_cpu_for_the_data_must_fit():
    training = TrainingSettings(workers=3, cpus_per_worker=2)
    assert needed_cpus(training) == 7
    check_cpus(7, training)
    check_cpus(None, training)
    with pytest.raises(UserError, match=r"training\.workers: 3 workers of 2 CPU and 1 CPU for reading .* need 7 CPUs, but Ray has 6"):
        check_cpus(6, training)


def test_every_worker_needs_a_gpu_if_gpus_are_wanted():
    check_gpus(0, TrainingSettings(workers=4))
    check_gpus(2, TrainingSettings(workers=2, gpu=True))
    with pytest.raises(UserError, match=r"training\.gpu: 2 workers need as many GPUs, but Ray has 1"):
        check_gpus(1, TrainingSettings(workers=2, gpu=True))
