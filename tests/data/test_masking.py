import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.data.masking import IGNORED, mask_tokens

SPECIAL, PAD, MASK, VOCABULARY = (0, 1, 2, 3, 4), 0, 4, 50
quick = settings(max_examples=40, deadline=None)


def captions(seed: int, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids with start, end and padding around 0 to length − 2 words, and draws."""
    random = np.random.default_rng(seed)
    ids = np.full((rows, length), PAD, dtype=np.int64)
    for row in ids:
        words = random.integers(0, length - 1)
        row[: words + 2] = [2, *random.integers(5, VOCABULARY, words), 3]
    return ids, random.random((rows, length, 3))


def by_loops(ids, draws):
    read, labels = ids.copy(), np.full_like(ids, IGNORED)
    ordinary = [token for token in range(VOCABULARY) if token not in SPECIAL]
    for i, row in enumerate(ids):
        words = [j for j, token in enumerate(row) if token not in SPECIAL]
        predicted = [j for j in words if draws[i, j, 0] < 1 / 6]
        if words and not predicted:
            predicted = [min(words, key=lambda j: draws[i, j, 0])]
        for j in predicted:
            labels[i, j] = row[j]
            if draws[i, j, 1] < 0.8:
                read[i, j] = MASK
            elif draws[i, j, 1] < 0.9:
                read[i, j] = ordinary[int(draws[i, j, 2] * len(ordinary))]
    return read, labels


@quick
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(2, 12))
def test_equals_the_rule(seed, rows, length):
    ids, draws = captions(seed, rows, length)
    before = ids.copy()
    read, labels = mask_tokens(ids, SPECIAL, MASK, VOCABULARY, draws)
    expected_read, expected_labels = by_loops(ids, draws)
    np.testing.assert_array_equal(read, expected_read)
    np.testing.assert_array_equal(labels, expected_labels)
    assert read.dtype == labels.dtype == np.int64
    assert (ids == before).all(), "the argument was changed"
    words = ~np.isin(ids, SPECIAL)
    assert (labels[~words] == IGNORED).all()
    assert (read[~words] == ids[~words]).all()
    assert ((labels != IGNORED).any(axis=1) == words.any(axis=1)).all()


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 5))
def test_masks_depend_on_neither_workers_nor_padding(seed, workers, padding):
    ids, draws = captions(seed, 7, 9)
    draws = np.concatenate([draws, np.random.default_rng(seed + 1).random((7, padding, 3))], axis=1)
    whole = mask_tokens(ids, SPECIAL, MASK, VOCABULARY, draws)
    parts = []
    for rows in np.array_split(np.arange(7), workers):
        length = max((ids[rows] != PAD).sum(axis=1), default=0)
        part = mask_tokens(ids[rows][:, :length], SPECIAL, MASK, VOCABULARY, draws[rows])
        fills = (PAD, IGNORED)
        parts.append([np.pad(a, ((0, 0), (0, 9 - length)), constant_values=f) for a, f in zip(part, fills, strict=True)])
    for index in range(2):
        np.testing.assert_array_equal(np.concatenate([part[index] for part in parts]), whole[index])


def test_shares():
    random = np.random.default_rng(0)
    ids = random.integers(5, VOCABULARY, (4000, 40))
    read, labels = mask_tokens(ids, SPECIAL, MASK, VOCABULARY, random.random((4000, 40, 3)))
    predicted = labels != IGNORED
    assert predicted.mean() == pytest.approx(1 / 6, abs=0.003)
    masked = read[predicted] == MASK
    assert masked.mean() == pytest.approx(0.8, abs=0.01)
    assert (read[predicted] == ids[predicted]).mean() == pytest.approx(0.1 + 0.1 / 45, abs=0.01)
    replaced = read[predicted & (read != MASK) & (read != ids)]
    assert set(replaced) == set(range(5, VOCABULARY)), "random tokens are all ordinary ones and no special one"


def test_float32_draws_close_to_one_stay_in_the_vocabulary():
    draws = np.full((1, 1, 3), np.nextafter(np.float32(1), np.float32(0)), dtype=np.float32)
    draws[..., 1] = 0.85
    read, labels = mask_tokens(np.array([[7]]), SPECIAL, MASK, 30_000, draws)
    assert read.tolist() == [[29_999]]
    assert labels.tolist() == [[7]]


def test_refuses_what_has_no_meaning():
    ids = np.full((2, 4), 7)
    with pytest.raises(ValueError, match=r"needs draws \[2, >=4, 3\], not \[2, 3, 3\]"):
        mask_tokens(ids, SPECIAL, MASK, VOCABULARY, np.zeros((2, 3, 3)))
    with pytest.raises(ValueError, match="special tokens alone"):
        mask_tokens(ids, SPECIAL, MASK, 5, np.zeros((2, 4, 3)))


def test_ids_behind_the_vocabulary_are_never_predicted():
    ids = np.array([[2, 7, 8, 9, 30, 31, 3]] * 50)
    read, labels = mask_tokens(ids, [0, 1, 2, 3, 4], 4, 20, np.random.default_rng(0).random((50, 7, 3)))
    assert (labels[:, 4:6] == IGNORED).all()
    assert (read[:, 4:6] == ids[:, 4:6]).all()
    assert (labels[:, 1:4] != IGNORED).any(axis=1).all()
