"""Texts without an image in a manifest: how many a sample has in each language."""

import json

import pytest

from raysys.shards.manifest import Manifest
from raysys.storage import Storage
from tests.shards.tars import tar


def manifest(tmp_path, *fields) -> Manifest:
    (tmp_path / "0.tar").write_bytes(tar((f"t{number}.json", json.dumps(own).encode()) for number, own in enumerate(fields)))
    return Manifest.build(Storage(), str(tmp_path))


@pytest.mark.parametrize(
    ("fields", "languages", "captions", "texts"),
    [
        ({"texts": {"de_DE": ["a", "b", " "], "en": "c"}}, ["de", "en"], [0, 0], [2, 1]),
        ({"texts": {"de": ["a"]}, "captions": {"fr": ["b", "c"], "en": ["d"]}}, ["fr", "en"], [2, 1], [0, 0]),
        ({"texts": {}, "image": "7"}, [], [], []),
        ({"texts": ["a", "b"]}, [], [], []),
        ({"sentences": ["a b"], "language": "de", "texts": {"en": ["c"]}}, ["de"], [0], [0]),
    ],
)
def test_texts_are_counted_where_there_are_no_captions(tmp_path, fields, languages, captions, texts):
    found = manifest(tmp_path, fields)
    assert [found.table[name][0].as_py() for name in ("languages", "captions", "texts")] == [languages, captions, texts]
    assert found.faults() == []
    found.save(Storage())
    assert Manifest.load(Storage(), str(tmp_path)).table.equals(found.table)


def test_texts_that_are_none_are_a_fault(tmp_path):
    found = manifest(tmp_path, {"texts": {"de": ["a"]}}, {"texts": {"de": [5]}}, {"texts": {"no language": ["a"]}})
    assert [(fault.key, fault.cause) for fault in found.faults()] == [("t1", "text"), ("t2", "text")]
    assert "a caption in 'de' is a number where text was expected" in found.faults()[0].reason
