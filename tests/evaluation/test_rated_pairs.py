"""STS and SICK in SentEval's layout: written here as published, and read; what is lacking or damaged is named."""

import pytest

from raysys.errors import UserError
from raysys.evaluation.rated_pairs import load
from raysys.storage import Storage
from tests.evaluation.rated_files import rows, write, write_all, write_year


@pytest.fixture
def folder(tmp_path):
    write_all(tmp_path)
    return tmp_path


def test_what_is_lacking_is_named(folder):
    for name in ("STS/STS13-en-test/STS.gs.FNWN.txt", "STS/STSBenchmark/sts-test.csv", "SICK/SICK_trial.txt"):
        (folder / name).unlink()
    (folder / "STS" / "notes").mkdir()
    write(folder / "STS" / "notes" / "readme.txt", "nothing")
    found = load(str(folder))
    assert {name: how.split(";")[0] for name, how in found.lacking.items()} == {
        "STS_all": "STS/STSBenchmark has no sts-test.csv",
        "STS_2013": "STS/STS13-en-test has no STS.gs.FNWN.txt",
        "STS_notes": "STS/notes has no sts-test.csv",
        "SICK_dev": "SICK has no SICK_trial.txt",
    }
    assert "one's own" in found.lacking["STS_notes"]
    assert "STS_all_dev" in found.pairs
    assert "STS_2013" not in found.means


def test_an_empty_folder_lacks_everything_and_one_that_is_not_there_is_a_mistake(tmp_path):
    write(tmp_path / "MR" / "rt-polarity.pos", "good .")
    found = load(str(tmp_path))
    assert found.pairs == found.means == {}
    assert found.lacking["SICK"].startswith("there is no SICK; ")
    with pytest.raises(UserError, match="nowhere"):
        load(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("file", "lines", "said"),
    [
        ("STS/STS12-en-test/STS.gs.MSRpar.txt", ["1", "2"], r"MSRpar\.txt has 6 lines and .*gs\.MSRpar\.txt 2"),
        ("STS/STS12-en-test/STS.gs.MSRpar.txt", ["1", "2", "much", "1", "2", "3"], r"gs\.MSRpar\.txt, line 3: a rating was .* 'much'"),
        ("STS/STS12-en-test/STS.gs.MSRpar.txt", ["", "", "1", "", "", ""], r"has 1 rated pairs"),
        ("STS/STS12-en-test/STS.input.MSRpar.txt", ["a\tb"] * 5 + ["alone"], r"input\.MSRpar\.txt, line 6: two sentences"),
        ("STS/STSBenchmark/sts-dev.csv", ["main-news\tx\ty\t0\t1.0\ta\tb", "main-news\tx"], r"sts-dev\.csv, line 2: .*found 2 columns"),
        ("STS/STSBenchmark/sts-dev.csv", ["main-news\tx\ty\t0\tnan\ta\tb"], r"sts-dev\.csv, line 1: a rating was expected, found 'nan'"),
        ("STS/STSBenchmark/sts-test.csv", ["main-news\tx\ty\t0\t1\ta\tb"] * 2 + ["main-sea\tx\ty\t0\t1\ta\tb"], r"genre sea has 1 rated"),
        ("SICK/SICK_trial.txt", ["pair_ID\tsentence_A\tsentence_B\tscore"], r"SICK_trial\.txt, line 1: .*no column 'relatedness_score'"),
        ("SICK/SICK_trial.txt", ["pair_ID\tsentence_A\tsentence_B\trelatedness_score", "1\ta\tb"], r"line 2: 4 columns .* found 3"),
        ("SICK/SICK_trial.txt", [], r"SICK_trial\.txt, line 1"),
        ("STS/2012/STS.input.x.txt", ["a\tb"], r"STS/2012: its pairs would be called STS_2012"),
    ],
)  # fmt: skip
def test_faults_name_file_and_line(folder, file, lines, said):
    write(folder / file, *lines)
    with pytest.raises(UserError, match=said):
        load(str(folder))


def test_bytes_that_are_no_text(folder):
    path = folder / "SICK" / "SICK_trial.txt"
    path.write_bytes(path.read_bytes() + b"9\ta\tcaf\xe9\t1\tNEUTRAL\n")
    with pytest.raises(UserError, match=r"SICK_trial\.txt, line 9: not UTF-8"):
        load(str(folder))


def test_line_ends_of_windows_and_marks_inside_sentences(tmp_path):
    place = tmp_path / "STS" / "mine"
    place.mkdir(parents=True)
    (place / "STS.input.x.txt").write_bytes("\ufeffone\u2028two\tthree\r\na\x85b\tc\r\n".encode())
    (place / "STS.gs.x.txt").write_bytes(b"1\r\n2")
    pairs = load(str(tmp_path)).pairs["STS_mine_x"]
    assert pairs.first == ("one\u2028two", "a\x85b")
    assert pairs.second == ("three", "c")
    assert pairs.ratings.tolist() == [1, 2]


def test_in_object_storage(tmp_path, object_store):
    write_year(tmp_path / "STS" / "shapes", ["colours"])
    storage, uri = Storage(), f"{object_store.bucket_uri}/relatedness"
    for file in ("STS.input.colours.txt", "STS.gs.colours.txt"):
        storage.upload(tmp_path / "STS" / "shapes" / file, f"{uri}/STS/shapes/{file}")
    assert [pairs.first for pairs in load(f"{uri}/", storage).pairs.values()] == [tuple(first for first, _, _ in rows(0, 6))]
