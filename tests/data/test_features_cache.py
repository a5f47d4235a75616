"""Cached vectors come back by number, as they are stored, in few reads."""

import pickle

import numpy as np
import pytest

from raysys.data.features import FeatureCache, save_features
from raysys.errors import UserError
from raysys.storage import Storage


class CountingStorage(Storage):
    """Remembers the ranges that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: list[tuple[int, int | None]] = []

    def read(self, uri, offset=0, size=None):
        self.ranges.append((offset, size))
        return super().read(uri, offset, size)


@pytest.fixture
def vectors():
    return np.random.default_rng(1).standard_normal((200, 3, 7)).astype(np.float16)


@pytest.mark.parametrize("ids", [[0], [199], [5, 6, 7], [150, 3, 3, 149, 20], list(range(199, -1, -1))])
def test_rows_in_the_order_asked_for(tmp_path, vectors, ids):
    uri = str(tmp_path / "cache.npy")
    save_features(Storage(), uri, vectors)
    cache = pickle.loads(pickle.dumps(FeatureCache(Storage(), uri)))
    assert cache.shape == (200, 3, 7)
    found = cache.read(np.array(ids))
    assert found.dtype == np.float16
    assert np.array_equal(found, vectors[ids].astype(np.float16))


def test_neighbours_are_read_together(tmp_path, vectors):
    uri = str(tmp_path / "cache.npy")
    save_features(Storage(), uri, vectors)
    storage = CountingStorage()
    cache = FeatureCache(storage, uri)
    storage.ranges.clear()
    cache.read(np.array([10, 12, 20, 100, 101, 180]))
    row = 3 * 7 * 2
    assert [size for _, size in storage.ranges] == [11 * row, 2 * row, row]


def test_in_object_storage(object_store, vectors):
    uri = f"{object_store.bucket_uri}/vectors/cache.npy"
    save_features(Storage(), uri, vectors)
    assert np.array_equal(FeatureCache(Storage(), uri).read(np.array([7, 190])), vectors[[7, 190]].astype(np.float16))
    with pytest.raises(UserError, match=r"vectors/none\.npy"):
        FeatureCache(Storage(), f"{object_store.bucket_uri}/vectors/none.npy")
