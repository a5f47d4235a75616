import socket
import time

import pytest

from raysys.errors import UserError
from raysys.training.resources import check_address, check_cpus, check_gpus, needed_cpus
from raysys.training.settings import TrainingSettings


def test_the_workers_and_the_reading_of_data_must_fit():
    training = TrainingSettings(workers=3, cpus_per_worker=2)
    assert needed_cpus(training) == 7
    check_cpus(7, training)
    check_cpus(None, training)
    check_cpus(6, TrainingSettings(workers="3..8", cpus_per_worker=2))
    with pytest.raises(UserError, match=r"training\.workers: 3 workers of 2 CPU need 6 CPUs, but Ray has 5"):
        check_cpus(5, TrainingSettings(workers="3..8", cpus_per_worker=2))
    with pytest.raises(UserError, match=r"training\.workers: 3 workers of 2 CPU and 1 CPU for reading .* need 7 CPUs, but Ray has 6"):
        check_cpus(6, training)


def test_every_worker_needs_a_gpu_if_gpus_are_wanted():
    check_gpus(0, TrainingSettings(workers=4))
    check_gpus(2, TrainingSettings(workers=2, gpu=True))
    with pytest.raises(UserError, match=r"training\.gpu: 2 workers need as many GPUs, but Ray has 1"):
        check_gpus(1, TrainingSettings(workers=2, gpu=True))


def test_an_address_where_nothing_answers_is_refused_at_once():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = time.monotonic()
    with pytest.raises(UserError, match=f"RAY_ADDRESS is {address}, where nothing answers"):
        check_address(address)
    assert time.monotonic() - started < 10


def test_addresses_that_only_ray_can_judge():
    for address in ("", "auto", "local"):
        check_address(address)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        check_address(f"ray://127.0.0.1:{listening.getsockname()[1]}")
