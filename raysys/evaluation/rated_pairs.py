"""Reading rated pairs of sentences: STS 2012–2016, the STS benchmark and SICK, as SentEval's scripts leave them in `data/downstream`.

(Conneau and Kiela 2018, https://github.com/facebookresearch/SentEval.) A set of one's own is a further folder of `STS/` with files
of either form: `STS.input.<part>.txt` with `STS.gs.<part>.txt`, or `sts-{train,dev,test}.csv`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raysys.errors import UserError
from raysys.storage import Storage, join

STS, SICK = "STS", "SICK"
YEARS: dict[str, tuple[str, ...]] = {
    "STS12-en-test": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13-en-test": ("FNWN", "headlines", "OnWN"),
    "STS14-en-test": ("deft-forum", "deft-news", "headlines", "OnWN", "images", "tweet-news"),
    "STS15-en-test": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16-en-test": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
"""Folder of a year → its parts. The part SMT of 2013 is not free, and SentEval has none either."""
BENCHMARK = "STSBenchmark"
PARTS = ("STS_captions", "STS_news", "STS_forum")
"""Parts of the benchmark's test pairs, Table 1's STS/Cap, STS/News and STS/Forum; all of them are `STS_all`."""
_BENCHMARK_FILES = {"": "sts-test.csv", "_dev": "sts-dev.csv", "_train": "sts-train.csv"}
_SICK_FILES = {"": "SICK_test_annotated.txt", "_dev": "SICK_trial.txt", "_train": "SICK_train.txt"}
_SICK_COLUMNS = ("sentence_A", "sentence_B", "relatedness_score")
_OWN = "a set of one's own is made of STS.input.<part>.txt with STS.gs.<part>.txt, or of sts-test.csv"
_GET = (
    "run data/downstream/get_transfer_data.bash of https://github.com/facebookresearch/SentEval and copy its {what} into {folder}; "
    "`python jobs/prepare.py senteval` makes sets that need no download"
)


@dataclass(frozen=True)
class Pairs:
    """Pairs of sentences in the order of the file, and how related people find them."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    ratings: np.ndarray
    """float64 [n], the larger the more related."""

    def __len__(self) -> int:
        return len(self.ratings)

    @property
    def sentences(self) -> tuple[str, ...]:
        return self.first + self.second


@dataclass(frozen=True)
class Sets:
    """What was found in a folder."""

    pairs: dict[str, Pairs]
    """Name → pairs: `STS_all`, its parts `STS_captions`, `STS_news`, `STS_forum`, `STS_all_dev`, `STS_all_train`; `SICK` (the test
    pairs), `SICK_dev`, `SICK_train`; `STS_2012_MSRpar` …; `STS_<folder>` and `STS_<folder>_<part>` of one's own."""
    means: dict[str, tuple[str, ...]]
    """Sets of several files, `STS_2012` …: the names of their parts in `pairs`."""
    lacking: dict[str, str]
    """What is not there → how to get it."""

    def sentences(self, name: str) -> tuple[str, ...]:
        """All sentences of a set, each as often as it occurs."""
        return tuple(text for part in self.means.get(name, (name,)) for text in self.pairs[part].sentences)


def load(folder: str, storage: Storage | None = None) -> Sets:
    """All sets beneath `folder`, which has the folders `STS` and `SICK`.

    Raises:
        UserError: no such folder, or a file that is not what its name says; it names file and line.
    """
    storage = storage or Storage()
    paths = [entry.uri[len(folder.rstrip("/")) + 1 :] for entry in storage.list(folder)]
    below: dict[str, dict[str, str]] = {}
    for path in paths:
        place, _, file = path.rpartition("/")
        below.setdefault(place, {})[file] = join(folder, path)
    sets = Sets({}, {}, {})
    own = sorted(place.removeprefix(f"{STS}/") for place in below if place.startswith(f"{STS}/") and place.count("/") == 1)
    for name in dict.fromkeys([BENCHMARK, *YEARS, *own]):
        place = f"{STS}/{name}"
        how = _GET.format(what=place, folder=join(folder, STS)) if name in (BENCHMARK, *YEARS) else _OWN
        _read_folder(sets, storage, name, _Folder(place, below.get(place, {}), how))
    sick = _Folder(SICK, below.get(SICK, {}), _GET.format(what=SICK, folder=folder))
    for ending, uri in _splits(sets, sick, SICK, _SICK_FILES):
        sets.pairs[SICK + ending] = _pairs(_read_sick(storage, uri), uri)
    return sets


@dataclass(frozen=True)
class _Folder:
    """Files of one folder."""

    place: str
    files: dict[str, str]
    """Name → URI."""
    how: str
    """To get what is not there."""

    def lacks(self, file: str) -> str:
        return f"{self.place} has no {file}; {self.how}" if self.files else f"there is no {self.place}; {self.how}"


