"""Shards that others can read, the same bytes for the same samples."""

import io
import tarfile

import PIL.Image
import pytest
import webdataset

from raysys.errors import UserError
from raysys.shards.manifest import Manifest, load_or_build
from raysys.shards.reader import read_samples
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import picture, samples


def test_sample_i_goes_to_shard_i_mod_k(tmp_path):
    assert write_shards(samples(10), str(tmp_path), 4, Storage()) == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{n:06d}.tar" for n in range(4)]
    for n in range(4):
        with tarfile.open(tmp_path / f"{n:06d}.tar") as archive:
            assert archive.getnames() == [f"s{i:03}.{ext}" for i in range(n, 10, 4) for ext in ("json", "png")]


def test_bytes_depend_on_the_samples_alone(tmp_path):
    for folder in ("a", "b"):
        write_shards(samples(5), str(tmp_path / folder), 2, Storage())
    for n in range(2):
        assert (tmp_path / f"a/{n:06d}.tar").read_bytes() == (tmp_path / f"b/{n:06d}.tar").read_bytes()


def test_webdataset_reads_what_we_write(tmp_path):
    given = samples(7)
    write_shards(given, str(tmp_path), 2, Storage())
    found = list(webdataset.WebDataset([str(tmp_path / f"{n:06d}.tar") for n in range(2)], shardshuffle=False).decode("pil"))
    assert sorted(sample["__key__"] for sample in found) == [sample.key for sample in given]
    by_key = {sample["__key__"]: sample for sample in found}
    for sample in given:
        assert sample.image is not None
        assert by_key[sample.key]["json"] == sample.metadata
        assert by_key[sample.key]["png"].tobytes() == PIL.Image.open(io.BytesIO(sample.image)).tobytes()


def test_long_and_foreign_keys(tmp_path):
    keys = ["größe/写真", "x/" * 80 + "key", "with space"]
    write_shards([Sample("train", key, picture(), "PNG", {"captions": {"ja": ["写真"]}}) for key in keys], str(tmp_path), 1, Storage())
    manifest = Manifest.build(Storage(), str(tmp_path))
    assert manifest.table["key"].to_pylist() == keys
    assert manifest.faults() == []


def test_text_without_image(tmp_path):
    write_shards([Sample("train", "a", None, metadata={"captions": {"en": ["a"]}})], str(tmp_path), 1, Storage())
    assert Manifest.build(Storage(), str(tmp_path)).table["image_id"].to_pylist() == [0]


def test_leftovers_of_a_former_run_are_removed(tmp_path):
    write_shards(samples(10), str(tmp_path), 5, Storage())
    load_or_build(Storage(), str(tmp_path), log=lambda line: None)
    (tmp_path / "README.md").write_text("kept")
    write_shards(samples(10), str(tmp_path), 2, Storage())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000.tar", "000001.tar", "README.md"]


def test_fewer_samples_than_shards(tmp_path):
    assert write_shards(samples(2), str(tmp_path), 5, Storage()) == 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("key", ["", "/a", "a/", "a.b", "_a", "a\nb", "x/.a"])
def test_keys_that_other_readers_cannot_take(tmp_path, key):
    with pytest.raises(UserError, match="cannot be the key"):
        write_shards([Sample("train", key, picture())], str(tmp_path), 1, Storage())


def test_bad_use_is_named(tmp_path):
    storage = Storage()
    with pytest.raises(UserError, match="at least 1"):
        write_shards(samples(1), str(tmp_path), 0, storage)
    with pytest.raises(UserError, match="no samples"):
        write_shards([], str(tmp_path), 1, storage)
    with pytest.raises(UserError, match="two samples have the key 's000'"):
        write_shards(samples(1) + samples(1), str(tmp_path), 1, storage)
    with pytest.raises(UserError, match="'exe' is not one of the image extensions"):
        write_shards([Sample("train", "a", b"", "exe")], str(tmp_path), 1, storage)
    assert list(tmp_path.iterdir()) == []


def test_further_members(tmp_path):
    extra = {"rois.npz": b"features", "txt": b"a note"}
    write_shards([Sample("train", "a", picture(), metadata={"captions": {"en": ["a"]}}, extra=extra)], str(tmp_path), 1, Storage())
    manifest = Manifest.build(Storage(), str(tmp_path))
    assert (manifest.table["key"].to_pylist(), manifest.faults()) == (["a"], [])
    (found,) = read_samples(Storage(), manifest, [0])
    assert sorted(found.members) == ["json", "png", "rois.npz", "txt"]
    assert {name: found.members[name] for name in extra} == extra


@pytest.mark.parametrize("extension", ["json", "jpg", "exe", "a.b"])
def test_what_further_members_cannot_be(tmp_path, extension):
    with pytest.raises(UserError, match=f"sample 'a': '{extension}' is not one of the extensions of further members: .*rois.npz"):
        write_shards([Sample("train", "a", None, extra={extension: b""})], str(tmp_path), 1, Storage())


def test_captions_stay_readable_in_the_shard(tmp_path):
    write_shards([Sample("train", "a", None, metadata={"captions": {"ja": ["写真"]}})], str(tmp_path), 1, Storage())
    assert "写真".encode() in (tmp_path / "000000.tar").read_bytes()
