"""The watch on memory sees what is there."""

import time

import numpy as np
import pytest

from raysys.benchmarks.memory import PeakMemory, Use, enlarge, memory_table, memory_use
from raysys.benchmarks.ours import small_tokenizer
from raysys.benchmarks.photos import write_photos
from raysys.data.samples import Samples
from raysys.storage import Storage

MB = 1_000_000


def test_peaks_are_seen_and_begin_anew(ray_session):
    with PeakMemory(0.05) as peak:
        time.sleep(0.3)
        store, resident = peak.take()
        kept = ray_session.put(np.ones(50 * MB, np.uint8))
        held = np.ones(80 * MB, np.uint8)
        time.sleep(0.5)
        more_store, more_resident = peak.take()
        assert held.all()
        del kept, held
    assert 45 * MB < more_store - store < 70 * MB
    assert 70 * MB < more_resident - resident < 200 * MB


@pytest.mark.slow
def test_use_of_data_sets_of_growing_size(ray_session, tmp_path):
    folder = write_photos(str(tmp_path / "photos"), 40, shards=2)
    sizes = [(times, enlarge(folder, tmp_path / f"{times}x", times)) for times in (1, 3)]
    tokenizer = small_tokenizer(Samples.load([folder], (), Storage(), log=lambda line: None))
    found = memory_use(sizes, tokenizer, 32, 8, epochs=2)
    assert [(use.times, use.epoch, use.samples) for use in found] == [(1, 0, 40), (1, 1, 40), (3, 0, 120), (3, 1, 120)]
    assert all(use.resident > 50 * MB for use in found)


def test_table():
    (_, line) = memory_table([Use(16, 1, 32_000, 120e6, 1.5e9, 40.0)]).splitlines()
    assert line.split() == ["16×", "1", "32000", "120", "1500", "800"]
