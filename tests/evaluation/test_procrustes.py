"""Procrustes for several languages: what it recovers, what never gets worse, and what it refuses."""

import itertools

import numpy as np
import pytest
import torch

from raysys.errors import RunFailed, UserError
from raysys.evaluation.procrustes import TooFewPairs, align, fit, mutual_neighbours


def rotation(random: np.random.Generator, d: int, angle: float | None = None) -> np.ndarray:
    """A random orthogonal matrix; with `angle`, one that turns by about so many radians."""
    if angle is None:
        return np.linalg.qr(random.normal(size=(d, d)))[0]
    skew = random.normal(size=(d, d)) * angle / np.sqrt(d)
    return torch.linalg.matrix_exp(torch.from_numpy(skew - skew.T)).numpy()


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def noisy_languages(seed: int = 0, n: int = 60, d: int = 8, languages: int = 4) -> dict[str, np.ndarray]:
    """The same words in every language, turned a little, with noise and in another order."""
    random = np.random.default_rng(seed)
    words = random.normal(size=(n, d))
    return {
        f"l{i}": (random.permutation(words) @ rotation(random, d, 0.3).T + 0.3 * random.normal(size=(n, d))).astype(np.float32)
        for i in range(languages)
    }


def brute_force_pairs(first: np.ndarray, second: np.ndarray, k: int) -> set[tuple[int, int]]:
    cosines = unit(first.astype(np.float64)) @ unit(second.astype(np.float64)).T
    near = lambda row: set(np.argsort(-row)[:k].tolist())  # noqa: E731
    forth, back = [near(row) for row in cosines], [near(column) for column in cosines.T]
    return {(u, v) for u in range(len(first)) for v in range(len(second)) if v in forth[u] and u in back[v]}


def brute_force_objective(vectors: dict[str, np.ndarray], rotations: dict[str, np.ndarray], k: int) -> float:
    distances = []
    for a, b in itertools.combinations(vectors, 2):
        one, other = unit(vectors[a].astype(np.float64)), unit(vectors[b].astype(np.float64))
        pairs = brute_force_pairs(vectors[a], vectors[b], k)
        distances += [((rotations[a] @ one[u] - rotations[b] @ other[v]) ** 2).sum() for u, v in pairs]
    return float(np.mean(distances))


@pytest.mark.parametrize("block_bytes", [1, 500, 1 << 20])
@pytest.mark.parametrize(("n", "m", "k"), [(30, 20, 5), (20, 30, 1), (3, 9, 5)])
def test_mutual_neighbours_are_those_of_brute_force(n, m, k, block_bytes):
    random = np.random.default_rng(n)
    first, second = (unit(random.normal(size=(size, 4))).astype(np.float32) for size in (n, m))
    u, v = mutual_neighbours(torch.from_numpy(first), torch.from_numpy(second), k, block_bytes)
    assert set(zip(u.tolist(), v.tolist(), strict=True)) == brute_force_pairs(first, second, k)
    assert len(u) == len(set(zip(u.tolist(), v.tolist(), strict=True)))


def test_words_without_a_vector_pair_with_nothing():
    vectors = torch.eye(4)
    vectors[1] = 0
    u, v = mutual_neighbours(vectors, torch.eye(4), 2)
    assert {(0, 0), (2, 2), (3, 3)} <= set(zip(u.tolist(), v.tolist(), strict=True))
    assert 1 not in u


def test_random_rotations_are_recovered_from_given_pairs():
    random = np.random.default_rng(0)
    words, turns = random.normal(size=(50, 16)), [rotation(random, 16) for _ in range(4)]
    vectors = {f"l{i}": words @ turn.T for i, turn in enumerate(turns)}
    same = (torch.arange(50), torch.arange(50))
    found = fit(vectors, dict.fromkeys(itertools.combinations(vectors, 2), same))
    for i, turn in enumerate(turns):
        assert np.allclose(found.rotations[f"l{i}"], turns[0] @ turn.T, atol=1e-5)
    assert found.objective[0] > 1
    assert found.objective[-1] < 1e-6
    placed = found.apply(vectors)
    assert all(np.allclose(placed[a], placed["l0"], atol=1e-4) for a in placed)


