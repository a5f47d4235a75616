"""Samples that two languages share."""

import json

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.shards import language_pairs
from raysys.shards.language_pairs import choose_languages, count_pairs
from raysys.shards.manifest import Manifest
from raysys.storage import Storage
from tests.shards.tars import picture, tar

TEXTS = [("de", "en", "ja"), ("de", "en"), ("en", "de"), ("ja",), ("en", "fr")]


@pytest.fixture
def manifest(tmp_path):
    """Five samples that can be used, the last without an image, and one that cannot, in two shards."""
    members: list[tuple[str, bytes]] = []
    for number, languages in enumerate(TEXTS):
        captions = {tag: [f"{tag} {number}"] * (number + 1) for tag in languages}
        members.append((f"s{number}.json", json.dumps({"captions": captions}).encode()))
        if number != 4:
            members.append((f"s{number}.png", picture(number)))
    (tmp_path / "0.tar").write_bytes(tar(members[:4]))
    bad = [("t.json", json.dumps({"captions": {"de": ["x"], "fr": ["y"]}}).encode()), ("t.png", b"broken")]
    (tmp_path / "1.tar").write_bytes(tar(members[4:] + bad))
    return Manifest.build(Storage(), str(tmp_path))


@pytest.mark.parametrize("at_once", [1, 4, 1 << 16])
def test_counts(manifest, monkeypatch, at_once):
    monkeypatch.setattr(language_pairs, "_AT_ONCE", at_once)
    counted = count_pairs(manifest, ("de", "en", "fr", "ja", "ru"))
    assert (counted.samples, counted.images) == (5, 4)
    assert counted.counts.tolist() == [[3, 3, 0, 1, 0], [3, 4, 1, 1, 0], [0, 1, 1, 0, 0], [1, 1, 0, 2, 0], [0, 0, 0, 0, 0]]
    assert counted.counts.dtype == np.int64


def test_table_and_record(manifest):
    counted = count_pairs(manifest, choose_languages(["de_DE", "zh_CN", "en", "de"]))
    assert counted.languages == ("de", "zh-Hans", "en")
    assert counted.lines()[1:] == [
        "                de  zh-Hans       en",
        "  de             3        0        3",
        "  zh-Hans                 0        0",
        "  en                               4",
    ]
    assert "5 samples, 4 with an image" in counted.lines()[0]
    assert json.loads(json.dumps(counted.record())) == {
        "folder": manifest.folder,
        "samples": 5,
        "images": 4,
        "languages": ["de", "zh-Hans", "en"],
        "counts": [[3, 0, 3], [0, 0, 0], [3, 0, 4]],
    }


def test_all_languages_without_a_choice(manifest):
    counted = count_pairs(manifest)
    assert counted.languages == tuple(manifest.languages())
    assert (counted.counts == counted.counts.T).all()
    assert dict(zip(counted.languages, np.diag(counted.counts).tolist(), strict=True)) == {"en": 4, "de": 3, "ja": 2, "fr": 1}


def test_texts_without_an_image_count_and_none_at_all_is_said(tmp_path):
    (tmp_path / "0.tar").write_bytes(tar([("a.json", json.dumps({"texts": {"de": ["x"], "en": ["y"]}}).encode())]))
    counted = count_pairs(Manifest.build(Storage(), str(tmp_path)))
    assert (counted.images, counted.counts.tolist()) == (0, [[1, 1], [1, 1]])
    (tmp_path / "0.tar").write_bytes(tar([("a.json", b'{"texts": {}}'), ("a.rois.npz", b"")]))
    counted = count_pairs(Manifest.build(Storage(), str(tmp_path)))
    assert counted.lines() == [f"{tmp_path}: 1 samples, none with texts"]
    assert counted.counts.shape == (0, 0)


def test_what_is_no_language_is_named():
    with pytest.raises(UserError, match="--languages: 'german language' is not a language tag"):
        choose_languages(["de", "german language"])
