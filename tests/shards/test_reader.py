"""Names of members, and samples read by number."""

import itertools
import tarfile
from collections import Counter

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.shards import reader
from raysys.shards.layout import OWN_FORM
from raysys.shards.manifest import Manifest
from raysys.shards.reader import RawSample, read_samples, split_name, try_read_samples
from raysys.shards.sample import SampleError
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import pairs, picture, samples, tar, text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.png", ("a", "png")),
        ("./x/a.JPEG", ("x/a", "jpeg")),
        ("a 2.0.jpg", ("a 2.0", "jpg")),
        ("a 2.1.jpg", ("a 2.1", "jpg")),
        ("v1.2/a.json", ("v1.2/a", "json")),
        ("a.rois.npz", ("a", "rois.npz")),
        ("a.b.ROIS.NPZ", ("a.b", "rois.npz")),
        ("a.unheard-of", ("a", "unheard-of")),
        ("no-extension", ("no-extension", "")),
        ("x.y/no-extension", ("x.y/no-extension", "")),
        ("._a.png", None),
        ("x/._a.png", None),
        ("x/.DS_Store", None),
        ("__MACOSX/a.png", None),
        ("__index__", None),
        ("__index__/a.json", None),
    ],
)
def test_keys_end_at_the_last_known_extension(name, expected):
    assert split_name(name) == expected


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("a.input.jpg", ["input.jpg"], ("a", "input.jpg")),
        ("x/a 2.0.INPUT.jpg", ["input.jpg"], ("x/a 2.0", "input.jpg")),
        ("a.input.jpg", [], ("a.input", "jpg")),
        ("a 2.0.img", ["img"], ("a 2.0", "img")),
        ("input.jpg", ["input.jpg"], ("input", "jpg")),
        ("x/.input.jpg", ["input.jpg"], None),
    ],
)
def test_extensions_of_a_layout_are_known(name, more, expected):
    assert split_name(name, more) == expected


def test_image_extension():
    assert OWN_FORM.image_extension(["json", "webp", "png"]) == "webp"
    assert OWN_FORM.image_extension(["json"]) is None


class CountingStorage(Storage):
    """Notes every ranged read."""

    def __init__(self):
        super().__init__()
        self.reads = []

    def read(self, uri, offset=0, size=None):
        self.reads.append((uri, offset, size))
        return super().read(uri, offset, size)


@pytest.fixture
def data_set(tmp_path):
    """(counting storage, manifest of 40 samples in 3 shards)."""
    storage = CountingStorage()
    write_shards(samples(40), str(tmp_path), 3, storage)
    manifest = Manifest.build(storage, str(tmp_path))
    storage.reads.clear()
    return storage, manifest


def test_samples_come_in_the_order_asked_for(data_set):
    storage, manifest = data_set
    ids = np.random.default_rng(0).integers(0, 40, 100)
    keys = manifest.table["key"].to_pylist()
    found = read_samples(storage, manifest, ids)
    assert [sample.id for sample in found] == ids.tolist()
    for sample in found:
        number = int(sample.key[1:])
        assert sample.key == keys[sample.id]
        assert sample.shard == f"{number % 3:06d}.tar"
        assert sample.members.keys() == {"json", "png"}
        assert sample.members["png"] == picture(number)
    assert read_samples(storage, manifest, []) == []


def test_neighbours_are_read_together(data_set):
    storage, manifest = data_set
    read_samples(storage, manifest, list(range(40)))
    assert len(storage.reads) == 3  # one per shard
    storage.reads.clear()
    read_samples(storage, manifest, [5, 3, 4, 4])
    assert len(storage.reads) == 1
    assert storage.reads[0][2] < sum(manifest.table["size"].to_pylist()[3:6])


def test_distant_members_are_read_apart(data_set, monkeypatch):
    storage, manifest = data_set
    monkeypatch.setattr(reader, "GAP", 1024)
    read_samples(storage, manifest, [0, 1, 8, 9])
    assert len(storage.reads) == 2


