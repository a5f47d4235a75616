"""What is wrong with data people have, and what becomes of it: a row each.

Every row is a shard, or the files of a folder, beside a sound shard. Where an archive is damaged, indexing under ``raise`` ends with an
error that says so; any other fault is a line of `validate`. Under ``skip`` the usable samples remain and the fault is counted by cause.
"""

import gzip
import io
import json
import struct
import tarfile
import zlib
from dataclasses import dataclass, field

import numpy as np
import PIL.Image
import pytest

from raysys.shards.manifest import Manifest, load_or_build, notes
from raysys.shards.reader import RawSample, try_read_samples
from raysys.shards.tar import ShardError
from raysys.shards.validate import validate
from raysys.storage import Storage
from tests.shards.tars import pairs, picture, tar, text, without_end

BESIDE = ["good0", "good1"]
"""Keys of the sound shard."""


@dataclass
class Row:
    """One thing that is wrong, or only looks wrong."""

    shard: bytes
    """000001.tar"""
    told: str = ""
    """Part of the error or of the line of `validate`; empty: nothing is wrong."""
    usable: list[str] = field(default_factory=list)
    """Keys of the shard's samples that can be used all the same."""
    cause: str = ""
    damaged: bool = False
    """The archive itself is at fault."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Further files of the folder."""


def encoded(mode: str = "RGB", kind: str = "PNG", size: tuple[int, int] = (20, 10), **options) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.new(mode, size).save(buffer, kind, **options)
    return buffer.getvalue()


def with_image(data: bytes, name: str = "a.png") -> bytes:
    """A shard whose sample `a` has this image, between two sound ones."""
    return tar([*pairs([1]), ("a.json", text()), (name, data), *pairs([2])])


def with_text(data: bytes | str | dict) -> bytes:
    """A shard whose sample `a` has this json, between two sound ones."""
    content = data if isinstance(data, bytes) else (json.dumps({"captions": data}) if isinstance(data, dict) else data).encode()
    return tar([*pairs([1]), ("a.json", content), ("a.png", picture()), *pairs([2])])


def header_of(data: bytes, name: str) -> int:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.getmember(name).offset


def with_bit(data: bytes, byte: int) -> bytes:
    return data[:byte] + bytes([data[byte] ^ 1]) + data[byte + 1 :]


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims a size; its pixels are missing."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


def link() -> bytes:
    buffer = io.BytesIO(tar(pairs([1])))
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        info = tarfile.TarInfo("b.png")
        info.type, info.linkname = tarfile.SYMTYPE, "s001.png"
        archive.addfile(info)
    return buffer.getvalue()


THREE = tar(pairs([1, 2, 3]))
BOTH, ALL = ["s001", "s002"], ["a", "s001", "s002"]
AT_3 = header_of(THREE, "s003.json")
NOISE = picture(5, (120, 90), "JPEG")
ANIMATED = encoded("P", "GIF", save_all=True, append_images=[PIL.Image.new("P", (20, 10), 1)])
BAD_EXIF = NOISE[:2] + b"\xff\xe1\x00\x12Exif\x00\x00" + b"MM\x00\x2a\xff\xff\xff\xff\xff\xff" + NOISE[2:]
FORK = b"\0\x05\x16\x07 a resource fork"

