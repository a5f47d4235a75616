"""Members behind damage."""

from raysys.shards.salvage import next_header, salvage_members
from raysys.shards.tar import Member, ShardError
from raysys.storage import Storage
from tests.shards.tars import tar


def salvaged(tmp_path, data: bytes) -> tuple[list[str], list[int]]:
    """(names of members, bytes of damage)."""
    (tmp_path / "x.tar").write_bytes(data)
    found = list(salvage_members(Storage(), str(tmp_path / "x.tar"), len(data)))
    return [one.name for one in found if isinstance(one, Member)], [one.byte for one in found if isinstance(one, ShardError)]


def test_salvage_of_lost_and_inserted_bytes(tmp_path):
    data = tar([(f"{n}.txt", bytes([n + 65]) * 700) for n in range(5)])
    names = [f"{n}.txt" for n in range(5)]
    assert salvaged(tmp_path, data) == (names, [])
    start = data.index(b"C" * 700)
    for spoilt in (
        data[: start + 100] + data[start + 105 :],
        data[: start + 100] + b"-----" + data[start + 100 :],
        data[: start + 100] + data[start + 100 + 512 :],
        data[: start + 100] + bytes(512) + data[start + 100 :],
    ):
        assert salvaged(tmp_path, spoilt)[0] == ["0.txt", "1.txt", "3.txt", "4.txt"]
    assert salvaged(tmp_path, data + data)[0] == names * 2
    assert salvaged(tmp_path, data[: start + 100])[0] == names[:2]


def test_headers_are_found_across_windows(tmp_path, monkeypatch):
    monkeypatch.setattr("raysys.shards.salvage._WINDOW", 100)
    data = b"?" * 1234 + tar([("a.txt", b"a")])
    (tmp_path / "x").write_bytes(data)
    assert next_header(Storage(), str(tmp_path / "x"), len(data), 0) == 1234
    assert next_header(Storage(), str(tmp_path / "x"), len(data), 1235) is None


def test_every_stretch_of_damage_is_told_once(tmp_path):
    data = bytearray(tar([(f"{n}.txt", bytes([n + 65]) * 700) for n in range(7)]))
    places = [data.index(f"{n}.txt".encode()) for n in (2, 5)]
    for place in places:
        data[place] ^= 1
    names, damage = salvaged(tmp_path, bytes(data))
    assert names == ["0.txt", "1.txt", "3.txt", "4.txt", "6.txt"]
    assert damage == places
