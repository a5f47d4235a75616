"""Sentence translation against a plain loop, against chance and against cases worked out by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.errors import RunFailed
from raysys.evaluation import chance
from raysys.evaluation.ranking import hit_probability
from raysys.evaluation.translation import sentence_translation

ALPHABET = ["en", "ru", "ja", "de"]


def shuffled_expectation(scores, is_right, k):
    """Mean over all orders of tied candidates of: is a right one among the first k? By enumeration of the tied group."""
    order = sorted(range(len(scores)), key=lambda j: -scores[j])
    cut = scores[order[k - 1]] if k <= len(order) else -np.inf
    above = [j for j in order if scores[j] > cut]
    level = [j for j in order if scores[j] == cut]
    if any(is_right[j] for j in above):
        return 1.0
    draws = list(itertools.combinations(level, min(k, len(order)) - len(above)))
    return sum(any(is_right[j] for j in drawn) for drawn in draws) / len(draws)


def brute_force(vectors, texts, ks):
    """Loops over queries and candidates, straight from the definitions."""
    languages = list(vectors)
    first = {(a, texts[a][i]): i for a in languages for i in reversed(range(len(texts[a])))}
    cosine = lambda x, y: round(float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) or 1.0)), 6)  # noqa: E731
    vector = lambda a, i: np.asarray(vectors[a][first[a, texts[a][i]]], dtype=np.float64)  # noqa: E731
    recall = {k: np.full((len(languages),) * 2, np.nan) for k in ks}
    share = np.full((len(languages),) * 2, np.nan)
    scores = []
    for x, a in enumerate(languages):
        found = {b: [] for b in languages if b != a}
        hits = {(b, k): [] for b in languages if b != a for k in ks}
        for i, text in enumerate(texts[a]):
            if text is None:
                continue
            true = {(b, texts[b][i]) for b in languages if b != a and texts[b][i] is not None}
            for b, _ in true:
                bank = [j for j in range(len(texts[b])) if texts[b][j] is not None]
                row = [cosine(vector(a, i), vector(b, j)) for j in bank]
                for k in ks:
                    hits[b, k].append(shuffled_expectation(row, [texts[b][j] == texts[b][i] for j in bank], k))
            pool = sorted({(b, t) for b in languages if b != a for t in texts[b] if t is not None})
            row = [cosine(vector(a, i), vector(b, texts[b].index(t))) for b, t in pool]
            got = {b: shuffled_expectation(row, [c == (b, t) for c in pool], len(true)) for b, t in true}
            for b in got:
                found[b].append(got[b])
            if true:
                scores.append(sum(got.values()) / len(true))
        for y, b in enumerate(languages):
            if b != a and found[b]:
                share[x, y] = np.mean(found[b])
                for k in ks:
                    recall[k][x, y] = np.mean(hits[b, k])
    return np.mean(scores), share, recall


@st.composite
def cases(draw):
    n, count = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    languages = ALPHABET[:count]
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    coarse = draw(st.booleans())
    width = 2 if coarse else 8
    vectors = {a: (generator.integers(-1, 2, (n, width)) if coarse else generator.normal(size=(n, width))) for a in languages}
    words = draw(st.integers(2, 8))
    lacking = draw(st.sampled_from([0.0, 0.3]))
    texts = {a: [None if generator.random() < lacking else f"w{generator.integers(words)}" for _ in range(n)] for a in languages}
    return {a: v.astype(np.float32) for a, v in vectors.items()}, texts


@settings(max_examples=120, deadline=None)
@given(cases())
def test_equals_a_plain_loop_on_random_tied_equal_and_missing_sentences(case):
    vectors, texts = case
    got = sentence_translation(vectors, texts, ks=(1, 2, 3), chunk_bytes=64)
    if not got.queries.any():
        assert np.isnan(got.score)
        return
    score, share, recall = brute_force(vectors, texts, (1, 2, 3))
    assert got.score == pytest.approx(score)
    np.testing.assert_allclose(got.share, share, atol=1e-9)
    for k in (1, 2, 3):
        np.testing.assert_allclose(got.recall[k], recall[k], atol=1e-9)


def world(n=40, languages=("en", "de", "ru", "ja"), noise=1.0, seed=0, d=16):
    generator = np.random.default_rng(seed)
    meaning = generator.normal(size=(n, d))
    vectors = {a: (meaning + noise * generator.normal(size=(n, d))).astype(np.float32) for a in languages}
    return vectors, {a: [f"{a} {i}" for i in range(n)] for a in languages}


def test_perfect_vectors_score_one_even_where_sentences_are_equal():
    vectors, texts = world(noise=0.0)
    for a in texts:
        texts[a][1] = texts[a][0]
        vectors[a][1] = vectors[a][0]
    got = sentence_translation(vectors, texts)
    assert got.score == 1.0
    assert got.mean_recall(1) == 1.0
    off_diagonal = ~np.eye(4, dtype=bool)
    assert (got.share[off_diagonal] == 1.0).all()
    assert np.isnan(got.share[~off_diagonal]).all()


@pytest.mark.parametrize("scale", [0.0, 1.0, 0.37])
def test_constant_vectors_score_exactly_chance(scale):
    generator = np.random.default_rng(3)
    constant = scale * generator.normal(size=(1, 97)).astype(np.float32)
    texts = {a: [f"{a} {i // (2 if a == 'de' else 1)}" for i in range(23)] for a in ("en", "de", "ru")}
    got = sentence_translation({a: np.repeat(constant, 23, axis=0) for a in texts}, texts)
    assert got.score == pytest.approx(got.chance, abs=1e-12)
    for k in (1, 5, 10):
        np.testing.assert_allclose(got.recall[k], got.recall_chance[k], atol=1e-12)
    np.testing.assert_allclose(got.share, got.share_chance, atol=1e-12)


def test_chance_of_the_paper_is_one_in_the_number_of_sentences():
    vectors, texts = world(n=25)
    got = sentence_translation(vectors, texts)
    assert got.chance == pytest.approx(1 / 25)
    assert got.mean_recall_chance(5) == pytest.approx(5 / 25)


def test_chance_is_the_mean_over_random_vectors():
    results = [sentence_translation(*world(n=12, noise=1e4, seed=seed)) for seed in range(150)]
    assert np.mean([r.score for r in results]) == pytest.approx(results[0].chance, rel=0.08)
    assert np.mean([r.mean_recall(5) for r in results]) == pytest.approx(results[0].mean_recall_chance(5), rel=0.05)


def test_by_hand():
    # Directions in the plane, in degrees. German cannot tell its two sentences apart and lies between all others.
    angles = {"en": (0, 90), "de": (45, 45), "ru": (10, 85)}
    vectors = {a: np.array([[np.cos(np.radians(x)), np.sin(np.radians(x))] for x in pair]) for a, pair in angles.items()}
    got = sentence_translation(vectors, {a: ["x", "y"] for a in vectors}, ks=(1, 2))
    # Two places. en and ru queries: the other's true sentence takes one, and half of the time the right German one the second.
    # German queries: 35 and 40 degrees away are the two Russian sentences; English, 45 degrees away, finds no place.
    np.testing.assert_allclose(got.share, [[np.nan, 0.5, 1.0], [0.0, np.nan, 1.0], [1.0, 0.5, np.nan]])
    assert got.score == pytest.approx((4 * 0.75 + 2 * 0.5) / 6)
    # Alone in Russian, both German sentences are nearest to the first one; in English they are as far from either.
    np.testing.assert_allclose(got.recall[1], [[np.nan, 0.5, 1.0], [0.5, np.nan, 0.5], [1.0, 0.5, np.nan]])
    np.testing.assert_allclose(got.recall[2][~np.eye(3, dtype=bool)], 1.0)


@pytest.mark.parametrize(
    ("pool", "right", "draws", "expected"), [(0, 0, 3, 0), (4, 1, 0, 0), (4, 4, 1, 1), (4, 1, 2, 0.5), (4, 2, 2, 5 / 6), (3, 1, 9, 1)]
)
def test_probability_that_a_right_one_is_drawn(pool, right, draws, expected):
    assert hit_probability(pool, right, draws) == pytest.approx(expected)
    assert hit_probability([pool] * 2, right, [draws, 0]) == pytest.approx([expected, 0])


def test_does_not_depend_on_chunks_or_threads():
    import torch

    vectors, texts = world(n=60)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        whole = sentence_translation(vectors, texts)
        torch.set_num_threads(2)
        parts = sentence_translation(vectors, texts, chunk_bytes=5000)
    finally:
        torch.set_num_threads(threads)
    assert whole.score == pytest.approx(parts.score, abs=1e-12)
    np.testing.assert_array_equal(whole.recall[5], parts.recall[5])


def test_seen_pairs_are_told_from_unseen_ones():
    vectors, texts = world(n=30, noise=0.0)
    generator = np.random.default_rng(1)
    seen = {a: generator.random(30) < 0.5 for a in vectors}
    for a in vectors:
        vectors[a][~seen[a]] = generator.normal(size=((~seen[a]).sum(), 16))
    got = sentence_translation(vectors, texts, seen=seen)
    both = sum(int((seen[a] & seen[b]).sum()) for a in seen for b in seen if a != b)
    assert got.both_seen is not None
    assert got.some_unseen is not None
    assert got.both_seen.pairs == both
    assert got.both_seen.pairs + got.some_unseen.pairs == 30 * 12
    assert got.both_seen.recall == 1.0
    assert got.some_unseen.recall < 0.3
    assert got.both_seen.chance == pytest.approx(1 / 30)


def test_directions_into_latin_from_other_scripts():
    vectors, texts = world()
    got = sentence_translation(vectors, texts)
    assert {(got.languages[x], got.languages[y]) for x, y in np.argwhere(got.non_latin_to_latin())} == {
        ("ru", "en"),
        ("ru", "de"),
        ("ja", "en"),
        ("ja", "de"),
    }
    recall, by_chance = got.mean_over(got.non_latin_to_latin())
    assert recall == pytest.approx(np.mean([got.recall[1][got.pair(*p)] for p in [("ru", "en"), ("ru", "de"), ("ja", "en"), ("ja", "de")]]))
    assert by_chance == pytest.approx(1 / 40)


def test_refuses_vectors_that_are_not_finite_and_names_them():
    vectors, texts = world(n=5)
    vectors["ru"][3, 0] = np.nan
    with pytest.raises(RunFailed, match=r"captions in ru: 1 of 5 vectors are not finite \(first: row 3\)"):
        sentence_translation(vectors, texts)


def test_refuses_one_language_and_uneven_lengths():
    vectors, texts = world(n=5, languages=("en", "de"))
    with pytest.raises(ValueError, match="at least two languages"):
        sentence_translation({"en": vectors["en"]}, texts)
    with pytest.raises(ValueError, match="5 vectors for 4 texts"):
        sentence_translation(vectors, {a: t[:4] for a, t in texts.items()})


def test_chance_with_several_right_candidates():
    orders = list(itertools.permutations(range(5)))
    for right in (1, 2, 3):
        for k in (1, 2, 5, 9):
            expected = np.mean([any(c < right for c in order[:k]) for order in orders])
            assert chance.recall(5, k, right) == pytest.approx(expected)
