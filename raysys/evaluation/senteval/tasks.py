"""The tasks: where their files lie, how they are read, and by which protocol the classifier is trained.

Folders, files, order, folds and grids of C are those of SentEval where scikit-learn is its classifier (its other one, Adam with early
stopping, has no minimum to compare with). In one thing we differ, as the paper's systems are compared in one way: pairs of SNLI are
[|u − v| ; u ∗ v] as those of the other tasks; SentEval has u and v before them.

Sets in the same layouts that are not the published ones have names of their own, so that no figure is taken for another: `MR-rated`
lies in the folder `MR-rated` in the layout of MR, and so on.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raysys.errors import UserError
from raysys.evaluation.senteval import layout
from raysys.evaluation.senteval.layout import Parts, Reader
from raysys.storage import Storage, join

Protocol = Literal["nested", "folds", "split"]
"""How the regularisation is chosen: by folds within each fold, by folds of the training part, or by the development part."""

FOLDS = 10
"""Of the cross-validations, outer and inner."""

_LEAST: dict[Protocol, int] = {"nested": FOLDS + 2, "folds": FOLDS, "split": 1}
"""Examples of a class without which a fold would have none of it."""

_SPLIT_GRID = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_FOLDS_GRID = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_NOT_REGULARISED = (1e9,)


@dataclass(frozen=True)
class Task:
    """One classification task."""

    name: str
    folder: str
    """Beneath the folder of all tasks."""
    files: tuple[str, ...]
    read: Reader
    protocol: Protocol
    strengths: tuple[float, ...] = _SPLIT_GRID
    """C of the logistic regression, from which one is chosen: the loss is C · Σ loss of the examples + ½ ‖weights‖²."""
    f1: bool = False
    """F1 of class 1 is reported too."""

    @property
    def how_to_get(self) -> str:
        """What to do where the files are not there."""
        if self.name not in PUBLISHED:
            return f"python jobs/prepare.py senteval --out FOLDER makes {self.folder}/"
        return (
            f"data/downstream/get_transfer_data.bash of SentEval (github.com/facebookresearch/SentEval) fetches {self.folder}/ "
            f"with {', '.join(self.files)}"
        )


def _polarity(name: str, one: str, zero: str) -> Task:
    return Task(name, name, (one, zero), layout.polarity(one, zero), "nested")


_PHRASES = ("sentiment-train", "sentiment-dev", "sentiment-test")

PUBLISHED: dict[str, Task] = {
    task.name: task
    for task in (
        _polarity("MR", "rt-polarity.pos", "rt-polarity.neg"),
        _polarity("CR", "custrev.pos", "custrev.neg"),
        _polarity("SUBJ", "subj.objective", "subj.subjective"),
        _polarity("MPQA", "mpqa.pos", "mpqa.neg"),
        Task("MRPC", "MRPC", ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"), layout.paraphrases, "folds", _FOLDS_GRID, f1=True),
        Task("SST2", "SST/binary", _PHRASES, layout.binary_phrases, "split"),
        Task("SST5", "SST/fine", _PHRASES, layout.graded_phrases, "split"),
        Task(
            "SNLI",
            "SNLI",
            tuple(f"{name}.{part}" for part in ("train", "dev", "test") for name in ("s1", "s2", "labels")),
            layout.inference,
            "split",
            _NOT_REGULARISED,
        ),
        Task("SICK-E", "SICK", ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"), layout.compositional, "split"),
    )
}

TABLE = ("MR", "CR", "SUBJ", "MPQA", "MRPC", "SST2", "SNLI", "SICK-E")
"""The eight tasks of the paper's Table 3."""


def task_named(name: str) -> Task:
    """A published task, or a set of one's own, whose name is that of the layout, a hyphen and more: `MR-rated`, `SICK-shapes-en`.

    Raises:
        UserError: no such layout.
    """
    if name in PUBLISHED:
        return PUBLISHED[name]
    start, hyphen, rest = name.partition("-")
    likeness = PUBLISHED.get("SICK-E" if start == "SICK" else start)
    if likeness is None or not hyphen or not rest or "/" in name:
        raise UserError(f"SentEval has no task {name!r}; it has {', '.join(PUBLISHED)}, and sets of your own are named like MR-mine")
    return replace(likeness, name=name, folder=name)


def find_tasks(folder: str, storage: Storage | None = None) -> tuple[str, ...]:
    """The eight tasks of the paper, then all others whose folders lie in `folder`, in the order of their names."""
    storage = storage or Storage()
    folder = tasks_folder(folder, storage)
    others = set()
    if storage.exists(folder):
        for entry in storage.list(folder):
            beneath = entry.uri[len(folder.rstrip("/")) + 1 :]
            name = beneath.split("/")[0]
            if beneath.startswith("SST/fine/"):
                others.add("SST5")
            elif name.partition("-")[0] in ("SICK", *PUBLISHED) and name not in PUBLISHED and "-" in name:
                others.add(name)
    return (*TABLE, *sorted(others))


def tasks_folder(folder: str, storage: Storage) -> str:
    """`folder`, or where the tasks lie in it if it is SentEval's own `data`."""
    beneath = join(folder, "downstream")
    return beneath if storage.exists(beneath) else folder


def missing_files(task: Task, folder: str, storage: Storage) -> list[str]:
    """Files of the task that are not there."""
    return [name for name in task.files if not storage.exists(join(folder, task.folder, name))]


def read_task(task: Task, folder: str, storage: Storage) -> tuple[Parts, int]:
    """The parts of a task whose files are all there, and the number of its classes.

    Raises:
        UserError: a file is not as published (with the line), a class has no training examples, or too few for the folds.
    """
    where = join(folder, task.folder)
    parts = task.read(storage, where)
    if empty := [name for name, part in parts.items() if not len(part)]:
        raise UserError(f"{where}: there is no example in {' and '.join(empty)}; fetch its files again")
    classes = 1 + max(int(part.labels.max()) for part in parts.values())
    counts = np.bincount(parts["all" if "all" in parts else "train"].labels, minlength=classes)
    needed = _LEAST[task.protocol]
    if classes < 2 or counts.min() < needed:
        raise UserError(
            f"{where}: the classes have {', '.join(map(str, counts))} examples to learn from; "
            f"at least two classes are needed, each with {needed} or more"
        )
    return parts, classes
