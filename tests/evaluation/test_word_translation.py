"""Recall of word translation against brute force: cosine and CSLS, ties, disjoint words, chance."""

import itertools
import math

import numpy as np
import pytest
import torch

from raysys.errors import RunFailed
from raysys.evaluation.lexicon import GroundTruth, Vocabulary
from raysys.evaluation.procrustes import align, fit
from raysys.evaluation.word_translation import crowding, word_translation
from tests.evaluation.test_procrustes import rotation, unit


def words(language: str, n: int) -> Vocabulary:
    return Vocabulary(tuple(f"{language}{i}" for i in range(n)))


def random_truth(vocabularies: dict[str, Vocabulary], random: np.random.Generator) -> GroundTruth:
    """Up to three right translations for about half of the words of every direction."""
    right = {}
    for a in vocabularies:
        for b in vocabularies:
            if a != b:
                asked = [word for word in vocabularies[a].words if random.random() < 0.5]
                answers = [random.choice(vocabularies[b].words, size=random.integers(1, 4)).tolist() for _ in asked]
                right[a, b] = dict(zip(asked, map(frozenset, answers), strict=True))
    return GroundTruth(right)


def brute_force(vectors, vocabularies, truth, a, b, k, csls) -> tuple[float, float]:
    """(recall@k, chance) of one direction by sorting: a tie is broken at random many times, if there are any."""
    random = np.random.default_rng(0)
    scores = unit(vectors[a]) @ unit(vectors[b]).T
    if csls:
        near_a = np.sort(scores, axis=1)[:, ::-1][:, :10].mean(axis=1)
        near_b = np.sort(scores, axis=0)[::-1][:10].mean(axis=0)
        scores = 2 * scores - near_a[:, None] - near_b[None, :]
    hits, by_chance = [], []
    n = len(vocabularies[b])
    for word, right in truth.right[a, b].items():
        row = np.round(scores[vocabularies[a].words.index(word)], 9)
        good = np.isin(vocabularies[b].words, list(right))
        orders = [np.lexsort((random.random(n), -row)) for _ in range(400 if len(set(row)) < n else 1)]
        hits.append(np.mean([good[order[:k]].any() for order in orders]))
        by_chance.append(1 - math.comb(n - good.sum(), k) / math.comb(n, k))
    return float(np.mean(hits)), float(np.mean(by_chance))


