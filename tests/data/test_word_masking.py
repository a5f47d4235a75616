"""Masking whole words: equal to the rule in loops; the same for any padding and any order of rows; words as tokenizers mark them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from raysys.data.masking import IGNORED, WordPieces, mask_words
from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer

PAD, BOS, LAN, MASK, SIZE = 0, 1, 2, 3, 40
ORDINARY = np.arange(SIZE) >= 4
BEGINS = np.arange(SIZE) % 3 == 0
PIECES = WordPieces(BEGINS, ORDINARY, MASK)
quick = settings(max_examples=40, deadline=None)


def texts(seed: int, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """[BOS], up to length − 2 pieces, [LAN], padding; and draws."""
    random = np.random.default_rng(seed)
    ids = np.full((rows, length), PAD, dtype=np.int64)
    for row in ids:
        pieces = random.integers(0, length - 1)
        row[: pieces + 2] = [BOS, *random.integers(4, SIZE, pieces), LAN]
    return ids, random.random((rows, length, 3))


def by_loops(ids, draws):
    read, labels = ids.copy(), np.full_like(ids, IGNORED)
    ordinary = [piece for piece in range(SIZE) if ORDINARY[piece]]
    for i, row in enumerate(ids):
        words: list[list[int]] = []
        for j, piece in enumerate(row):
            if ORDINARY[piece]:
                words.append([j]) if BEGINS[piece] or not ORDINARY[row[j - 1]] else words[-1].append(j)
        predicted = [word for word in words if draws[i, word[0], 0] < 0.15]
        if words and not predicted:
            predicted = [min(words, key=lambda word: draws[i, word[0], 0])]
        for word in predicted:
            for j in word:
                labels[i, j] = row[j]
                if draws[i, word[0], 1] < 0.8:
                    read[i, j] = MASK
                elif draws[i, word[0], 1] < 0.9:
                    read[i, j] = ordinary[int(draws[i, j, 2] * len(ordinary))]
    return read, labels


@quick
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(2, 14))
def test_equals_the_rule(seed, rows, length):
    ids, draws = texts(seed, rows, length)
    before = ids.copy()
    read, labels = mask_words(ids, PIECES, draws)
    expected_read, expected_labels = by_loops(ids, draws)
    np.testing.assert_array_equal(read, expected_read)
    np.testing.assert_array_equal(labels, expected_labels)
    assert read.dtype == labels.dtype == np.int64
    assert (ids == before).all(), "the argument was changed"
    ordinary = ORDINARY[ids]
    assert (read[~ordinary] == ids[~ordinary]).all()
    assert ((labels != IGNORED).any(axis=1) == ordinary.any(axis=1)).all()


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 5))
def test_masks_depend_on_neither_workers_nor_padding(seed, workers, padding):
    ids, draws = texts(seed, 7, 9)
    whole = mask_words(ids, PIECES, draws)
    draws = np.concatenate([draws, np.random.default_rng(seed + 1).random((7, padding, 3))], axis=1)
    padded = np.pad(ids, ((0, 0), (0, padding)), constant_values=PAD)
    for rows in np.array_split(np.arange(7), workers):
        for expected, found in zip(whole, mask_words(padded[rows], PIECES, draws[rows]), strict=True):
            np.testing.assert_array_equal(found[:, :9], expected[rows])
            assert np.isin(found[:, 9:], (PAD, IGNORED)).all()


def test_shares():
    ids = np.full((400, 102), BOS)
    ids[:, 1:-1] = np.random.default_rng(0).integers(4, SIZE, (400, 100))
    read, labels = mask_words(ids, PIECES, np.random.default_rng(1).random((400, 102, 3)))
    predicted = labels != IGNORED
    assert np.mean(predicted[:, 1:-1]) == pytest.approx(0.15, abs=0.01)
    kept = predicted & (read == ids)
    assert np.mean(read[predicted] == MASK) == pytest.approx(0.8, abs=0.02)
    assert np.mean(kept[predicted]) == pytest.approx(0.1 + 0.1 / 36, abs=0.015)


@pytest.mark.parametrize("shape", [(2, 5), (2, 4, 3), (3, 5, 3), (2, 5, 2)])
def test_draws_of_the_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"masking 2 texts of 5 tokens needs draws \[2, >=5, 3\]"):
        mask_words(np.zeros((2, 5), dtype=np.int64), PIECES, np.zeros(shape))


def test_special_tokens_alone():
    with pytest.raises(ValueError, match="the vocabulary of 40 tokens holds special tokens alone"):
        mask_words(np.zeros((1, 2), dtype=np.int64), WordPieces(BEGINS, ~np.ones(SIZE, bool), MASK), np.zeros((1, 2, 3)))
    read, labels = mask_words(np.zeros((3, 0), dtype=np.int64), PIECES, np.zeros((3, 0, 3)))
    assert read.shape == labels.shape == (3, 0)


SENTENCES = ["the redder circles", "a bigger shape, wide", "größere Bäume", "写真の番号は東京", "ภาพวงกลม"]


def byte_level() -> Tokenizer:
    """Trained so that words fall into several pieces, some characters of Japanese into several too, and no piece has parts of two."""
    texts = ["the red circle", "shape of a thing", " ".join("写真の番")]
    return train_multilingual_tokenizer(texts * 3, ["en", "ja"], 310, 20).backend_tokenizer


def metaspace() -> Tokenizer:
    """As SentencePiece marks words, with every character for a piece, and some longer ones."""
    core = Tokenizer(models.Unigram())
    core.pre_tokenizer, core.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=["<s>", "<unk>"], unk_token="<unk>", show_progress=False)
    core.train_from_iterator(SENTENCES * 3, trainer)
    return core


@pytest.mark.parametrize("make", [byte_level, metaspace])
def test_words_are_those_of_the_pre_tokenizer(make):
    core = make()
    pieces = WordPieces.of(core, [1], 0)
    assert not pieces.ordinary[0], "special by the tokenizer's own word"
    assert not pieces.ordinary[1]
    for sentence in SENTENCES[:3]:
        encoding = core.encode(sentence, add_special_tokens=False)
        words = np.array(encoding.word_ids)
        begins = pieces.begins[encoding.ids]
        assert begins[1:].tolist() == (np.diff(words) != 0).tolist()
        assert len(words) > len(set(words.tolist())), "some words are of several pieces"


@pytest.mark.parametrize(("make", "sentences"), [(byte_level, SENTENCES[3:4]), (metaspace, SENTENCES[3:])])
def test_in_scripts_without_spaces_every_piece_is_a_word(make, sentences):
    core = make()
    pieces = WordPieces.of(core, [], 0)
    for sentence in sentences:
        encoding = core.encode(sentence, add_special_tokens=False)
        starts = np.array([start for start, _ in encoding.offsets])
        # Pieces of one character share its place, and are one word; a space alone is none.
        text = pieces.ordinary[encoding.ids]
        assert pieces.begins[encoding.ids][text].tolist() == (np.diff(starts[text], prepend=-1) > 0).tolist()
        assert text.sum() > 3
