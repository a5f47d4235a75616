"""Every fault is named, and nothing is named that is no fault."""

import pytest

from raysys.errors import UserError
from raysys.shards.manifest import Manifest
from raysys.shards.validate import validate
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import pairs, picture, samples, tar, text, without_end


def faults(folder) -> list[tuple[str, str, str, str]]:
    return [(fault.shard, fault.key, fault.member, fault.reason) for fault in validate(Storage(), str(folder))]


def indexed(folder, count: int = 12, shards: int = 2) -> Manifest:
    write_shards(samples(count), str(folder), shards, Storage())
    manifest = Manifest.build(Storage(), str(folder))
    manifest.save(Storage())
    return manifest


def test_a_sound_data_set_has_no_faults(tmp_path):
    indexed(tmp_path)
    assert faults(tmp_path) == []


def test_a_manifest_is_not_demanded(tmp_path):
    write_shards(samples(3), str(tmp_path), 1, Storage())
    assert faults(tmp_path) == []


def test_faults_of_samples(tmp_path):
    cut = picture(3, (200, 200), "JPEG")[:3000]  # its header is whole, its pixels are not
    members = [
        *pairs([0]),
        ("a.json", b"{"),
        ("a.png", picture(1)),
        ("b.json", text()),
        ("b.jpg", cut),
        ("c.json", text()),
        ("c.png", b"nothing"),
        ("d.txt", b"?"),
        ("e.json", text()),
        ("e.png", picture(2)),
        ("e.png", picture(2)),
    ]
    (tmp_path / "0.tar").write_bytes(tar(members))
    found = list(validate(Storage(), str(tmp_path)))
    assert [(fault.key, fault.member) for fault in found] == [("a", "json"), ("b", "jpg"), ("c", "png"), ("d", ""), ("e", "png")]
    assert "not valid json" in found[0].reason
    assert "truncated" in found[1].reason
    assert "no image begins with the bytes b'nothing'" in found[2].reason
    assert "neither an image nor a json" in found[3].reason
    assert "two members have this name" in found[4].reason
    assert str(found[1]).startswith(f"0.tar, sample 'b', member .jpg, byte {found[1].byte}: ")
    assert (tmp_path / "0.tar").read_bytes()[found[1].byte :].startswith(cut)


def test_faults_of_shards(tmp_path):
    (tmp_path / "000000.tar").write_bytes(tar(pairs([0, 1])))
    (tmp_path / "000002.tar").write_bytes(tar(pairs([1, 2])))
    (tmp_path / "000003.tar").write_bytes(without_end(tar(pairs([3]))))
    (tmp_path / "000004.tar").write_bytes(b"")
    found = faults(tmp_path)
    assert found[0] == ("000002.tar", "", "", "there is no 000001.tar before it: the numbering has a gap")
    assert found[1] == ("000002.tar", "s001", "", "the same key lies in 000000.tar")
    assert [fault[:2] for fault in found[2:]] == [("000003.tar", "s003"), ("000003.tar", ""), ("000004.tar", "")]
    assert found[2][3] == "what else it may have is lost in the damage beside it"
    assert "was cut" in found[3][3]
    assert "zero bytes" in found[4][3]


def test_shards_whose_writer_was_stopped(tmp_path):
    for name in ("00000", "00001"):
        (tmp_path / f"{name}.tar").write_bytes(tar(pairs([int(name)])))
    (tmp_path / "00000_stats.json").write_text("{}")
    assert faults(tmp_path) == [("00001.tar", "", "", "its writer was stopped: there is no _stats.json for it")]


def test_differences_from_the_manifest(tmp_path):
    manifest = indexed(tmp_path, count=12, shards=3)
    row = manifest.table.slice(0, 1).to_pylist()[0]
    data = bytearray((tmp_path / "000000.tar").read_bytes())
    data[row["members"][0]["offset"] + 20] ^= 1  # a letter of a caption
    (tmp_path / "000000.tar").write_bytes(data)
    (tmp_path / "000001.tar").unlink()
    (tmp_path / "000002.tar").write_bytes(tar(pairs([2, 5, 8, 90])))
    (tmp_path / "000003.tar").write_bytes(tar(pairs([91])))
    found = faults(tmp_path)
    assert ("000000.tar", row["key"], "", "its contents are not what the manifest says") in found
    assert ("000001.tar", "", "", "the manifest lists this shard, but it is gone") in found
    assert ("000002.tar", "s011", "", "the manifest lists it, but it is not there") in found
    assert ("000002.tar", "s090", "", "the manifest does not list it") in found
    assert ("000003.tar", "", "", "the manifest does not list this shard") in found


def test_bad_use_is_named(tmp_path):
    with pytest.raises(UserError, match="holds nothing"):
        faults(tmp_path)
