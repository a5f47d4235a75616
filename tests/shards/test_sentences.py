"""Ordered sentences: how words are counted, and what a manifest tells of samples that hold them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysys.data.word_tokenizer import train_word_tokenizer
from raysys.shards.manifest import NAME, Manifest, load_or_build
from raysys.shards.sample import SampleError
from raysys.shards.sentences import MOST_WORDS, count_words, read_sentences
from raysys.storage import Storage
from tests.shards.tars import pairs, tar


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("", 0), (" \u200b\u00a0", 0), ("Mr. Weston, 5 ft.", 7), ("don't x_y", 6), ("1999 was 3.5", 5), ("naïve e\u0301tude", 2),
        ("so\u00adft", 1), ("हिन्दी में", 2), ("漢字abcかな", 5), ("สวัสดี", 4), ("½", 3), ("☀\ufe0f!", 2),
        ("„Was?“ – ja …", 9), ("x " * 40_000, MOST_WORDS),
    ],
)  # fmt: skip
def test_words(sentence, words):
    assert count_words(sentence) == words


@pytest.fixture(scope="module")
def word_tokenizer():
    return train_word_tokenizer(["a a"], 10, 10).backend_tokenizer


KNOWN = st.characters(exclude_categories=("Cn", "Cs"))
"""Characters that Python knows: of newer ones, the two regular expressions have tables of different age."""


@given(st.text(st.sampled_from("aZß1٣½ ._-'\u0301\u200d\u00adİ漢かกั☀\ufe0fمﬁქ\u0903\n\u2028"), max_size=12) | st.text(KNOWN, max_size=12))
def test_words_are_those_of_the_word_tokenizer(word_tokenizer, sentence):
    normal = word_tokenizer.normalizer.normalize_str(sentence)
    assert count_words(sentence) == len(word_tokenizer.pre_tokenizer.pre_tokenize_str(normal))


def test_sentences_are_cleaned_and_keep_their_places():
    found = read_sentences({"sentences": [" a\u2028 b", "\u200b", "c"], "language": "de_DE", "work": "x"})
    assert found == ("de", ["a b", "", "c"])
    with pytest.raises(SampleError, match=r"000\.tar: sample 'x', member \.json: its sentence 2 is null where text was expected"):
        read_sentences({"sentences": ["a", None], "language": "de"}, "000.tar: sample 'x'")


def book(number: int, **more) -> tuple[str, bytes]:
    return f"b{number}.json", json.dumps({"sentences": [f"Satz {number}.", "Noch einer"], "language": "de", **more}).encode()


def test_what_a_manifest_tells(tmp_path):
    captioned = ("c0.json", json.dumps({"captions": {"en": ["a", "b"]}, "sentences": [{"raw": "a"}], "language": 7}).encode())
    (tmp_path / "0.tar").write_bytes(tar([book(0), captioned, *pairs([1])]))
    manifest = Manifest.build(Storage(), str(tmp_path))
    assert manifest.faults() == []
    rows = manifest.table.select(["key", "languages", "captions", "sentences"]).to_pylist()
    assert [list(row.values()) for row in rows] == [
        ["b0", ["de"], [0], [3, 2]],
        ["c0", ["en"], [2], []],  # a free field beside captions may have any form
        ["s001", ["de", "en"], [1, 2], []],
    ]
    assert manifest.table.schema.field("sentences").type == pa.list_(pa.int16())
    assert (manifest.languages(), manifest.captions()) == ({"de": 2, "en": 2}, {"de": 1, "en": 4})
    manifest.save(Storage())
    assert Manifest.load(Storage(), str(tmp_path)).table.equals(manifest.table)


def test_manifests_of_the_format_before_are_made_anew(tmp_path):
    (tmp_path / "0.tar").write_bytes(tar([book(0), book(1)]))
    manifest = load_or_build(Storage(), str(tmp_path), lambda line: None)
    path = tmp_path / NAME
    table = pq.read_table(path)
    notes = json.loads(table.schema.metadata[b"raysys.shards"])
    before = table.drop_columns(["sentences"]).replace_schema_metadata({b"raysys.shards": json.dumps(notes | {"format": 2})})
    pq.write_table(before, path)
    lines: list[str] = []
    again = load_or_build(Storage(), str(tmp_path), lines.append)
    assert "is no manifest of this version" in lines[0]
    assert (again.fingerprint, again.table) == (manifest.fingerprint, manifest.table)
    assert Manifest.load(Storage(), str(tmp_path)).table.equals(again.table)
    assert np.concatenate(again.table["sentences"].to_pylist()).tolist() == [3, 2, 3, 2]