TARS = {
    "zero bytes": Row(b"", "zero bytes: its writer never wrote it", damaged=True, cause="shard"),
    "no samples": Row(tar([])),
    "cut between members": Row(THREE[: header_of(THREE, "s003.png")], "it was cut", BOTH, "lost", damaged=True),
    "cut after a sample": Row(
        without_end(THREE), "without an end-of-archive mark: it was cut", ["s001", "s002", "s003"], "shard", damaged=True
    ),
    "cut within a member": Row(
        THREE[: header_of(THREE, "s003.png") + 700], "before the end of member 's003.png'", BOTH, "lost", damaged=True
    ),
    "cut within a header": Row(THREE[: AT_3 + 100], "before the end of a header", BOTH, "shard", damaged=True),
    "header damaged": Row(with_bit(THREE, AT_3 + 3), "the header is damaged: its checksum does not hold", BOTH, "shard", damaged=True),
    "bytes lost in a picture": Row(THREE[: AT_3 - 700] + THREE[AT_3 - 695 :], "its checksum does not hold", ["s001"], "lost", damaged=True),
    "bytes inserted in a text": Row(THREE[:520] + b"12345" + THREE[520:], "its checksum does not hold", [], "shard", damaged=True),
    "bytes lost in the last picture": Row(
        THREE[: len(without_end(THREE)) - 700] + THREE[len(without_end(THREE)) - 695 :], "not whole blocks", BOTH, "lost", damaged=True
    ),
    "two tars in one": Row(THREE + THREE, "several tars in one file?", ["s001", "s002", "s003"], "shard", damaged=True),
    "packed": Row(
        gzip.compress(THREE),
        "is compressed with gzip: byte ranges cannot be read from it; unpack it with gunzip",
        damaged=True,
        cause="shard",
    ),
    "a zip": Row(b"PK\x03\x04" + THREE, "is a zip archive, not a tar", damaged=True, cause="shard"),
    "a web page": Row(b"<html>" + THREE, "this is not a tar", damaged=True, cause="shard"),
    "a link": Row(link(), "member 'b.png' is a link without content; write the tar with --hard-dereference", [], "lost", damaged=True),
    "member twice": Row(
        tar([*pairs([1]), ("a.json", text()), ("a.png", picture()), ("a.png", picture(3))]),
        "two members have this name",
        ["s001"],
        "duplicate",
    ),
    "twice but for case": Row(
        tar([*pairs([1]), ("a.json", text()), ("a.png", picture()), ("a.PNG", picture(3))]), "two members have", ["s001"], "duplicate"
    ),
    "key again, later": Row(tar([*pairs([1, 2]), *pairs([1])]), "two members have this name", ["s002"], "duplicate"),
    "key in two shards": Row(
        tar([*pairs([1]), ("good1.json", text()), ("good1.png", picture())]), "the same key lies in 000000.tar", ["s001"], "duplicate"
    ),
    "gap in the numbering": Row(
        THREE, "there is no 000002.tar to 000004.tar before it", ["s001", "s002", "s003"], "shard", files={"000005.tar": tar(pairs([9]))}
    ),
    "writer stopped": Row(THREE, "there is no _stats.json for it", ["s001", "s002", "s003"], "shard", files={"000000_stats.json": b"{}"}),
    "sparse members": Row(
        tar([*pairs([1]), ("a.json", text()), *pairs([2]), ("b.cls", b"1"), ("b.json", text()), ("b.png", picture())]),
        usable=["a", "b", *BOTH],
    ),
    "interleaved members": Row(tar([pairs([1, 2])[i] for i in (0, 2, 1, 3)]), usable=BOTH),
    "no extension": Row(tar([*pairs([1]), ("a", b"?")]), "neither an image nor a json member", ["s001"], "layout"),
    "dots in names": Row(
        tar([(f"a 2.{n}.{kind}", data) for n in (0, 1) for kind, data in (("json", text(n)), ("png", picture(n)))]),
        usable=["a 2.0", "a 2.1"],
    ),
    "capitals": Row(tar([("a.JSON", text()), ("a.PNG", picture())]), usable=["a"]),
    "resource forks and hidden files": Row(
        tar(
            [("._a.json", FORK), ("a.json", text()), ("._a.png", FORK), ("a.png", picture()), (".DS_Store", b"?"), ("__MACOSX/a.png", b"?")]
        ),
        usable=["a"],
    ),
    "folders": Row(
        tar([("x/", b""), ("x/a.json", text()), ("x/a.png", picture()), ("./y/a.json", text()), ("./y/a.png", picture(2))]),
        usable=["x/a", "y/a"],
    ),
    "one huge member": Row(tar([*pairs([1]), ("a.json", text()), ("a.png", picture() + bytes(30_000_000)), *pairs([2])]), usable=ALL),
}

IMAGES = {
    "empty": Row(with_image(b""), "sample 'a', member .png, byte 4096: the member is empty", BOTH, "image"),
    "a web page": Row(with_image(b"<html>404</html>", "a.jpg"), "no image begins with the bytes b'<html>404", BOTH, "image"),
    "a drawing (SVG)": Row(with_image(b"<svg xmlns='x'/>", "a.jpg"), "no image begins with", BOTH, "image"),
    "cut": Row(with_image(NOISE[:2000], "a.jpg"), "truncated", BOTH, "image"),
    "a cut PNG": Row(with_image(picture(3, (90, 90))[:9000]), "truncated", BOTH, "image"),
    "too large": Row(with_image(png_of(40000, 40000) + picture()[33:]), "exceeds limit", BOTH, "image"),
    "no pixels": Row(with_image(png_of(20, 10)), "its header is damaged or cut", BOTH, "image"),
    "wrong extension": Row(with_image(NOISE, "a.png"), usable=ALL),
    "orientation that cannot be read": Row(with_image(BAD_EXIF, "a.jpg"), usable=ALL),
    "16 bits": Row(with_image(encoded("I;16")), usable=ALL),
    "one bit": Row(with_image(encoded("1")), usable=ALL),
    "CMYK": Row(with_image(encoded("CMYK", "JPEG"), "a.jpeg"), usable=ALL),
    "palette and transparency": Row(with_image(encoded("P", transparency=0)), usable=ALL),
    "animated": Row(with_image(ANIMATED, "a.gif"), usable=ALL),
    "floating point": Row(with_image(encoded("F", "TIFF"), "a.tif"), usable=ALL),
    "one pixel": Row(with_image(encoded(size=(1, 1))), usable=ALL),
    "a line": Row(with_image(encoded(size=(5000, 1))), usable=ALL),
}

