"""Running statistics of a step: the mean over all its micro-batches, on any number of real processes."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from raysys.models.statistics import RunningStatistics, StatisticsUntouched, running_statistics
from tests.training.processes import run_ranks

MICRO_BATCHES = 5


def network(momentum: float | None = 0.1) -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, momentum=momentum), nn.ReLU(), nn.BatchNorm1d(3))
    net[1].running_mean.normal_()
    return net.train()


def micro_batch(number: int) -> torch.Tensor:
    """Micro-batches of unequal size and spread."""
    return torch.randn(3 + number, 4, generator=torch.Generator().manual_seed(number)) * (1 + number)


def one_step(net: nn.Module, workers: int, rank: int, micro_batches: int = MICRO_BATCHES) -> dict[str, torch.Tensor]:
    statistics = RunningStatistics(net)
    statistics.begin()
    dtype = net[0].weight.dtype
    for number in range(rank * micro_batches // workers, (rank + 1) * micro_batches // workers):
        net(micro_batch(number).to(dtype))
        statistics.restore()
        net(micro_batch(number).to(dtype))
        statistics.collect()
    statistics.end(micro_batches, workers)
    return {name: buffer.clone() for name, buffer in net.named_buffers()}


def steps(rank: int, workers: int) -> dict:
    """Statistics after steps of one, two and five micro-batches, of bfloat16, and after two steps of a cumulative mean."""
    found: dict = {micro_batches: one_step(network(), workers, rank, micro_batches) for micro_batches in (1, 2, MICRO_BATCHES)}
    found["bfloat16"] = one_step(network().bfloat16(), workers, rank)
    net = network(momentum=None)
    found["cumulative"] = [one_step(net, workers, rank) for _ in range(2)][-1]
    return found


def work(rank: int) -> dict:
    return steps(rank, dist.get_world_size())


def test_any_number_of_workers_gives_the_same_statistics():
    alone = steps(rank=0, workers=1)
    for workers in (2, 3):
        for found in run_ranks(work, workers):
            for case, buffers in alone.items():
                assert all(found[case][name].equal(buffer) for name, buffer in buffers.items()), (workers, case)


def test_the_result_is_the_mean_of_what_each_micro_batch_alone_would_have_left():
    net, start = network(), network()[1]
    one_step(net, 1, 0)
    inputs = [net[0](micro_batch(number)) for number in range(MICRO_BATCHES)]
    means = torch.stack([0.9 * start.running_mean + 0.1 * rows.mean(dim=0) for rows in inputs]).mean(dim=0)
    variances = torch.stack([0.9 * start.running_var + 0.1 * rows.var(dim=0) for rows in inputs]).mean(dim=0)
    torch.testing.assert_close(net[1].running_mean, means)
    torch.testing.assert_close(net[1].running_var, variances)
    assert net[1].num_batches_tracked == net[3].num_batches_tracked == 1, "a step counts once"


def test_one_micro_batch_is_what_torch_does():
    net, plain = network(), network()
    one_step(net, 1, 0, micro_batches=1)
    plain(micro_batch(0))
    assert all(buffer.equal(other) for buffer, other in zip(net.buffers(), plain.buffers(), strict=True))


def test_backward_after_collecting_and_ending_is_not_disturbed():
    net, plain = network(), network()
    plain(micro_batch(1)).square().sum().backward()
    statistics = RunningStatistics(net)
    statistics.begin()
    loss = net(micro_batch(1)).square().sum()
    statistics.collect()
    with StatisticsUntouched(net):
        net(micro_batch(2))
    statistics.end(1, 1)
    loss.backward()
    for parameter, other in zip(net.parameters(), plain.parameters(), strict=True):
        assert parameter.grad.equal(other.grad)


def test_without_norms_in_training_mode_nothing_is_done():
    frozen = network().eval()
    before = {name: buffer.clone() for name, buffer in frozen.named_buffers()}
    for net in (frozen, nn.Linear(4, 3), nn.BatchNorm1d(4, track_running_stats=False)):
        assert running_statistics(net) == []
        statistics = RunningStatistics(net)
        statistics.begin()
        net(micro_batch(0))
        statistics.collect()
        statistics.restore()
        statistics.end(1, workers=2)  # without a process group this would fail if it tried to reduce
    assert all(buffer.equal(before[name]) for name, buffer in frozen.named_buffers())


@pytest.mark.parametrize("fails", [False, True])
def test_forward_passes_within_leave_no_trace(fails):
    net = network()
    before = {name: buffer.clone() for name, buffer in net.named_buffers()}
    try:
        with StatisticsUntouched(net):
            net(micro_batch(0))
            assert not net[1].running_mean.equal(before["1.running_mean"])
            if fails:
                raise RuntimeError
    except RuntimeError:
        pass
    assert all(buffer.equal(before[name]) for name, buffer in net.named_buffers())
