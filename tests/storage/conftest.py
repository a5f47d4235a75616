"""A data set on the real S3 server, and the proxy that breaks what comes from there."""

from collections.abc import Iterator

import pytest

from raysys.shards.manifest import Manifest
from raysys.shards.reader import RawSample, read_samples
from raysys.shards.writer import write_shards
from raysys.storage import Storage, StorageSettings, s3
from tests.fault_proxy import FaultProxy, fault_proxy
from tests.shards.tars import samples


@pytest.fixture(scope="session")
def _proxy(object_store) -> Iterator[FaultProxy]:
    with fault_proxy(object_store.endpoint) as proxy:
        yield proxy


@pytest.fixture
def proxy(_proxy, monkeypatch) -> Iterator[FaultProxy]:
    """The proxy without faults; retries wait for milliseconds only."""
    monkeypatch.setattr(s3, "FIRST_PAUSE", 0.0005)
    monkeypatch.setattr(s3, "LONGEST_PAUSE", 0.01)
    _proxy.requests.clear()
    _proxy.broken = 0
    yield _proxy
    _proxy.schedule = lambda request: None


@pytest.fixture
def through(proxy) -> Storage:
    """A door whose S3 endpoint is the proxy."""
    return Storage(StorageSettings(endpoint=proxy.endpoint))


@pytest.fixture(scope="session")
def data_set(object_store) -> tuple[Manifest, list[RawSample]]:
    """(manifest, all its samples as read without a proxy): 60 samples in 6 shards."""
    storage, folder = Storage(), f"{object_store.bucket_uri}/storage-tests"
    write_shards(samples(60), folder, 6, storage)
    manifest = Manifest.build(storage, folder)
    manifest.save(storage)
    return manifest, read_samples(storage, manifest, range(60))
