"""Cached image vectors: where the image network is frozen, its output is computed once and read by sample number."""

import io
import json
from collections.abc import Mapping

import numpy as np

from raysys.storage import Storage


class FeatureCache:
    """Vectors of all samples in one ``.npy`` object, float16 [samples, views, size]; picklable.

    `bad` tells of samples whose picture cannot be used, number → reason; their vectors are zero.

    Args:
        storage: the door to the object.
        uri: where it lies.

    Raises:
        UserError: there is no such object.
    """

    def __init__(self, storage: Storage, uri: str):
        self.storage = storage
        self.uri = uri
        header = io.BytesIO(storage.read(uri, 0, min(storage.size(uri), 4096)))
        version = np.lib.format.read_magic(header)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, _, self.dtype = read_header(header)
        self._start = header.tell()
        self.bad = {int(sample): reason for sample, reason in json.loads(storage.read(_bad_of(uri))).items()}
        self._row_bytes = int(np.prod(self.shape[1:])) * self.dtype.itemsize

    def read(self, ids: np.ndarray) -> np.ndarray:
        """Vectors of samples `ids` (ascending or not): [n, views, size] as stored; neighbours are read in one range."""
        rows = np.empty((len(ids), *self.shape[1:]), dtype=self.dtype)
        order = np.argsort(ids, kind="stable")
        breaks = np.flatnonzero(np.diff(ids[order]) > _GAP) + 1
        for positions in np.split(order, breaks):
            first, last = int(ids[positions[0]]), int(ids[positions[-1]])
            data = self.storage.read(self.uri, self._start + first * self._row_bytes, (last - first + 1) * self._row_bytes)
            block = np.frombuffer(data, dtype=self.dtype).reshape(-1, *self.shape[1:])
            rows[positions] = block[ids[positions] - first]
        return rows


_GAP = 16  # rows read in vain cost less than another request


def save_features(storage: Storage, uri: str, vectors: np.ndarray, bad: Mapping[int, str] | None = None) -> None:
    """Store vectors [samples, views, size] for :class:`FeatureCache`; the object appears whole or not at all."""
    buffer = io.BytesIO()
    np.save(buffer, vectors.astype(np.float16))
    storage.write(_bad_of(uri), json.dumps(bad or {}).encode())  # first: the vectors' object says that both are there
    storage.write(uri, buffer.getvalue())


def _bad_of(uri: str) -> str:
    return uri.removesuffix(".npy") + ".bad.json"
