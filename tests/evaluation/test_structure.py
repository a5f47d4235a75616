"""Structural measures against plain loops over all pairs, closed forms, and spaces whose answer is known."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest

from raysys.errors import RunFailed, UserError
from raysys.evaluation.structure import clusters, structure


def cosine(x, y):
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) or 1.0))


def near(vectors, i, k):
    """Probability of each other row to be among the k nearest of row i, by enumeration of the tied ones."""
    scores = {j: round(cosine(vectors[i], vectors[j]), 6) for j in range(len(vectors)) if j != i}
    cut = sorted(scores.values())[-k]
    above = {j for j, score in scores.items() if score > cut}
    level = [j for j, score in scores.items() if score == cut]
    draws = list(itertools.combinations(level, k - len(above)))
    return {j: 1.0 if j in above else sum(j in drawn for drawn in draws) / len(draws) for j in scores}


def one_round(captions, images, k):
    """mNNO where caption i belongs to picture i."""
    shares = []
    for i in range(len(images)):
        said, seen = near(captions, i, k), near(images, i, k)
        shares.append(sum(said[j] * seen[j] for j in seen) / k)
    return np.mean(shares)


def over_pairs(captions, image_of, images):
    """(ρ_vis, C_inter, C_intra) by a loop over all pairs."""
    x, y, same = [], [], []
    for i, j in itertools.combinations(range(len(captions)), 2):
        x.append(cosine(captions[i], captions[j]))
        y.append(cosine(images[image_of[i]], images[image_of[j]]))
        same.append(image_of[i] == image_of[j])
    x, y, same = np.array(x), np.array(y), np.array(same)
    constant = x.std() < 1e-7 or y.std() < 1e-7
    return 0.0 if constant else np.corrcoef(x, y)[0, 1], x[~same].mean(), x[same].mean() if same.any() else math.nan


def world(seed, coarse, pictures=9, most=3):
    generator = np.random.default_rng(seed)
    make = (lambda n, d: generator.integers(-1, 2, (n, 2))) if coarse else (lambda n, d: generator.normal(size=(n, d)) + 0.3)
    image_of = np.repeat(np.arange(pictures), generator.integers(1, most + 1, pictures))
    generator.shuffle(image_of)
    return make(len(image_of), 6).astype(np.float32), image_of, make(pictures, 4).astype(np.float32)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_pairs_equal_a_plain_loop(seed, coarse):
    captions, image_of, images = world(seed, coarse)
    got = structure(captions, image_of, images, neighbours=3)
    expected = over_pairs(captions, image_of, images)
    np.testing.assert_allclose([got.rho_vis, got.C_inter, got.C_intra], expected, atol=1e-6)
    assert (got.pictures, got.captions) == (9, len(captions))


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_neighbours_equal_a_plain_loop(seed, coarse):
    captions, image_of, images = world(seed, coarse, most=1)
    got = structure(captions, image_of, images, neighbours=3)
    assert got.mNNO == pytest.approx(one_round(captions[np.argsort(image_of)], images, 3), abs=1e-9)
    assert got.mNNO_chance == 3 / 8
    assert math.isnan(got.C_intra)
    assert "eval/C_intra" not in got.metrics


@pytest.mark.parametrize("seed", range(3))
def test_every_caption_has_its_turn(seed):
    """Two captions of every picture: a round and the one with all the others. Three of one: its first comes again in no round."""
    captions, _, images = world(seed, False, pictures=3, most=1)
    captions = np.random.default_rng(seed).normal(size=(7, 5))
    image_of = np.array([0, 0, 1, 1, 1, 2, 2])
    got = structure(captions, image_of, images, neighbours=1, seed=seed)
    turns = [list(itertools.permutations([i for i in range(7) if image_of[i] == picture])) for picture in range(3)]
    possible = set()
    for orders in itertools.product(*turns):
        rounds = [one_round(captions[[order[r % len(order)] for order in orders]], images, 1) for r in range(3)]
        possible.add(round(float(np.mean(rounds)), 9))
    assert round(got.mNNO, 9) in possible
    assert got.mNNO == got.overlaps.mean()
    assert got.overlaps.shape == (3,)


@pytest.mark.parametrize("scale", [0.0, 0.37])
def test_constant_captions_get_chance_and_no_correlation(scale):
    _, image_of, images = world(0, False, pictures=30)
    got = structure(np.full((len(image_of), 33), scale), image_of, images)
    assert got.mNNO == pytest.approx(10 / 29)
    assert got.rho_vis == 0.0
    assert got.C_inter == pytest.approx(1.0 if scale else 0.0, abs=1e-6)
    constant_pictures = structure(np.random.default_rng(0).normal(size=(len(image_of), 5)), image_of, np.full((30, 7), 0.1))
    assert constant_pictures.mNNO == pytest.approx(10 / 29)
    assert constant_pictures.rho_vis == 0.0


def test_captions_at_right_angles_have_a_constant_similarity():
    images = np.random.default_rng(0).normal(size=(12, 4))
    got = structure(np.eye(12), np.arange(12), images)
    assert got.rho_vis == 0.0
    assert got.C_inter == 0.0


def test_captions_that_are_their_pictures():
    images = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    got = structure(3 * images.repeat(2, axis=0), np.arange(40).repeat(2), images)
    assert got.mNNO == pytest.approx(1.0)
    assert got.rho_vis == pytest.approx(1.0)
    assert got.C_intra == pytest.approx(1.0, abs=1e-6)
    opposite = structure(np.array([[1, 0], [1, 0], [-1, 0]]), [0, 1, 2], np.array([[1, 0], [-1, 0], [1, 0]]))
    assert opposite.rho_vis == pytest.approx(np.corrcoef([1, -1, -1], [-1, 1, -1])[0, 1])


def test_small_differences_around_a_large_common_part_are_seen():
    """Cosines of 1 − 1e-6: the spread is what matters, whatever all vectors have in common."""
    generator = np.random.default_rng(0)
    small, images = generator.normal(size=(30, 6)), generator.normal(size=(30, 5))
    captions = np.concatenate([np.full((30, 1), 700.0), small], axis=1)
    got = structure(captions, np.arange(30), images)
    assert got.rho_vis == pytest.approx(over_pairs(captions, np.arange(30), images)[0], abs=1e-2)


def test_ids_need_not_be_dense_and_rows_without_a_caption_do_not_count():
    captions, image_of, images = world(1, False)
    more = np.concatenate([np.full((4, 4), np.nan), images, np.full((2, 4), np.nan)]).astype(np.float32)
    one, other = structure(captions, image_of, images, 3), structure(captions, image_of + 4, more, 3)
    np.testing.assert_array_equal(one.overlaps, other.overlaps)
    assert one.metrics == other.metrics


def test_fewer_pictures_than_neighbours():
    got = structure(np.eye(3), [0, 1, 2], np.eye(3))
    assert (got.mNNO, got.mNNO_chance) == (pytest.approx(1), 1)


def test_names():
    got = structure(*world(0, False))
    assert list(got.metrics) == ["eval/mNNO", "eval/rho_vis", "eval/C_inter", "eval/C_intra"]
    assert got.chance == {"eval/mNNO": got.mNNO_chance, "eval/rho_vis": 0.0}


@pytest.mark.parametrize(
    ("captions", "image_of", "fault", "said"),
    [
        (np.eye(3), [0, 1], ValueError, "3 captions"),
        (np.eye(3), [0, 1, 7], ValueError, "there are 4"),
        (np.eye(3), [2, 2, 2], UserError, "at least two pictures; there are 1"),
        (np.full((3, 2), np.inf), [0, 1, 2], RunFailed, "not finite"),
    ],
)
def test_what_cannot_be_scored(captions, image_of, fault, said):
    with pytest.raises(fault, match=said):
        structure(captions, image_of, np.eye(4))


def test_groups_by_name():
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 2], [1, 1]])
    got = clusters(vectors, ["sea", "sea", "hill", "hill", "alone"])
    half = math.sqrt(0.5)
    assert got.intra == pytest.approx(1.0)
    assert got.inter == pytest.approx((4 * 0 + 4 * half) / 8)
    assert got.groups["sea"] == pytest.approx((1.0, (4 * 0 + 2 * half) / 6), abs=1e-7)
    assert math.isnan(got.groups["alone"][0])
    assert math.isnan(clusters(vectors, ["one"] * 5).inter)


def test_memory_does_not_grow_with_the_pairs():
    """2 000 pictures with 10 000 captions: all pairs would take 800 MB."""
    generator = np.random.default_rng(0)
    captions, images = generator.normal(size=(10_000, 32)).astype(np.float32), generator.normal(size=(2_000, 16)).astype(np.float32)
    tracemalloc.start()
    structure(captions, np.arange(10_000) % 2_000, images)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 << 20
