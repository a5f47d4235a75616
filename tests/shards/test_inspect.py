"""Counts and the contact sheet."""

import html.parser
import json
import re

import pytest

from raysys.shards.inspect import choose, contact_sheet, megabytes, summarise
from raysys.shards.manifest import Manifest
from raysys.storage import Storage
from tests.shards.tars import picture, tar


def member(**captions) -> bytes:
    return json.dumps({"captions": captions, "alignment": "weak", "group": "<g>"}).encode()


@pytest.fixture
def manifest(tmp_path):
    """Six samples: png, jpeg, the same png again, a broken picture, a large picture, text only."""
    members = [
        ("a.json", member(de=["Hund & <Katze>"], ar=["كلب"])),
        ("a.png", picture(1)),
        ("b.json", member(he=["כלב"], de=["ein Hund"])),
        ("b.jpg", picture(2, kind="JPEG")),
        ("c.json", member(de=["wieder"])),
        ("c.png", picture(1)),
        ("d.json", member(de=["kaputt"])),
        ("d.png", b"broken"),
        ("e.json", member(ja=[f"大きい{n}" for n in range(20)])),
        ("e.tif", picture(4, (600, 300), "TIFF")),
        ("f.json", member(de=["nur Text"])),
    ]
    (tmp_path / "0.tar").write_bytes(tar(members))
    return Manifest.build(Storage(), str(tmp_path))


def test_summary(manifest):
    summary = summarise(manifest)
    assert summary.languages == {"de": (5, 5), "ar": (1, 1), "he": (1, 1), "ja": (1, 20)}
    assert summary.alignment == {"weak": 6}
    assert summary.formats == {"PNG": 2, "JPEG": 1, "unreadable": 1, "TIFF": 1, "none": 1}
    assert summary.sizes == (16, 16, 600)
    assert summary.pictures == 4
    assert summary.faults == {"image": 1}
    lines = "\n".join(summary.lines())
    assert re.search(r"German +de +5 +5", lines)
    assert re.search(r"Japanese +ja +1 +20", lines)
    assert "1 samples have faults" in lines


def test_every_language_is_chosen_in_turn(manifest):
    assert choose(manifest, 100) == [0, 1, 2, 3, 4, 5]
    four = choose(manifest, 4)
    assert len(four) == 4
    assert {0, 1, 4} <= set(four)  # the only samples in Arabic, Hebrew and Japanese
    assert choose(manifest, 4) == four


class _Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.images: list[str] = []
        self.captions: dict[str, str] = {}
        self.links: list[str] = []
        self._lang: str | None = None

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "img":
            self.images.append(values["src"])
        self.links += [values[name] for name in ("href", "src") if name in values and not values[name].startswith("data:")]
        self._lang = values.get("lang") if tag == "span" and values.get("dir") == "auto" else None

    def handle_data(self, data):
        if self._lang:
            self.captions[data] = self._lang


def test_the_sheet_is_one_file_with_pictures_and_captions(manifest):
    page = contact_sheet(Storage(), [manifest], 100)
    tags = _Tags()
    tags.feed(page)
    assert tags.links == []
    kinds = [source.partition(";")[0] for source in tags.images]
    assert kinds == ["data:image/png", "data:image/jpeg", "data:image/png", "data:image/webp"]
    assert tags.captions["Hund & <Katze>"] == "de"
    assert tags.captions["כלב"] == "he"
    assert tags.captions["大きい19"] == "ja"
    assert "<g>" not in page
    assert "no image" in page
    assert "cannot identify image" in page
    assert "8 more captions" in page


def test_megabytes():
    assert (megabytes(1_234_567), megabytes(12_345_678_901)) == ("1.2 MB", "12.35 GB")