@pytest.mark.parametrize("csls", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_recall_equals_brute_force(csls, tied):
    random = np.random.default_rng(3)
    vocabularies = {language: words(language, n) for language, n in (("a", 30), ("b", 25), ("c", 41))}
    vectors = {language: random.normal(size=(len(known), 5)) for language, known in vocabularies.items()}
    if tied:  # three distinct vectors for half of the words
        vectors = {a: np.where(np.arange(len(rows))[:, None] % 2, rows, rows[np.arange(len(rows)) % 3 * 2]) for a, rows in vectors.items()}
    truth = random_truth(vocabularies, random)
    got = word_translation(vectors, vocabularies, truth, k=4, crowded=crowding(vectors) if csls else None, block_bytes=700)
    for i, a in enumerate(vocabularies):
        for j, b in enumerate(vocabularies):
            if a == b:
                assert np.isnan(got.recall[i, j])
                assert got.queries[i, j] == 0
            else:
                recall, by_chance = brute_force(vectors, vocabularies, truth, a, b, 4, csls)
                assert got.recall[i, j] == pytest.approx(recall, abs=0.02 if tied else 1e-12)
                assert got.chance[i, j] == pytest.approx(by_chance, abs=1e-12)
                assert got.queries[i, j] == len(truth.right[a, b])
    mean, by_chance = got.mean()
    assert mean == pytest.approx(np.nanmean(got.recall))
    assert by_chance == pytest.approx(np.nanmean(got.chance))


@pytest.mark.parametrize("csls", [False, True])
def test_constant_vectors_score_chance_exactly(csls):
    vocabularies = {"a": words("a", 37), "b": words("b", 23)}
    vectors = {language: np.full((len(known), 3), 0.7) for language, known in vocabularies.items()}
    truth = random_truth(vocabularies, np.random.default_rng(0))
    got = word_translation(vectors, vocabularies, truth, crowded=crowding(vectors) if csls else None)
    recall, by_chance = got.mean()
    assert recall == pytest.approx(by_chance, abs=1e-12)


def test_every_direction_weighs_the_same():
    vocabularies = {"a": words("a", 40), "b": words("b", 40)}
    vectors = {"a": np.eye(40), "b": np.eye(40)[::-1]}
    right = {"a0": frozenset(["b39"])}  # asked once, found; the other way asked 40 times, never found
    wrong = {f"b{i}": frozenset([f"a{(i + 20) % 40}"]) for i in range(40)}
    got = word_translation(vectors, vocabularies, GroundTruth({("a", "b"): right, ("b", "a"): wrong}), k=1)
    assert got.mean()[0] == 0.5


def test_random_rotations_between_four_languages_are_undone():
    random = np.random.default_rng(0)
    n, d, languages = 300, 24, ["w", "x", "y", "z"]
    meaning = random.normal(size=(n, d))
    vocabularies = {language: words(language, n) for language in languages}
    right = {(a, b): {f"{a}{i}": frozenset([f"{b}{i}"]) for i in range(n)} for a in languages for b in languages if a != b}
    vectors = {language: meaning @ rotation(random, d).T for language in languages}
    recall, by_chance = word_translation(vectors, vocabularies, GroundTruth(right)).mean()
    assert by_chance == pytest.approx(10 / n)
    assert recall == pytest.approx(by_chance, abs=0.02)
    known = (torch.arange(40), torch.arange(40))
    placed = fit(vectors, dict.fromkeys(itertools.combinations(languages, 2), known)).apply(vectors)
    assert word_translation(placed, vocabularies, GroundTruth(right), k=1).mean()[0] == 1


def test_small_turns_are_undone_without_given_pairs():
    random = np.random.default_rng(0)
    n, d, languages = 400, 20, ["w", "x", "y", "z"]
    meaning = random.normal(size=(n, d))
    vocabularies = {language: words(language, n) for language in languages}
    right = {(a, b): {f"{a}{i}": frozenset([f"{b}{i}"]) for i in range(n)} for a in languages for b in languages if a != b}
    vectors = {language: meaning @ rotation(random, d, 0.4).T for language in languages}
    before = word_translation(vectors, vocabularies, GroundTruth(right), k=1).mean()[0]
    placed = align(vectors).apply(vectors)
    assert before < 0.9
    assert word_translation(placed, vocabularies, GroundTruth(right), k=1).mean()[0] > 0.99


def test_csls_demotes_hubs():
    """A target word near to every source word is the nearest of all by cosine; each source word is nearer to it than to its own."""
    n = 30
    centre = np.ones(n) / np.sqrt(n)
    source = np.eye(n) + 0.5 * centre
    target = np.concatenate([np.eye(n), 5 * centre[None]])
    vocabularies = {"a": words("a", n), "b": words("b", n + 1)}
    truth = GroundTruth({("a", "b"): {f"a{i}": frozenset([f"b{i}"]) for i in range(n)}})
    vectors = {"a": source - 0.6 * np.eye(n), "b": target}
    by_cosine = word_translation(vectors, vocabularies, truth, k=1).mean()[0]
    by_csls = word_translation(vectors, vocabularies, truth, k=1, crowded=crowding(vectors)).mean()[0]
    assert by_cosine == 0
    assert by_csls == 1


def test_crowding_is_the_mean_of_the_nearest():
    random = np.random.default_rng(0)
    vectors = {"a": random.normal(size=(13, 4)), "b": random.normal(size=(7, 4))}
    cosines = unit(vectors["a"]) @ unit(vectors["b"]).T
    got = crowding(vectors, block_bytes=300)
    assert got["a", "b"] == pytest.approx(np.sort(cosines, axis=0)[-10:].mean(axis=0), abs=1e-6)
    assert got["b", "a"] == pytest.approx(cosines.mean(axis=1), abs=1e-6)  # fewer than ten words


def test_disjoint_words_are_in_one_vocabulary_alone():
    vocabularies = {"de": Vocabulary(("hotel", "hund", "gift", "gast")), "en": Vocabulary(("hotel", "dog", "gift", "poison", "guest"))}
    right = {
        ("de", "en"): {"hotel": ["hotel", "guest"], "hund": ["dog"], "gift": ["poison"], "gast": ["hotel"]},
        ("en", "de"): {"hotel": ["hotel"], "dog": ["hund"], "poison": ["gift"]},
    }
    truth = GroundTruth({two: {word: frozenset(answers) for word, answers in words.items()} for two, words in right.items()})
    assert truth.disjoint(vocabularies).right == {("de", "en"): {"hund": frozenset(["dog"])}, ("en", "de"): {"dog": frozenset(["hund"])}}


def test_nothing_asked_is_not_zero():
    vocabularies = {"a": words("a", 3), "b": words("b", 3)}
    vectors = {"a": np.eye(3), "b": np.eye(3)}
    got = word_translation(vectors, vocabularies, GroundTruth({("a", "b"): {}}))
    assert np.isnan(got.mean()).all()
    assert np.isnan(got.recall).all()


def test_wrong_vectors():
    vocabularies = {"a": words("a", 3), "b": words("b", 3)}
    truth = GroundTruth({("a", "b"): {"a0": frozenset(["b1"])}})
    with pytest.raises(ValueError, match="b: 2 vectors for 3 words"):
        word_translation({"a": np.eye(3), "b": np.eye(3)[:2]}, vocabularies, truth)
    with pytest.raises(RunFailed, match="words in b: 3 of 3 vectors are not finite"):
        word_translation({"a": np.eye(3), "b": np.full((3, 3), np.inf)}, vocabularies, truth)
