"""Tars in the published forms of other tools, read by settings alone."""

import json

import pytest
import webdataset

from raysys.errors import UserError
from raysys.settings import from_mapping
from raysys.shards.layout import Layout
from raysys.shards.manifest import NAME, Manifest, load_or_build
from raysys.shards.reader import read_samples
from raysys.shards.sample import SampleError
from raysys.shards.validate import validate
from raysys.storage import Storage
from tests.shards.tars import picture, tar, text


def img2dataset(path, count: int = 4) -> None:
    """Two shards as img2dataset writes them, with what it writes beside them."""
    for shard in range(2):
        members = []
        for n in range(shard * count, (shard + 1) * count):
            about = {"caption": f"alt text {n}", "url": f"https://example.org/{n}.jpg", "key": f"{n:09d}", "status": "success"}
            about |= {"error_message": None, "width": 16, "height": 12, "exif": "{}", "LANGUAGE": ["en", "de", "xx1", None][n % 4]}
            members += [(f"{n:09d}.jpg", picture(n, kind="JPEG")), (f"{n:09d}.json", json.dumps(about, indent=4).encode())]
            members.append((f"{n:09d}.txt", f"alt text {n}".encode()))
        (path / f"{shard:05d}.tar").write_bytes(tar(members))
        (path / f"{shard:05d}.parquet").write_bytes(b"PAR1 not ours")
        (path / f"{shard:05d}_stats.json").write_text("{}")


def with_webdataset(path, *samples: dict) -> None:
    with webdataset.TarWriter(str(path / "shard-000000.tar")) as writer:
        for number, sample in enumerate(samples):
            writer.write({"__key__": f"{number:04d}", **sample})


def captions(folder, layout: Layout) -> list[dict[str, list[str]]]:
    """Of every sample without a fault, read back by number; the manifest says the same languages."""
    manifest = Manifest.build(Storage(), str(folder), layout=layout)
    faulty = [fault is not None for fault in manifest.table["fault"].to_pylist()]
    rows = [row for row, bad in enumerate(faulty) if not bad]
    found = [layout.read(sample.members, sample.where) for sample in read_samples(Storage(), manifest, rows)]
    assert [list(one.captions) for one in found] == [manifest.table["languages"][row].as_py() for row in rows]
    return [one.captions for one in found]


@pytest.mark.parametrize("where", [{"caption_member": "txt"}, {"caption_member": ".TXT"}, {"caption_field": "caption"}], ids=str)
def test_img2dataset(tmp_path, where):
    img2dataset(tmp_path)
    layout = Layout(language="en", **where)
    assert captions(tmp_path, layout) == [{"en": [f"alt text {n}"]} for n in range(8)]
    manifest = Manifest.build(Storage(), str(tmp_path), layout=layout)
    assert manifest.table["image_format"].to_pylist() == ["JPEG"] * 8
    assert list(validate(Storage(), str(tmp_path), layout)) == []


def test_a_language_in_a_field(tmp_path):
    img2dataset(tmp_path)
    named = Layout(caption_member="txt", language_field="LANGUAGE")
    assert captions(tmp_path, named) == [{["en", "de"][n % 4]: [f"alt text {n}"]} for n in (0, 1, 4, 5)]
    reasons = {fault.reason for fault in Manifest.build(Storage(), str(tmp_path), layout=named).faults()}
    assert reasons == {
        ".txt: 'xx1' is not a language tag such as 'de', 'pt-BR' or 'zh-Hans'",
        ".json: its language is not named: field 'LANGUAGE' (data.layout.language_field) is missing or empty",
    }
    defaulted = Layout(caption_member="txt", language_field="LANGUAGE", language="fr")
    assert captions(tmp_path, defaulted)[2] == {"fr": ["alt text 3"]}


def test_open_clip_with_captions_in_json(tmp_path):
    with_webdataset(
        tmp_path,
        {"jpg": picture(0, kind="JPEG"), "json": {"caption": ["a cat", "one cat"], "meta": {"lang": "en"}}},
        {"png": picture(1), "json": {"caption": {"de_DE": "ein Hund", "en": ["a dog"]}}},
        {"jpg": picture(2, kind="JPEG"), "json": {"caption": "eine Maus", "meta": {"lang": "de"}}},
    )
    assert captions(tmp_path, Layout(caption_field="caption", language_field="meta.lang")) == [
        {"en": ["a cat", "one cat"]},
        {"de": ["ein Hund"], "en": ["a dog"]},
        {"de": ["eine Maus"]},
    ]


