"""Which rows are near, and whose texts they bring."""

import numpy as np
import pytest
import torch

from raysys.data.rc3_batches import PARALLEL, STRICT, WEAK
from raysys.systems.rc3.exchange import circle_places, with_near_texts
from tests.systems.rc3.worlds import batch

MIXED = np.array([STRICT, WEAK, PARALLEL, STRICT, STRICT, WEAK, STRICT, STRICT, PARALLEL])
"""Five strict, two weak."""


@pytest.mark.parametrize(("near", "columns", "strict", "weak"), [(1, 2, 2, 1), (2, 4, 4, 1), (3, 6, 4, 1), (None, 4, 4, 1)])
def test_near_rows_are_of_the_same_kind_symmetric_and_each_but_once(near, columns, strict, weak):
    places = circle_places(MIXED, 3, near)
    assert places.shape == (len(MIXED), columns)
    for row, kind in enumerate(MIXED):
        found = [place for place in places[row] if place >= 0]
        assert len(found) == {STRICT: strict, WEAK: weak, PARALLEL: 0}[kind]
        assert len(set(found)) == len(found)
        assert row not in found
        assert all(MIXED[place] == kind and row in places[place] for place in found)


def test_the_first_place_is_one_step_along_the_circle():
    places = circle_places(np.full(7, STRICT), 0, 1)
    seen, row = [], 0
    for _ in range(7):
        seen.append(row)
        row = places[row, 0]
    assert row == 0
    assert sorted(seen) == list(range(7))


def test_each_step_has_its_own_order():
    orders = [circle_places(np.full(9, WEAK), step, 1) for step in (0, 0, 1)]
    assert np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])


@pytest.mark.parametrize("kinds", [[], [PARALLEL, PARALLEL], [STRICT], [STRICT, WEAK]])
@pytest.mark.parametrize("near", [1, None])
def test_alone_of_its_kind_a_row_has_none_near(kinds, near):
    places = circle_places(np.array(kinds, dtype=np.int64), 0, near)
    assert places.shape[1] >= 1
    assert (places == -1).all()


def test_texts_come_with_their_rows():
    whole = batch()
    found = with_near_texts(whole, lambda rows: rows, 0, near=2)
    assert found.near_rows.max() > 0
    for name in ("first", "second"):
        ids, mask = getattr(whole, f"{name}_ids"), getattr(whole, f"{name}_mask")
        for row, places in enumerate(found.near_rows.tolist()):
            for k, place in enumerate(places):
                there = getattr(found, f"near_{name}_mask")[row, k]
                assert there.sum() == (mask[place].sum() if place >= 0 else 0)
                if place >= 0:
                    assert torch.equal(getattr(found, f"near_{name}_ids")[row, k][there.bool()], ids[place][mask[place].bool()])


def test_related_rows_are_not_near():
    whole = batch()
    found = with_near_texts(whole, lambda rows: rows, 0, near=None)
    for kind, gone in ((STRICT, 2), (WEAK, 2)):
        rows = (whole.kinds == kind).nonzero()[:, 0]
        there = (found.near_rows[rows] >= 0).sum()
        assert there == len(rows) * (len(rows) - 1) - gone
    pair = (whole.image_ids == whole.image_ids[whole.kinds == STRICT][0]).nonzero()[:, 0].tolist()
    assert len(pair) == 2
    assert pair[1] not in found.near_rows[pair[0]]


def test_a_worker_without_rows_has_padding():
    whole = batch()
    nothing = with_near_texts(whole.rows(3, 3), lambda rows: rows, 0, near=1)
    assert (nothing.count, nothing.near_rows.tolist()) == (0, [[-1, -1]])
    assert not nothing.near_first_mask.any()
