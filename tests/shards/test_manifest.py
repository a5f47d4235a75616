"""The manifest: what it lists, when it is made anew, and what it says of data that is not as it should be."""

import io
import sys
import tarfile

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.shards.build import index_shards
from raysys.shards.layout import OWN_FORM
from raysys.shards.listing import gaps, missing_shards
from raysys.shards.manifest import NAME, Manifest, find_datasets, load_or_build
from raysys.shards.reader import read_samples, try_read_samples
from raysys.shards.tar import ShardError
from raysys.shards.validate import validate
from raysys.shards.writer import write_shards
from raysys.storage import Entry, Storage, join
from tests.object_store import environment
from tests.shards.tars import pairs, picture, samples, tar, text, without_end


@pytest.fixture
def folder(tmp_path):
    """A data set of 20 samples in 3 shards."""
    write_shards(samples(20), str(tmp_path / "train"), 3, Storage())
    return str(tmp_path / "train")


def silent(line: str) -> None:
    pass


def test_rows_lie_in_the_order_of_shards_and_samples(folder):
    manifest = Manifest.build(Storage(), folder)
    assert manifest.table["key"].to_pylist() == [f"s{i:03}" for n in range(3) for i in range(n, 20, 3)]
    assert manifest.table["shard"].to_pylist() == sorted(manifest.table["shard"].to_pylist())
    row = manifest.table.slice(1, 1).to_pylist()[0]
    assert row | {"members": 0, "offset": 0, "size": 0, "checksum": 0, "image_id": 0} == {
        "shard": "000000.tar",
        "key": "s003",
        "offset": 0,
        "size": 0,
        "members": 0,
        "languages": ["de", "en"],
        "captions": [1, 2],
        "texts": [0, 0],
        "sentences": [],
        "alignment": "strict",
        "group": "g1",
        "image_format": "PNG",
        "width": 16,
        "height": 12,
        "image_id": 0,
        "checksum": 0,
        "fault": None,
        "cause": None,
    }
    with tarfile.open(f"{folder}/000000.tar") as archive:
        assert [(member["extension"], member["offset"], member["size"]) for member in row["members"]] == [
            (name.rpartition(".")[2], info.offset_data, info.size)
            for name in ("s003.json", "s003.png")
            for info in [archive.getmember(name)]
        ]
        assert row["offset"] == archive.getmember("s003.json").offset
        assert row["offset"] + row["size"] == archive.getmember("s006.json").offset
    assert manifest.languages() == {"de": 20, "en": 20}
    assert manifest.captions() == {"de": 20, "en": 40}


def test_languages_are_counted_most_frequent_first(tmp_path):
    members = [("a.json", b'{"captions": {"tr": ["x"], "ja": ["y"]}}'), ("b.json", b'{"captions": {"zh_CN": ["z"], "tr": ["x", "y"]}}')]
    (tmp_path / "0.tar").write_bytes(tar(members))
    manifest = Manifest.build(Storage(), str(tmp_path))
    assert list(manifest.languages().items()) == [("tr", 2), ("ja", 1), ("zh-Hans", 1)]
    assert manifest.captions() == {"tr": 3, "ja": 1, "zh-Hans": 1}


def test_saved_and_loaded(folder):
    built = Manifest.build(Storage(), folder)
    built.save(Storage())
    loaded = Manifest.load(Storage(), folder)
    assert loaded.table.equals(built.table)
    assert loaded.fingerprint == built.fingerprint
    assert loaded.shards == built.shards == {f"{n:06d}.tar": (len(built) and Storage().size(f"{folder}/{n:06d}.tar")) for n in range(3)}


