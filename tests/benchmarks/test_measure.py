import contextlib
import subprocess
import sys
import time

import pytest

from raysys.benchmarks.measure import Throughput, measure, ratio, take_turns, throughput_table


def contender(size: int, log: list[str], name: str = "one", batches: int = 10**9):
    @contextlib.contextmanager
    def opened():
        log.append(f"open {name}")
        yield iter([b"x" * size] * batches) if batches < 100 else endless(size)
        log.append(f"close {name}")

    return opened


def endless(size):
    while True:
        time.sleep(0.001)
        yield b"x" * size


def test_counts_whole_batches_after_the_warm_up():
    log: list[str] = []
    result = measure(contender(7, log), warm_up=10, samples=20)
    assert result.samples == 21
    assert 0.003 <= result.seconds < 1
    assert result.samples_per_second == pytest.approx(21 / result.seconds)
    assert 0 < result.first_batch_seconds < 1
    assert log == ["open one", "close one"]


def test_a_contender_that_runs_dry_is_an_error():
    with pytest.raises(RuntimeError, match="ran out of batches"):
        measure(contender(7, [], batches=3), warm_up=7, samples=100)


def test_cpu_time_includes_running_and_ended_children():
    """In a process of its own: this one may have other children, which end when they like."""
    program = """
import subprocess, sys
from raysys.benchmarks.measure import cpu_seconds
before = cpu_seconds()
busy = "import time\\nwhile time.process_time() < 0.4: pass\\nprint(flush=True)\\nimport sys\\nsys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(cpu_seconds() - before)
child.communicate()
print(cpu_seconds() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    while_running, after = map(float, done.stdout.split())
    assert while_running >= 0.38
    assert while_running - 0.02 <= after


def test_contenders_take_turns():
    log: list[str] = []
    results = take_turns({name: contender(5, log, name) for name in ("a", "b", "c")}, rounds=2, warm_up=0, samples=5)
    assert [entry for entry in log if entry.startswith("open")] == ["open a", "open b", "open c", "open b", "open c", "open a"]
    assert [len(rounds) for rounds in results.values()] == [2, 2, 2]


def test_ratios_are_taken_round_by_round():
    assert ratio([10, 100, 1], [10, 50, 1]) == 1


def test_table():
    results = {"ours": [Throughput(1000, 2, 3, 0.5)], "theirs": [Throughput(1000, 4, 1, 0.25)]}
    header, ours, theirs = throughput_table(results, "theirs").splitlines()
    assert header.split() == ["samples/s", "CPU", "s", "per", "1000", "first", "batch", "s", "relative"]
    assert ours.split() == ["ours", "500", "3.00", "0.50", "2.00"]
    assert theirs.split() == ["theirs", "250", "1.00", "0.25", "1.00"]