def test_cc3m_and_other_webdatasets(tmp_path):
    with_webdataset(tmp_path, {"jpg": picture(0, kind="JPEG"), "txt": "a cat", "cls": 3}, {"jpg": picture(1, kind="JPEG"), "txt": "a dog"})
    assert captions(tmp_path, Layout(caption_member="txt", language="en_US")) == [{"en": ["a cat"]}, {"en": ["a dog"]}]


@pytest.mark.parametrize("image", ["img", "input.jpg", "IMG.PNG"])
def test_images_under_extensions_of_their_own(tmp_path, image):
    members = [(f"s {n}.0.{name}", data) for n in range(3) for name, data in ((image, picture(n)), ("caption", f"Bild {n}".encode()))]
    (tmp_path / "0.tar").write_bytes(tar(members))
    layout = Layout(image_member=image, caption_member="caption", language="deu")
    assert captions(tmp_path, layout) == [{"de": [f"Bild {n}"]} for n in range(3)]
    manifest = Manifest.build(Storage(), str(tmp_path), layout=layout)
    assert manifest.table["key"].to_pylist() == ["s 0.0", "s 1.0", "s 2.0"]
    assert manifest.table["width"].to_pylist() == [16, 16, 16]
    sample = read_samples(Storage(), manifest, [1])[0]
    assert sample.members[layout.image_extension(sample.members)] == picture(1)


def test_a_field_within_a_field_and_one_whose_name_has_a_dot():
    members = {"json": b'{"a": {"b": {"de": ["x"]}}, "c.d": {"fr": "y"}}'}
    assert Layout(caption_field="a.b").read(members).captions == {"de": ["x"]}
    assert Layout(caption_field="c.d").read(members).captions == {"fr": ["y"]}


@pytest.mark.parametrize(
    ("layout", "members", "cause", "reason"),
    [
        (Layout(), {"json": b'{"text": "a"}'}, "layout", "it holds no caption: there is no field 'captions' but text"),
        (Layout(), {"json": b'{"captions": {}}'}, "text", "it holds no caption"),
        (
            Layout(caption_member="txt", language="de"),
            {"jpg": b"", "json": b"{}"},
            "layout",
            "it has no .txt member (data.layout.caption_m",
        ),
        (Layout(caption_member="txt", language="de"), {"txt": b" \n"}, "text", "it holds no caption"),
        (Layout(caption_member="txt", language="de"), {"txt": b"\xff\xfea"}, "text", "it is not utf-16-le text"),
        (Layout(caption_member="txt", language="de"), {"txt": b"a", "json": b"{"}, "json", "not valid json"),
        (Layout(caption_field="x"), {"jpg": b""}, "layout", "it has no .json member but .jpg"),
        (
            Layout(caption_field="x", language="de"),
            {"json": b'{"y": 1}'},
            "layout",
            "there is no field 'x' (data.layout.caption_field) but y",
        ),
        (Layout(caption_field="x", language="de"), {"json": b'{"x": null}'}, "text", "it holds no caption"),
        (Layout(caption_field="x", language="de"), {"json": b'{"x": 7}'}, "text", "is a number where text was expected"),
        (Layout(caption_field="x"), {"json": b'{"x": "a"}'}, "layout", "set data.layout.language or data.layout.language_field"),
        (Layout(caption_field="x", language_field="l"), {"json": b'{"x": "a", "l": 3}'}, "text", "its 'l' is a number where a language"),
        (Layout(caption_field="x", unknown_languages="drop"), {"json": b'{"x": {"?": "a"}}'}, "text", "it holds no caption"),
    ],
)
def test_samples_without_what_the_layout_names(layout, members, cause, reason):
    with pytest.raises(SampleError) as fault:
        layout.read(members, "0.tar: sample 'a'")
    assert reason in fault.value.reason
    assert fault.value.cause == cause
    assert str(fault.value).startswith("0.tar: sample 'a'")


