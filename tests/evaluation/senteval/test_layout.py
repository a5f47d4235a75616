"""Every published layout on small files, and what is said of files that are not as published."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.evaluation.senteval.tasks import FOLDS, PUBLISHED, find_tasks, read_task, task_named
from raysys.storage import Storage
from tests.evaluation.senteval import files
from tests.evaluation.senteval.files import write


def parts_of(task: str, folder: Path) -> dict:
    return task_named(task).read(Storage(), str(folder))


@pytest.mark.parametrize(
    ("task", "one", "zero"),
    [
        ("MR", "rt-polarity.pos", "rt-polarity.neg"),
        ("CR", "custrev.pos", "custrev.neg"),
        ("SUBJ", "subj.objective", "subj.subjective"),
        ("MPQA", "mpqa.pos", "mpqa.neg"),
    ],
)
def test_two_files_of_sentences(task, one, zero, tmp_path):
    write(tmp_path / one, ["the  good ,", "caf\xe9 \x85 noir"], "latin-1")  # \x85 is no line end
    write(tmp_path / zero, ["bad", "", "caf\xe9"], "utf-8")
    part = parts_of(task, tmp_path)["all"]
    assert part.first == ["the good ,", "caf\xe9 noir", "bad", ".", "caf\xe9"]
    assert part.second is None
    assert part.labels.tolist() == [1, 1, 0, 0, 0]


def test_sst(tmp_path):
    for name in ("train", "dev", "test"):
        write(tmp_path / "binary" / f"sentiment-{name}", [f"{name} is fine .\t1", "it is\tnot\t0"])
        write(tmp_path / "fine" / f"sentiment-{name}", [f"4 {name} is fine .", "0 no"])
    binary, fine = parts_of("SST2", tmp_path / "binary"), parts_of("SST5", tmp_path / "fine")
    assert list(binary) == list(fine) == ["train", "dev", "test"]
    assert (binary["dev"].first, binary["dev"].labels.tolist()) == (["dev is fine .", "it is not"], [1, 0])
    assert (fine["test"].first, fine["test"].labels.tolist()) == (["test is fine .", "no"], [4, 0])


def test_mrpc_with_its_mark_and_its_quotation_marks(tmp_path):
    for name in ("train", "test"):
        heading = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
        write(tmp_path / f"msr_paraphrase_{name}.txt", [heading, '1\t7\t8\t"A b , he said\tc d', "0\t9\t10\te\tf"])
    parts = parts_of("MRPC", tmp_path)
    assert list(parts) == ["train", "test"]
    assert (parts["test"].first, parts["test"].second) == (['"A b , he said', "e"], ["c d", "f"])
    assert parts["test"].labels.tolist() == [1, 0]


def test_sick(tmp_path):
    for name in ("train", "trial", "test_annotated"):
        heading = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
        rows = [f"1\t{name} a\tb\t4.5\tENTAILMENT", "2\tc\td\t1\tCONTRADICTION\r", "3\te\tf\t3\tNEUTRAL"]
        write(tmp_path / f"SICK_{name}.txt", [heading, *rows])
    parts = parts_of("SICK-E", tmp_path)
    assert [parts[name].first[0] for name in ("train", "dev", "test")] == ["train a", "trial a", "test_annotated a"]
    assert parts["dev"].labels.tolist() == [0, 2, 1]


def test_snli(tmp_path):
    files.snli(tmp_path)
    parts = parts_of("SNLI", tmp_path)
    made = files.pairs(90, 3, 2)
    assert list(zip(parts["test"].first, parts["test"].second, parts["test"].labels.tolist(), strict=True)) == made


FAULTS: list[tuple[str, str, Callable[[list[str]], list[str]], str]] = [
    ("SST2", "sentiment-dev", lambda lines: [*lines[:3], "no label"], r"sentiment-dev, line 4: a sentence, a tab and 0 or 1 were expected"),
    ("SST2", "sentiment-test", lambda lines: [*lines[:3], "x\t2"], r"sentiment-test, line 4: the label '2' is unknown; there are 0, 1"),
    ("SST5", "sentiment-train", lambda lines: ["good 4"], r"sentiment-train, line 1: the label 'good' is unknown; there are 0 to 99"),
    (
        "MRPC",
        "msr_paraphrase_train.txt",
        lambda lines: [*lines[:5], "1\t2\t3\tx"],
        r"train\.txt, line 6: 0 or 1, two ids",
    ),
    ("SICK-E", "SICK_trial.txt", lambda lines: [*lines[:2], "1\ta\tb\t3\tYES"], r"SICK_trial\.txt, line 3: the label 'YES' is unknown"),
    ("SICK-E", "SICK_train.txt", lambda lines: [], r"SICK_train\.txt is empty"),
    ("SICK-E", "SICK_train.txt", lambda lines: lines[:1], r"SICK: there is no example in train"),
    ("SNLI", "s2.train", lambda lines: lines[:-1], r"s1\.train has 90, s2\.train 89, labels\.train 90 lines"),
    ("SNLI", "labels.dev", lambda lines: ["-", *lines[1:]], r"labels\.dev, line 1: the label '-' is unknown; there are entailment"),
    ("MR", "rt-polarity.neg", lambda lines: lines[: FOLDS + 1], r"MR: the classes have 11, 70 examples .* each with 12 or more"),
]


@pytest.mark.parametrize(("task", "file", "change", "message"), FAULTS)
def test_faults_are_named_with_file_and_line(task, file, change, message, tmp_path):
    files.everything(tmp_path)
    path = tmp_path / PUBLISHED[task].folder / file
    write(path, change(path.read_text("utf-8").splitlines()))
    with pytest.raises(UserError, match=message):
        read_task(PUBLISHED[task], str(tmp_path), Storage())


def test_tasks_that_are_found(tmp_path):
    assert find_tasks(str(tmp_path)) == find_tasks(str(tmp_path / "nowhere")) == tuple(name for name in PUBLISHED if name != "SST5")
    files.polarity(tmp_path / "MR-rated")
    files.sick(tmp_path / "SICK-shapes-en")
    files.polarity(tmp_path / "notes")
    files.phrases(tmp_path / "SST" / "fine", 5, lambda text, label: f"{label} {text}")
    assert find_tasks(str(tmp_path) + "/")[8:] == ("MR-rated", "SICK-shapes-en", "SST5")


@pytest.mark.parametrize("name", ["TREC", "MRs", "MR-", "MR-a/b", ""])
def test_tasks_that_are_none(name):
    with pytest.raises(UserError, match="has no task"):
        task_named(name)


def test_own_sets_are_read_as_what_they_are_like():
    for name, like in {"MR-rated": "MR", "SICK-shapes-de": "SICK-E", "SST5-shapes-en-colour": "SST5"}.items():
        task = task_named(name)
        assert (task.folder, task.protocol, task.files) == (name, PUBLISHED[like].protocol, PUBLISHED[like].files)
        assert "prepare.py senteval" in task.how_to_get


def test_grids_are_those_of_senteval():
    grids = {name: np.log2(task.strengths).round().tolist() for name, task in PUBLISHED.items()}
    assert grids.pop("SNLI") == [30]  # 1e9
    assert grids.pop("MRPC") == [-1, 0, 1, 2, 3, 4, 5]
    assert all(grid == [-2, -1, 0, 1, 2, 3] for grid in grids.values())
