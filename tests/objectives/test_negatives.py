"""Random negatives: always another picture, all of them as likely, the same for whoever holds the same rows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.objectives.negatives import negative_rows
from tests.objectives.cases import image_ids, quick, seeds


def draws(seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng([seed, 3]).random(rows, dtype=np.float32)


@quick
@given(seeds, st.integers(0, 12))
def test_a_negative_is_a_row_of_another_picture_and_there_is_one_wherever_there_can_be(seed, rows):
    ids = image_ids(seed, rows)
    found = negative_rows(torch.from_numpy(ids), torch.from_numpy(draws(seed, rows))).tolist()
    assert len(found) == rows
    for row, negative in enumerate(found):
        candidates = [j for j in range(rows) if ids[row] and ids[j] not in (0, ids[row])]
        assert negative in candidates if candidates else negative == -1


def test_draws_that_are_spread_evenly_meet_every_candidate_equally_often():
    ids = torch.tensor([7, -3, 0, 7, 9, 9, 7, 0, 9])
    counts = np.zeros((9, 9), int)
    for step in range(60):
        found = negative_rows(ids, torch.full((9,), (step + 0.5) / 60))
        np.add.at(counts, (np.arange(9), found.numpy()), found.numpy() >= 0)
    for row, own in enumerate(ids.tolist()):
        others = [own != 0 and other not in (0, own) for other in ids.tolist()]
        assert counts[row].tolist() == [60 // sum(others) if other else 0 for other in others]


@pytest.mark.parametrize("ids", [[], [0], [0, 0, 0], [5], [5, 5], [5, 0, 5]])
def test_there_may_be_none(ids):
    assert negative_rows(torch.tensor(ids, dtype=torch.int64), torch.rand(len(ids))).tolist() == [-1] * len(ids)


@pytest.mark.parametrize("draw", [0.0, np.nextafter(np.float32(1), np.float32(0))])
def test_the_least_and_the_greatest_draw_stay_among_the_candidates(draw):
    found = negative_rows(torch.arange(1, 5000), torch.full((4999,), float(draw)))
    assert found.tolist() == ([1] + [0] * 4998 if draw == 0 else [4998] * 4998 + [4997])
