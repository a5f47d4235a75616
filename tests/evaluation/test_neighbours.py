"""Nearest neighbours against a plain loop, and what Table 2 and Figure 2 show of them."""

import numpy as np
import pytest

from raysys.errors import RunFailed
from raysys.evaluation.concreteness import AbstractQuery
from raysys.evaluation.grounded_page.examples import Neighbour
from raysys.evaluation.neighbours import choose_captions, nearest, nearest_sentences, picture_neighbours

DIRECTIONS = {"east": (1, 0), "north": (0, 1), "west": (-1, 0), "north-east": (1, 1), "mostly east": (5, 1), "nowhere": (0, 0)}


def encode(texts):
    return np.array([DIRECTIONS[text] for text in texts], np.float32)


@pytest.mark.parametrize("k", [1, 4, 50])
def test_nearest_equals_a_plain_loop(k):
    generator = np.random.default_rng(0)
    queries, candidates = generator.normal(size=(7, 5)), generator.normal(size=(20, 5))
    rows, cosines = nearest(queries, candidates, k)
    assert rows.shape == cosines.shape == (7, min(k, 20))
    for query, its_rows, its_cosines in zip(queries, rows, cosines, strict=True):
        by_hand = [query @ c / np.linalg.norm(query) / np.linalg.norm(c) for c in candidates]
        assert its_rows.tolist() == sorted(range(20), key=lambda row: -by_hand[row])[:k]
        np.testing.assert_allclose(its_cosines, np.array(by_hand)[its_rows], atol=1e-6)


def test_equally_near_ones_come_in_order_and_blocks_change_nothing(monkeypatch):
    candidates = np.array([[1, 1], [2, 2], [0, 1], [1, 1]])
    queries = np.array([[1, 1], [1, 0], [0, 3]])
    rows = nearest(queries, candidates, 3)[0]
    assert rows.tolist() == [[0, 1, 3], [0, 1, 3], [2, 0, 1]]
    monkeypatch.setattr("raysys.evaluation.neighbours._CHUNK_BYTES", 1)
    np.testing.assert_array_equal(nearest(queries, candidates, 3)[0], rows)
    with pytest.raises(RunFailed, match="candidates: 1 of 1"):
        nearest(queries, np.array([[np.nan, 1]]), 1)


def test_sentences_nearest_to_queries():
    queries = [AbstractQuery("east", "east", 2.5), AbstractQuery("north")]
    got = nearest_sentences(encode, queries, ["west", "east", "mostly east", "north-east", "west", "east"], k=2)
    assert [(one.query, one.word, one.concreteness) for one in got] == [("east", "east", 2.5), ("north", "", None)]
    assert [neighbour.text for neighbour in got[0].found] == ["mostly east", "north-east"]
    assert [neighbour.text for neighbour in got[1].found] == ["north-east", "mostly east"]
    assert got[0].found[1].similarity == pytest.approx(np.sqrt(0.5))
    assert nearest_sentences(encode, queries, ["east"], k=2)[0].query == "north"
    assert nearest_sentences(encode, [], ["east"]) == nearest_sentences(encode, queries, []) == []


CAPTIONS = ["east", "mostly east", "north-east", "north", "west", "north-east"]
PICTURES = [4, 4, 2, 2, 0, 0]
"""Picture 4 is near 2; rows 1 and 3 have no captions and lie nearer."""
IMAGES = np.array([[-1, 0], [1, 0.01], [1, 1], [1, 0], [1, 0]])


def test_a_picture_its_nearest_picture_and_the_neighbours_of_its_caption():
    got = picture_neighbours(encode(CAPTIONS), CAPTIONS, PICTURES, IMAGES, 0, k=4, show=lambda picture: f"{picture}".encode())
    assert (got.caption, got.picture, got.nearest, got.nearest_caption) == ("east", b"4", b"2", "north-east")
    assert [(one.text, one.of) for one in got.found] == [("mostly east", "Q"), ("north-east", "N"), ("north", "N"), ("west", "")]
    assert got.found[2] == Neighbour("north", 0.0, "N")


def test_a_sentence_of_both_pictures_is_marked_q():
    got = picture_neighbours(encode(CAPTIONS), CAPTIONS, [0, 1, 0, 1, 1, 1], IMAGES[:2], 0)
    assert {one.text: one.of for one in got.found} == {"mostly east": "N", "north-east": "Q", "north": "N", "west": "N"}


def test_one_picture_has_no_nearest():
    got = picture_neighbours(encode(CAPTIONS), CAPTIONS, [0] * 6, IMAGES, 1, k=1)
    assert (got.nearest, got.nearest_caption) == (b"", "")
    assert [(one.text, one.of) for one in got.found] == [("east", "Q")]


def test_captions_are_chosen_by_seed_of_pictures_with_several_first():
    image_of = np.array([0, 0, 1, 2, 2, 3, 4, 4, 4])
    chosen = choose_captions(image_of, 5, seed=1)
    assert sorted(image_of[chosen].tolist()) == [0, 1, 2, 3, 4]
    assert set(image_of[chosen[:3]].tolist()) == {0, 2, 4}
    assert choose_captions(image_of, 2, seed=1) == chosen[:2]
    assert len({tuple(choose_captions(image_of, 2, seed=seed)) for seed in range(20)}) > 3
    assert len(choose_captions(image_of, 50)) == 5
    assert choose_captions([], 3) == []
