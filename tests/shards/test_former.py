"""Samples of a shard on disk, one by one."""

import pytest

from raysys.shards.former import FormerShard
from raysys.shards.sample import Sample
from raysys.shards.tar import ShardError
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import samples


def test_every_sample_is_there_as_it_was_written(tmp_path):
    given = [*samples(3), Sample("train", "folder/größe", None, metadata={"captions": {"ja": ["写真"]}})]
    write_shards(given, str(tmp_path), 1, Storage())
    former = FormerShard(tmp_path / "000000.tar")
    assert list(former) == [sample.key for sample in given]
    assert {key: former[key].metadata for key in former} == {sample.key: sample.metadata for sample in given}
    assert [former[sample.key].image for sample in given] == [sample.image for sample in given]
    assert former["folder/größe"].extension == ""
    assert former.get("other") is None
    former.close()


def test_damage_is_told(tmp_path):
    write_shards(samples(2), str(tmp_path), 1, Storage())
    path = tmp_path / "000000.tar"
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(ShardError):
        FormerShard(path)
