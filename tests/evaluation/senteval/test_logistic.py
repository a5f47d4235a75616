"""The solver against scikit-learn's logistic regression, in float64 and to the end."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from raysys.evaluation.senteval.features import Features
from raysys.evaluation.senteval.logistic import solve


def world(classes: int, rows: int = 240, width: int = 12, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Features of very different sizes, some of them alike, far from zero; labels that they half explain."""
    random = np.random.default_rng(classes)
    x = random.normal(size=(rows, width))
    x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    x = x * random.lognormal(0, 1.5, width) + random.normal(size=width)
    scores = (x - x.mean(0)) / x.std(0) @ random.normal(size=(width, classes)) + noise * random.gumbel(size=(rows, classes))
    return x.astype(np.float32), scores.argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3])
def test_many_problems_at_once_are_those_of_scikit_learn(classes):
    x, y = world(classes)
    used = np.random.default_rng(0).random((6, len(x))) < 0.8
    strengths = np.array([0.25, 8.0, 1.0, 32.0, 0.5, 2.0])
    solved = solve(Features(x, np.arange(len(x))), y, classes, used, strengths, tolerance=1e-6)
    assert solved.unfinished == 0
    predicted = solved.predict(Features(x, np.arange(len(x))))
    for problem, strength in enumerate(strengths):
        rows = used[problem]
        reference = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(x[rows].astype(float), y[rows])
        scale = np.abs(reference.coef_).max()
        np.testing.assert_allclose(solved.weights[problem].numpy(), reference.coef_, atol=2e-3 * scale)
        assert np.mean(predicted[problem] == reference.predict(x.astype(float))) > 0.99


@pytest.mark.parametrize("classes", [2, 3])
def test_without_regularisation_the_gradient_is_zero(classes):
    x, y = world(classes, noise=3.0)
    solved = solve(Features(x, np.arange(len(x))), y, classes, np.ones((1, len(x)), dtype=bool), np.array([1e9]), tolerance=1e-6)
    scores = x.astype(float) @ solved.weights[0].double().numpy().T + solved.bias[0].double().numpy()
    scores = np.hstack([np.zeros((len(x), 1)), scores]) if classes == 2 else scores
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    centred = (x - x.mean(0)) / x.std(0)
    assert np.abs(centred.T @ (chances - np.eye(classes)[y])).max() / len(x) < 1e-4


@pytest.mark.parametrize("feature", ["constant", "zero", "doubled", "separating"])
def test_odd_features_do_no_harm(feature):
    x, y = world(2)
    odd = {"constant": np.full(len(x), 7.0), "zero": np.zeros(len(x)), "doubled": x[:, 0], "separating": 100.0 * y}[feature]
    x = np.column_stack([x, odd]).astype(np.float32)
    solved = solve(Features(x, np.arange(len(x))), y, 2, np.ones((2, len(x)), dtype=bool), np.array([1.0, 1e9]))
    assert solved.weights.isfinite().all()
    reference = LogisticRegression(C=1.0, tol=1e-8, max_iter=20_000).fit(x.astype(float), y)
    predicted = solved.predict(Features(x, np.arange(len(x))))
    assert np.mean(predicted[0] == reference.predict(x.astype(float))) > 0.99
    if feature == "separating":
        assert (predicted == y).all()


def test_few_passes_suffice_where_features_are_alike():
    random = np.random.default_rng(0)
    x = (random.normal(size=(300, 5)) @ random.normal(size=(5, 64)) + 0.01 * random.normal(size=(300, 64)) + 3).astype(np.float32)
    y = (x[:, 0] - x[:, 1] + random.normal(size=300) > 0).astype(int)
    solved = solve(Features(x, np.arange(300)), y, 2, np.ones((3, 300), dtype=bool), np.array([0.25, 1.0, 8.0]))
    assert solved.unfinished == 0
    assert solved.passes < 40


def test_problems_that_run_out_of_passes_are_counted():
    x, y = world(2)
    solved = solve(Features(x, np.arange(len(x))), y, 2, np.ones((3, len(x)), dtype=bool), np.ones(3), passes=3)
    assert solved.unfinished == 3
    assert solved.weights.abs().sum() > 0


def test_blocks_of_pairs_are_differences_and_products(monkeypatch):
    monkeypatch.setattr("raysys.evaluation.senteval.features._BLOCK_BYTES", 4 * 6 * 2)
    vectors = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    first, second = np.array([0, 1, 3, 3, 2]), np.array([2, 2, 3, 0, 1])
    features = Features(vectors, first, second)
    blocks = list(features.blocks())
    assert [(rows.start, rows.stop) for rows, _ in blocks] == [(0, 2), (2, 4), (4, 5)]
    u, v = vectors[first], vectors[second]
    np.testing.assert_allclose(np.vstack([block for _, block in blocks]), np.hstack([np.abs(u - v), u * v]), rtol=1e-6)
    np.testing.assert_array_equal(features.vectors, vectors)  # nothing was written into the vectors


def test_reading_in_blocks_changes_nothing(monkeypatch):
    x, y = world(3)
    problem = (y, 3, np.ones((1, len(x)), dtype=bool), np.array([1.0]))
    whole = solve(Features(x, np.arange(len(x))), *problem)
    monkeypatch.setattr("raysys.evaluation.senteval.features._BLOCK_BYTES", 4 * x.shape[1] * 7)
    parts = solve(Features(x, np.arange(len(x))), *problem)
    np.testing.assert_allclose(whole.weights, parts.weights, atol=2e-3)
