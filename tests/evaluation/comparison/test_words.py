"""Examples of word translation on vectors whose neighbours are known."""

import numpy as np

from raysys.evaluation.comparison.data import FoundWord
from raysys.evaluation.comparison.words import word_examples
from raysys.evaluation.lexicon import GroundTruth, Vocabulary

VOCABULARIES = {"de": Vocabulary(("Hund", "Katze", "rot")), "en": Vocabulary(("dog", "cat", "red", "of")), "ru": Vocabulary(("кот", "пёс"))}
VECTORS = {"en": np.eye(4), "de": np.eye(4)[[0, 1, 2]], "ru": np.eye(4)[[0, 1]]}
RIGHT = {
    ("en", "de"): {"dog": frozenset({"Hund"}), "cat": frozenset({"Katze"}), "red": frozenset({"rot"})},
    ("en", "ru"): {"dog": frozenset({"пёс"}), "cat": frozenset({"кот"})},
}


def test_nearest_words_with_what_is_right():
    found = word_examples(VECTORS, VOCABULARIES, GroundTruth(RIGHT))
    assert [(example.language, example.word) for example in found] == [("en", "dog"), ("en", "cat")]  # words known in every target
    assert found[0].found == [FoundWord("de", "Hund", True, "Hund"), FoundWord("ru", "кот", False, "пёс")]


def test_a_tie_is_not_a_success():
    vectors = VECTORS | {"de": np.ones((3, 4))}
    assert not any(example.found[0].right for example in word_examples(vectors, VOCABULARIES, GroundTruth(RIGHT)))


def test_as_many_as_asked_and_none_where_nothing_is_known():
    assert len(word_examples(VECTORS, VOCABULARIES, GroundTruth(RIGHT), targets=1, count=2)) == 2
    assert word_examples(VECTORS, VOCABULARIES, GroundTruth({})) == []
    assert word_examples({}, {}, GroundTruth({})) == []
