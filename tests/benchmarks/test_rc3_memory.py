"""RC³'s memory on real processes, beside the formulas; and the cost of its negatives."""

import pytest

from raysys.benchmarks.rc3_memory import Case, NearUse, Shares, Use, compare, compare_near, near_table, shares_table
from raysys.models.visual_mbart import VisualMBartSettings
from raysys.training.estimate import Memory
from raysys.training.footprint import LossUse, MicroBatchUse

TINY = VisualMBartSettings(
    size=32,
    layers=1,
    decoder_layers=1,
    heads=2,
    feed_forward=64,
    vocabulary_size=20_000,  # a tensor large enough to be divided
    max_tokens=6,
    region_size=8,
    regions=2,
    patch=16,
    image_size=32,
)


@pytest.mark.slow
def test_peak_memory_falls_with_workers_as_predicted():
    one, two = compare(Case(TINY, global_batch=12), (1, 2))
    for found in (one, two):
        assert 0.8 * found.predicted.total < found.counted.peak <= 1.05 * found.predicted.total
    # what lasts from step to step is divided; the peak falls less, as one worker alone gathers no weights
    assert one.counted.state - two.counted.state == pytest.approx(one.divided / 2, rel=0.03)
    assert one.counted.peak - two.counted.peak > 0.7 * (one.predicted.total - two.predicted.total)


def test_rows_meet_as_many_others_as_are_near_and_cost_accordingly():
    one, every = compare_near(Case(TINY.model_copy(update={"vocabulary_size": 200}), micro_batch=3), (1, None), (12,))
    # 12 rows, 4 of each kind: of these both neighbours in the circle, or all 3 others
    assert (one.met, every.met) == (2, 3)
    size = 4 * TINY.size
    assert every.row_bytes - one.row_bytes == 2 * size + 8
    assert every.micro_batch.bytes > one.micro_batch.bytes
    assert every.losses.bytes > 0


def test_tables():
    memory = Memory(1e6, 2e6, 3e6, 0.5e6, 4e6, 1e6, 0.25e6, cached=True)
    *_, line = shares_table([Shares(1, memory, 5e6, Use(6e6, 10e6, 1.5)), Shares(2, memory, 2.5e6, Use(3e6, 5e6, 2.0))]).splitlines()
    assert line.split() == ["2", "2.5", "3.5", "4.0", "0.8", "10.8", "3.0", "5.0", "0.50", "2.00"]
    *_, line = near_table([NearUse(None, 12, 3, MicroBatchUse(3, 5e6, 0.1, 0.25), 2000, LossUse(1e6, 0.01))]).splitlines()
    assert line.split() == ["all", "12", "3", "3", "5", "0.25", "2.0", "1.0", "0.010"]
