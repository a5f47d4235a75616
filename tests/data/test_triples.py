"""Triples of neighbours: numbered as a plain loop over the documents numbers them, read whole, refused by name."""

import json
import pickle
import tempfile
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.data.bad import BadDataError, BadSamplePolicy
from raysys.data.triples import Triple, Triples
from raysys.errors import UserError
from raysys.shards.sample import Sample, SampleError
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import pairs, tar

MOST = 4


def document(number: int, words: Sequence[int]) -> list[str]:
    """Sentences of these many words, no two alike; one of 0 words shows nothing."""
    return [
        " ".join(["\u200b"] if count == 0 else [f"d{'abcdefghij'[number]}x" + "y" * i] + ["w"] * (count - 1))
        for i, count in enumerate(words)
    ]


def cut(sentences: Sequence[str], longest: int) -> list[Sequence[str]]:
    """Pieces of at most `longest` sentences whose last two begin the next."""
    return [sentences[start : start + longest] for start in range(0, max(len(sentences) - 2, 1), longest - 2)]


def write(folder: Path, documents: Sequence[Sequence[str]], longest: int = 256, shards: int = 2, language: str = "en") -> str:
    pieces = [piece for sentences in documents for piece in cut(sentences, longest)]
    samples = (
        Sample("train", f"{number:05}", None, metadata={"sentences": list(piece), "language": language})
        for number, piece in enumerate(pieces)
    )
    write_shards(samples, str(folder), shards, Storage())
    return str(folder)


def load(*folders: str, language: str = "en", max_words: int = MOST, policy: BadSamplePolicy | None = None) -> Triples:
    return Triples.load(folders, language, Storage(), lambda line: None, max_words, policy)


def plain_loop(documents: Sequence[Sequence[str]], max_words: int) -> list[tuple[str, ...]]:
    """What :class:`Triples` numbers, by looking at every sentence."""
    sizes = {sentence: 0 if sentence == "\u200b" else len(sentence.split()) for sentences in documents for sentence in sentences}
    return [
        tuple(sentences[i - 1 : i + 2])
        for sentences in documents
        for i in range(1, len(sentences) - 1)
        if all(1 <= sizes[sentence] <= max_words for sentence in sentences[i - 1 : i + 2])
    ]


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.lists(st.integers(0, MOST + 1), min_size=1, max_size=20), min_size=1, max_size=6),
    longest=st.integers(3, 7),
    shards=st.integers(1, 3),
)
def test_numbering_is_that_of_a_plain_loop(counts, longest, shards):
    documents = [document(number, words) for number, words in enumerate(counts)]
    expected = plain_loop(documents, MOST)
    with tempfile.TemporaryDirectory() as folder:
        folder = write(Path(folder), documents, longest, shards)
        if not expected:
            with pytest.raises(UserError, match="no ordered sentences to train on"):
                load(folder)
            return
        triples = load(folder)
        read = triples.try_read(np.arange(len(triples)))
        assert [tuple(triple)[:3] for triple in read] == expected
        assert len(triples) + triples.left_out == triples.total == sum(max(len(words) - 2, 0) for words in counts)
        assert triples.lengths.dtype == np.int16
        assert triples.lengths.tolist() == [len(this.split()) for _, this, _ in expected]
        assert list(triples.all_sentences()) == [sentence for sentences in documents for sentence in sentences if sentence != "\u200b"]


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_any_ids_in_any_order(two_books, data):
    triples, expected = two_books
    ids = data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=40))
    assert [tuple(triple)[:3] for triple in triples.try_read(np.array(ids, dtype=np.int64))] == [expected[i] for i in ids]


@pytest.fixture(scope="module")
def two_books(tmp_path_factory):
    """A German and two English data sets, and the triples of the latter."""
    folder = tmp_path_factory.mktemp("books")
    random = np.random.default_rng(0)
    books = [[document(number, random.integers(1, MOST + 2, size)) for number, size in enumerate((700, 3, 300, 1))] for _ in range(2)]
    folders = [write(folder / f"book{number}", book) for number, book in enumerate(books)]
    german = write(folder / "german", [[f"Satz {i}" for i in range(9)]], language="de-DE")
    triples = load(folders[0], german, folders[1])
    return triples, [triple for book in books for triple in plain_loop(book, MOST)]


def test_data_sets_follow_one_another_and_languages_do_not_mix(two_books):
    triples, expected = two_books
    assert [tuple(triple)[:3] for triple in triples.try_read(np.arange(len(triples)))] == expected
    assert triples.languages == ("en",)
    german = load(*(manifest.folder for manifest in triples.manifests), language="de")
    assert german.try_read(np.array([6]))[0][:3] == ("Satz 6", "Satz 7", "Satz 8")
    assert (len(german), german.total, german.left_out, german.languages) == (7, 7, 0, ("de",))
    last = triples.try_read(np.array([len(triples) - 1]))[0]
    assert isinstance(last, Triple)
    shard, key = triples.locate(len(triples) - 1)
    assert last.where.startswith(f"{shard}: sample {key!r}, sentence ")
    assert "/book1/" in shard
    with pytest.raises(IndexError):
        triples.try_read(np.array([len(triples)]))