TEXT = {
    "no json": Row(with_text("{"), "not valid json", BOTH, "json"),
    "empty": Row(with_text(b""), "the json member is empty", BOTH, "json"),
    "a list": Row(with_text("[1]"), "json holds a list where an object was expected", BOTH, "json"),
    "not text": Row(with_text(b'{"a": "\xff"}'), "json is not utf-8 text (byte 7)", BOTH, "json"),
    "nested without end": Row(with_text(b"[" * 100_000), "not valid json", BOTH, "json"),
    "other fields": Row(with_text('{"caption": "a"}'), "there is no field 'captions' but caption", BOTH, "layout"),
    "captions as a list": Row(with_text('{"captions": ["a"]}'), "'captions' is a list where an object", BOTH, "layout"),
    "nothing to see": Row(with_text({"de": ["\u200b\u00a0\u2060", " "]}), "it holds no caption", BOTH, "text"),
    "a number": Row(with_text({"de": [7]}), "a caption in 'de' is a number where text was expected", BOTH, "text"),
    "half a character": Row(with_text('{"captions": {"de": "\\ud83d"}}'), "half a surrogate pair", BOTH, "text"),
    "bytes as text": Row(with_text({"de": "b'caf\\xc3\\xa9'"}), "Python's notation of bytes", BOTH, "text"),
    "no language": Row(with_text({"image_alt": ["a"]}), "'image_alt' is not a language tag such as", BOTH, "text"),
    "unknown alignment": Row(with_text('{"captions": {"de": "a"}, "alignment": "loose"}'), "'alignment' is 'loose'", BOTH, "text"),
    "UTF-16": Row(with_text('{"captions": {"el": "γάτα"}}'.encode("utf-16")), usable=ALL),
    "byte-order mark": Row(with_text('{"captions": {"el": "γάτα"}}'.encode("utf-8-sig")), usable=ALL),
    "no captions in one language": Row(with_text({"de": [], "fr": None, "en": ["a"]}), usable=ALL),
}

ROWS = {f"{kind}: {name}": row for kind, rows in (("tar", TARS), ("image", IMAGES), ("text", TEXT)) for name, row in rows.items()}


pytestmark = pytest.mark.filterwarnings("ignore:Corrupt EXIF data")


@pytest.fixture(params=ROWS.values(), ids=ROWS)
def case(request, tmp_path):
    """(row, its folder)."""
    good = [(f"{key}.{kind}", data) for n, key in enumerate(BESIDE) for kind, data in (("json", text(n)), ("png", picture(n)))]
    for name, data in {"000000.tar": tar(good), "000001.tar": request.param.shard, **request.param.files}.items():
        (tmp_path / name).write_bytes(data)
    return request.param, str(tmp_path)


def test_named(case):
    row, folder = case
    lines = [str(fault) for fault in validate(Storage(), folder)]
    if not row.told:
        assert lines == []
    assert any(row.told in line for line in lines) or not row.told
    if row.damaged:
        with pytest.raises(ShardError) as fault:
            Manifest.build(Storage(), folder)
        assert row.told in str(fault.value)
        assert f"{folder}/000001.tar, byte " in str(fault.value)
    else:
        Manifest.build(Storage(), folder)


def test_skipped(case):
    row, folder = case
    manifest = Manifest.build(Storage(), folder, on_damage="skip")
    faults = list(validate(Storage(), folder))
    bad = {fault.key for fault in manifest.faults()} | {fault.key for fault in faults}
    rows = [n for n, (shard, key) in enumerate(zip(manifest.table["shard"].to_pylist(), manifest.table["key"].to_pylist(), strict=True))
            if shard == "000001.tar" and key not in bad]  # fmt: skip
    assert sorted(manifest.table["key"][n].as_py() for n in rows) == sorted(row.usable)
    assert all(isinstance(sample, RawSample) for sample in try_read_samples(Storage(), manifest, rows))
    causes = {fault.cause for fault in faults}
    assert row.cause in causes if row.cause else not causes
    assert set(manifest.causes()) <= causes
    assert bool(manifest.damage) == row.damaged
    assert not row.damaged or any(row.told in line and "the rest of the shard is left out" in line for line in notes(manifest, Storage()))


def test_the_same_shard_name_in_two_folders(tmp_path):
    """A manifest and its reads belong to one folder."""
    manifests = []
    for name, numbers in (("a", [1, 2]), ("b", [2, 1])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "000000.tar").write_bytes(tar(pairs(numbers)))
        manifests.append(load_or_build(Storage(), str(tmp_path / name), lambda line: None))
    first, second = (try_read_samples(Storage(), manifest, np.arange(2)) for manifest in manifests)
    assert [sample.key for sample in first] == [sample.key for sample in reversed(second)] == ["s001", "s002"]
    assert first[0].members == second[1].members
