"""Translations from parallel captions, against an independent count and an independent statistic."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from raysys.evaluation.cooccurrence import cooccurring, log_likelihood_ratio
from raysys.evaluation.lexicon import Vocabulary, split_words, vocabulary


def vocabularies_of(items) -> dict[str, Vocabulary]:
    languages = list(dict.fromkeys(language for item in items for language in item))
    return {a: vocabulary([caption for item in items for caption in item.get(a, ())[:1]]) for a in languages}


def test_the_statistic_is_scipys():
    random = np.random.default_rng(0)
    tables = [random.integers(0, 9, size=(2, 2)) + np.array([[1, 0], [0, 5]]) for _ in range(50)]
    for table in tables:
        (both, one), (other, neither) = table
        got = log_likelihood_ratio(np.array([both]), np.array([both + one]), np.array([both + other]), int(table.sum()))[0]
        expected = chi2_contingency(table, correction=False, lambda_="log-likelihood")[0] if (table.sum(0) > 0).all() else 0
        assert got == pytest.approx(expected if both * neither > one * other else 0.0, abs=1e-9)
    assert log_likelihood_ratio(np.array([4]), np.array([4]), np.array([4]), 4)[0] == 0  # in every item: says nothing
    assert chi2.sf(10.83, 1) == pytest.approx(0.001, rel=0.01)


def test_words_that_occur_together_are_translations():
    pairs = [("red apple", "roter Apfel"), ("green apple", "grüner Apfel"), ("red car", "rotes Auto"), ("green car", "grünes Auto")]
    items = [{"en": [en], "de": [de]} for en, de in pairs * 10]
    truth = cooccurring(items, vocabularies_of(items))
    assert truth.right["en", "de"] == {"apple": {"apfel"}, "car": {"auto"}}
    assert truth.right["de", "en"] == {"apfel": {"apple"}, "auto": {"car"}}
    # red goes with roter and rotes alike, roter with red and apple alike, and so on: which one it is cannot be told
    assert truth.counts["en-de"] == {"items": 40, "pairs": 2, "ambiguous": 6, "missing": 0}


def test_words_always_together_stay_without_translation():
    items = [{"en": ["hot dog"], "fr": ["chien chaud"]}] * 5 + [{"en": ["cat"], "fr": ["chat"]}] * 5
    truth = cooccurring(items, vocabularies_of(items))
    assert truth.right["en", "fr"] == {"cat": {"chat"}}
    assert truth.counts["en-fr"]["ambiguous"] == 4


@pytest.mark.parametrize("least", [1, 2, 3])
def test_words_must_meet_often_enough(least):
    items = [{"en": [f"thing {word}"], "de": [f"ding {word}er"]} for word in ("cat", "dog", "dog", "cow", "cow", "cow")]
    items += [{"en": ["thing"], "de": ["ding"]}] * 130
    truth = cooccurring(items, vocabularies_of(items), least=least)
    assert truth.right["en", "de"] == {word: {f"{word}er"} for word, times in (("cat", 1), ("dog", 2), ("cow", 3)) if times >= least}


def test_only_items_with_both_languages_and_their_first_captions_count():
    items = [{"en": ["cat", "dog"], "de": ["katze"]}] * 4 + [{"en": ["dog"], "de": ["hund", "katze"]}] * 4 + [{"en": ["cat"]}] * 50
    truth = cooccurring(items, vocabularies_of(items), significance=5)
    assert truth.right["en", "de"] == {"cat": {"katze"}, "dog": {"hund"}}
    assert truth.counts["en-de"]["items"] == 8


def test_words_outside_of_a_vocabulary_are_counted():
    items = [{"en": ["cat"], "de": ["katze"]}] * 4 + [{"en": ["dog"], "de": ["hund"]}] * 4
    truth = cooccurring(items, {"en": Vocabulary(("cat",)), "de": Vocabulary(("katze", "hund"))}, significance=5)
    assert truth.right["en", "de"] == {"cat": {"katze"}}
    assert truth.counts["en-de"]["missing"] == 1


def test_no_parallel_captions_give_no_translations():
    vocabularies = {"en": Vocabulary(("cat",)), "de": Vocabulary(("katze",)), "fr": Vocabulary(())}
    for items in ([], [{"en": ["cat"]}, {"de": ["katze"]}]):
        truth = cooccurring(items, vocabularies)
        assert all(right == {} for right in truth.right.values())


@pytest.mark.parametrize("seed", range(3))
def test_against_counting_by_hand(seed):
    """Random captions of three languages, one item in ten without one of them."""
    random = np.random.default_rng(seed)
    caption = lambda a, words: [" ".join(chr(97 + word) * 2 + a for word in words)]  # noqa: E731
    items = []
    for _ in range(80):
        words = random.choice(12, size=random.integers(1, 4), replace=False)
        noisy = {a: [word if random.random() < 0.8 else int(random.integers(12)) for word in words] for a in "xyz"}
        items.append({a: caption(a, noisy[a]) for a in "xyz" if random.random() < 0.9})
    vocabularies = vocabularies_of(items)
    truth = cooccurring(items, vocabularies)
    found = 0
    for a, b in itertools.combinations(vocabularies, 2):
        both = [item for item in items if a in item and b in item]
        sets = [(set(split_words(item[a][0])), set(split_words(item[b][0]))) for item in both]
        strength = {}
        for u in vocabularies[a].words:
            for v in vocabularies[b].words:
                with_u, with_v = (sum(word in one[side] for one in sets) for side, word in ((0, u), (1, v)))
                together, n = sum(u in one[0] and v in one[1] for one in sets), len(sets)
                table = [[together, with_u - together], [with_v - together, n - with_u - with_v + together]]
                g = 2 * sum(
                    table[i][j] * math.log(table[i][j] * n / (sum(table[i]) * (table[0][j] + table[1][j])))
                    for i in range(2)
                    for j in range(2)
                    if table[i][j]
                )
                if together >= 2 and together * n > with_u * with_v and g >= 10.83:
                    strength[u, v] = g
        rivals = {(u, v): [h for one, h in strength.items() if (one[0] == u) != (one[1] == v)] for u, v in strength}
        expected = {u: {v} for (u, v), g in strength.items() if all(h < g - 1e-9 for h in rivals[u, v])}
        assert truth.right[a, b] == expected
        found += len(expected)
    assert found > 5