def test_fingerprint_tells_what_the_numbering_depends_on(two_books, tmp_path):
    triples, _ = two_books
    folders = [manifest.folder for manifest in triples.manifests]
    assert load(*folders).fingerprint == triples.fingerprint
    others = [load(*folders, max_words=5), load(*folders, language="de"), load(*folders[::-1]), load(folders[0])]
    assert len({triples.fingerprint, *(other.fingerprint for other in others)}) == 5
    assert pickle.loads(pickle.dumps(triples)).fingerprint == triples.fingerprint


def test_sentences_are_taken_evenly(two_books):
    triples, _ = two_books
    some = list(triples.all_sentences(most=500))
    assert len(some) == 500
    whole = list(triples.all_sentences(chunk=1))
    assert len(whole) == 2 * 1004
    assert sum(a == b for a, b in zip(some, whole, strict=False)) < 500


def test_each_sample_is_read_once(two_books, monkeypatch):
    triples, _ = two_books
    reads = []
    read = Storage.read
    monkeypatch.setattr(Storage, "read", lambda self, uri, offset=0, size=None: reads.append(uri) or read(self, uri, offset, size))
    triples.try_read(np.tile(np.arange(200), 3))
    assert len(reads) <= 2


def test_a_changed_sample_is_an_error_in_the_place_of_its_triples(tmp_path):
    folder = write(tmp_path / "book", [[f"s{i} ." for i in range(400)]], shards=1)
    triples = load(folder, policy=BadSamplePolicy("skip", 1.0))
    path = tmp_path / "book" / "000000.tar"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"s300 .", b"S300 ."))
    read = triples.try_read(np.array([300, 10, 397]))
    assert [isinstance(one, SampleError) for one in read] == [True, False, True]
    bad = triples.describe_bad(300, read[0])
    assert (bad.shard, bad.key, bad.cause) == (str(path), "00001", "checksum")
    assert json.loads(triples.stored_members(bad)["json"])["sentences"][0] == "s254 ."
    assert triples.stored_members(bad._replace(shard="elsewhere/000000.tar")) == {}
    assert list(triples.all_sentences()) == [f"s{i} ." for i in range(256)]
    with pytest.raises(BadDataError, match=r"000000\.tar, sample '00001': it is not what was indexed"):
        list(load(folder_with(triples, tmp_path)).all_sentences())


def folder_with(triples: Triples, folder: Path) -> str:
    """The folder, with a manifest as before its shard was changed: of the same size, so that it is not indexed anew."""
    triples.manifests[0].save(Storage())
    return str(folder / "book")


BROKEN = [
    ({"sentences": "a b c", "language": "en"}, "'sentences' is text where a list of sentences was expected"),
    ({"sentences": ["a", 7, "b"], "language": "en"}, "its sentence 2 is a number where text was expected"),
    ({"sentences": ["a", "b", "c\ud800"], "language": "en"}, "its sentence 3 holds half a surrogate pair"),
    ({"sentences": ["a", "b", "c"]}, "'language', is null where text was expected"),
    ({"sentences": ["a", "b", "c"], "language": "English"}, "'English' is not a language tag"),
]


@pytest.mark.parametrize(("broken", "reason"), BROKEN)
def test_faulty_samples_are_refused_or_passed_over(tmp_path, broken, reason):
    sound = {"sentences": ["a", "b", "c"], "language": "en"}
    members = [("0.json", json.dumps(sound).encode()), ("1.json", json.dumps(broken).encode())]
    (tmp_path / "0.tar").write_bytes(tar(members))
    with pytest.raises(UserError, match=rf"0\.tar, sample '1', member \.json: .*{reason}.* set data\.on_bad_sample to skip"):
        load(str(tmp_path))
    with pytest.raises(BadDataError, match="1 of 2 samples are bad"):
        load(str(tmp_path), policy=BadSamplePolicy("skip"))
    triples = load(str(tmp_path), policy=BadSamplePolicy("skip", 0.5))
    assert (len(triples), [bad.cause for bad in triples.bad]) == (1, ["text"])


def test_where_there_is_nothing_it_is_said_why(tmp_path):
    short = write(tmp_path / "short", [["a", "b"]])
    long = write(tmp_path / "long", [["a", "b c d e f", "g"]])
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "0.tar").write_bytes(tar(pairs(range(3))))
    with pytest.raises(UserError, match=r"in .*short: there are no three neighbouring sentences in en; languages there: en; .*prepare\.py"):
        load(short)
    with pytest.raises(UserError, match=r"no three neighbouring sentences in fr; languages there: de, en"):
        load(str(tmp_path / "pictures"), short, language="fr")
    with pytest.raises(UserError, match=r"its 1 triples of neighbours all have a sentence of more than 4 words"):
        load(long)
    assert load(long, max_words=5).lengths.tolist() == [5]


def test_memory_is_a_few_bytes_a_sentence(tmp_path):
    sentences = [f"x{'y' * (i % 7)} y z ." for i in range(100_000)]
    folder = write(tmp_path / "book", [sentences], shards=4)
    load(folder)  # makes the manifest
    tracemalloc.start()
    triples = load(folder)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(triples) == len(sentences) - 2
    assert held < 8 * len(sentences)
