import subprocess
import sys

import pytest

from raysys.benchmarks.translation import Cost, measure_translation, translation_table


def test_time_and_memory_are_those_of_the_process_that_scores():
    small, large = measure_translation(4, 3, dimensions=8), measure_translation(100, 3, dimensions=100_000, threads=1)
    assert (small.captions, small.languages, small.threads) == (4, 3, 2)
    assert 0 < small.seconds < large.seconds
    assert 0 < large.cpu_seconds <= large.seconds * 1.5
    assert large.peak - small.peak > 3 * 100 * 100_000 * (4 + 8)  # float32 vectors as given, float64 as compared


def test_table():
    (_, line) = translation_table([Cost(200, 52, 2, 1.25, 2.0, 300 << 20)]).splitlines()
    assert line.split() == ["200", "52", "1.25", "2.0", "1.00", "0.29"]


@pytest.mark.slow
def test_as_a_job():
    command = [sys.executable, "jobs/benchmark.py", "translation", "--captions", "5", "20", "--languages", "3"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["5", "3"], ["20", "3"]]
