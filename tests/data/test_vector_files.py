"""Files of word vectors in every form, written by gensim and by hand, whole and broken."""

import gzip
import struct

import numpy as np
import pytest

from raysys.data.vector_files import read_vectors
from raysys.errors import UserError
from raysys.storage import Storage

WORDS = ["the", "Katze", "日本", "New_York", "naïve", "8"]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 7)).astype(np.float32)


def text(words=WORDS, vectors=VECTORS) -> bytes:
    return "".join(f"{word} {' '.join(map(repr, vector.tolist()))}\n" for word, vector in zip(words, vectors, strict=True)).encode()


def binary(newlines: bool = True) -> bytes:
    end = b"\n" if newlines else b""
    return b"".join(word.encode() + b" " + struct.pack("<7f", *vector) + end for word, vector in zip(WORDS, VECTORS.tolist(), strict=True))


HEADER = b"6 7\n"
FORMS = {
    "glove.txt": text(),
    "word2vec.txt": HEADER + text(),
    "windows.txt": (HEADER + text()).replace(b"\n", b"\r\n"),
    "trailing.vec": (HEADER + text()).replace(b"\n", b" \n").replace(b"6 7 \n", HEADER),
    "word2vec.bin": HEADER + binary(),
    "compact.bin": HEADER + binary(newlines=False),
}
FORMS |= {f"{name}.gz": gzip.compress(data) for name, data in FORMS.items()}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read(tmp_path, name):
    (tmp_path / name).write_bytes(FORMS[name])
    found = read_vectors(str(tmp_path / name), Storage())
    assert found.words == WORDS
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, VECTORS)
    first = read_vectors(str(tmp_path / name), Storage(), most=2)
    assert first.words == WORDS[:2]


@pytest.mark.parametrize("is_binary", [False, True])
def test_what_gensim_writes_is_read(tmp_path, is_binary):
    gensim = pytest.importorskip("gensim.models")
    vectors = gensim.KeyedVectors(7)
    vectors.add_vectors(WORDS, VECTORS)
    vectors.save_word2vec_format(str(tmp_path / "vectors"), binary=is_binary)
    found = read_vectors(str(tmp_path / "vectors"), Storage())
    assert found.words == WORDS
    np.testing.assert_allclose(found.vectors, VECTORS, rtol=1e-6)


def test_binary_vectors_that_hold_line_ends_and_spaces(tmp_path):
    """Their bytes are what numbers are, and may be taken for text."""
    numbers = np.frombuffer(b"\n\n\n\n    0 1 \n 2 ", dtype="<f4")
    (tmp_path / "odd.bin").write_bytes(b"2 4\n" + b"".join(word + b" " + numbers.tobytes() + b"\n" for word in (b"a", b"b")))
    found = read_vectors(str(tmp_path / "odd.bin"), Storage())
    assert found.words == ["a", "b"]
    np.testing.assert_array_equal(found.vectors, [numbers, numbers])


def test_words_with_spaces_and_words_twice(tmp_path):
    (tmp_path / "glove.txt").write_bytes(text([*WORDS[:2], ". . .", *WORDS[:3]]))
    found = read_vectors(str(tmp_path / "glove.txt"), Storage())
    assert found.words == [*WORDS[:2], ". . .", WORDS[2]]
    np.testing.assert_array_equal(found.vectors, VECTORS[[0, 1, 2, 5]])


def test_many_words_over_many_blocks(tmp_path):
    vectors = np.random.default_rng(1).normal(size=(3000, 120)).astype("<f4")
    data = b"3000 120\n" + b"".join(f"w{row} ".encode() + vectors[row].tobytes() + b"\n" for row in range(3000))
    (tmp_path / "large.bin").write_bytes(data)
    found = read_vectors(str(tmp_path / "large.bin"), Storage())
    assert found.words == [f"w{row}" for row in range(3000)]
    np.testing.assert_array_equal(found.vectors, vectors)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "holds no word vectors"),
        (b"0 7\n", "holds no word vectors"),
        (HEADER + text()[:-200], "line 6: not a word and its 7 numbers"),
        (HEADER + text(WORDS[:4], VECTORS[:4]), "ends after 4 of 6 words"),
        (HEADER + binary()[:-20], "ends within word 6 of 6"),
        (b"a 1 2\nb 1 2 3 4\nc 1\n", "line 3: not a word and its 2 numbers"),
        (b"a 1 2\nb 1 x\n", "line 2"),
        (b"just some prose\n", "line 1"),
        (b"a 1 nan\n", "'a' holds a number that is not finite"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "line 1"),
    ],
)
def test_what_is_broken_is_named(tmp_path, data, message):
    (tmp_path / "broken").write_bytes(data)
    with pytest.raises(UserError, match=message):
        read_vectors(str(tmp_path / "broken"), Storage())


def test_a_gzip_file_that_is_not_whole_and_one_that_is_none(tmp_path):
    for name, data in {"cut.gz": gzip.compress(HEADER + text())[:-30], "none.gz": b"no gzip"}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match="not a whole gzip file"):
            read_vectors(str(tmp_path / name), Storage())
    with pytest.raises(UserError, match="missing"):
        read_vectors(str(tmp_path / "missing"), Storage())