def test_fingerprint_tells_contents_apart(tmp_path):
    prints = set()
    for name, members in {
        "a": pairs(range(3)),
        "order": pairs([1, 0, 2]),
        "content": [*pairs(range(2)), ("s002.json", text(9)), ("s002.png", picture(2))],
        "key": [*pairs(range(2)), ("s009.json", text(2)), ("s009.png", picture(2))],
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.tar").write_bytes(tar(members))
        prints.add(Manifest.build(Storage(), str(tmp_path / name)).fingerprint)
    assert len(prints) == 4
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/0.tar").write_bytes((tmp_path / "a/0.tar").read_bytes())
    assert Manifest.build(Storage(), str(tmp_path / "elsewhere")).fingerprint in prints


def test_equal_pictures_are_equal_numbers(tmp_path):
    members = [
        ("a.png", picture(1)),
        ("a.json", text()),
        ("b.jpg", picture(1)),
        ("b.json", text()),
        ("c.png", picture(2)),
        ("d.json", text()),
    ]
    (tmp_path / "0.tar").write_bytes(tar(members))
    a, b, c, d = Manifest.build(Storage(), str(tmp_path)).table["image_id"].to_pylist()
    assert a == b != c
    assert d == 0


def test_load_or_build_builds_once(folder):
    lines: list[str] = []
    first = load_or_build(Storage(), folder, log=lines.append)
    assert len(lines) == 1
    assert "indexed 20 samples in 3 shards" in lines[0]
    second = load_or_build(Storage(), folder, log=lines.append)
    assert second.fingerprint == first.fingerprint
    assert len(lines) == 1


def test_load_or_build_sees_that_shards_changed(folder, tmp_path):
    load_or_build(Storage(), folder, log=silent)
    (tmp_path / "train/000003.tar").write_bytes(tar(pairs(range(50, 53))))
    lines: list[str] = []
    assert len(load_or_build(Storage(), folder, log=lines.append)) == 23
    assert "since its shards were indexed, 000003.tar were added; reading them again" in lines[0]
    (tmp_path / "train/000000.tar").unlink()
    (tmp_path / "train/000001.tar").write_bytes(tar(pairs(range(3))))
    load_or_build(Storage(), folder, log=lines.append)
    assert any("000000.tar have gone and 000001.tar changed their size" in line for line in lines)


def test_load_or_build_replaces_a_damaged_manifest(folder, tmp_path):
    load_or_build(Storage(), folder, log=silent)
    path = tmp_path / "train" / NAME
    for data in (path.read_bytes()[:-50], b"", b"PAR1 nonsense PAR1"):
        path.write_bytes(data)
        with pytest.raises(UserError, match=r"is damaged .* jobs/shards.py index"):
            Manifest.load(Storage(), folder)
        lines: list[str] = []
        assert len(load_or_build(Storage(), folder, log=lines.append)) == 20
        assert "reading the shards again" in lines[0]
    assert len(Manifest.load(Storage(), folder)) == 20


def test_ray_tasks_build_the_same(folder, monkeypatch, request):
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "ray", raising=False)
        in_threads = Manifest.build(Storage(), folder)
    request.getfixturevalue("ray_session")
    in_tasks = Manifest.build(Storage(), folder)
    assert in_tasks.table.equals(in_threads.table)


