"""The promises of a plan with groups, for many sizes, shares, workers and seeds."""

import itertools
import math
import pickle
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.data.grouped_plan import GroupedPlan, language_groups, tempered_shares
from raysys.data.plan import Plan, slice_sizes
from raysys.errors import UserError


def divided(seed: int, sizes: list[int]) -> list[np.ndarray]:
    """Samples of groups of these sizes, which lie mixed in storage."""
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    return [np.flatnonzero(labels == group) for group in range(len(sizes))]


@st.composite
def plans(draw, equal: bool = False, most: int = 8, **options) -> GroupedPlan:
    sizes = draw(st.lists(st.integers(1, 120), min_size=1, max_size=most))
    shares = [1] * len(sizes) if equal else draw(st.lists(st.integers(1, 9), min_size=len(sizes), max_size=len(sizes)))
    return GroupedPlan(
        divided(draw(st.integers(0, 99)), sizes),
        shares,
        draw(st.integers(1, min(50, sum(sizes)))),
        draw(st.integers(0, 2**31)),
        run_length=draw(st.integers(1, 40)),
        window_steps=draw(st.integers(1, 9)),
        last_batch=draw(st.sampled_from(["drop", "keep"])),
        **{
            "lengths": draw(st.sampled_from([None, np.random.default_rng(0).integers(1, 31, sum(sizes)).astype(np.int16)])),
            "mixed": draw(st.booleans()),
        }
        | options,
    )


def counts(plan: GroupedPlan, ids: np.ndarray) -> list[int]:
    """Samples of each group among `ids`."""
    return [int(np.isin(ids, group).sum()) for group in plan.groups]


@given(plans(equal=True), st.integers(0, 200))
@settings(max_examples=40, deadline=None)
def test_with_equal_shares_a_batch_has_as_many_of_each_group_within_one(plan, step):
    found = counts(plan, plan.batch(step))
    assert sum(found) == plan.global_batch == plan.batch_size(step)
    assert max(found) - min(found) <= 1


