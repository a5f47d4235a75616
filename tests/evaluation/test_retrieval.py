"""Cross-modal retrieval against a plain loop, chance and cases worked out by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.evaluation.retrieval import cross_modal


def expected_by_enumeration(scores, right, k):
    """Mean over every order of all candidates that respects the scores."""
    hits = []
    for order in itertools.permutations(range(len(scores))):
        if all(scores[x] >= scores[y] for x, y in itertools.pairwise(order)):
            hits.append(any(right[j] for j in order[:k]))
    return np.mean(hits)


@st.composite
def cases(draw):
    n = draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    coarse = draw(st.booleans())
    make = (lambda: generator.integers(-1, 2, (n, 2))) if coarse else (lambda: generator.normal(size=(n, 6)))
    texts = [None if generator.random() < 0.2 else f"w{generator.integers(4)}" for _ in range(n)]
    return make().astype(np.float32), make().astype(np.float32), [f"i{generator.integers(4)}" for _ in range(n)], texts


@settings(max_examples=100, deadline=None)
@given(cases())
def test_equals_a_plain_loop_on_random_tied_and_equal_pairs(case):
    images, captions, ids, texts = case
    got = cross_modal(images, {"en": captions}, ids, texts={"en": texts}, ks=(1, 2), chunk_rows=2)
    rows = [i for i, text in enumerate(texts) if text is not None]
    if not rows:
        assert got.mean_text_to_image is None
        assert got.pairs == {}
        return
    cosine = lambda x, y: round(float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) or 1.0)), 6)  # noqa: E731
    images, captions = images.astype(np.float64), captions.astype(np.float64)
    for queries, candidates, recall in ((captions, images, got.text_to_image["en"]), (images, captions, got.image_to_text["en"])):
        for k in (1, 2):
            hits = [
                expected_by_enumeration(
                    [cosine(queries[i], candidates[j]) for j in rows], [ids[i] == ids[j] or texts[i] == texts[j] for j in rows], k
                )
                for i in rows
            ]
            assert recall.at[k] == pytest.approx(np.mean(hits))


def test_directions_are_not_swapped():
    # Degrees in the plane: every caption is nearest to image 0, yet every image is nearest to its own caption.
    place = lambda *angles: np.array([[np.cos(np.radians(x)), np.sin(np.radians(x))] for x in angles])  # noqa: E731
    got = cross_modal(place(0, 50, -50), {"en": place(0, 24, -24)}, [0, 1, 2], ks=(1, 2))
    assert got.text_to_image["en"].at == pytest.approx({1: 1 / 3, 2: 1.0})
    assert got.image_to_text["en"].at == {1: 1.0, 2: 1.0}


def test_constant_vectors_score_exactly_chance():
    generator = np.random.default_rng(0)
    one = generator.normal(size=(1, 33))
    n = 50
    ids = [i // 2 for i in range(n)]
    got = cross_modal(np.repeat(one, n, 0), {"en": np.repeat(-one, n, 0), "de": np.zeros((n, 33))}, ids)
    for recall in (got.mean_text_to_image, got.mean_image_to_text, got.text_to_image["de"]):
        assert recall is not None
        assert recall.at == pytest.approx(recall.chance, abs=1e-12)
        assert recall.chance[1] == pytest.approx(2 / n)


def test_takes_evenly_spaced_pairs_up_to_the_limit():
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(30, 8))
    vectors[::3] = 0  # exactly the pairs that evenly spaced sampling takes
    got = cross_modal(vectors, {"en": vectors}, range(30), limit=10)
    assert got.pairs == {"en": 10}
    assert got.text_to_image["en"].at[1] == pytest.approx(0.1)


def test_mean_over_languages_weighs_languages_not_pairs():
    vectors = np.eye(4)
    texts = {"en": ["a", "b", "c", "d"], "de": ["a", None, None, "d"]}
    got = cross_modal(vectors, {"en": vectors, "de": vectors[::-1]}, range(4), texts=texts, ks=(1,))
    assert got.pairs == {"en": 4, "de": 2}
    assert got.text_to_image["en"].at[1] == 1.0
    assert got.text_to_image["de"].at[1] == 0.0
    assert got.mean_text_to_image is not None
    assert got.mean_text_to_image.at[1] == 0.5


def test_refuses_lengths_that_differ():
    with pytest.raises(ValueError, match="3 image vectors for 2 image ids"):
        cross_modal(np.eye(3), {}, [1, 2])
    with pytest.raises(ValueError, match="de: 2 vectors"):
        cross_modal(np.eye(3), {"de": np.eye(3)[:2]}, [1, 2, 3])