def test_small_turns_are_undone_by_the_pairs_it_finds():
    random = np.random.default_rng(0)
    words, turns = random.normal(size=(200, 16)), [rotation(random, 16, 0.1) for _ in range(4)]
    vectors = {f"l{i}": words @ turn.T for i, turn in enumerate(turns)}
    found = align(vectors, neighbours=1)
    assert set(found.pairs.values()) == {200}
    for i, turn in enumerate(turns):
        assert np.allclose(found.rotations[f"l{i}"], turns[0] @ turn.T, atol=1e-5)


def test_rotations_are_orthogonal_and_the_first_is_the_identity():
    found = align(noisy_languages())
    for turn in found.rotations.values():
        assert np.allclose(turn @ turn.T, np.eye(8), atol=1e-12)
    assert (found.rotations["l0"] == np.eye(8)).all()


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_what_it_says_and_never_increases_from_sweep_to_sweep(seed, k):
    vectors = noisy_languages(seed)
    whole = align(vectors, neighbours=k, least_pairs=1, sweeps=8, tolerance=-1)
    assert len(whole.objective) == 2 + 8
    identity = dict.fromkeys(vectors, np.eye(8))
    assert whole.objective[0] == pytest.approx(brute_force_objective(vectors, identity, k), abs=1e-6)
    after = [align(vectors, neighbours=k, least_pairs=1, sweeps=sweeps, tolerance=-1).rotations for sweeps in range(9)]
    exact = [brute_force_objective(vectors, rotations, k) for rotations in after]
    assert whole.objective[1:] == pytest.approx(exact, abs=1e-6)
    assert all(later <= earlier + 1e-7 for earlier, later in itertools.pairwise(exact))
    assert exact[-1] < whole.objective[0] - 0.01
    assert exact[-1] < exact[0]


def test_it_stops_when_a_sweep_gains_little():
    vectors = noisy_languages()
    found = align(vectors, sweeps=200)
    assert len(found.objective) < 100
    assert found.objective[-2] - found.objective[-1] <= 1e-5 * found.objective[-2]
    nudged = dict(found.rotations)
    random = np.random.default_rng(1)
    for _ in range(5):  # no small turn of any one language does better
        for language in list(vectors)[1:]:
            turned = nudged | {language: rotation(random, 8, 0.05) @ found.rotations[language]}
            assert brute_force_objective(vectors, turned, 5) > found.objective[-1] - 1e-5


def test_directions_no_pair_says_anything_of_stay_as_they_are():
    """Words lie in a plane of 6 dimensions: the other four must not be turned, whatever an SVD returns for them."""
    plane = np.zeros((40, 6), np.float32)
    around = np.arange(40) * 2 * np.pi / 40
    plane[:, 0], plane[:, 1] = np.cos(around), np.sin(around)
    c, s = np.cos(0.05), np.sin(0.05)
    turn = np.eye(6)
    turn[:2, :2] = [[c, -s], [s, c]]
    found = align({"a": plane, "b": plane @ turn.T.astype(np.float32)}, neighbours=1)
    assert np.allclose(found.rotations["b"], turn.T, atol=1e-6)
    assert np.allclose(found.rotations["b"][2:, 2:], np.eye(4), atol=1e-6)


def test_too_few_pairs_name_the_languages_and_the_count():
    random = np.random.default_rng(0)
    vectors = {"de": random.normal(size=(50, 4)), "ja": random.normal(size=(3, 4)), "fr": random.normal(size=(50, 4))}
    with pytest.raises(TooFewPairs, match=r"de and ja have \d+ mutual nearest neighbours, 20 are needed") as caught:
        align(vectors)
    assert isinstance(caught.value, UserError)
    assert caught.value.pairs == len(brute_force_pairs(vectors["de"], vectors["ja"], 5))
    found = align(vectors, least_pairs=caught.value.pairs)
    assert found.pairs["de", "ja"] == caught.value.pairs


def test_what_cannot_be_aligned():
    with pytest.raises(ValueError, match="at least two languages"):
        align({"de": np.eye(3)})
    with pytest.raises(ValueError, match="one dimension"):
        align({"de": np.eye(3), "fr": np.eye(4)})
    with pytest.raises(RunFailed, match="word vectors of fr are not all finite"):
        align({"de": np.eye(3), "fr": np.eye(3) * np.nan})