def _read_folder(sets: Sets, storage: Storage, name: str, folder: _Folder) -> None:
    """Add what is in one folder of `STS/`."""
    title = f"STS_20{name[3:5]}" if name in YEARS else "STS_all" if name == BENCHMARK else f"STS_{name}"
    inputs = sorted(file for file in folder.files if file.startswith("STS.input.") and file.endswith(".txt"))
    parts = YEARS.get(name) or tuple(file.removeprefix("STS.input.").removesuffix(".txt") for file in inputs)
    if title in sets.pairs or title in sets.means:
        raise UserError(f"{folder.place}: its pairs would be called {title}, as others are; give the folder another name")
    if parts:
        wanted = [f"STS.{kind}.{part}.txt" for part in parts for kind in ("input", "gs")]
        if missing := [file for file in wanted if file not in folder.files]:
            sets.lacking[title] = folder.lacks(missing[0])
            return
        for part in parts:
            sentences, ratings = (folder.files[f"STS.{kind}.{part}.txt"] for kind in ("input", "gs"))
            sets.pairs[f"{title}_{part}"] = _pairs(_read_year(storage, sentences, ratings), sentences)
        sets.means[title] = tuple(f"{title}_{part}" for part in parts)
        return
    for ending, uri in _splits(sets, folder, title, _BENCHMARK_FILES):
        rows = list(_read_benchmark(storage, uri))
        sets.pairs[title + ending] = _pairs([row[1:] for row in rows], uri)
        for genre in dict.fromkeys(row[0] for row in rows) if not ending else ():
            part = f"STS_{genre}" if name == BENCHMARK else f"{title}_{genre}"
            sets.pairs[part] = _pairs([row[1:] for row in rows if row[0] == genre], f"{uri}, genre {genre}")


def _splits(sets: Sets, folder: _Folder, title: str, files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(ending of the name, URI) of the `files` that are there; the others are noted, a folder without any as one."""
    there = {ending: file for ending, file in files.items() if file in folder.files}
    for ending, file in files.items():
        if file in folder.files:
            yield ending, folder.files[file]
        elif there or not ending:
            sets.lacking[title + ending] = folder.lacks(file)


Row = tuple[str, str, float]


def _pairs(rows: Sequence[Row], where: str) -> Pairs:
    if len(rows) < 2:
        raise UserError(f"{where} has {len(rows)} rated pairs of sentences; a correlation needs at least two")
    if silent := next((number for number, row in enumerate(rows, 1) if not (row[0].strip() and row[1].strip())), 0):
        raise UserError(f"{where}: rated pair {silent} has an empty sentence")
    first, second, ratings = zip(*rows, strict=True)
    return Pairs(first, second, np.array(ratings))


def _read_year(storage: Storage, sentences: str, ratings: str) -> list[Row]:
    """`STS.input.X.txt` (two sentences with a tab between) and `STS.gs.X.txt` (a number, or nothing where nobody rated)."""
    pairs, numbers = list(_lines(storage, sentences)), list(_lines(storage, ratings))
    if len(pairs) != len(numbers):
        raise UserError(f"{sentences} has {len(pairs)} lines and {ratings} {len(numbers)}; they do not belong together")
    rows = []
    for (number, columns), (_, rating) in zip(pairs, numbers, strict=True):
        if len(columns) < 2:
            raise UserError(f"{sentences}, line {number}: two sentences with a tab between were expected, found {columns[0][:80]!r}")
        if rating[0].strip():
            rows.append((columns[0], columns[1], _number(rating[0], ratings, number)))
    return rows


def _read_benchmark(storage: Storage, uri: str) -> Iterator[tuple[str, str, str, float]]:
    """(genre, sentence, sentence, rating) of `sts-*.csv`: genre, file, year, id, rating, two sentences, with tabs and no quoting."""
    for number, columns in _lines(storage, uri):
        if len(columns) < 7:
            expected = "genre, file, year, id, rating and two sentences with tabs between were expected"
            raise UserError(f"{uri}, line {number}: {expected}, found {len(columns)} columns")
        genre = columns[0].removeprefix("main-")
        yield "forum" if genre == "forums" else genre, columns[5], columns[6], _number(columns[4], uri, number)


def _read_sick(storage: Storage, uri: str) -> list[Row]:
    """`SICK_*.txt`: a heading, then pair, two sentences, relatedness and judgement with tabs between."""
    lines = _lines(storage, uri)
    heading = next(lines, (1, []))[1]
    if lacking := [name for name in _SICK_COLUMNS if name not in heading]:
        raise UserError(f"{uri}, line 1: the heading has no column {lacking[0]!r}; it has {', '.join(heading)[:120]!r}")
    places = [heading.index(name) for name in _SICK_COLUMNS]
    rows = []
    for number, columns in lines:
        if len(columns) <= max(places):
            raise UserError(f"{uri}, line {number}: {len(heading)} columns were expected, found {len(columns)}")
        first, second, rating = (columns[place] for place in places)
        rows.append((first, second, _number(rating, uri, number)))
    return rows


def _number(text: str, uri: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{uri}, line {line}: a rating was expected, found {text[:40]!r}")
    return value


def _lines(storage: Storage, uri: str) -> Iterator[tuple[int, list[str]]]:
    """(number from 1, columns) of every line. Only a line feed ends one: sentences have other marks that Python takes for ends."""
    data = storage.read(uri)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{uri}, line {number}: not UTF-8 text (byte {error.start} of the file)") from None
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        yield number, [column.strip() for column in line.removesuffix("\r").split("\t")]
