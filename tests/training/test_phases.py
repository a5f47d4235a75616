"""Where the time of a step goes, and what another thread sees of it."""

import itertools
import threading
import time

import pytest

from raysys.training.phases import Phases


class Clock:
    """Goes on when it is told to."""

    now = 100.0

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("raysys.training.phases._HostClock.mark", lambda self: clock.now)
    return clock


def test_time_counts_for_the_phase_it_is_spent_in_as_the_mean_of_a_step(clock):
    phases = Phases()
    clock.spend(7)
    phases.reset()
    for step in range(2):
        phases.step = step
        with phases("data"):
            clock.spend(1)
        with phases("forward"):
            clock.spend(2)
            with phases("gather"):
                clock.spend(1.5)
            clock.spend(0.5 + step)
        clock.spend(0.5)
        phases.samples += 6
    figures = phases.take()
    assert figures.pop("train/memory_gib") > 0.05
    assert figures == pytest.approx(
        {
            "train/seconds_data": 1.0,
            "train/seconds_forward": 3.0,
            "train/seconds_gather": 1.5,
            "train/samples_per_second": 1.0,
            "data/wait_fraction": 1 / 6,
        }
    )
    assert set(phases.take()) == {"train/samples_per_second", "data/wait_fraction", "train/memory_gib"}, "it begins anew"


def test_validation_and_checkpoints_slow_down_no_throughput(clock):
    phases = Phases()
    phases.step = 0
    with phases("forward"):
        clock.spend(2)
    with phases("validation"):
        clock.spend(3)
        with phases("gather"):
            clock.spend(4)
    with phases("checkpoint"):
        clock.spend(5)
    phases.samples += 10
    figures = phases.take()
    assert "train/seconds_gather" not in figures, "of the validation"
    assert figures["train/seconds_validation"] == pytest.approx(7)
    assert figures["train/seconds_checkpoint"] == pytest.approx(5)
    assert figures["train/samples_per_second"] == pytest.approx(5)


def test_many_steps_between_two_looks(clock):
    phases = Phases()
    for step in range(5000):
        phases.step = step
        with phases("loss"):
            clock.spend(0.25)
    assert len(phases._marks) <= 2001
    assert phases.take()["train/seconds_loss"] == pytest.approx(0.25)


def test_the_clock_is_the_real_one():
    phases = Phases()
    phases.step = 0
    with phases("data"):
        time.sleep(0.05)
    assert phases.take()["train/seconds_data"] >= 0.05


def test_a_phase_costs_microseconds():
    phases, rounds = Phases(), 5000
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(rounds):
            with phases("forward"):
                pass
        best = min(best, (time.perf_counter() - began) / rounds)
    assert best < 20e-6


def test_another_thread_sees_step_phase_and_progress():
    phases = Phases()
    seen: list = []

    def look() -> None:
        seen.append((phases.position().step, phases.position().phase, phases.moved))

    def from_elsewhere() -> None:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    from_elsewhere()
    phases.step = 12
    from_elsewhere()
    with phases("validation"):
        from_elsewhere()
        phases.tick()
        from_elsewhere()
        with phases("gather"):
            from_elsewhere()
    assert [place[:2] for place in seen] == [
        (0, "starting"),
        (12, "between phases"),
        (12, "validation"),
        (12, "validation"),
        (12, "validation, gather"),
    ]
    moved = [place[2] for place in seen]
    assert all(earlier < later for earlier, later in itertools.pairwise(moved))
    assert phases.position().since <= time.monotonic()


def test_an_error_knows_the_phase_it_came_from():
    phases = Phases()
    phases.step = 3
    with pytest.raises(ValueError, match="no") as caught, phases("step"), phases("gather"):
        raise ValueError("no")
    assert phases.position().phase == "between phases"
    assert str(phases.origin(caught.value)) == "at step 3 in phase step, gather"
    assert str(phases.origin(KeyError("another"))) == "at step 3 in phase between phases"