def test_reads_are_bounded(data_set, monkeypatch):
    storage, manifest = data_set
    monkeypatch.setattr(reader, "LONGEST_READ", 4000)
    found = read_samples(storage, manifest, list(range(40)))
    assert [sample.id for sample in found] == list(range(40))
    assert all(size <= 4000 for _, _, size in storage.reads)
    monkeypatch.setattr(reader, "LONGEST_READ", 1)  # a member that is longer is read whole
    assert read_samples(storage, manifest, list(range(40))) == found


def test_interleaved_members(tmp_path):
    members = pairs(range(6))
    order = [0, 2, 4, 1, 6, 3, 8, 5, 10, 7, 9, 11]
    (tmp_path / "0.tar").write_bytes(tar([members[i] for i in order]))
    manifest = Manifest.build(Storage(), str(tmp_path))
    found = read_samples(Storage(), manifest, range(6))
    assert [(sample.key, sample.members) for sample in found] == [(f"s{n:03}", {"json": text(n), "png": picture(n)}) for n in range(6)]


def test_ids_that_are_not_there(data_set):
    storage, manifest = data_set
    for ids in ([40], [-1, 3]):
        with pytest.raises(IndexError, match="has 40"):
            read_samples(storage, manifest, ids)


def test_shards_changed_behind_the_manifest(data_set):
    storage, manifest = data_set
    shard = f"{manifest.folder}/000001.tar"
    data = bytearray(storage.read(shard))
    place = manifest.table.slice(20, 1).to_pylist()[0]
    data[place["members"][1]["offset"] + 30] ^= 1
    storage.write(shard, bytes(data))
    with pytest.raises(SampleError, match=f"sample '{place['key']}': it is not what was indexed") as fault:
        read_samples(storage, manifest, range(40))
    assert fault.value.cause == "checksum"
    found = try_read_samples(storage, manifest, range(40))
    assert [sample.key for sample in found if isinstance(sample, RawSample)] == [
        key for key in manifest.table["key"].to_pylist() if key != place["key"]
    ]
    assert str(found[20]) == str(fault.value)


def test_samples_beyond_the_end_of_a_cut_shard_are_named(data_set):
    storage, manifest = data_set
    rows = manifest.table.to_pylist()
    inside = [n for n, row in enumerate(rows) if row["shard"] == "000001.tar"]
    end = rows[inside[3]]["members"][1]["offset"] + 5
    shard = f"{manifest.folder}/000001.tar"
    storage.write(shard, storage.read(shard)[:end])
    found = try_read_samples(storage, manifest, [*inside, 0, *inside])
    faults = [n for n, sample in enumerate(found) if isinstance(sample, SampleError)]
    assert faults == [*range(3, len(inside)), *range(len(inside) + 4, 2 * len(inside) + 1)]
    assert found[3].cause == "checksum"
    storage.delete(shard)
    with pytest.raises(UserError, match="does not exist"):
        try_read_samples(storage, manifest, inside)


def test_dotted_names_and_extensions_in_capitals(tmp_path):
    first, second = picture(0, kind="JPEG"), picture(1, kind="JPEG")
    members = [("a 2.0.JPG", first), ("a 2.0.json", text(0)), ("a 2.1.Jpg", second), ("a 2.1.JSON", text(1))]
    members = list(itertools.chain.from_iterable((("._" + name, b"resource fork"), (name, data)) for name, data in members))
    (tmp_path / "0.tar").write_bytes(tar(members, tarfile.GNU_FORMAT))
    manifest = Manifest.build(Storage(), str(tmp_path))
    assert manifest.faults() == []
    found = read_samples(Storage(), manifest, range(2))
    assert Counter(sample.key for sample in found) == {"a 2.0": 1, "a 2.1": 1}
    assert found[1].members == {"jpg": second, "json": text(1)}
