"""Reading the files of SentEval's classification tasks, as its scripts leave them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raysys.errors import UserError
from raysys.storage import Storage, join


@dataclass(frozen=True)
class Part:
    """Labelled sentences, or pairs of sentences; in the order of the files."""

    first: list[str]
    """Words with single spaces between them; an empty sentence is a full stop, as in SentEval's examples."""
    second: list[str] | None
    labels: np.ndarray
    """int64 [n], from 0."""

    def __len__(self) -> int:
        return len(self.first)


Parts = dict[str, Part]
"""`all` of a task that is cross-validated; `train` and `test`, and `dev` where there is one, of the others."""

Reader = Callable[[Storage, str], Parts]
"""(storage, folder of the task) → its parts; raises UserError with file and line."""

_ENTAILMENT = {"entailment": 0, "neutral": 1, "contradiction": 2}
_YES_NO = {"0": 0, "1": 1}
_MANY = {str(number): number for number in range(100)}


def polarity(one: str, zero: str) -> Reader:
    """Two files of sentences, one a line: those of `one` are labelled 1 and those of `zero` 0 (MR, CR, SUBJ, MPQA)."""

    def read(storage: Storage, folder: str) -> Parts:
        sides = [[_sentence(line) for line in _lines(storage, join(folder, name))] for name in (one, zero)]
        labels = np.repeat(np.array([1, 0]), [len(side) for side in sides])
        return {"all": Part(sides[0] + sides[1], None, labels)}

    return read


def binary_phrases(storage: Storage, folder: str) -> Parts:
    """`sentiment-{train,dev,test}`: a sentence, a tab and 0 or 1 (SST2)."""

    def columns(line: str) -> list[str]:
        return line.rsplit("\t", 1)

    return _phrases(storage, folder, columns, _YES_NO, "a sentence, a tab and 0 or 1")


def graded_phrases(storage: Storage, folder: str) -> Parts:
    """`sentiment-{train,dev,test}`: the number of a class, a space and a sentence (SST5)."""

    def columns(line: str) -> list[str]:
        return line.split(" ", 1)[::-1]

    return _phrases(storage, folder, columns, _MANY, "the number of a class (0 to 99), a space and a sentence")


def paraphrases(storage: Storage, folder: str) -> Parts:
    """`msr_paraphrase_{train,test}.txt`: a heading, then label, two ids and two sentences between tabs (MRPC)."""
    expected = "0 or 1, two ids and two sentences, with tabs between them,"
    return {
        part: _table(storage, join(folder, f"msr_paraphrase_{part}.txt"), (3, 4, 0), _YES_NO, expected, 5) for part in ("train", "test")
    }


def compositional(storage: Storage, folder: str) -> Parts:
    """`SICK_{train,trial,test_annotated}.txt`: a heading, then id, two sentences, relatedness and judgement between tabs (SICK-E)."""
    expected = "an id, two sentences, a score and ENTAILMENT, NEUTRAL or CONTRADICTION, with tabs between them,"
    labels = {name.upper(): number for name, number in _ENTAILMENT.items()}
    files = {"train": "train", "dev": "trial", "test": "test_annotated"}
    return {part: _table(storage, join(folder, f"SICK_{name}.txt"), (1, 2, 4), labels, expected, 5) for part, name in files.items()}


def inference(storage: Storage, folder: str) -> Parts:
    """`s1.*`, `s2.*` and `labels.*` of train, dev and test: line i of each makes one pair (SNLI)."""
    parts: Parts = {}
    for part in ("train", "dev", "test"):
        first, second, labels = (_lines(storage, join(folder, f"{name}.{part}")) for name in ("s1", "s2", "labels"))
        if not len(first) == len(second) == len(labels):
            counts = f"s1.{part} has {len(first)}, s2.{part} {len(second)}, labels.{part} {len(labels)}"
            raise UserError(f"{folder}: {counts} lines; line i of each should make one pair. Make the three files anew")
        path = join(folder, f"labels.{part}")
        numbers = [_label(label.strip(), _ENTAILMENT, path, line) for line, label in enumerate(labels, 1)]
        parts[part] = Part([_sentence(text) for text in first], [_sentence(text) for text in second], np.array(numbers))
    return parts


def _phrases(storage: Storage, folder: str, columns: Callable[[str], list[str]], labels: Mapping[str, int], expected: str) -> Parts:
    parts: Parts = {}
    for part in ("train", "dev", "test"):
        path = join(folder, f"sentiment-{part}")
        texts, numbers = [], []
        for number, line in enumerate(_lines(storage, path), 1):
            found = columns(line.strip())
            if len(found) != 2:
                raise _unreadable(path, number, line, expected)
            texts.append(_sentence(found[0]))
            numbers.append(_label(found[1], labels, path, number))
        parts[part] = Part(texts, None, np.array(numbers))
    return parts


def _table(storage: Storage, path: str, places: tuple[int, int, int], labels: Mapping[str, int], expected: str, width: int) -> Part:
    """Columns `places` (first sentence, second sentence, label) of a table of at least `width` columns under a heading."""
    first, second, numbers = [], [], []
    for number, line in enumerate(_lines(storage, path)[1:], 2):
        found = line.strip().split("\t")
        if len(found) < width:
            raise _unreadable(path, number, line, expected)
        one, other, label = (found[place] for place in places)
        first.append(_sentence(one))
        second.append(_sentence(other))
        numbers.append(_label(label, labels, path, number))
    return Part(first, second, np.array(numbers))


def _lines(storage: Storage, path: str) -> list[str]:
    """Lines of a file. SentEval reads some of them as Latin-1 and others as UTF-8: what is UTF-8 is read as that, the rest as Latin-1.

    Lines end with a line feed alone: other marks that Python takes for line ends occur inside sentences.
    """
    data = storage.read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = text.split("\n")
    if lines[-1].strip() == "":
        lines.pop()
    if not lines:
        raise UserError(f"{path} is empty; fetch it again")
    return lines


def _sentence(text: str) -> str:
    return " ".join(text.split()) or "."


def _label(text: str, labels: Mapping[str, int], path: str, line: int) -> int:
    if text not in labels:
        raise UserError(f"{path}, line {line}: the label {text[:40]!r} is unknown; there are {_some(list(labels))}")
    return labels[text]


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) < 10 else f"{labels[0]} to {labels[-1]}"


def _unreadable(path: str, number: int, line: str, expected: str) -> UserError:
    return UserError(f"{path}, line {number}: {expected} were expected, found {line[:80]!r}")