def test_processes_build_the_same(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    assert Manifest.build(Storage(), folder, processes=2).table.equals(Manifest.build(Storage(), folder).table)
    gone = [Entry(f"{folder}/{name}.tar", 10) for name in ("8", "9")]
    with pytest.raises(UserError, match=r"8\.tar does not exist"):
        list(index_shards(Storage(), folder, gone, OWN_FORM, processes=2))


def test_errors_of_ray_tasks_are_one_sentence(object_store, ray_session):
    entries = [Entry(f"{object_store.bucket_uri}/away/{n}.tar", 10) for n in range(2)]
    with pytest.raises(UserError) as fault:
        list(index_shards(Storage(), f"{object_store.bucket_uri}/away", entries, OWN_FORM))
    assert str(fault.value).startswith(f"{entries[0].uri}: no such object")


WHERE_NOTHING_IS = {
    "no folder": ({}, "does not exist"),
    "an empty folder": ({"x/": b""}, "holds nothing"),
    "other files": ({"x/a.txt": b"", "x/b.txt": b""}, "has no .tar shards; it holds a.txt, b.txt"),
    "compressed shards": ({"x/0.tar.gz": b""}, "compressed ones (0.tar.gz)"),
    "shards beneath": ({"x/train/0.tar": tar([])}, "there are some in"),
    "empty shards": ({"x/0.tar": tar([]), "x/1.tar": tar([])}, "of its 2 shards all are whole but hold no samples"),
    "other members": ({"x/0.tar": tar([("a.jpg", b"1"), ("a.txt", b"2")])}, "1 × jpg + txt"),
    "other fields": ({"x/0.tar": tar([("a.json", b'{"caption": "a", "url": "b"}')])}, "json fields: caption, url"),
}


@pytest.mark.parametrize(("files", "message"), WHERE_NOTHING_IS.values(), ids=WHERE_NOTHING_IS)
def test_where_there_is_nothing_to_index(tmp_path, files, message):
    for name, data in files.items():
        path = tmp_path / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(data)
    with pytest.raises(UserError) as fault:
        load_or_build(Storage(), str(tmp_path / "x"), log=silent)
    assert message in str(fault.value)
    assert str(tmp_path / "x") in str(fault.value)


FAULTY_SAMPLES = {
    "json damaged": ("json", [("a.json", b"{"), ("a.png", picture())]),
    "json without captions": ("text", [("a.json", b'{"captions": {"de": ["  "]}}'), ("a.png", picture())]),
    "unknown language": ("text", [("a.json", b'{"captions": {"?": ["x"]}}'), ("a.png", picture())]),
    "image is a web page": ("image", [("a.json", text()), ("a.png", b"<html>not found</html>")]),
    "image is empty": ("image", [("a.json", text()), ("a.png", b"")]),
    "image is huge": ("image", [("a.json", text()), ("a.png", picture()[:16] + (40000).to_bytes(4) * 2 + picture()[24:])]),
    "two images of one name": ("duplicate", [("a.json", text()), ("a.png", picture(1)), ("a.png", picture(2))]),
    "same name but for case": ("duplicate", [("a.json", text()), ("a.png", picture(1)), ("a.PNG", picture(2))]),
    "no extension": ("layout", [("a", b"?")]),
    "neither image nor json": ("layout", [("a.txt", b"?"), ("a.cls", b"1")]),
}


@pytest.mark.parametrize(("cause", "members"), FAULTY_SAMPLES.values(), ids=FAULTY_SAMPLES)
def test_faulty_samples_are_named_and_the_others_stay(tmp_path, cause, members):
    (tmp_path / "0.tar").write_bytes(tar([*pairs([7]), *members, *pairs([8])]))
    lines: list[str] = []
    manifest = load_or_build(Storage(), str(tmp_path), log=lines.append)
    assert manifest.table["key"].to_pylist() == ["s007", "a", "s008"]
    [(shard, key, found, reason)] = manifest.faults()
    assert (shard, key, found) == ("0.tar", "a", cause)
    assert manifest.causes() == {cause: 1}
    assert f"1 samples have faults ({cause} 1), the first: 0.tar, sample 'a': {reason}" in lines[1]
    assert [sample.key for sample in read_samples(Storage(), manifest, [0, 2])] == ["s007", "s008"]


def _damaged_folder(tmp_path):
    good = tar(pairs(range(5)))
    (tmp_path / "000000.tar").write_bytes(good)
    (tmp_path / "000001.tar").write_bytes(without_end(tar(pairs(range(10, 15)))))
    bad = bytearray(tar(pairs(range(20, 25))))
    bad[_header_of(bytes(bad), "s022.png")] ^= 1
    (tmp_path / "000002.tar").write_bytes(bad)
    return str(tmp_path)


def _header_of(data: bytes, name: str) -> int:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.getmember(name).offset


def test_damaged_shards_are_all_named(tmp_path):
    with pytest.raises(ShardError) as fault:
        load_or_build(Storage(), _damaged_folder(tmp_path), log=silent)
    message = str(fault.value)
    assert "000001.tar" in message
    assert "000002.tar" in message
    assert "2 whole samples lie before it" in message
    assert not (tmp_path / NAME).exists()


def test_samples_before_the_damage_are_usable(tmp_path):
    lines: list[str] = []
    manifest = load_or_build(Storage(), _damaged_folder(tmp_path), log=lines.append, on_damage="skip")
    kept = [0, 1, 2, 3, 4, 20, 21]  # s022 has lost its image
    assert set(manifest.table["key"].to_pylist()) >= {f"s{n:03}" for n in kept}
    assert [(fault.key, fault.cause) for fault in manifest.faults()] == [("s022", "lost")]
    assert len(manifest.damage) == 2
    assert sum("the rest of the shard is left out" in line for line in lines) == 2
    assert Manifest.load(Storage(), str(tmp_path)).damage == manifest.damage
    ids = np.flatnonzero([key in {f"s{n:03}" for n in kept} for key in manifest.table["key"].to_pylist()])
    assert [sample.members["json"] for sample in read_samples(Storage(), manifest, ids)] == [text(n) for n in kept]


def test_samples_cut_between_their_members_do_not_count(tmp_path):
    members = [(f"s{n}.json", text(n)) for n in range(4)] + [(f"s{n}.png", picture(n)) for n in range(4)]
    data = tar(members)
    (tmp_path / "0.tar").write_bytes(data[: _header_of(data, "s2.png")])
    manifest = Manifest.build(Storage(), str(tmp_path), on_damage="skip")
    assert [(fault.key, fault.cause, fault.reason) for fault in manifest.faults()] == [
        ("s2", "lost", ".png is lost in the damage beside it"),
        ("s3", "lost", ".png is lost in the damage beside it"),
    ]
    assert manifest.table["key"].to_pylist() == ["s0", "s1", "s2", "s3"]


def test_what_was_listed_before_is_missed_in_a_damaged_shard(folder, tmp_path):
    before = load_or_build(Storage(), folder, log=silent)
    shard = tmp_path / "train/000001.tar"
    data = shard.read_bytes()
    at = before.lookup.offsets[before.lookup.starts[before.table["key"].to_pylist().index("s004")] + 1] + 40
    shard.write_bytes(data[:at] + b"?" + data[at + 1 : _header_of(data, "s010.png")])  # s004's picture changed, all from s010 on cut
    lines: list[str] = []
    for _ in range(2):  # indexed again, what is missing stays missing
        after = load_or_build(Storage(), folder, log=lines.append, on_damage="skip")
        assert sorted(after.table["key"].to_pylist()) == [f"s{n:03}" for n in range(20)]
        assert {(fault.key, fault.cause) for fault in after.faults()} == {
            ("s004", "checksum"),
            ("s010", "lost"),
            ("s013", "lost"),
            ("s016", "lost"),
            ("s019", "lost"),
        }
        assert after.causes() == {"lost": 4, "checksum": 1}
        gone = after.table["key"].to_pylist().index("s013")
        [error] = try_read_samples(Storage(), after, [gone])
        assert (error.cause, "was lost from its shard" in error.reason) == ("lost", True)
        shard.write_bytes(shard.read_bytes()[:-300])
    assert any("5 samples have faults (lost 4, checksum 1)" in line for line in lines)


@pytest.mark.parametrize(
    ("names", "reasons"),
    [
        (["000000.tar", "000001.tar"], []),
        (["000004.tar", "000005.tar"], []),
        (["000001.tar", "000003.tar"], ["there is no 000002.tar before it: the numbering has a gap"]),
        (["00.tar", "04.tar", "05.tar"], ["there is no 01.tar to 03.tar before it: the numbering has a gap"]),
        (["a.tar", "000004.tar"], []),
        (["train-01.tar", "train-07.tar"], []),
    ],
)
def test_gaps_in_the_numbering(names, reasons):
    assert [reason for _, reason in gaps(names)] == reasons


def test_a_shard_that_a_preparation_left_out_is_no_gap(tmp_path):
    (tmp_path / "000001.part.json").write_text('{"size": 0}')
    (tmp_path / "000003.part.json").write_text('{"size": 512}')
    names = ["000000.tar", "000002.tar", "000004.tar"]
    assert [reason for _, reason in missing_shards(Storage(), str(tmp_path), names)] == [
        "there is no 000003.tar before it: the numbering has a gap"
    ]


def test_what_is_told_of_a_new_manifest(tmp_path):
    for name, numbers in (("00000", [1, 2]), ("00001", []), ("00003", [2, 3])):
        (tmp_path / f"{name}.tar").write_bytes(tar(pairs(numbers)))
    (tmp_path / "00000_stats.json").write_text("{}")
    (tmp_path / "00001_stats.json").write_text("{}")
    lines: list[str] = []
    load_or_build(Storage(), str(tmp_path), log=lines.append)
    assert lines[1:] == [
        f"{tmp_path}/00001.tar: the shard is whole but has no samples",
        f"{tmp_path}/00003.tar: there is no 00002.tar before it: the numbering has a gap",
        f"{tmp_path}/00003.tar: its writer was stopped: there is no _stats.json for it",
        f"{tmp_path}: 1 keys lie in more than one shard, the first: 's002'; to which sample a name belongs is unclear",
    ]


def test_finds_data_sets_beneath_a_folder(tmp_path):
    for name in ("a/train", "a/test", "b", ".cache/x"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "0.tar").write_bytes(tar(pairs([1])))
    assert find_datasets(Storage(), f"{tmp_path}/") == [f"{tmp_path}/a/test", f"{tmp_path}/a/train", f"{tmp_path}/b"]
    assert find_datasets(Storage(), f"{tmp_path}/b") == [f"{tmp_path}/b"]
    (tmp_path / "c").mkdir()
    with pytest.raises(UserError, match="holds nothing"):
        find_datasets(Storage(), f"{tmp_path}/c")


def test_on_a_real_object_store(object_store):
    folder = f"{object_store.bucket_uri}/manifest/train"
    storage = Storage()
    write_shards(samples(20), folder, 3, storage)
    assert find_datasets(storage, object_store.bucket_uri + "/manifest") == [folder]
    with environment(**object_store.reader.environment):  # may not save the manifest
        lines: list[str] = []
        unsaved = load_or_build(Storage(), folder, log=lines.append)
        assert any("kept in memory" in line for line in lines)
        assert [sample.key for sample in read_samples(Storage(), unsaved, [3, 0, 19])] == ["s009", "s000", "s017"]
    assert not storage.exists(join(folder, NAME))
    saved = load_or_build(storage, folder, log=silent)
    assert storage.exists(join(folder, NAME))
    assert saved.fingerprint == unsaved.fingerprint
    found = read_samples(storage, Manifest.load(storage, folder), range(20))
    assert [sample.members["png"] for sample in found] == [picture(int(sample.key[1:])) for sample in found]


def test_compressed_tars_beside_shards_are_told(tmp_path):
    (tmp_path / "000000.tar").write_bytes(tar(pairs(range(2))))
    (tmp_path / "000001.tar.gz").write_bytes(b"\x1f\x8b")
    lines: list[str] = []
    load_or_build(Storage(), str(tmp_path), lines.append)
    assert any("000001.tar.gz: it is compressed and no part of the data set: unpack it" in line for line in lines)
    assert [str(fault) for fault in validate(Storage(), str(tmp_path))] == [
        "000001.tar.gz, byte 0: it is compressed and no part of the data set: unpack it"
    ]
