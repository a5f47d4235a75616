import pytest

from raysys.benchmarks.indexing import ALONE, compare, indexing_table
from raysys.benchmarks.photos import write_photos
from raysys.storage import Storage


@pytest.mark.parametrize("cold", [False, True])
def test_every_way_is_timed_in_every_round(tmp_path, cold):
    folder = write_photos(str(tmp_path), count=8, shards=3)
    speeds = compare(Storage(), folder, rounds=2, processes=2, cold=cold)
    assert list(speeds) == [
        ALONE,
        "indexing, one thread",
        "reading, 2 threads",
        "indexing, threads",
        "indexing, 2 processes",
    ]
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in speeds.values())


def test_the_table_relates_rounds_to_reading_alone():
    speeds = {ALONE: [100e6, 400e6, 200e6], "indexing, one thread": [50e6, 100e6, 150e6]}
    head, alone, indexing = indexing_table(speeds, samples=50, size=1_000_000).splitlines()
    assert head.split() == ["MB/s", "samples/s", "of", "reading", "alone"]
    assert alone.split()[-3:] == ["200", "10000", "1.00"]
    assert indexing.split()[-3:] == ["100", "5000", "0.50"]  # the median of 0.5, 0.25, 0.75
