"""The plan's promises, for many sizes, workers and seeds."""

import itertools
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.data.plan import Plan, slice_sizes
from raysys.data.randomness import mix, permute, uniform
from raysys.errors import UserError


def plan_of(samples: int, bucketed: bool, **options) -> Plan:
    """With or without lengths, 1 to 30."""
    return Plan(samples, lengths=lengths_of(samples) if bucketed else None, **options)


def lengths_of(samples: int) -> np.ndarray:
    return np.random.default_rng(samples).integers(1, 31, samples).astype(np.int16)


plans = st.builds(
    plan_of,
    samples=st.integers(50, 700),
    bucketed=st.booleans(),
    global_batch=st.integers(1, 50),
    seed=st.integers(0, 2**31),
    run_length=st.integers(1, 40),
    window_steps=st.integers(1, 9),
    last_batch=st.sampled_from(["drop", "keep"]),
)


def epoch_ids(plan: Plan, epoch: int) -> np.ndarray:
    first = epoch * plan.steps_per_epoch
    return np.concatenate([plan.batch(step) for step in range(first, first + plan.steps_per_epoch)])


@given(plans, st.integers(0, 5))
@settings(max_examples=150, deadline=None)
def test_every_sample_once_per_epoch(plan, epoch):
    ids = epoch_ids(plan, epoch)
    assert len(np.unique(ids)) == len(ids) == plan.samples - plan.dropped_per_epoch
    assert ids.min() >= 0
    assert ids.max() < plan.samples
    if plan.last_batch == "keep":
        assert plan.dropped_per_epoch == 0
    else:
        assert plan.dropped_per_epoch < plan.global_batch


@given(plans, st.integers(0, 300), st.integers(1, 7))
@settings(max_examples=150, deadline=None)
def test_workers_share_the_same_global_batch(plan, step, workers):
    slices = [plan.slice(step, rank, workers) for rank in range(workers)]
    assert np.array_equal(np.concatenate(slices), plan.batch(step))
    sizes = [len(part) for part in slices]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == slice_sizes(plan.batch_size(step), workers)


@given(plans, st.integers(1, 60))
@settings(max_examples=50, deadline=None)
def test_resuming_at_any_step_gives_the_same_continuation(plan, start):
    whole = [plan.batch(step) for step in range(start + 5)]
    again = Plan(plan.samples, plan.global_batch, plan.seed, plan.run_length, plan.window_steps, plan.last_batch, lengths=plan.lengths)
    for step in range(start, start + 5):
        assert np.array_equal(again.batch(step), whole[step])


@given(
    st.integers(50, 700), st.integers(1, 50), st.integers(0, 99), st.integers(1, 9), st.sampled_from(["drop", "keep"]), st.integers(0, 9)
)
@settings(max_examples=60, deadline=None)
def test_by_length_a_window_has_the_same_samples_in_batches_of_the_same_sizes(samples, size, seed, steps, last_batch, window):
    plain, bucketed = (
        plan_of(samples, by, global_batch=size, seed=seed, window_steps=steps, last_batch=last_batch) for by in (False, True)
    )
    assert plain.steps_of(window) == bucketed.steps_of(window)
    batches = [[plan.batch(step) for step in plan.steps_of(window)] for plan in (plain, bucketed)]
    assert [len(batch) for batch in batches[0]] == [len(batch) for batch in batches[1]]
    assert np.array_equal(*(np.sort(np.concatenate(some)) for some in batches))
    in_order = sorted(batches[1], key=lambda ids: (bucketed.lengths[ids].max(), bucketed.lengths[ids].min()))
    for shorter, longer in itertools.pairwise(in_order):
        assert bucketed.lengths[shorter].max() <= bucketed.lengths[longer].min(), "no two batches' lengths overlap"


def test_by_length_little_is_padded_and_no_step_has_long_samples_by_its_place():
    def padding(plan: Plan) -> float:
        lengths = [lengths_of(20_000)[plan.batch(step)] for step in range(plan.steps_per_epoch)]
        return 1 - np.mean([of_batch.mean() / of_batch.max() for of_batch in lengths])

    plain, bucketed = (plan_of(20_000, by, global_batch=20, seed=0, run_length=8) for by in (False, True))
    assert padding(plain) > 0.4
    assert padding(bucketed) < 0.1
    longest = np.array([lengths_of(20_000)[bucketed.batch(step)].max() for step in range(992)]).reshape(62, 16)
    # 62 windows, each with its batches in another order: lengths 1 to 30 have deviation 8.7, the means of the 16 places 8.7 / √62 = 1.1
    assert np.abs(longest.mean(axis=0) - longest.mean()).max() < 4 * 1.1
    assert len({tuple(np.argsort(window, kind="stable")) for window in longest}) == 62


def test_samples_of_one_length_are_mixed_as_without_lengths():
    plain, bucketed = (Plan(1000, 10, seed=0, lengths=lengths) for lengths in (None, np.full(1000, 7, np.int16)))
    batches = [[tuple(plan.batch(step).tolist()) for step in plan.steps_of(2)] for plan in (plain, bucketed)]
    assert sorted(batches[0]) == sorted(batches[1])
    assert batches[0] != batches[1]


