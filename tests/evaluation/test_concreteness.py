"""Mean concreteness and gains by hand, ratings as files, and which sentences are taken as abstract."""

import math

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.evaluation.concreteness import MeanRating, abstract_queries, mean_rating, of_sets, read_ratings
from raysys.evaluation.rated_pairs import Pairs, Sets

RATINGS = {"a": 1.46, "dog": 4.85, "love": 2.07, "tragedy": 2.07, "horrified": 2.56, "this": 2.14, "is": 1.59, "man": 4.79}


def test_mean_counts_every_rated_word_as_often_as_it_occurs():
    got = mean_rating(["A dog, a DOG!", "this xyzzy"], RATINGS)
    assert got == MeanRating(pytest.approx((2 * 1.46 + 2 * 4.85 + 2.14) / 5), 5, 6)
    nothing = mean_rating(["xyzzy 7"], RATINGS)
    assert (nothing.rated, nothing.words) == (0, 1)
    assert math.isnan(nothing.mean)


def test_concreteness_of_sets():
    pairs = {
        "STS_captions": Pairs(("a dog", "a man"), ("a dog", "dog"), np.array([5.0, 1])),
        "STS_forum": Pairs(("this is love", "is"), ("this", "love"), np.array([5.0, 1])),
        "STS_mine": Pairs(("xyzzy", "?"), ("7", ""), np.array([5.0, 1])),
    }
    got = of_sets(Sets(pairs, {"STS_both": ("STS_captions", "STS_forum")}, {}), RATINGS)
    captions, forum = (3 * 1.46 + 3 * 4.85 + 4.79) / 7, (2 * 2.14 + 2 * 1.59 + 2 * 2.07) / 6
    assert {name: one.mean for name, one in got.items()} == {
        "STS_captions": pytest.approx(captions),
        "STS_forum": pytest.approx(forum),
        "STS_both": pytest.approx((7 * captions + 6 * forum) / 13),
    }


def write(folder, text: str, language: str = "en") -> str:
    (folder / f"{language}.tsv").write_text(text, encoding="utf-8")
    return str(folder)


def test_ratings_are_read(tmp_path):
    assert read_ratings(write(tmp_path, "Dog\t4.85\nbaseball bat\t5\nlove\t2.07\n")) == {"dog": 4.85, "love": 2.07}
    assert read_ratings(write(tmp_path, "Hund\t5\r\n", "de"), "de") == {"hund": 5.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dog\t4.85\ncat 4\n", r"en\.tsv, line 2: a word, a tab and a rating from 1 to 5 were expected, found 'cat 4'"),
        ("dog\t5.2\n", r"line 1"),
        ("dog\tnan\n", r"line 1"),
        ("ice cream\t5\n", r"not one rated word"),
    ],
)
def test_faults_name_file_and_line(tmp_path, text, said):
    with pytest.raises(UserError, match=said):
        read_ratings(write(tmp_path, text))


def test_no_ratings_says_how_to_get_them(tmp_path):
    with pytest.raises(UserError, match=r"no ratings of concreteness in fi: .*fi\.tsv is not there; `python jobs/prepare\.py concreteness"):
        read_ratings(str(tmp_path), "fi")
    (tmp_path / "en.tsv").write_bytes(b"caf\xe9\t4\n")
    with pytest.raises(UserError, match="not UTF-8"):
        read_ratings(str(tmp_path))


SENTENCES = [
    "this is a tragedy",
    "this is love",
    "Two people are in love .",
    "A man is horrified !",
    "this dog is this dog",
    "love",
    "this is a very long sentence about love and a dog",
    "this dog",
    "this man",
]


def test_queries_hold_abstract_words_each_another():
    got = abstract_queries(SENTENCES, RATINGS, common=0.5)
    assert {query.word: query.rating for query in got} == {"love": 2.07, "tragedy": 2.07, "horrified": 2.56}
    assert {query.text for query in got} < set(SENTENCES[:4])
    assert abstract_queries(SENTENCES, RATINGS, common=0.5) == got
    assert len({tuple(query.text for query in abstract_queries(SENTENCES, RATINGS, seed=seed, common=0.5)) for seed in range(20)}) > 1
    assert len(abstract_queries(SENTENCES, RATINGS, 2, common=0.5)) == 2


def test_frequent_words_and_ratings_outside_do_not_count():
    assert "this" in {query.word for query in abstract_queries(SENTENCES, RATINGS, common=1)}
    assert {query.word for query in abstract_queries(SENTENCES, RATINGS)} == {"tragedy", "horrified"}  # each in one sentence
    assert {query.word for query in abstract_queries(SENTENCES, RATINGS, between=(4.5, 5), common=0.5)} == {"dog", "man"}
    assert abstract_queries([], RATINGS) == []


def test_a_sentence_with_two_abstract_words_is_asked_once():
    assert len(abstract_queries(["his love is a tragedy"], RATINGS, common=1)) == 1
