"""Closed forms, by hand, for a system of 1 000 trained and 200 frozen parameters, 100 of them in small tensors."""

import pytest

from raysys.training.estimate import (
    Buckets,
    Memory,
    Traffic,
    Weights,
    buffer_bytes,
    checkpoint_bytes,
    gradient_bytes,
    line_through,
    loss_growth,
    node_bytes,
    optimizer_bytes,
    ring_bytes,
    state_traffic,
    step_seconds,
    vector_traffic,
    weight_bytes,
    weight_fetches,
)

WEIGHTS = Weights(trained=1000, frozen=200, persistent=100, buffers=40, statistics=3)
BUCKETS = Buckets(reduce=5000, live=700)


@pytest.mark.parametrize(
    ("stage", "p", "weights", "gradients", "optimizer", "buffers"),
    [
        (0, 4, 4840, 4000, 8000, 4000),
        (1, 4, 4840, 4000, 3000, 20_000),
        (2, 4, 4840, 1000, 3000, 20_000),
        (3, 4, 4 * (300 + 100) + 40, 1000, 3000, 20_000 + 2800),
        (1, 2, 2400 + 40, 2000, 3000, 10_000),
        (2, 2, 2400 + 40, 500, 3000, 10_000),
        (3, 2, 2 * (300 + 100) + 40, 500, 3000, 10_000 + 1400),
    ],
)
def test_memory_of_a_worker_of_four(stage, p, weights, gradients, optimizer, buffers):
    assert weight_bytes(WEIGHTS, stage, 4, p) == weights
    assert gradient_bytes(WEIGHTS, stage, 4, p) == gradients
    assert optimizer_bytes(WEIGHTS, stage, 4, p) == optimizer
    assert buffer_bytes(WEIGHTS, stage, 4, p, BUCKETS) == buffers


def test_one_worker_divides_nothing():
    assert weight_bytes(WEIGHTS, 3, 1, 4) == weight_bytes(WEIGHTS, 0, 1, 4) == 4840


def test_a_bucket_that_is_not_allocated_takes_what_is_in_it():
    loose = Buckets(reduce=5000, live=700, contiguous=False)
    assert [buffer_bytes(WEIGHTS, stage, 4, 4, loose) for stage in range(4)] == [4000, 4000, 4000, 4000 + 2800]
    assert buffer_bytes(WEIGHTS, 1, 4, 4, Buckets(reduce=300, contiguous=False)) == 1200


def test_several_backward_passes_hold_the_whole_gradient():
    assert gradient_bytes(WEIGHTS, 1, 4, 4, passes=3) == 4000
    assert gradient_bytes(WEIGHTS, 2, 4, 4, passes=3) == 4000 + 1000
    assert gradient_bytes(WEIGHTS, 2, 4, 2, passes=3) == 2000 + 4000 + 500, "bfloat16 is summed in float32"


def test_optimizer_state():
    assert optimizer_bytes(WEIGHTS, 0, 4, 2) == 12_000, "half precision needs masters, and without ZeRO they are whole"
    assert optimizer_bytes(WEIGHTS, 1, 2, 4, averages=True) == 16 * 1000 / 2
    assert optimizer_bytes(WEIGHTS, 0, 1, 4, averages=True) == 12_000


def test_buckets_are_those_of_the_configuration():
    assert Buckets.of({"stage": 2}) == Buckets(500_000_000, 1_000_000_000, 100_000)
    given = {"reduce_bucket_size": 10, "stage3_max_live_parameters": 20, "stage3_param_persistence_threshold": 30}
    assert Buckets.of(given) == Buckets(10, 20, 30)
    assert not Buckets.of({"contiguous_gradients": False}).contiguous


def kinds(traffic: list[Traffic]) -> list[tuple[str, float]]:
    return [(one.kind, one.bytes) for one in traffic]


STATISTICS = ("all_reduce", 24)


def test_what_is_sent_of_weights_and_gradients():
    assert kinds(state_traffic(WEIGHTS, 0, 4)) == [STATISTICS, ("all_reduce", 4000)]
    for stage in (1, 2):
        assert kinds(state_traffic(WEIGHTS, stage, 2)) == [STATISTICS, ("all_reduce", 2000), ("all_gather", 2000)]
    found = kinds(state_traffic(WEIGHTS, 3, 4, fetches=2))
    assert found == [STATISTICS, ("reduce_scatter", 4000), ("all_gather", 2 * 4 * 1100), ("all_gather", 400)]
    idle = Weights(trained=1000, frozen=200, persistent=100, idle=50)
    assert kinds(state_traffic(idle, 3, 4))[2] == ("all_gather", 4 * 1050)


def test_the_gather():
    assert kinds(vector_traffic(100, 80, [3, 3, 2])) == [("all_gather", 900), ("all_reduce", 640)]


def test_ring():
    assert ring_bytes(Traffic("", "all_gather", 800), 4) == 600
    assert ring_bytes(Traffic("", "reduce_scatter", 800), 4) == 600
    assert ring_bytes(Traffic("", "all_reduce", 800), 4) == 1200
    assert ring_bytes(Traffic("", "all_reduce", 800), 1) == 0
    assert node_bytes(600, workers=8, workers_per_node=8) == 0
    assert node_bytes(600, workers=16, workers_per_node=8) == 600


def test_growth_is_found_again():
    a, b = loss_growth(100, 3 * 100 + 5 * 100**2, 200, 3 * 200 + 5 * 200**2)
    assert (a, b) == pytest.approx((3, 5))
    assert loss_growth(100, 700.0, 200, 1400.0) == pytest.approx((7, 0))
    assert loss_growth(100, 700.0, 200, 1000.0)[1] == 0, "noise does not make it fall"
    assert line_through(2, 10.0, 4, 16.0, 8) == 28
    assert line_through(2, 10.0, 4, 8.0, 8) == 8


def test_time_of_a_step():
    assert step_seconds(3.0, 1.0, micro_batches=1, cached=False, loss=0.5, update=0.25) == 3.75
    assert step_seconds(3.0, 1.0, micro_batches=4, cached=True, loss=0.5, update=0.25) == 16.75
    assert step_seconds(3.0, 1.0, micro_batches=4, cached=False, loss=0.5, update=0.25) == 12.75


def test_with_cached_gradients_the_loss_is_gone_when_activations_come():
    parts = {"weights": 1.0, "gradients": 2.0, "optimizer": 4.0, "buffers": 8.0, "activations": 16.0, "loss": 32.0, "pixels": 64.0}
    assert Memory(**parts).total == 127
    assert Memory(**parts, cached=True).total == 127 - 16


def test_checkpoint():
    assert checkpoint_bytes(WEIGHTS, 2) == 12_000 + 400 + 40
    assert checkpoint_bytes(WEIGHTS, 4, averages=True) == 16_000 + 800 + 40


@pytest.mark.parametrize(("micro_batches", "cached", "fetches"), [(1, False, 1), (4, True, 12), (4, False, 4)])
def test_how_often_zero_3_gathers_weights(micro_batches, cached, fetches):
    assert weight_fetches(micro_batches, cached) == fetches
