"""Transfers over connections that break in every way: each byte exactly once, or an error that names what happened."""

import tarfile
import time

import numpy as np
import pytest

from raysys.errors import RunFailed, UserError
from raysys.shards.manifest import Manifest
from raysys.shards.reader import read_samples
from raysys.storage import Storage, StorageError, StorageSettings, join, s3, transfer
from tests.fault_proxy import Fault, always, first, share
from tests.shards.tars import tar, text


@pytest.fixture
def impatient(monkeypatch):
    """Half a second of silence, or of a slow trickle, counts as a broken connection."""
    monkeypatch.setattr(s3, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(transfer, "SLOW_SECONDS", 0.3)


PASSING = {
    "cut": share(Fault("cut", at=700), 0.25, seed=1),
    "cut at the first byte": share(Fault("cut", at=0), 0.25, seed=2),
    "reset": share(Fault("reset", at=700), 0.25, seed=3),
    "slow down": share(Fault("refuse", status=503, code="SlowDown"), 0.25, seed=4),
    "too many requests": share(Fault("refuse", status=429, code="TooManyRequests"), 0.25, seed=5),
    "internal error": share(Fault("refuse", status=500, code="InternalError"), 0.25, seed=6),
    "throttling told as a refusal": first(Fault("refuse", status=403, code="AccessDenied")),
    "length too long": share(Fault("longer", at=100), 0.25, seed=7),
    "length too short": share(Fault("shorter", at=100), 0.25, seed=8),
    "stalled": first(None, Fault("stall", at=700)),
    "slow": first(None, Fault("slow", seconds=0.01)),
    "all of them": first(
        Fault("cut", at=1), Fault("refuse"), Fault("reset", at=9), Fault("longer", at=1), Fault("shorter", at=1), Fault("stall", at=50)
    ),
}


@pytest.mark.parametrize("schedule", PASSING.values(), ids=PASSING.keys())
def test_every_sample_arrives_once_and_whole(proxy, impatient, data_set, schedule):
    manifest, expected = data_set
    proxy.schedule = schedule
    storage = Storage(StorageSettings(endpoint=proxy.endpoint))
    order = np.random.default_rng(0).permutation(60)
    started = time.monotonic()
    found = [sample for rows in np.split(order, 6) for sample in read_samples(storage, manifest, rows)]
    assert found == [expected[row] for row in order]
    assert time.monotonic() - started < 10
    assert proxy.broken


FINAL = {
    "cut": (always(Fault("cut", at=3)), StorageError, "failed 6 times, last with: ConnectionError: the connection ended at byte"),
    "reset": (always(Fault("reset", at=3)), StorageError, "failed 6 times"),
    "stalled": (always(Fault("stall", at=3)), StorageError, "failed 6 times, last with: ReadTimeoutError"),
    "slow": (always(Fault("slow", seconds=0.02)), StorageError, "failed 6 times, last with: TimeoutError: only [0-9]+ bytes in"),
    "slow down": (always(Fault("refuse")), StorageError, "asked to slow down 12 times"),
    "internal error": (
        always(Fault("refuse", status=500, code="InternalError")),
        StorageError,
        "failed 6 times, last with: (InternalError|500)",
    ),
    "refused": (always(Fault("refuse", status=403, code="AccessDenied")), UserError, "access refused"),
    "no ranges": (always(Fault("whole", body=bytes(20_000))), StorageError, "cannot serve byte ranges"),
    "another version": (always(Fault("version")), RunFailed, "sample 's0.*is not what was indexed"),
}


@pytest.mark.parametrize(("schedule", "kind", "message"), FINAL.values(), ids=FINAL.keys())
def test_what_does_not_pass_is_named_in_bounded_time(proxy, impatient, data_set, schedule, kind, message):
    manifest, _ = data_set
    proxy.schedule = schedule
    storage = Storage(StorageSettings(endpoint=proxy.endpoint))
    started = time.monotonic()
    with pytest.raises(kind, match=message) as fault:
        read_samples(storage, manifest, range(60))
    assert time.monotonic() - started < 10
    assert f"{manifest.folder}/00000" in str(fault.value)


@pytest.fixture
def shard(object_store):
    """(URI, bytes) of a shard of 2 KB with one sample, without the padding that tar adds at the end."""
    data = tar([("a.json", text())])[: 4 * tarfile.BLOCKSIZE]
    uri = f"{object_store.bucket_uri}/storage-tests-small/000000.tar"
    Storage().write(uri, data)
    return uri, data


@pytest.mark.slow
def test_a_body_may_be_cut_at_every_byte(proxy, through, shard):
    uri, data = shard
    for at in range(len(data) + 1):
        proxy.requests.clear()
        proxy.schedule = first(Fault("cut", at=at))
        with through.open(uri) as file:
            assert file.read() == data, f"cut at byte {at}"
        resumed = [] if at == len(data) else [f"bytes={at}-{len(data) - 1}"]
        assert proxy.asked() == ["bytes=0-", *resumed]


def test_samples_whose_bytes_are_cut_at_every_byte(proxy, through, shard):
    uri, _ = shard
    manifest = Manifest.build(Storage(), uri.rpartition("/")[0])
    expected = read_samples(Storage(), manifest, [0])
    for at in range(len(text()) + 1):
        proxy.schedule = first(Fault("cut", at=at), Fault("reset", at=at // 2))
        assert read_samples(through, manifest, [0]) == expected, f"cut at byte {at}"


def test_shards_are_indexed_the_same_through_faults(proxy, impatient, through, data_set):
    manifest, _ = data_set
    proxy.schedule = share(Fault("cut", at=4000), 0.3, seed=11)
    assert Manifest.build(through, manifest.folder).fingerprint == manifest.fingerprint


def test_another_version_of_the_object_is_never_mixed_in(proxy, through, shard):
    uri, _ = shard
    proxy.schedule = first(Fault("cut", at=1000), Fault("version"))
    with pytest.raises(StorageError, match="was replaced while it was read"):
        through.read(uri)
    proxy.schedule = first(Fault("cut", at=1000), Fault("refuse", status=412, code="PreconditionFailed"))
    with pytest.raises(StorageError, match="was replaced while it was read"):
        through.read(uri)


def test_an_object_that_is_replaced_while_it_is_read(proxy, through, object_store):
    uri = f"{object_store.bucket_uri}/storage-tests-replaced"
    through.write(uri, b"old" * 1000)

    def replace(request):
        if len(proxy.requests) > before + 1:
            Storage().write(uri, b"new" * 1000)
        return Fault("cut", at=1000)

    proxy.schedule, before = replace, len(proxy.requests)
    with pytest.raises(StorageError, match="was replaced while it was read"):
        through.read(uri)


def test_progress_is_not_counted_as_failure(proxy, through, object_store, monkeypatch):
    monkeypatch.setattr(transfer, "PROGRESS", 1000)
    data = np.random.default_rng(0).bytes(50_000)
    uri = f"{object_store.bucket_uri}/storage-tests-long"
    through.write(uri, data)
    proxy.schedule = always(Fault("cut", at=2000))
    assert through.read(uri) == data
    assert through.read(uri, 10_001, 20_000) == data[10_001:30_001]
    with through.open(uri) as file:
        assert file.read(30_000) + file.read() == data


def test_empty_objects(through, object_store):
    uri = f"{object_store.bucket_uri}/storage-tests-empty"
    through.write(uri, b"")
    assert through.read(uri) == b""
    with through.open(uri) as file:
        assert file.read() == b""


def test_lists_that_are_cut_are_never_taken_for_short_ones(proxy, through, data_set):
    manifest, _ = data_set
    expected = Storage().list(manifest.folder)
    for at in (0, 1, 100, 1000):
        proxy.schedule = first(Fault("cut", at=at))
        assert through.list(manifest.folder) == expected
    proxy.schedule = always(Fault("cut", at=0))
    with pytest.raises(StorageError, match="failed 6 times"):
        through.list(manifest.folder)
    with pytest.raises(StorageError, match="failed 6 times"):
        through.exists(join(manifest.folder, ""))


def test_writes_are_repeated(proxy, through, object_store, tmp_path):
    folder = f"{object_store.bucket_uri}/storage-tests-writes"
    for number, fault in enumerate((Fault("refuse"), Fault("refuse", status=500, code="InternalError"), Fault("reset", at=0))):
        proxy.schedule = first(fault)
        through.write(f"{folder}/{number}", b"x" * 1000)
        assert Storage().read(f"{folder}/{number}") == b"x" * 1000
    large = np.random.default_rng(0).bytes(70 << 20)
    (tmp_path / "large").write_bytes(large)
    proxy.schedule = share(Fault("refuse", status=500, code="InternalError"), 0.3, seed=13)
    through.upload(tmp_path / "large", f"{folder}/large")
    assert Storage().read(f"{folder}/large") == large
    Storage().delete(folder, recursive=True)