def test_unknown_languages_can_be_dropped():
    layout = Layout(caption_field="x", unknown_languages="drop")
    assert layout.read({"json": b'{"x": {"image_alt": "a", "de": "b"}}'}).captions == {"de": ["b"]}
    assert Layout(unknown_languages="drop").read({"json": b'{"captions": {"?": "a", "de": "b"}}'}).captions == {"de": ["b"]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"caption_member": "txt"}, "set language (such as en) or language_field"),
        ({"caption_member": "txt", "caption_field": "x", "language": "en"}, "exclude each other"),
        ({"language": "en"}, "need caption_member or caption_field"),
        ({"caption_field": "x", "language": "english"}, "'english' is not a language tag"),
        ({"unknown_languages": "ignore"}, "unknown_languages"),
    ],
)
def test_settings_that_make_no_sense(values, message):
    with pytest.raises(UserError) as fault:
        from_mapping(Layout, values, "here.yaml")
    assert message in str(fault.value)


class CountingStorage(Storage):
    """Notes which files are opened."""

    def __init__(self):
        super().__init__()
        self.opened: list[str] = []

    def open(self, uri):
        self.opened.append(uri.rpartition("/")[2])
        return super().open(uri)


@pytest.mark.parametrize(
    ("layout", "told"),
    [
        (
            Layout(),
            [
                '"captions"',
                "4 × jpg + json + txt",
                "json fields: caption, url",
                "caption_member: txt or data.layout.caption_field: caption",
            ],
        ),
        (Layout(caption_member="text", language="en"), ["a .text member (data.layout.caption_member)", "caption_member: txt"]),
        (Layout(caption_field="TEXT", language="en"), ["field 'TEXT'", "json fields: caption, url", "caption_field: caption"]),
        (Layout(caption_field="caption"), ["set data.layout.language"]),
        (Layout(caption_field="caption", language_field="lang"), ["field 'lang' (data.layout.language_field) is missing"]),
    ],
    ids=str,
)
def test_what_matches_nothing_fails_in_the_first_shard(tmp_path, layout, told):
    img2dataset(tmp_path)
    storage = CountingStorage()
    with pytest.raises(UserError) as fault:
        load_or_build(storage, str(tmp_path), print, layout=layout)
    assert [part for part in [*told, "shard 00000.tar"] if part not in str(fault.value)] == []
    assert storage.opened == ["00000.tar"]


def test_a_first_shard_without_samples_decides_nothing(tmp_path):
    img2dataset(tmp_path)
    (tmp_path / "00002.tar").write_bytes((tmp_path / "00000.tar").read_bytes())
    (tmp_path / "00000.tar").write_bytes(tar([]))
    with pytest.raises(UserError, match=r"first shard 00001\.tar"):
        Manifest.build(Storage(), str(tmp_path))
    assert len(Manifest.build(Storage(), str(tmp_path), layout=Layout(caption_member="txt", language="en"))) == 8


def test_another_layout_means_to_index_again(tmp_path):
    img2dataset(tmp_path)
    lines: list[str] = []
    first = Layout(caption_member="txt", language="en")
    assert load_or_build(Storage(), str(tmp_path), lines.append, layout=first).layout == first
    assert Manifest.load(Storage(), str(tmp_path)).layout == first
    for same in (first, None):
        before = len(lines)
        assert load_or_build(Storage(), str(tmp_path), lines.append, layout=same).layout == first
        assert len(lines) == before
    other = Layout(caption_field="caption", language="en")
    assert load_or_build(Storage(), str(tmp_path), lines.append, layout=other).layout == other
    assert any("indexed with other settings of data.layout" in line for line in lines)
    assert Manifest.load(Storage(), str(tmp_path)).layout == other
    assert (tmp_path / NAME).exists()


def test_texts_without_a_caption_anywhere(tmp_path):
    members = [(f"{n}.json", json.dumps({"texts": {"de": [f"Satz {n}", "und noch einer"]}}).encode()) for n in range(3)]
    (tmp_path / "0.tar").write_bytes(tar(members))
    manifest = Manifest.build(Storage(), str(tmp_path))
    assert (len(manifest), manifest.faults(), manifest.languages()) == (3, [], {"de": 3})
    sample = read_samples(Storage(), manifest, [2])[0]
    assert manifest.layout.read(sample.members).extra["texts"]["de"][0] == "Satz 2"


def test_our_own_form_needs_no_settings():
    assert Layout().read({"png": b"", "json": text(3)}).captions == {"de": ["Bild 3"], "en": ["picture 3", "image 3"]}
    assert Layout().read({"png": b""}).captions == {}
