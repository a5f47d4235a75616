"""All of SentEval's tasks with one encoder."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import f1_score

from raysys.evaluation.senteval.features import Encode
from raysys.evaluation.senteval.layout import Parts
from raysys.evaluation.senteval.protocol import evaluate
from raysys.evaluation.senteval.tasks import Task, find_tasks, missing_files, read_task, task_named, tasks_folder
from raysys.storage import Storage, join

SEED = 1111
"""SentEval's."""


@dataclass(frozen=True)
class TaskResult:
    """What an encoder got in one task. Where the files are not there, `missing` says how to get them, and the rest is empty."""

    metrics: dict[str, float]
    """`eval/senteval_<task>_accuracy` (a fraction), of MRPC also `…_f1`."""
    chance: dict[str, float]
    """The same names: by always naming the class that is most frequent in training; F1 by always naming class 1."""
    correct: np.ndarray
    """bool per test example, in the order of the files; for :func:`raysys.evaluation.senteval.significance`."""
    validation_accuracy: float = float("nan")
    strengths: tuple[float, ...] = ()
    """The chosen C, of each fold."""
    unfinished: int = 0
    """Classifiers that were stopped before their minimum; more than a few mean that figures could be a little higher."""
    missing: str | None = None


def run(
    encode: Encode,
    folder: str,
    tasks: Sequence[str] | None = None,
    seed: int = SEED,
    storage: Storage | None = None,
) -> dict[str, TaskResult]:
    """Train and test the classifiers of `tasks` on frozen vectors.

    Everything is read before the first sentence is encoded, so that a damaged file is told at once.

    Memory: the texts, the vectors of the distinct sentences of one task (in a temporary file from 1 GiB on, as those of SNLI are:
    some 5 GB at 2 048 dimensions), a few matrices of width × width, 20 vectors for every classifier that is fitted at once (600 in
    MR), and blocks of some 100 MiB. It never holds the features of all pairs.

    Args:
        encode: sentences → vectors, float [n, d], not normalised.
        folder: SentEval's `data/downstream` (or its `data`), or a folder that `jobs/prepare.py senteval` wrote; also `s3://…`.
        tasks: names of :func:`find_tasks`; all of them if None.
        seed: of the folds.
        storage: where `folder` lies; local disk and Amazon's S3 by default.

    Returns:
        Task → result, in the order of `tasks`; also of those whose files are not there.

    Raises:
        UserError: a task that does not exist, or a file that is not as published, with file and line.
        RunFailed: `encode` does not give one finite vector for each sentence.
    """
    storage = storage or Storage()
    chosen = [task_named(name) for name in (find_tasks(folder, storage) if tasks is None else tasks)]
    folder = tasks_folder(folder, storage)
    missing = {task.name: missing_files(task, folder, storage) for task in chosen}
    read = {task.name: read_task(task, folder, storage) for task in chosen if not missing[task.name]}
    results: dict[str, TaskResult] = {}
    for task in chosen:
        if task.name in read:
            results[task.name] = _result(task, *read.pop(task.name), encode, seed)
        else:
            lacking = f"{join(folder, task.folder)} lacks {', '.join(missing[task.name])}: {task.how_to_get}"
            results[task.name] = TaskResult({}, {}, np.empty(0, dtype=bool), missing=lacking)
    return results


def _result(task: Task, parts: Parts, classes: int, encode: Encode, seed: int) -> TaskResult:
    outcome = evaluate(task, parts, classes, encode, seed)
    tested = parts["all" if "all" in parts else "test"].labels
    learnt = parts["all" if "all" in parts else "train"].labels
    usual = int(np.bincount(learnt).argmax())
    name = f"eval/senteval_{task.name}"
    metrics, chance = {f"{name}_accuracy": outcome.accuracy}, {f"{name}_accuracy": float(np.mean(tested == usual))}
    if task.f1:
        metrics[f"{name}_f1"] = float(f1_score(tested, outcome.predicted))
        chance[f"{name}_f1"] = float(f1_score(tested, np.ones_like(tested)))
    correct = outcome.predicted == tested
    return TaskResult(metrics, chance, correct, outcome.validation_accuracy, outcome.strengths, outcome.unfinished)
