"""Accuracy beside the largest class; answers that training has not are wrong, and are counted."""

import pytest

from raysys.evaluation.tasks.accuracy import accuracy


def test_by_hand():
    found = accuracy(["a", "b", "a", "a"], ["a", "a", "c", "c"], ["a", "b"])
    assert found == (0.25, 0.5, 2, 4)


def test_the_most_frequent_answer_does_not_count_where_nobody_can_give_it():
    assert accuracy(["a"] * 5, ["c", "c", "c", "b", "b"], ["a", "b"]).chance == pytest.approx(0.4)


def test_nothing_and_too_little():
    for given, right in (([], []), (["a"], ["a", "b"])):
        with pytest.raises(ValueError, match="answers to"):
            accuracy(given, right, ["a"])