@given(plans(), st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_shares_are_met_within_two_in_every_batch_and_exactly_over_rounds(plan, start):
    places, shares = sum(plan.shares), np.array(plan.shares)
    for step in range(start, start + 3):
        found = np.array(counts(plan, plan.batch(step)))
        assert found.sum() == plan.global_batch
        assert (np.abs(found - plan.global_batch * shares / places) < 2).all()
    steps = places // math.gcd(places, plan.global_batch)  # they hold whole rounds
    whole = sum(np.array(counts(plan, plan.batch(step))) for step in range(steps))
    assert np.array_equal(whole * places, steps * plan.global_batch * shares)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_at_any_place_each_group_has_had_its_share_within_one(shares):
    plan = GroupedPlan([np.array([group]) for group in range(len(shares))], shares, 1, seed=0, window_steps=100)
    dealt = np.concatenate([plan.batch(step) for step in range(sum(shares))])
    had = np.cumsum(dealt[:, None] == np.arange(len(shares)), axis=0)
    due = np.arange(1, len(dealt) + 1)[:, None] * np.array(shares) / sum(shares)
    assert (np.abs(had - due) < 1).all()


@given(plans(), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_within_a_group_every_sample_comes_as_often_as_any_other_within_one(plan, windows):
    steps = [step for window in range(windows) for step in plan.steps_of(window)]
    visits = Counter(np.concatenate([plan.batch(step) for step in steps]).tolist())
    for group in plan.groups:
        often = [visits[sample] for sample in group.tolist()]
        assert max(often) - min(often) <= 1


@given(plans(), st.integers(0, 200), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_workers_share_the_same_global_batch(plan, step, workers):
    slices = [plan.slice(step, rank, workers) for rank in range(workers)]
    assert np.array_equal(np.concatenate(slices), plan.batch(step))
    assert [len(part) for part in slices] == slice_sizes(plan.batch_size(step), workers)


@given(plans(), st.lists(st.integers(0, 60), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None)
def test_any_step_is_found_directly(plan, steps):
    other = pickle.loads(pickle.dumps(plan))
    in_order = [plan.batch(step) for step in range(max(steps) + 1)]
    for step in steps:
        assert np.array_equal(other.batch(step), in_order[step])


@given(plans(), st.integers(0, 40), st.data())
@settings(max_examples=30, deadline=None)
def test_every_sample_is_a_spare(plan, step, data):
    bad = data.draw(st.sampled_from(plan.batch(step).tolist()))
    assert sorted(plan.spares(step, bad)) == list(range(plan.samples))


@pytest.mark.parametrize(("groups", "within"), [(2, 1), (8, 2)])
@given(data=st.data(), step=st.integers(0, 60), workers=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_mixed_every_micro_batch_has_its_share_of_each_group(groups, within, data, step, workers):
    plan = data.draw(plans(most=groups, mixed=True, micro_batches=data.draw(st.integers(workers, 12))))
    ids = plan.batch(step)
    of_batch = np.array(counts(plan, ids))
    begin = 0
    for size in [size for of_worker in plan.micro_batch_sizes(len(ids), workers) for size in of_worker]:
        found = np.array(counts(plan, ids[begin : begin + size]))
        assert (np.abs(found - of_batch * size / len(ids)) <= within + 1e-9).all()
        begin += size
    assert begin == len(ids)


@given(plans(mixed=True), st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_mixing_changes_the_order_within_a_batch_and_nothing_else(plan, step):
    apart = pickle.loads(pickle.dumps(plan))
    apart.mixed = False
    assert np.array_equal(np.sort(plan.batch(step)), apart.batch(step))
    for group in plan.groups:
        rows = plan.batch(step)
        assert (np.diff(rows[np.isin(rows, group)]) >= 0).all(), "neighbours in storage stay neighbours"


@given(plans(lengths=None), st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_by_length_each_group_of_a_window_is_divided_by_itself(plain, window):
    bucketed = pickle.loads(pickle.dumps(plain))
    bucketed.lengths = np.random.default_rng(1).integers(1, 31, plain.samples).astype(np.int16)
    bucketed._latest = -1, []
    batches = [[plan.batch(step) for step in plan.steps_of(window)] for plan in (plain, bucketed)]
    assert np.array_equal(*(np.sort(np.concatenate(some)) for some in batches))
    for before, after in zip(*batches, strict=True):
        assert counts(plain, before) == counts(plain, after)
    for group in plain.groups:
        lengths = [bucketed.lengths[rows[np.isin(rows, group)]] for rows in batches[1]]
        in_order = sorted((some for some in lengths if len(some)), key=lambda some: (some.max(), some.min()))
        assert all(shorter.max() <= longer.min() for shorter, longer in itertools.pairwise(in_order))


def test_a_range_is_a_group_that_takes_no_memory():
    arrays = GroupedPlan([np.arange(30), np.arange(30, 100)], [1, 2], 9, seed=0)
    ranges = GroupedPlan([range(30), range(30, 100)], [1, 2], 9, seed=0)
    assert all(np.array_equal(arrays.batch(step), ranges.batch(step)) for step in range(30))
    assert len(pickle.dumps(GroupedPlan([range(10**9), range(10**9, 2 * 10**9)], [1, 1], 64, seed=0))) < 1000


def test_an_epoch_takes_as_many_steps_as_without_groups():
    groups = divided(0, [10, 90, 305])
    for last_batch in ("drop", "keep"):
        plan = GroupedPlan(groups, [1, 1, 1], 20, seed=0, last_batch=last_batch)
        assert plan.steps_per_epoch == Plan(405, 20, seed=0, last_batch=last_batch).steps_per_epoch
        assert plan.dropped_per_epoch == 0
        seen = plan.steps_per_epoch * 20
        assert plan.passes_per_epoch == pytest.approx([seen / 3 / 10, seen / 3 / 90, seen / 3 / 305])


def test_what_comes_again_is_drawn_anew():
    plan = GroupedPlan(divided(0, [4, 200]), [1, 1], 10, seed=0, window_steps=4)
    assert len({plan.draw_of(step) for step in range(plan.steps_per_epoch)}) == plan.windows_per_epoch > 1
    assert all(len({plan.draw_of(step) for step in plan.steps_of(window)}) == 1 for window in range(9))
    assert Plan(100, 10, seed=0).draw_of(25) == 2


def test_groups_seeds_and_passes_are_shuffled_differently():
    groups = [np.arange(0, 60), np.arange(60, 120)]

    def order(seed: int, group: int, number: int) -> list[int]:
        plan = GroupedPlan(groups, [1, 1], 2, seed, run_length=4, window_steps=1)
        ids = np.concatenate([plan.batch(step) for step in range(60 * number, 60 * number + 60)])
        return (ids[np.isin(ids, groups[group])] - 60 * group).tolist()

    orders = [order(seed, group, number) for seed in (1, 2) for group in (0, 1) for number in (0, 1)]
    assert all(sorted(one) == list(range(60)) for one in orders)
    assert len({tuple(one) for one in orders}) == 8
    pairs = [sum(after == before + 1 for before, after in itertools.pairwise(one)) for one in orders]
    assert min(pairs) >= 40, "runs of four neighbours stay together"


def test_the_samples_of_a_window_are_mixed_anew_in_each_window_and_group():
    """One run holds a whole group, so that nothing but the mixing changes their order."""
    groups = [np.arange(0, 40), np.arange(40, 80)]
    plan = GroupedPlan(groups, [1, 1], 8, seed=0, run_length=40, window_steps=10)
    when = np.zeros((3, 2, 40), dtype=int)
    for window in range(3):
        for step in plan.steps_of(window):
            ids = plan.batch(step)
            when[window, ids // 40, ids % 40] = step % 10
    flat = when.reshape(6, 40)
    assert all(np.bincount(one).tolist() == [4] * 10 for one in flat)
    relative = [tuple(np.argsort(np.roll(one, -shift), kind="stable")) for one in flat for shift in range(40)]
    assert len(set(relative)) == len(relative), "not the same order, begun elsewhere"
    assert all(abs(np.corrcoef(one, np.arange(40))[0, 1]) < 0.5 for one in flat)


def test_fifty_two_languages_cost_little():
    plan = GroupedPlan(divided(0, [2000] * 52), [1] * 52, 440, seed=0)
    start = time.process_time()
    for step in range(16):
        plan.batch(step)
    assert time.process_time() - start < 1


def test_language_groups():
    groups = language_groups(["de", "en"], [["en"], ["de", "fr"], ["en"]])
    assert [group.tolist() for group in groups] == [[1], [0, 2]]
    with pytest.raises(UserError, match=r"sample 1 has captions in en, de: use data\.balance none"):
        language_groups(["de", "en"], [["en"], ["en", "de"]])


@pytest.mark.parametrize(("exponent", "shares"), [(0.0, [100, 100, 100]), (0.5, [49, 97, 154]), (1.0, [20, 80, 200])])
def test_tempered_shares(exponent, shares):
    assert tempered_shares([10, 40, 100], exponent) == shares
    assert min(tempered_shares([1, 10**6], exponent)) >= 1


def test_impossible_plans_say_what_is_wrong():
    with pytest.raises(UserError, match="group 2 of 2 has no samples"):
        GroupedPlan([np.arange(5), np.arange(0)], [1, 1], 2, seed=0)
    with pytest.raises(UserError, match="lower it to at most 10"):
        GroupedPlan(divided(0, [5, 5]), [1, 1], 11, seed=0)
