"""WikiMatrix from its published files: sorted, unsorted, cut short, and with every kind of bad line."""

import gzip
import random
from pathlib import Path

import pytest

from raysys.errors import UserError
from tests.datasets.recipes import recipe_module
from tests.datasets.written import notes, prepare, skipped

recipe = recipe_module("wikimatrix.recipe")
mined = recipe_module("wikimatrix.mined")
DE_EN = ("de", "en")


def line(score: float | str, number: int) -> str:
    return f"{score}\tSatz {number}\tsentence {number}\n"


def put(folder: Path, lines: list[str], name: str = "WikiMatrix.de-en.tsv.gz") -> Path:
    folder.mkdir(exist_ok=True)
    data = "".join(lines).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def test_pairs_down_to_the_threshold(tmp_path):
    lines = [line(1.25 - n / 1000, n) for n in range(300)]  # the 211 best: 1.25 to 1.04
    written, counts = prepare(recipe, put(tmp_path / "source", lines), tmp_path / "out", DE_EN, shards=3)
    samples = [notes(written["train"][key]) for key in sorted(written["train"])]
    assert sorted(written["train"]) == [f"de-en-{block:06d}" for block in range(4)]
    assert [len(sample["scores"]) for sample in samples] == [64, 64, 64, 19]
    assert [text for sample in samples for text in sample["texts"]["de"]] == [f"Satz {n}" for n in range(211)]
    assert [text for sample in samples for text in sample["texts"]["en"]] == [f"sentence {n}" for n in range(211)]
    assert [score for sample in samples for score in sample["scores"]] == [float(f"{1.25 - n / 1000}") for n in range(211)]
    assert samples[0] | {"texts": {}, "scores": []} == {"texts": {}, "scores": [], "alignment": "strict", "source": "WikiMatrix"}
    assert skipped(counts["train"]) == {}


def test_bad_lines_are_counted_by_cause(tmp_path):
    lines = [
        "\ufeff1.3\tGrüße,\xa0Welt\t\u4f60\u597d\u2028 world\r\n",
        "1.2\tnur eine\n",
        "1.2\teins\tone\tmore\n",
        "high\teins\tone\n",
        "nan\teins\tone\n",
        "1.2\t \u200b\tone\n",
        "\n",
        "1.2\tzwei\ttwo\r\n",
        "1.03\tdrei\tthree\n",
        "broken\n",
    ]
    source = put(tmp_path / "source", lines, "WikiMatrix.de-en.tsv")
    data = (source / "WikiMatrix.de-en.tsv").read_bytes()
    (source / "WikiMatrix.de-en.tsv").write_bytes(b"1.4\tM\xfcll\ttrash\n" + data.removeprefix(b"\xef\xbb\xbf"))
    written, counts = prepare(recipe, source, tmp_path / "out", DE_EN)
    (sample,) = written["train"].values()
    assert notes(sample)["texts"] == {"de": ["Grüße,\xa0Welt", "zwei"], "en": ["你好\u2028 world", "two"]}
    assert skipped(counts["train"]) == {"not three columns": 3, "score is no number": 2, "empty sentence": 1, "not UTF-8": 1}
    assert counts["train"].examples["not three columns"] == f"{source}/WikiMatrix.de-en.tsv line 3"


def test_an_unsorted_file_is_named_and_read_to_its_end(tmp_path):
    scores = [1.0 + random.Random(n).random() / 5 for n in range(3000)]
    scores[:2] = 1.1, 1.05
    source = put(tmp_path / "source", [line(score, n) for n, score in enumerate(scores)])
    written, counts = prepare(recipe, source, tmp_path / "out", DE_EN)
    texts = [text for key in sorted(written["train"]) for text in notes(written["train"][key])["texts"]["de"]]
    assert texts == [f"Satz {n}" for n, score in enumerate(scores) if score >= 1.04]
    rise = next(n for n in range(1, 3000) if scores[n] > scores[n - 1]) + 1
    assert skipped(counts["train"]) == {"not sorted by score from here on": 1}
    assert counts["train"].examples["not sorted by score from here on"] == f"{source}/WikiMatrix.de-en.tsv.gz line {rise}"


@pytest.mark.parametrize(("lower", "read"), [(mined.LOOK_AHEAD - 1, True), (mined.LOOK_AHEAD, False)])
def test_how_far_lower_scores_are_read(tmp_path, lower, read):
    source = put(tmp_path, [line(1.1, 0)] + [line(1.0, 1)] * lower + [line(1.2, 2)])
    rows = list(mined.read_rows(str(source / "WikiMatrix.de-en.tsv.gz")))
    assert [row.source for row in rows if row.is_pair] == (["Satz 0", "Satz 2"] if read else ["Satz 0"])
    assert [row.number for row in rows if row.fault] == ([lower + 2] if read else [])


def test_what_lies_before_a_cut_is_kept(tmp_path):
    lines = [line(1.3 - n / 100_000, random.Random(n).getrandbits(64)) for n in range(2000)]
    source = put(tmp_path / "source", lines)
    path = source / "WikiMatrix.de-en.tsv.gz"
    path.write_bytes(path.read_bytes()[:20_000])
    written, counts = prepare(recipe, source, tmp_path / "out", DE_EN, shards=3)
    texts = [text for key in sorted(written["train"]) for text in notes(written["train"][key])["texts"]["de"]]
    assert 200 < len(texts) < 2000
    assert texts == [text.split("\t")[1] for text in lines[: len(texts)]]
    assert skipped(counts["train"]) == {"file is cut short or damaged": 1}
    assert counts["train"].examples["file is cut short or damaged"] == f"{path} line {len(texts) + 1}"


def test_pairs_of_the_languages_asked_for(tmp_path):
    for name in ("de-en", "en-zh", "de-zh", "no-sh", "en-simple", "de-fr"):
        put(tmp_path / "source", [line(1.2, 0)], f"WikiMatrix.{name}.tsv.gz")
    written, _ = prepare(recipe, tmp_path / "source", tmp_path / "out", ("zh-Hans", "de", "en"))
    assert {key: list(notes(sample)["texts"]) for key, sample in written["train"].items()} == {
        "de-en-000000": ["de", "en"],
        "de-zh-Hans-000000": ["de", "zh-Hans"],
        "en-zh-Hans-000000": ["en", "zh-Hans"],
    }
    written, _ = prepare(recipe, tmp_path / "source", tmp_path / "no", ("nb", "sr-Latn"))
    assert list(written["train"]) == ["nb-sr-Latn-000000"]


def test_missing_and_double_files_are_named(tmp_path):
    put(tmp_path, [], "WikiMatrix.de-fr.tsv.gz")
    with pytest.raises(UserError, match=r"no file of WikiMatrix in two of the languages de en; there are de-fr. A folder with files"):
        recipe.parts(str(tmp_path), languages=DE_EN, shards=1, seed=0)
    put(tmp_path, [], "WikiMatrix.de-en.tsv.gz")
    put(tmp_path, [], "WikiMatrix.de-en.tsv")
    with pytest.raises(UserError, match=r"WikiMatrix.de-en.tsv and .*WikiMatrix.de-en.tsv.gz are the same text"):
        recipe.parts(str(tmp_path), languages=DE_EN, shards=1, seed=0)


def test_there_are_85_languages():
    assert len(recipe.AVAILABLE) == 85
    assert set(recipe.LANGUAGES) <= set(recipe.AVAILABLE)
