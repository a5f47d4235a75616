"""An error of one rank names rank, step, phase and samples; what is meant for people stays as it is."""

import pytest
import torch

from raysys.data.bad import BadDataError
from raysys.errors import RunFailed, UserError
from raysys.training.failures import explain_failure, name_samples
from raysys.training.phases import Phases
from tests.training.pictures import small_samples
from tests.training.worlds import batch


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return small_samples(tmp_path_factory.mktemp("samples"), 16)


def share(ids: list[int], count: int):
    whole = batch(0)
    return type(whole)(**{**vars(whole), "ids": torch.tensor(ids), "count": count})


@pytest.mark.parametrize(
    ("ids", "named", "more"),
    [([3], [3], ""), ([0, 5, 2, 9], [0, 5, 2, 9], ""), ([7, 6, 5, 4, 3, 2], [7, 6, 5, 4], " and 2 more")],
)
def test_samples_are_named_by_shard_and_key(samples, ids, named, more):
    keys = [f"{folder}/{key}" for folder, key in (samples.locate(number) for number in named)]
    assert all(key.endswith(str(samples.column("key")[number])) for key, number in zip(keys, named, strict=True))
    assert name_samples(ids, samples) == ", ".join(keys) + more


def test_a_worker_without_samples(samples):
    assert name_samples([], samples) == "none"


def test_an_error_is_told_with_rank_step_phase_samples_and_traceback(samples):
    phases = Phases()
    phases.step = 12
    phases.batch = share([4, 2], 2)
    with pytest.raises(RunFailed) as failure, explain_failure(3, phases, samples), phases("forward"):
        raise ValueError("the colour octarine cannot be seen\nby anyone")
    first, second, third, *rest = str(failure.value).splitlines()
    assert first == "rank 3 failed at step 12 in phase forward: ValueError: the colour octarine cannot be seen"
    assert second == f"samples of this rank: {'/'.join(samples.locate(4))}, {'/'.join(samples.locate(2))}"
    assert third == "Traceback (most recent call last):"
    assert rest[-2:] == ["ValueError: the colour octarine cannot be seen", "by anyone"]
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__


def test_the_samples_of_the_step_before_are_not_to_blame(samples):
    phases = Phases()
    phases.step, phases.batch = 12, share([4, 2], 2)
    phases.step = 13
    with (
        pytest.raises(RunFailed, match=r"^rank 3 failed at step 13 in phase data: OSError: gone\nTraceback"),
        explain_failure(3, phases, samples),
        phases("data"),
    ):
        raise OSError("gone")


def test_before_the_first_step_and_without_a_batch(samples):
    with (
        pytest.raises(RunFailed, match=r"^rank 0 failed before the first step in phase starting: KeyError\nTraceback"),
        explain_failure(0, Phases(), samples),
    ):
        raise KeyError


@pytest.mark.parametrize("kind", [UserError, RunFailed, BadDataError, KeyboardInterrupt])
def test_what_people_can_read_already_passes(samples, kind):
    with pytest.raises(kind, match=r"^it is so$"), explain_failure(0, Phases(), samples):
        raise kind("it is so")
