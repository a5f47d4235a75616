"""A thousand random corruptions of a shard: no crash, no hang, and no sample that is neither there nor named."""

import random
from collections import Counter

import pytest

from raysys.shards.manifest import Manifest
from raysys.shards.reader import RawSample, read_samples, try_read_samples
from raysys.shards.repair import repair
from raysys.shards.sample import SampleError
from raysys.shards.validate import validate
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import samples

SAMPLES, CORRUPTIONS, GROUPS = 12, 1000, 10
KINDS = ("flip", "flips", "cut", "swap", "zero", "noise", "insert", "delete", "repeat")


def corrupt(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """(kind, data that differs from `data`); the record of zeros at the end is left out of it but for the end mark."""
    kind = rng.choice(KINDS)
    length = rng.choice([1, 5, 30, 512, 1024, 2000])
    end = len(data.rstrip(b"\0")) + 512
    at = rng.randrange(end - length)
    if rng.random() < 0.3:
        at -= at % 512
    spoilt = bytearray(data)
    if kind == "flip":
        spoilt[at] ^= 1 << rng.randrange(8)
    elif kind == "flips":
        for _ in range(20):
            spoilt[rng.randrange(end)] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del spoilt[at:]
    elif kind == "zero":
        spoilt[at : at + length] = bytes(length)
    elif kind == "noise":
        spoilt[at : at + length] = rng.randbytes(length)
    elif kind == "insert":
        spoilt[at:at] = rng.randbytes(length)
    elif kind == "delete":
        del spoilt[at : at + length]
    elif kind == "repeat":
        spoilt[at:at] = spoilt[at : at + length]
    else:
        other = rng.randrange(end - length)
        spoilt[at : at + length], spoilt[other : other + length] = spoilt[other : other + length], spoilt[at : at + length]
        spoilt = spoilt[: len(data)]
    return kind, bytes(spoilt)


@pytest.fixture
def sound(tmp_path):
    """(bytes of the shard, its saved manifest)."""
    write_shards(samples(SAMPLES), str(tmp_path), 1, Storage())
    manifest = Manifest.build(Storage(), str(tmp_path))
    manifest.save(Storage())
    return (tmp_path / "000000.tar").read_bytes(), manifest


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_nothing_is_lost_silently(tmp_path, sound, group):
    data, before = sound
    storage = Storage()
    listed = dict(zip(before.table["key"].to_pylist(), before.table["checksum"].to_pylist(), strict=True))
    contents = {sample.key: sample.members for sample in read_samples(storage, before, range(SAMPLES))}
    rng = random.Random(group)
    kinds: Counter[str] = Counter()
    noticed = 0
    for _ in range(CORRUPTIONS // GROUPS):
        kind, spoilt = corrupt(data, rng)
        kinds[kind] += 1
        (tmp_path / "000000.tar").write_bytes(spoilt)

        # Indexed anew beside the manifest of the sound shard: every sample is usable or has a fault.
        after = Manifest.build(storage, str(tmp_path), on_damage="skip")
        named = {fault.key for fault in after.faults()}
        usable = [n for n, key in enumerate(after.table["key"].to_pylist()) if key not in named]
        keys = {after.table["key"][n].as_py() for n in usable}
        assert keys | named == listed.keys()
        assert not keys & named
        assert all(isinstance(sample, RawSample) for sample in try_read_samples(storage, after, usable))
        if after.damage:  # of a damaged shard, only what is as it was counts as usable
            assert all(after.table["checksum"][n].as_py() == listed[after.table["key"][n].as_py()] for n in usable)

        # Read by the manifest of the sound shard: a sample is what was indexed, byte for byte, or an error.
        found = try_read_samples(storage, before, range(SAMPLES))
        sure = {key for key, sample in zip(listed, found, strict=True) if isinstance(sample, RawSample)}
        assert sure <= keys | {fault.key for fault in after.faults() if fault.cause == "lost"}
        assert all(sample.cause == "checksum" for sample in found if isinstance(sample, SampleError))
        assert all(sample.members == contents[sample.key] for sample in found if isinstance(sample, RawSample))
        assert sure or kind in ("cut", "insert", "delete", "repeat", "flips")

        # Validated: a sample is as it was, or named.
        told = {fault.key for fault in validate(storage, str(tmp_path))}
        same = dict(zip(after.table["key"].to_pylist(), after.table["checksum"].to_pylist(), strict=True))
        assert all(key in told or same[key] == checksum for key, checksum in listed.items())
        noticed += bool(told)
    assert len(kinds) == len(KINDS)
    assert noticed > 0.8 * CORRUPTIONS / GROUPS  # the others touched padding only


@pytest.mark.parametrize("manifest", [True, False], ids=["with a manifest", "without"])
def test_repaired_copies_are_sound(tmp_path, sound, manifest):
    data, before = sound
    storage = Storage()
    listed = dict(zip(before.table["key"].to_pylist(), before.table["checksum"].to_pylist(), strict=True))
    rng = random.Random(99)
    recovered = 0
    for number in range(40):
        folder, copy = tmp_path / f"{number}", tmp_path / f"{number}-copy"
        folder.mkdir()
        kind, spoilt = corrupt(data, rng)
        (folder / "000000.tar").write_bytes(spoilt)
        if manifest:
            (folder / "manifest.parquet").write_bytes((tmp_path / "manifest.parquet").read_bytes())
        [record] = repair(storage, str(folder), str(copy), log=lambda line: None)
        recovered += record.recovered
        if not record.samples:
            continue
        assert list(validate(storage, str(copy))) == []
        after = Manifest.load(storage, str(copy)).table
        kept = dict(zip(after["key"].to_pylist(), after["checksum"].to_pylist(), strict=True))
        assert len(kept) == record.samples
        assert kept.keys() <= listed.keys()
        if manifest:
            assert all(listed[key] == checksum for key, checksum in kept.items())
            assert kept.keys() | {fault.key for fault in record.faults} >= listed.keys()
            # One hole costs the samples it touches, and those beside it, not what lies behind it.
            assert kind in ("cut", "flips") or len(kept) >= SAMPLES - 6
    assert recovered > 40