def test_lengths_of_other_samples_are_refused():
    with pytest.raises(ValueError, match="9 lengths of 10 samples"):
        Plan(10, 2, seed=0, lengths=np.ones(9, np.int16))


def test_epochs_and_seeds_differ():
    plan = Plan(1000, 10, seed=1)
    assert not np.array_equal(epoch_ids(plan, 0), epoch_ids(plan, 1))
    assert not np.array_equal(epoch_ids(plan, 0), epoch_ids(Plan(1000, 10, seed=2), 0))


def test_drop_leaves_out_other_samples_in_each_epoch():
    plan = Plan(105, 10, seed=3)
    left_out = [set(range(105)) - set(epoch_ids(plan, epoch)) for epoch in range(4)]
    assert all(len(ids) == 5 for ids in left_out)
    assert len(set.union(*left_out)) > 10


def test_shuffle_quality():
    """Position in the epoch says next to nothing about position in storage, and a batch draws from many runs."""
    plan = Plan(200_000, 400, seed=0, run_length=64, window_steps=16)
    ids = epoch_ids(plan, 0).reshape(-1, 400)
    batch_number = np.repeat(np.arange(len(ids)), 400)
    # Permuted runs are independent draws: the correlation has deviation 1 / sqrt(runs), 0.018.
    assert abs(np.corrcoef(batch_number, ids.ravel())[0, 1]) < 3 * 0.018
    # A window holds 100 runs; 400 draws from it without replacement are expected to miss 1.6 of them.
    runs_in_batch = [len(np.unique((batch - int(mix(0, 0, 2)) % 200_000) % 200_000 // 64)) for batch in ids]
    assert np.mean(runs_in_batch) > 95
    # Neighbours in storage meet in a batch as often as 400 of a window's 6 400 would by chance: 1 in 16.
    together = np.mean([np.isin(batch + 1, batch).mean() for batch in ids])
    assert together < 1.2 / 16


def test_one_window_over_all_samples_is_a_uniform_shuffle():
    plan = Plan(64, 8, seed=0, run_length=8, window_steps=8)
    counts = np.zeros((64, 8))
    for epoch in range(800):
        for step in range(8):
            counts[plan.batch(epoch * 8 + step), step] += 1
    # Each of the 64 × 8 cells is binomial(800, 1/8): mean 100, deviation 9.4.
    assert np.abs(counts - 100).max() < 5 * 9.4


def test_a_billion_samples_cost_nothing():
    tracemalloc.start()
    start = time.process_time()
    plan = Plan(10**9, 4096, seed=0)
    plan.batch(0)
    plan.batch(200_000)
    assert time.process_time() - start < 1
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()


@given(st.integers(1, 3000), st.integers(0, 2**40))
@settings(max_examples=100, deadline=None)
def test_permute_is_a_bijection(size, key):
    assert np.array_equal(np.sort(permute(np.arange(size), size, key)), np.arange(size))


def test_uniform_draws_depend_on_the_address_alone():
    ids = np.arange(10_000)
    draws = uniform(7, 3, ids)
    assert np.array_equal(draws[500:600], uniform(7, 3, ids[500:600]))
    assert abs(draws.mean() - 0.5) < 0.02
    assert draws.min() >= 0
    assert draws.max() < 1
    assert not np.array_equal(draws, uniform(7, 4, ids))


def test_impossible_plans_say_what_to_do():
    with pytest.raises(UserError, match="no samples"):
        Plan(0, 4, seed=0)
    with pytest.raises(UserError, match="lower it to at most 10"):
        Plan(10, 11, seed=0)
    assert len(Plan(10, 11, seed=0, last_batch="keep").batch(0)) == 10


@given(plans)
@settings(max_examples=50, deadline=None)
def test_windows_tile_the_steps(plan):
    steps = [step for window in range(3 * plan.windows_per_epoch) for step in plan.steps_of(window)]
    assert steps == list(range(3 * plan.steps_per_epoch))
    assert all(plan.window_of(step) == window for window in range(plan.windows_per_epoch) for step in plan.steps_of(window))


@given(plans, st.integers(0, 60), st.data())
@settings(max_examples=100, deadline=None)
def test_every_sample_is_a_spare_and_those_outside_the_batch_come_first(plan, step, data):
    batch = plan.batch(step)
    bad = data.draw(st.sampled_from(batch.tolist()))
    spares = list(plan.spares(step, bad))
    assert spares == list(plan.spares(step, bad))
    assert sorted(spares) == list(range(plan.samples)), "as long as one sample is good, it is found"
    assert (np.diff(np.isin(spares, batch).astype(int)) >= 0).all(), "those of the batch itself come last"


def test_two_bad_samples_have_no_spare_in_common_until_all_of_their_own_are_bad_too():
    plan = Plan(1000, 10, seed=1)
    firsts = [list(itertools.islice(plan.spares(4, sample), 90)) for sample in plan.batch(4).tolist()]
    assert len({spare for spares in firsts for spare in spares}) == 10 * 90


def test_spares_differ_from_step_to_step():
    plan = Plan(1000, 10, seed=1)
    firsts = {next(plan.spares(step, int(plan.batch(step)[0]))) for step in range(50)}
    assert len(firsts) > 40
