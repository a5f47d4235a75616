"""Hubness against a plain loop, closed forms and random rankings."""

import itertools
import math

import numpy as np
import pytest

from raysys.evaluation import chance
from raysys.evaluation.hubness import hubness


def probabilities(scores, k):
    """How likely each candidate is among the first k, by enumeration of who of the tied group gets the last places."""
    cut = sorted(scores)[-k]
    above = [j for j, s in enumerate(scores) if s > cut]
    level = [j for j, s in enumerate(scores) if s == cut]
    draws = list(itertools.combinations(level, k - len(above)))
    return [1.0 if j in above else sum(j in drawn for drawn in draws) / len(draws) for j in range(len(scores))]


def distribution(chances):
    """Of the number of successes among independent trials."""
    masses = np.ones(1)
    for p in chances:
        masses = np.convolve(masses, [1 - p, p])
    return masses


def brute_force(vectors, texts, target, k):
    """(expected N_k, skewness, anti-hubs) by loops over queries and the whole distribution of every sentence's N_k."""

    def distinct(language):
        return {t: np.asarray(v, np.float64) for t, v in reversed(list(zip(texts[language], vectors[language], strict=True))) if t}

    candidates = [distinct(target)[t] for t in dict.fromkeys(texts[target]) if t]
    queries = [v for a in vectors if a != target for v in distinct(a).values()]
    cosine = lambda x, y: round(float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) or 1.0)), 6)  # noqa: E731
    drawn = np.array([probabilities([cosine(q, c) for c in candidates], k) for q in queries])
    centre = k * len(queries) / len(candidates)
    second = third = missed = 0.0
    for column in drawn.T:
        masses = distribution(column)
        apart = np.arange(len(masses)) - centre
        second += masses @ apart**2 / len(candidates)
        third += masses @ apart**3 / len(candidates)
        missed += masses[0] / len(candidates)
    return drawn.sum(axis=0), third / second**1.5 if second > 1e-9 else 0.0, missed


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_equals_a_plain_loop_on_random_tied_equal_and_missing_sentences(seed, coarse):
    generator = np.random.default_rng(seed)
    languages = ["en", "de", "ru"]
    make = (lambda: generator.integers(-1, 2, (9, 2))) if coarse else (lambda: generator.normal(size=(9, 5)))
    vectors = {a: make().astype(np.float32) for a in languages}
    texts = {a: [None if generator.random() < 0.15 else f"w{generator.integers(12)}" for _ in range(9)] for a in languages}
    got = hubness(vectors, texts, k=2)
    assert got
    for target, one in got.items():
        occurrences, skewness, anti_hubs = brute_force(vectors, texts, target, 2)
        np.testing.assert_allclose(one.occurrences, occurrences, atol=1e-9)
        assert one.occurrences.sum() == pytest.approx(2 * one.queries)
        assert one.skewness == pytest.approx(skewness, abs=1e-9)
        assert one.anti_hubs == pytest.approx(anti_hubs)
        assert one.largest == pytest.approx(max(occurrences))


def world(n=40, languages=("en", "de", "ru"), seed=0, d=16):
    generator = np.random.default_rng(seed)
    return {a: generator.normal(size=(n, d)).astype(np.float32) for a in languages}, {a: [f"{a} {i}" for i in range(n)] for a in languages}


@pytest.mark.parametrize("scale", [0.0, 0.37])
def test_constant_vectors_score_exactly_chance(scale):
    _, texts = world()
    got = hubness({a: np.full((40, 33), scale) for a in texts}, texts)
    assert list(got) == ["en", "de", "ru"]
    for one in got.values():
        assert one.skewness == pytest.approx(one.skewness_chance, abs=1e-9)
        assert one.anti_hubs == pytest.approx(one.anti_hubs_chance, abs=1e-12)
        assert one.skewness_chance == pytest.approx((1 - 2 / 4) / math.sqrt(80 * 3 / 16))
        assert one.anti_hubs_chance == pytest.approx(0.75**80)


def test_without_ties_it_is_the_skewness_of_the_counts():
    vectors, texts = world()
    one = hubness(vectors, texts)["de"]
    unit = {a: v.astype(np.float64) / np.linalg.norm(v, axis=1, keepdims=True) for a, v in vectors.items()}
    scores = np.concatenate([unit["en"], unit["ru"]]) @ unit["de"].T
    counts = np.bincount(np.argsort(-scores, axis=1)[:, :10].ravel(), minlength=40)
    np.testing.assert_array_equal(one.occurrences, counts)
    z = (counts - counts.mean()) / counts.std()
    assert one.skewness == pytest.approx((z**3).mean())
    assert one.anti_hubs == (counts == 0).mean()
    assert one.largest == counts.max()


def test_chance_is_what_random_rankings_give():
    n, queries, k = 30, 20, 3
    generator = np.random.default_rng(0)
    drawn = np.argpartition(generator.random((2000, queries, n)), k, axis=2)[:, :, :k].reshape(2000, -1)
    counts = np.stack([np.bincount(row, minlength=n) for row in drawn])
    apart = counts - k * queries / n
    assert (apart**3).mean() / (apart**2).mean() ** 1.5 == pytest.approx(chance.k_occurrence_skewness(n, queries, k), abs=0.05)
    assert (counts == 0).mean() == pytest.approx(chance.anti_hubs(n, queries, k), rel=0.03)
    assert counts.max(axis=1).mean() == pytest.approx(chance.largest_k_occurrence(n, queries, k), rel=0.03)


def test_largest_of_independent_binomials_by_enumeration():
    masses = [math.comb(4, x) * (2 / 3) ** x * (1 / 3) ** (4 - x) for x in range(5)]
    expected = sum(math.prod(masses[x] for x in counts) * max(counts) for counts in itertools.product(range(5), repeat=3))
    assert chance.largest_k_occurrence(sentences=3, queries=4, k=2) == pytest.approx(expected)
    assert chance.largest_k_occurrence(200, 51 * 200, 10) == pytest.approx(570, abs=10)


def test_a_hub_and_a_sentence_that_nothing_finds():
    vectors, texts = world(n=12)
    north = np.eye(16)[0]
    for a in ("en", "ru"):
        vectors[a] = 20 * north + vectors[a]
    vectors["de"][:, 0] = 0
    vectors["de"][3], vectors["de"][7] = north, -north
    one = hubness(vectors, texts, k=2)["de"]
    assert one.queries == 24
    assert one.largest == one.occurrences[3] == 24
    assert one.occurrences[7] == 0
    assert one.skewness > 2 > one.skewness_chance
    assert one.anti_hubs >= 1 / 12


def test_few_sentences_are_left_out_and_many_are_sampled_evenly():
    vectors, texts = world(n=30)
    texts["ru"] = [f"ru {i % 10}" for i in range(30)]
    assert list(hubness(vectors, texts)) == ["en", "de"]
    some = hubness(vectors, {a: t if a != "ru" else [f"ru {i}" for i in range(30)] for a, t in texts.items()}, k=3, limit=10)
    every = hubness({a: v[::3] for a, v in vectors.items()}, {a: [f"{a} {i}" for i in range(10)] for a in vectors}, k=3)
    np.testing.assert_array_equal(some["en"].occurrences, every["en"].occurrences)
    assert hubness({"en": vectors["en"]}, texts) == {}
    with pytest.raises(ValueError, match="en: 29 vectors for 30 texts"):
        hubness({a: v[:29] for a, v in vectors.items()}, texts)
