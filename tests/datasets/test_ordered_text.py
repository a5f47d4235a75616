"""Ordered sentences from text and json lines: borders kept, neighbours never lost, bad lines counted."""

import gzip
import itertools
import json
import tarfile
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from raysys.errors import UserError
from tests.datasets.recipes import recipe_module
from tests.datasets.written import Written, notes, prepare, skipped

recipe = recipe_module("ordered_text.recipe")


def put(folder: Path, **files: str | bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        name = name.replace("_", ".")
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def keys(shard: Path) -> list[str]:
    with tarfile.open(shard) as archive:
        return [name.removesuffix(".json") for name in archive.getnames()]


def sentences(written: Written) -> list[list[str]]:
    return [notes(written["train"][key])["sentences"] for key in sorted(written["train"])]


def threes(pieces: list[list[str]]) -> Counter[tuple[str, ...]]:
    return Counter(three for piece in pieces for three in zip(piece, piece[1:], piece[2:], strict=False))


def test_documents_end_at_blank_lines_and_at_the_end_of_a_file(tmp_path):
    source = put(
        tmp_path / "source",
        a_txt="\ufeffOne .\r\nTwo\u2028 two .\r\n\r\n\r\nAlone .\r\n \u200b\u00a0\r\nThree .\r\nFour .\r\nFive .",
        b_txt_gz="Sechs .\nSieben .\n",
        c_md="no text\n",
    )
    written, counts = prepare(recipe, source, tmp_path / "out", ("de",), shards=2)
    assert sentences(written) == [["One .", "Two\u2028 two ."], ["Three .", "Four .", "Five ."], ["Sechs .", "Sieben ."]]
    assert list(written["train"]) == ["00000-0000000", "00000-0000002", "00001-0000000"]
    assert notes(written["train"]["00000-0000002"]) | {"sentences": []} == {"sentences": [], "language": "de", "file": "a.txt", "line": 7}
    assert skipped(counts["train"]) == {"sentence without neighbours": 1}
    assert counts["train"].examples == {"sentence without neighbours": f"{source}/a.txt line 5"}


@pytest.mark.parametrize("length", [2, 3, 255, 256, 257, 258, 510, 511, 1000])
@pytest.mark.parametrize("shards", [1, 3])
def test_three_neighbours_stand_together_once(tmp_path, length, shards):
    lines = [f"s{n}" for n in range(length)]
    written, _ = prepare(recipe, put(tmp_path / "source", a_txt="\n".join(lines)), tmp_path / "out", ("en",), shards=shards)
    pieces = sentences(written)
    assert threes(pieces) == threes([lines])
    assert max(map(len, pieces)) <= 256
    assert all(first[-2:] == second[:2] for first, second in itertools.pairwise(pieces))
    assert [notes(written["train"][key])["line"] for key in sorted(written["train"])] == [1 + 254 * n for n in range(len(pieces))]


def test_json_lines_of_sentences_and_of_whole_documents(tmp_path):
    records: list[object] = [
        {"text": "a ."},
        {"text": "b ."},
        {"title": "no text"},
        {"text": "c ."},
        {"text": "d ."},
        {"text": "e .\nf .\r\n\ng .\nh .", "title": "a book"},
        {"text": "i ."},
        {"text": "j ."},
        {"text": ""},
        {"text": "k ."},
        ["text"],
        {"text": 7},
        {"text": "l ."},
        {"text": "m ."},
    ]
    lines = [json.dumps(record) for record in records]
    lines[4] += "\n\n   "  # blank lines in json lines mean nothing
    source = put(tmp_path / "source", a_jsonl="\n".join(lines))
    written, counts = prepare(recipe, source, tmp_path / "out", ("en",), shards=3)
    assert sentences(written) == [["a .", "b ."], ["c .", "d ."], ["e .", "f ."], ["g .", "h ."], ["i .", "j ."], ["l .", "m ."]]
    assert skipped(counts["train"]) == {"no field `text`": 2, "not a json object": 1, "sentence without neighbours": 1}


def test_a_bad_line_parts_its_neighbours(tmp_path):
    source = put(tmp_path / "source", a_txt=b"one\ntwo\nM\xfcll\nthree\nfour\nfive\n")
    written, counts = prepare(recipe, source, tmp_path / "out", ("en",))
    assert sentences(written) == [["one", "two"], ["three", "four", "five"]]
    assert counts["train"].examples == {"not UTF-8": f"{source}/a.txt line 3"}


def test_what_lies_before_a_cut_is_kept(tmp_path):
    lines = [f"{n * 7919 % 100_003}" for n in range(5000)]
    source = put(tmp_path / "source", a_txt_gz="\n".join(lines), b_txt="x\ny\n")
    (source / "a.txt.gz").write_bytes((source / "a.txt.gz").read_bytes()[:5000])
    written, counts = prepare(recipe, source, tmp_path / "out", ("en",), shards=3)
    pieces = sentences(written)
    number = sum(len(piece) - 2 for piece in pieces[:-1]) + 2
    assert 500 < number < 5000
    assert threes(pieces[:-1]) == threes([lines[:number]])
    assert pieces[-1] == ["x", "y"]
    assert skipped(counts["train"]) == {"file is cut short or damaged": 1}
    assert counts["train"].examples == {"file is cut short or damaged": f"{source}/a.txt.gz line {number + 1}"}


@pytest.mark.parametrize("shards", [1, 2, 4, 7])
def test_the_number_of_shards_changes_nothing(tmp_path, shards):
    files = {f"{letter}_txt": "\n".join(f"{letter}{n}" for n in range(length)) for letter, length in (("a", 600), ("b", 10), ("c", 300))}
    written, _ = prepare(recipe, put(tmp_path / "source", **files), tmp_path / "out", ("en",), shards=shards)
    files_of_shards = [{key.partition("-")[0] for key in keys(path)} for path in sorted((tmp_path / "out/train").glob("*.tar"))]
    assert (
        files_of_shards
        == {
            1: [{"00000", "00001", "00002"}],
            2: [{"00000", "00002"}, {"00001"}],
            4: [{"00000", "00001", "00002"}, {"00000", "00002"}, {"00000"}],
            7: [{"00000", "00001", "00002"}, {"00000", "00002"}, {"00000"}],
        }[shards]
    )
    assert [(key, len(notes(written["train"][key])["sentences"])) for key in sorted(written["train"])] == [
        ("00000-0000000", 256),
        ("00000-0000001", 256),
        ("00000-0000002", 92),
        ("00001-0000000", 10),
        ("00002-0000000", 256),
        ("00002-0000001", 46),
    ]


def test_bad_use_is_named(tmp_path):
    with pytest.raises(UserError, match="in one language, not in en de"):
        recipe.parts(str(tmp_path), languages=("en", "de"), shards=1, seed=0)
    with pytest.raises(UserError, match=r"has no file that ends with .txt, .txt.gz, .jsonl, .jsonl.gz. A folder of text files"):
        recipe.parts(str(tmp_path), languages=("en",), shards=1, seed=0)
    with pytest.raises(UserError, match="does not exist"):
        recipe.parts(str(tmp_path / "no"), languages=("en",), shards=1, seed=0)


# ---- running text ----

BOOK = """\ufeffA TALE

By Somebody



CHAPTER I

It was _late_, and Mr. Fox had
gone.  "Where is he? Who knows," said she.

She left.

* * *

The next day came. It rained.
He stayed at home.


II.

In the end they met. "At last!" he said.
"""


@pytest.mark.parametrize("shards", [1, 3])
def test_books_become_sentences_and_chapters_documents(tmp_path, shards):
    source = put(tmp_path / "source", a_txt=BOOK.replace("\n", "\r\n"), b_txt_gz="Only one paragraph. Of two sentences.")
    written, counts = prepare(recipe, source, tmp_path / "out", ("en",), shards=shards, prose=True)
    assert sentences(written) == [
        ["It was late, and Mr. Fox had gone.", '"Where is he?', 'Who knows," said she.', "She left."],
        ["The next day came.", "It rained.", "He stayed at home."],
        ["In the end they met.", '"At last!" he said.'],
        ["Only one paragraph.", "Of two sentences."],
    ]
    assert [notes(written["train"][key])["line"] for key in sorted(written["train"])] == [9, 16, 22, 1]
    assert skipped(counts["train"]) == {}


def test_books_in_json_lines_and_bad_lines(tmp_path):
    records = [{"text": "Er kam am 3. Mai. Es\nregnete.\n\nDann ging er."}, {"text": "Kurz. Gut."}, {"title": "x"}, {"text": "Eins. Zwei."}]
    lines = b"Am Abend kam er. Er sa\xdf da.\nUnd ging. Dann\nblieb er."
    source = put(tmp_path / "source", a_jsonl="\n".join(map(json.dumps, records)), b_txt=b"Vorher. Ja.\n" + lines)
    written, counts = prepare(recipe, source, tmp_path / "out", ("de",), prose=True)
    assert sentences(written) == [
        ["Er kam am 3. Mai.", "Es regnete.", "Dann ging er."],
        ["Kurz.", "Gut."],
        ["Eins.", "Zwei."],
        ["Vorher.", "Ja."],
        ["Und ging.", "Dann blieb er."],
    ]
    assert skipped(counts["train"]) == {"no field `text`": 1, "not UTF-8": 1}


def test_a_book_cut_short_keeps_its_paragraphs(tmp_path):
    paragraphs = [f"Number {n} is {n * 7919 % 100_003}. It was." for n in range(5000)]
    source = put(tmp_path / "source", a_txt_gz="\n\n".join(paragraphs))
    (source / "a.txt.gz").write_bytes((source / "a.txt.gz").read_bytes()[:5000])
    written, counts = prepare(recipe, source, tmp_path / "out", ("en",), shards=1, prose=True)
    assert skipped(counts["train"]) == {"file is cut short or damaged": 1}
    found = sentences(written)
    assert found[0][:3] == ["Number 0 is 0.", "It was.", "Number 1 is 7919."]
    assert 500 < sum(map(len, found)) < 10_000


@pytest.mark.parametrize(("lines", "noticed"), [("one", True), ("two", False), ("three", False)])
def test_running_text_without_prose_is_noticed(tmp_path, capsys, lines, noticed):
    wrapped = textwrap.fill("The evening was long and he had nothing to do but to think of what the morning would bring to him. " * 40, 72)
    texts = {"one": wrapped, "two": "i went there .\nhe said nothing at all to me about it .\n" * 50, "three": "a\nb\n"}
    recipe.parts(str(put(tmp_path / "source", a_txt=texts[lines])), languages=("en",), shards=1, seed=0)
    assert ("a.txt looks like running text, and every line of it becomes a sentence" in capsys.readouterr().out) == noticed
    recipe.parts(str(tmp_path / "source"), languages=("en",), shards=1, seed=0, prose=True)
    assert capsys.readouterr().out == ""
