"""The tar reader beside Python's tarfile, and on archives that are not whole."""

import contextlib
import gzip
import io
import pickle
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.shards.tar import ShardError, iterate_members
from tests.shards.tars import tar

TWO = [("a.png", b"1" * 700), ("a.json", b"{}")]


def members(data: bytes, size: int | None = None):
    return list(iterate_members(io.BytesIO(data), len(data) if size is None else size, "shard"))


def read_into(seen: list, data: bytes, where: str = "shard") -> None:
    for member in iterate_members(io.BytesIO(data), len(data), where):
        seen.append((member.name, member.data))


def contents(data: bytes) -> list[tuple[str, bytes]]:
    return [(member.name, member.data) for member in members(data)]


LONG = "folder/" * 20 + "name that is longer than one hundred bytes.png"
NAMES = {
    "plain": "a.png",
    "folders": "x/y/z.png",
    "beyond 100 bytes": LONG,
    "not ASCII": "größe/写真.png",
    "long and not ASCII": "ж" * 40 + "/" + "ж" * 30 + ".png",
    "dots": "a 2.0.1.png",
    "exactly 100 bytes": "n" * 96 + ".png",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("layout", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["ustar", "gnu", "pax"])
def test_names_of_all_layouts(name, layout):
    if layout == tarfile.USTAR_FORMAT and name == LONG:
        name = "folder/" * 20 + "n.png"  # ustar splits at a slash
    data = tar([("before.png", b"0"), (name, b"content"), ("after.png", b"2")], layout)
    assert contents(data) == [("before.png", b"0"), (name, b"content"), ("after.png", b"2")]


def test_extents_cover_long_name_headers():
    first, second = members(tar([(LONG, b"1" * 10), ("b", b"")], tarfile.GNU_FORMAT))
    assert first.start == 0
    assert first.offset == 3 * 512  # the header of the long name, the name, the header of the member
    assert second.start == first.offset + 512


def test_sizes_beyond_octal_and_old_archives():
    data = bytearray(tar([("a", b"12345")]))
    data[124:136] = b"\x80" + (5).to_bytes(11)
    assert contents(_summed(data)) == [("a", b"12345")]
    data[257:265] = bytes(8)  # an archive from before ustar
    assert contents(_summed(data)) == [("a", b"12345")]


def _summed(data: bytearray) -> bytes:
    data[148:156] = b" " * 8
    data[148:156] = f"{sum(data[:512]):06o}\0 ".encode()
    return bytes(data)


def test_folders_are_passed_over_and_global_headers_read():
    data = tar([("folder/", b""), ("folder/a", b"1")])
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", pax_headers={"comment": "by hand"}) as archive:
        archive.addfile(tarfile.TarInfo("b"))
    assert contents(data) == [("folder/a", b"1")]
    assert contents(buffer.getvalue()) == [("b", b"")]


def test_names_that_are_not_utf8_stay_apart():
    data = bytearray(tar([("aX.png", b"1")], tarfile.USTAR_FORMAT))
    data[1] = 0xE9
    assert contents(_summed(data)) == [("a\\xe9.png", b"1")]


def test_an_empty_archive_is_whole():
    assert members(tar([])) == []


def _link() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("b.png")
        info.type, info.linkname = tarfile.LNKTYPE, "a.png"
        archive.addfile(info)
    return buffer.getvalue()


def _sparse() -> bytes:
    data = bytearray(tar([("a.png", b"1")]))
    data[156] = ord("S")
    return _summed(data)


def _flipped(byte: int) -> bytes:
    data = bytearray(tar(TWO))
    data[byte] ^= 4
    return bytes(data)


BODY = 512 + 1024 + 512 + 512  # where the end-of-archive mark of TWO begins
DAMAGED = {
    "zero bytes": (b"", 0, "zero bytes", 0),
    "cut in a header": (tar(TWO)[:300], 0, "ends 212 bytes before the end of the first header", 0),
    "cut in a member": (tar(TWO)[:900], 512, "ends 312 bytes before the end of member 'a.png'", 0),
    "cut in padding": (tar(TWO)[:1300], 512 + 700, "before the end of the padding", 0),
    "cut between members": (tar(TWO)[: 512 + 1024], 1536, "without an end-of-archive mark", 1),
    "no end-of-archive": (tar(TWO)[:BODY], BODY, "without an end-of-archive mark", 2),
    "one zero block": (tar(TWO)[: BODY + 512], BODY, "one zero block where two belong", 2),
    "half a mark": (tar(TWO)[: BODY + 700], BODY, "less than two zero blocks", 2),
    "two tars in one": (tar(TWO) + tar(TWO), 10240, "bytes after the end-of-archive mark", 2),
    "first header damaged": (_flipped(3), 0, "not a tar, or its first header is damaged", 0),
    "later header damaged": (_flipped(1536 + 3), 1536, "the header is damaged", 1),
    "checksum damaged": (_flipped(1536 + 150), 1536, "the header is damaged", 1),
    "gzip": (gzip.compress(tar(TWO), mtime=0) + bytes(512), 0, "compressed with gzip", 0),
    "bzip2": (b"BZh9" + bytes(600), 0, "compressed with bzip2", 0),
    "zip": (b"PK\x03\x04" + bytes(600), 0, "is a zip archive", 0),
    "a web page": (b"<!doctype html><html>" * 40, 0, "this is not a tar", 0),
    "a link": (_link(), 0, "is a link without content", 0),
    "a sparse file": (_sparse(), 0, "sparse", 0),
}


@pytest.mark.parametrize(("data", "byte", "reason", "before"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named(data, byte, reason, before):
    seen: list = []
    with pytest.raises(ShardError) as fault:
        read_into(seen, data, "s3://b/000007.tar")
    assert reason in fault.value.reason
    assert fault.value.byte == byte
    assert f"s3://b/000007.tar, byte {byte}: " in str(fault.value)
    assert len(seen) == before
    assert str(pickle.loads(pickle.dumps(fault.value))) == str(fault.value)


def test_bytes_read_are_compared_with_the_stated_size():
    data = tar(TWO)
    with pytest.raises(ShardError, match=f"ended at byte {len(data)} of {len(data) + 512}"):
        members(data, len(data) + 512)
    with pytest.raises(ShardError, match="goes on after"):
        members(data + bytes(512), len(data))


@pytest.mark.parametrize("records", [b"xx path=a\n", b"99 path=a\n", b"10 path:ab\n", b"9999999999 path=a\n"])
def test_damaged_extended_headers(records):
    info = tarfile.TarInfo("x")
    header = info.create_pax_global_header({"path": "a"})  # a header and one block of records, of type g
    block = bytearray(header[:512])
    block[156] = ord("x")
    block[124:136] = f"{len(records):011o}\0".encode()
    data = _summed(block) + records.ljust(512, b"\0") + tar(TWO)
    with pytest.raises(ShardError, match="extended header is damaged"):
        members(data)


PARTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=60)
FILES = st.lists(st.tuples(st.lists(PARTS, min_size=1, max_size=4).map("/".join), st.binary(max_size=1500)), max_size=8)


@settings(max_examples=150, deadline=None)
@given(FILES, st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
def test_agrees_with_tarfile(files, layout):
    data = tar(files, layout)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        expected = [(info.name, info.offset_data, info.size) for info in archive.getmembers() if info.isreg()]
    found = members(data)
    assert [(member.name, member.offset, member.size) for member in found] == expected
    assert all(data[member.offset : member.offset + member.size] == member.data for member in found)


@settings(max_examples=150, deadline=None)
@given(FILES.filter(bool), st.data())
def test_no_cut_goes_unnoticed(files, draw):
    data = tar(files)
    cut = draw.draw(st.integers(0, len(data.rstrip(b"\0")) + 512))
    whole = contents(data)
    seen: list = []
    with pytest.raises(ShardError):
        read_into(seen, data[:cut])
    assert seen == whole[: len(seen)]


@pytest.mark.parametrize(
    ("change", "whole"),
    [
        (lambda data: data[:3100] + b"?" + data[3101:], 3),  # a byte of a content: nothing in a tar tells
        (lambda data: data[:3100] + b"?" + data[3100:], 1),  # inserted: what was read as the second content is not it
        (lambda data: data[:3100] + data[3101:], 1),  # lost
        (lambda data: data[:2600] + data[2601:], 1),  # lost in the header before it
        (lambda data: data[:5122] + b"?" + data[5123:], 2),  # the third header damaged: the second content ends in zeros, as it should
        (lambda data: data[:5700] + data[5701:], 2),  # lost in the last content
    ],
)
def test_a_member_before_damage_is_handed_on_only_if_its_bytes_are_its_own(change, whole):
    """Headers at 0, 2 560 and 5 120; behind each 1 600 bytes of content and 448 bytes of padding."""
    data = tar([(f"{n}.txt", bytes([n + 65]) * 1600) for n in range(3)])
    seen: list = []
    with contextlib.suppress(ShardError):
        read_into(seen, change(data))
    assert len(seen) == whole
    assert all(name == f"{n}.txt" and len(content) == 1600 for n, (name, content) in enumerate(seen))
