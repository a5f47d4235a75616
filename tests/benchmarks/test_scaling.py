"""The model of a training step against real steps of real processes, in each ZeRO stage."""

import pytest

from raysys.benchmarks.scaling import Case, Compared, Use, compare, peaks, peaks_table, scaling_table

STAGES = (0, 1, 2, 3)
ALONE = [Case(stage, 6, pictures=False) for stage in STAGES]
TOGETHER = [Case(stage, 6, pictures=False) for stage in STAGES]
MORE = [
    *(Case(stage, 8, micro_batch=2) for stage in STAGES),
    *(Case(stage, 8, micro_batch=2, accumulation="plain", pictures=False) for stage in (0, 3)),
    *(Case(stage, 8, micro_batch=micro_batch, precision="bf16", pictures=False) for stage in (1, 2, 3) for micro_batch in (None, 2)),
]


def assert_as_predicted(found: Compared) -> None:
    sent, counted = found.predicted.sent, found.counted.sent
    for kind in sent.keys() | counted.keys():
        # Norms and flags are not in the model: some bytes.
        assert counted.get(kind, 0) == pytest.approx(sent.get(kind, 0), rel=0.01, abs=100), (found.case, kind)
    assert found.counted.state == pytest.approx(found.predicted.state, rel=0.01), found.case
    assert found.counted.peak <= 1.05 * found.predicted.peak, found.case


@pytest.mark.slow
def test_one_process_sends_nothing_and_takes_what_was_predicted():
    for found in compare(ALONE, 1):
        assert found.predicted.sent == {}
        assert_as_predicted(found)


@pytest.mark.slow
def test_two_processes_send_and_take_what_was_predicted():
    results = compare(TOGETHER, 2)
    for found in results:
        assert_as_predicted(found)
    by_stage = [found.counted for found in results]
    assert by_stage[0].sent["all_reduce"] == pytest.approx(by_stage[1].sent["all_reduce"], rel=0.01)
    assert by_stage[1].state < by_stage[0].state


@pytest.mark.slow
def test_micro_batches_pictures_and_half_precision():
    for found in compare(MORE, 2):
        assert_as_predicted(found)


@pytest.mark.slow
def test_with_cached_gradients_memory_hardly_depends_on_the_global_batch():
    (small, undivided_small), (large, undivided_large) = peaks([16, 64], 8)
    assert large.peak - small.peak < 0.2 * (undivided_large.peak - undivided_small.peak)


def test_tables():
    use = Use({"all_reduce": 4e6, "all_gather": 2e6}, 3e6, 5e6, 8e8)
    (*_, line) = scaling_table([Compared(Case(1, 16, 4), 2, use, use)]).splitlines()
    assert line.split() == [
        "2",
        "1",
        "2",
        "exact",
        "fp32",
        "4.00",
        "4.00",
        "2.00",
        "2.00",
        "0.00",
        "0.00",
        "3.00",
        "3.00",
        "5.00",
        "5.00",
        "pictures",
    ]
    (*_, line) = peaks_table([64], 16, [(use, use)]).splitlines()
    assert line.split() == ["64", "2", "(800)", "2", "(800)"]
