"""Text files of sources: ends of lines, encodings, compression and damage."""

import gzip
import pickle

import pytest

from raysys.errors import UserError
from raysys.storage import Storage
from tests.datasets.recipes import recipe_module
from tests.object_store import environment

lines = recipe_module("common.lines")
Line = lines.Line


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb", ["a", "b"]),
        (b"\n\r\n \n", ["", "", " "]),
        ("\ufeffä\ufeff\n\ufeff".encode(), ["ä\ufeff", "\ufeff"]),
        ("a\u2028b\x0bc\x85d\re\n".encode(), ["a\u2028b\x0bc\x85d\re"]),
        (b"a\r\r\n", ["a\r"]),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines(tmp_path, data, expected, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(lines.read_lines(str(path))) == [Line(number, text) for number, text in enumerate(expected, 1)]


def test_several_archives_in_one_file_are_one_text(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\nb", mtime=0) + gzip.compress(b"c\nd\n", mtime=0))
    assert [line.text for line in lines.read_lines(str(tmp_path / "a.gz"))] == ["a", "bc", "d"]


def test_a_line_that_is_not_utf8_spoils_no_other(tmp_path):
    (tmp_path / "a").write_bytes(b"a\nM\xfcll\n\xc3\nb")
    fault = "not UTF-8"
    assert list(lines.read_lines(str(tmp_path / "a"))) == [Line(1, "a"), Line(2, "", fault), Line(3, "", fault), Line(4, "b")]


def test_only_whole_lines_before_a_cut_are_given_out(tmp_path):
    data = gzip.compress("".join(f"{n * 7919}\n" for n in range(2000)).encode())
    seen = set()
    for kept in (0, 5, 15, len(data) // 2, len(data) - 9, len(data) - 1):
        (tmp_path / "a.gz").write_bytes(data[:kept])
        found: list[str] = []
        with pytest.raises(lines.CutShort, match=r"a.gz is cut short or damaged after line \d+ \(.+\); download it again") as error:
            found.extend(line.text for line in lines.read_lines(str(tmp_path / "a.gz")))
        assert found == [str(n * 7919) for n in range(len(found))]
        assert error.value.line == len(found)
        assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
        seen.add(len(found))
    assert {0, 2000} < seen


def test_a_damaged_byte_is_found(tmp_path):
    data = bytearray(gzip.compress("".join(f"{n * 7919}\n" for n in range(2000)).encode()))
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "a.gz").write_bytes(data)
    with pytest.raises(lines.CutShort):
        list(lines.read_lines(str(tmp_path / "a.gz")))


@pytest.mark.parametrize(
    ("data", "says"),
    [("a\n".encode("utf-16"), "is UTF-16 text"), (gzip.compress(b"a", mtime=0), "is compressed by gzip; let its name end with .gz")],
)
def test_files_of_another_kind_are_named(tmp_path, data, says):
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(UserError, match=f"a.txt {says}"):
        list(lines.read_lines(str(tmp_path / "a.txt")))


def test_objects(tmp_path):
    data = '{"a": "ä"}\n\n[1]\n{"a": "\\ud800"}\n{"a": NaN}\n{"a"\n{"a": "\\ud83d\\ude00"}\n'
    (tmp_path / "a.jsonl").write_bytes(data.encode() + b'{"a": "\xff"}')
    found = [(line.number, line.fault, value) for line, value in lines.read_objects(str(tmp_path / "a.jsonl"))]
    assert found == [
        (1, "", {"a": "ä"}),
        (3, "not a json object", {}),
        (4, "json holds half a surrogate pair or no number", {}),
        (5, "json holds half a surrogate pair or no number", {}),
        (6, "not a json object", {}),
        (7, "", {"a": "😀"}),
        (8, "not UTF-8", {}),
    ]


def test_files_are_found_with_absolute_paths_and_without_hidden_ones(tmp_path, monkeypatch):
    for name in ("b/a.txt", "a.txt", ".git/a.txt", "__MACOSX/a.txt", "b/._a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a")
    monkeypatch.chdir(tmp_path)
    assert [entry.uri for entry in lines.find_files(".")] == [f"{tmp_path}/a.txt", f"{tmp_path}/b/a.txt"]
    assert lines.find_files(f"file://{tmp_path}") == lines.find_files(".")
    hidden = tmp_path / ".git"
    assert [entry.uri for entry in lines.find_files(str(hidden))] == [f"{hidden}/a.txt"]
    with pytest.raises(UserError, match=r"the folder .*none does not exist"):
        lines.find_files(str(tmp_path / "none"))


def test_files_in_object_storage(tmp_path, object_store):
    folder = f"{object_store.bucket_uri}/{tmp_path.name}"
    data = gzip.compress("".join(f"{n * 7919}\n" for n in range(100_000)).encode())
    with environment(AWS_ENDPOINT_URL=object_store.endpoint):
        Storage().write(f"{folder}/b/a.gz", data)
        Storage().write(f"{folder}/.c/a.gz", data)
        Storage().write(f"{folder}/b/cut.gz", data[:1000])
        whole, cut = lines.find_files(folder)
        assert (whole.uri, cut.uri) == (f"{folder}/b/a.gz", f"{folder}/b/cut.gz")
        assert [line.text for line in lines.read_lines(whole.uri)] == [str(n * 7919) for n in range(100_000)]
        with pytest.raises(lines.CutShort):
            list(lines.read_lines(cut.uri))


@pytest.mark.parametrize(("total", "of"), [(0, 1), (1, 3), (10, 3), (12, 4)])
def test_shares_are_everything_once_and_even(total, of):
    shares = [lines.share(total, index, of) for index in range(of)]
    assert [item for share in shares for item in share] == list(range(total))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
