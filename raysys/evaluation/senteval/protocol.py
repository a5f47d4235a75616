"""SentEval's three protocols: which examples a classifier learns from, how its C is chosen, which examples it is tested on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

from raysys.evaluation.senteval.features import Encode, Features, Vectors
from raysys.evaluation.senteval.layout import Part, Parts
from raysys.evaluation.senteval.logistic import solve
from raysys.evaluation.senteval.tasks import FOLDS, Task

Split = tuple[np.ndarray, np.ndarray]
"""int64 rows to learn from, int64 rows to be tested on."""


@dataclass(frozen=True)
class Outcome:
    """What the classifiers said of the test examples."""

    predicted: np.ndarray
    """int8 [n], in the order of the files."""
    accuracy: float
    """Share that is right; the mean over folds where there are folds."""
    validation_accuracy: float
    """Of the chosen C, on what it was chosen by."""
    strengths: tuple[float, ...]
    """The chosen C, of each fold."""
    unfinished: int
    """Classifiers that were not at their minimum when the passes ran out."""


def evaluate(task: Task, parts: Parts, classes: int, encode: Encode, seed: int) -> Outcome:
    """Encode the sentences of a task and classify its test examples by its protocol."""
    texts = [text for part in parts.values() for side in (part.first, part.second or []) for text in side]
    vectors = Vectors(texts, encode, task.name)
    protocol = {"nested": nested, "folds": folds, "split": split}[task.protocol]
    return protocol(vectors, parts, classes, task.strengths, seed)


def nested(vectors: Vectors, parts: Parts, classes: int, strengths: Sequence[float], seed: int) -> Outcome:
    """Ten folds are tested in turn; C is chosen by ten folds of the other nine (MR, CR, SUBJ, MPQA)."""
    part = parts["all"]
    features = vectors.features(part)
    outer = split_folds(np.arange(len(part)), part, seed)
    inner = [split_folds(learnt, part, seed) for learnt, _ in outer]
    tried = _try(features, part, classes, [one for its in inner for one in its], strengths)
    by_fold = tried.accuracy.reshape(len(outer), FOLDS, len(strengths)).mean(axis=1)
    best = [_best(row) for row in by_fold]
    chosen = np.array([strengths[i] for i in best])
    solved = solve(features, part.labels, classes, _mask([learnt for learnt, _ in outer], len(part)), chosen)
    said = solved.predict(features)
    predicted = np.empty(len(part), dtype=np.int8)
    right = []
    for number, (_, tested) in enumerate(outer):
        predicted[tested] = said[number, tested]
        right.append(np.mean(predicted[tested] == part.labels[tested]))
    validation = float(np.mean([row[i] for row, i in zip(by_fold, best, strict=True)]))
    return Outcome(predicted, float(np.mean(right)), validation, tuple(chosen.tolist()), tried.unfinished + solved.unfinished)


def folds(vectors: Vectors, parts: Parts, classes: int, strengths: Sequence[float], seed: int) -> Outcome:
    """C is chosen by ten folds of the training part; the test part is apart (MRPC)."""
    train, test = parts["train"], parts["test"]
    features = vectors.features(train)
    tried = _try(features, train, classes, split_folds(np.arange(len(train)), train, seed), strengths)
    by_strength = tried.accuracy.reshape(FOLDS, len(strengths)).mean(axis=0)
    best = _best(by_strength)
    solved = solve(features, train.labels, classes, np.ones((1, len(train)), dtype=bool), np.array([strengths[best]]))
    predicted = solved.predict(vectors.features(test))[0]
    accuracy = float(np.mean(predicted == test.labels))
    return Outcome(predicted, accuracy, float(by_strength[best]), (strengths[best],), tried.unfinished + solved.unfinished)


def split(vectors: Vectors, parts: Parts, classes: int, strengths: Sequence[float], seed: int) -> Outcome:
    """C is chosen by the development part; nothing is drawn (SST, SNLI, SICK-E)."""
    train, dev, test = parts["train"], parts["dev"], parts["test"]
    used = np.ones((len(strengths), len(train)), dtype=bool)
    solved = solve(vectors.features(train), train.labels, classes, used, np.array(strengths))
    by_strength = np.mean(solved.predict(vectors.features(dev)) == dev.labels, axis=1)
    best = _best(by_strength)
    predicted = solved.only(best).predict(vectors.features(test))[0]
    accuracy = float(np.mean(predicted == test.labels))
    return Outcome(predicted, accuracy, float(by_strength[best]), (strengths[best],), solved.unfinished)


def split_folds(rows: np.ndarray, part: Part, seed: int) -> list[Split]:
    """Ten folds of some rows of `part`, those that SentEval makes: stratified, shuffled, of examples sorted by length and label.

    `rows` that come from an outer fold keep the order that this function gave them.
    """
    if len(rows) == len(part):
        lengths = [np.array([len(text.split()) for text in side]) for side in (part.first, part.second or part.first)]
        rows = np.lexsort((part.labels, lengths[1], lengths[0]))
    made = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(rows, part.labels[rows])
    return [(rows[learnt], rows[tested]) for learnt, tested in made]


@dataclass(frozen=True)
class _Tried:
    accuracy: np.ndarray
    """float64 [splits, strengths], on the rows that were not learnt from."""
    unfinished: int


def _try(features: Features, part: Part, classes: int, splits: Sequence[Split], strengths: Sequence[float]) -> _Tried:
    """A classifier for every split and strength, all at once."""
    used = np.repeat(_mask([learnt for learnt, _ in splits], len(part)), len(strengths), axis=0)
    solved = solve(features, part.labels, classes, used, np.tile(strengths, len(splits)))
    right = (solved.predict(features) == part.labels).reshape(len(splits), len(strengths), -1)
    accuracy = np.array([right[number][:, tested].mean(axis=1) for number, (_, tested) in enumerate(splits)])
    return _Tried(accuracy, solved.unfinished)


def _mask(rows: Sequence[np.ndarray], count: int) -> np.ndarray:
    used = np.zeros((len(rows), count), dtype=bool)
    for number, its in enumerate(rows):
        used[number, its] = True
    return used


def _best(accuracies: np.ndarray) -> int:
    """The first of the best, in hundredths of a point as SentEval compares them: of equally good ones the smallest C."""
    return int(np.argmax(np.round(100 * accuracies, 2)))
