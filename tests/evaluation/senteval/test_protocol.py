"""The three protocols against plain loops over scikit-learn, with the folds that SentEval makes."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from raysys.evaluation import senteval
from tests.evaluation.senteval import files

HALF_A_POINT = 0.005
SPLIT_GRID, FOLDS_GRID = [2.0**i for i in range(-2, 4)], [2.0**i for i in range(-1, 6)]


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8-sig").splitlines()


def together(first: list[str], second: list[str]) -> np.ndarray:
    u, v = files.bag_of_words(first), files.bag_of_words(second)
    return np.hstack([abs(u - v), u * v])


def chosen(x: np.ndarray, y: np.ndarray, grid: list[float]) -> LogisticRegression:
    """Fitted with the C that ten folds choose."""
    folds = StratifiedKFold(10, shuffle=True, random_state=1111)
    return GridSearchCV(LogisticRegression(max_iter=2000), {"C": grid}, cv=folds).fit(x, y).best_estimator_


def test_folds_in_folds(tmp_path):
    files.polarity(tmp_path / "MR")
    sides = [lines(tmp_path / "MR" / f"rt-polarity.{side}") for side in ("pos", "neg")]
    texts, labels = sides[0] + sides[1], [1] * len(sides[0]) + [0] * len(sides[1])
    order = sorted(range(len(texts)), key=lambda row: (len(texts[row].split()), labels[row]))
    x, y = files.bag_of_words(texts)[order], np.array(labels)[order]
    right, correct = [], np.zeros(len(y), dtype=bool)
    for learnt, tested in StratifiedKFold(10, shuffle=True, random_state=1111).split(x, y):
        good = chosen(x[learnt], y[learnt], SPLIT_GRID).predict(x[tested]) == y[tested]
        correct[np.array(order)[tested]] = good
        right.append(good.mean())
    got = senteval.run(files.bag_of_words, str(tmp_path), ["MR"])["MR"]
    assert got.metrics["eval/senteval_MR_accuracy"] == pytest.approx(np.mean(right), abs=HALF_A_POINT)
    assert np.mean(got.correct == correct) > 0.99  # in the order of the files
    assert 0.6 < np.mean(right) < 0.95  # neither at chance nor too easy to tell a difference
    assert len(got.strengths) == 10


def test_folds_of_the_training_part(tmp_path):
    files.mrpc(tmp_path / "MRPC")
    parts = {}
    for part in ("train", "test"):
        rows = [line.split("\t") for line in lines(tmp_path / "MRPC" / f"msr_paraphrase_{part}.txt")[1:]]
        if part == "train":
            rows.sort(key=lambda row: (len(row[3].split()), len(row[4].split()), int(row[0])))
        parts[part] = together([row[3] for row in rows], [row[4] for row in rows]), np.array([int(row[0]) for row in rows])
    model = chosen(*parts["train"], FOLDS_GRID)
    x, y = parts["test"]
    got = senteval.run(files.bag_of_words, str(tmp_path), ["MRPC"])["MRPC"]
    assert got.strengths == (model.C,)
    assert got.metrics["eval/senteval_MRPC_accuracy"] == pytest.approx(model.score(x, y), abs=HALF_A_POINT)
    assert got.metrics["eval/senteval_MRPC_f1"] == pytest.approx(f1_score(y, model.predict(x)), abs=HALF_A_POINT)
    share = y.mean()
    assert got.chance["eval/senteval_MRPC_f1"] == pytest.approx(2 * share / (1 + share))


@pytest.mark.parametrize("task", ["SICK-E", "SNLI"])
def test_a_development_part(task, tmp_path):
    (files.sick if task == "SICK-E" else files.snli)(tmp_path / task.removesuffix("-E"), 300)
    grid = SPLIT_GRID if task == "SICK-E" else [1e9]
    parts = [files.pairs(300, 3, seed) for seed in range(3)]
    (x, y), (dev_x, dev_y), (test_x, test_y) = (
        (together([a for a, _, _ in pairs], [b for _, b, _ in pairs]), np.array([label for _, _, label in pairs])) for pairs in parts
    )
    models = [LogisticRegression(C=strength, max_iter=2000).fit(x, y) for strength in grid]
    best = int(np.argmax([round(100 * model.score(dev_x, dev_y), 2) for model in models]))
    got = senteval.run(files.bag_of_words, str(tmp_path), [task])[task]
    assert got.strengths == (grid[best],)
    assert got.metrics[f"eval/senteval_{task}_accuracy"] == pytest.approx(models[best].score(test_x, test_y), abs=HALF_A_POINT)
    assert got.validation_accuracy == pytest.approx(models[best].score(dev_x, dev_y), abs=HALF_A_POINT)
    assert np.mean(got.correct == (models[best].predict(test_x) == test_y)) > 0.99


def test_another_seed_makes_other_folds(tmp_path):
    files.polarity(tmp_path / "MR")
    runs = [senteval.run(files.bag_of_words, str(tmp_path), ["MR"], seed=seed)["MR"].correct for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()
