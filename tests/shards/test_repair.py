"""A clean copy: what is kept, what is listed, what is done again."""

import json

import pytest

from raysys.errors import UserError
from raysys.shards.layout import Layout
from raysys.shards.manifest import NAME, Manifest
from raysys.shards.reader import read_samples
from raysys.shards.repair import RECORD, repair
from raysys.shards.validate import validate
from raysys.storage import Storage
from tests.shards.tars import pairs, picture, tar, text


def damaged_in(data: bytes, name: str) -> bytes:
    """A tar whose header of member `name` has a flipped bit."""
    at = data.index(name.encode() + b"\0")
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.fixture
def folder(tmp_path):
    """Three shards: a sound one, one with bad samples, one with a damaged header."""
    source = tmp_path / "bad"
    source.mkdir()
    bad = [("a.json", b"{"), ("a.png", picture()), ("b.JSON", text(1)), ("b.Jpg", picture(1, (90, 90), "JPEG")[:2000])]
    (source / "000000.tar").write_bytes(tar(pairs([0, 1, 2])))
    (source / "000001.tar").write_bytes(tar([*pairs([10]), *bad, *pairs([1, 11])]))
    (source / "000002.tar").write_bytes(damaged_in(tar(pairs(range(20, 25))), "s022.json"))
    return source


def run(source, target) -> list:
    return repair(Storage(), str(source), str(target), log=lambda line: None)


def contents(folder) -> dict[str, dict[str, bytes]]:
    manifest = Manifest.load(Storage(), str(folder))
    return {sample.key: sample.members for sample in read_samples(Storage(), manifest, range(len(manifest)))}


def test_the_copy_is_clean_and_the_rest_is_listed(folder, tmp_path):
    copy = tmp_path / "copy"
    records = run(folder, copy)
    assert [(record.samples, record.recovered, len(record.faults)) for record in records] == [(3, 0, 0), (2, 0, 3), (4, 2, 2)]
    assert list(validate(Storage(), str(copy))) == []
    kept = [0, 1, 2, 10, 11, 20, 21, 23, 24]
    assert contents(copy) == {f"s{n:03}": {"json": text(n), "png": picture(n)} for n in kept}
    assert (copy / "000000.tar").read_bytes() == (folder / "000000.tar").read_bytes()
    lines = [json.loads(line) for line in (copy / RECORD).read_text().splitlines()]
    assert [(line["shard"], line["samples"], line["faults"]) for line in lines if "samples" in line] == [
        ("000000.tar", 3, 0),
        ("000001.tar", 2, 3),
        ("000002.tar", 4, 2),
    ]
    faults = [(line["shard"], line["key"], line["member"], line["cause"]) for line in lines if "reason" in line]
    assert faults == [
        ("000001.tar", "a", "json", "json"),
        ("000001.tar", "b", "jpg", "image"),
        ("000001.tar", "s001", "", "duplicate"),
        ("000002.tar", "", "", "shard"),
        ("000002.tar", "s022", "", "lost"),
    ]


def test_the_same_bytes_each_time(folder, tmp_path):
    run(folder, tmp_path / "one")
    run(folder, tmp_path / "two")
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert names == {"000000.tar", "000001.tar", "000002.tar", NAME, RECORD}
    for name in names - {NAME}:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_run_again_it_tries_what_had_faults_or_changed(folder, tmp_path):
    copy = tmp_path / "copy"
    run(folder, copy)
    (folder / "000002.tar").write_bytes(tar(pairs(range(20, 25))))  # fetched again, whole
    (copy / "000000.tar").touch()
    before = {name: (copy / name).stat().st_mtime_ns for name in ("000000.tar", "000001.tar", "000002.tar")}
    lines: list[str] = []
    records = repair(Storage(), str(folder), str(copy), log=lines.append)
    assert [(record.samples, len(record.faults)) for record in records] == [(3, 0), (2, 3), (5, 0)]
    changed = {name for name, time in before.items() if (copy / name).stat().st_mtime_ns != time}
    assert changed == {"000001.tar", "000002.tar"}
    assert "1 of 3 shards were copied before without a fault" in lines[0]
    assert len(contents(copy)) == 10
    (copy / "000002.tar").write_bytes(b"cut")
    assert [record.samples for record in run(folder, copy)] == [3, 2, 5]
    assert len(contents(copy)) == 10


def test_what_a_manifest_tells_apart(tmp_path):
    """Bytes that changed in a picture that still decodes are found by the manifest alone."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "0.tar").write_bytes(tar(pairs(range(4))))
    Manifest.build(Storage(), str(source)).save(Storage())
    (source / "0.tar").write_bytes(tar([*pairs([0]), ("s001.json", text(1)), ("s001.png", picture(7)), *pairs([2])]))
    [record] = run(source, tmp_path / "copy")
    assert {(fault.key, fault.cause) for fault in record.faults if fault.cause != "shard"} == {("s001", "checksum"), ("s003", "lost")}
    assert contents(tmp_path / "copy").keys() == {"s000", "s002"}


def test_other_layouts(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    members = [(f"a {n}.0.{name}", data) for n in range(3) for name, data in (("img", picture(n)), ("txt", f"Bild {n}".encode()))]
    members[3] = ("a 1.0.txt", b" ")
    (source / "0.tar").write_bytes(tar(members))
    layout = Layout(image_member="img", caption_member="txt", language="de")
    [record] = repair(Storage(), str(source), str(tmp_path / "copy"), layout, log=lambda line: None)
    assert [(fault.key, fault.member, fault.cause) for fault in record.faults] == [("a 1.0", "txt", "text")]
    assert contents(tmp_path / "copy") == {f"a {n}.0": {"img": picture(n), "txt": f"Bild {n}".encode()} for n in (0, 2)}


def test_nothing_can_be_kept(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "0.tar").write_bytes(b"")
    (source / "1.tar").write_bytes(b"no tar" * 1000)
    records = run(source, tmp_path / "copy")
    assert [record.samples for record in records] == [0, 0]
    assert (tmp_path / "copy/0.tar").exists()


def test_bad_use_is_named(folder, tmp_path):
    with pytest.raises(UserError, match="folder of its own"):
        run(folder, f"{folder}/")
    run(folder, tmp_path / "copy")
    (tmp_path / "copy" / RECORD).write_text("nonsense")
    with pytest.raises(UserError, match="is damaged; delete it to begin anew"):
        run(folder, tmp_path / "copy")


def test_on_a_real_object_store(object_store, folder):
    storage = Storage()
    uri = f"{object_store.bucket_uri}/repair"
    for path in folder.iterdir():
        storage.upload(path, f"{uri}/bad/{path.name}")
    assert [record.samples for record in run(f"{uri}/bad", f"{uri}/copy")] == [3, 2, 4]
    assert list(validate(storage, f"{uri}/copy")) == []
    assert [record.samples for record in run(f"{uri}/bad", f"{uri}/copy")] == [3, 2, 4]
