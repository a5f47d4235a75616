"""Conceptual Captions: lists as they are published, pictures from a real server that misbehaves."""

import dataclasses

import pytest

from raysys.errors import UserError
from tests.datasets.prepared import prepared
from tests.datasets.recipes import recipe_module
from tests.datasets.web_server import GOOD, web_server

recipe = recipe_module("cc.recipe")
pictures = recipe_module("common.web_pictures")


@pytest.fixture
def server(monkeypatch):
    limits = dataclasses.replace(
        pictures.default_limits(), private_addresses=True, silence=0.5, seconds=1, pause=0.01, attempts=2, longest_side=100
    )
    monkeypatch.setattr(recipe, "default_limits", lambda: limits)
    with web_server() as server:
        yield server


@pytest.fixture
def source(tmp_path):
    (tmp_path / "lists").mkdir()
    return tmp_path / "lists"


def test_cc3m_caption_then_address(server, source, tmp_path):
    rows = [
        ("a café by the sea .", server.url("/good?1")),
        ("gone", server.url("/status/404")),
        ("up again", server.url("/flaky")),
        (" ", server.url("/good?2")),
        ("page", server.url("/html")),
        ("asked not to", server.url("/robots")),
        ("down for now", server.url("/down")),
        ("nowhere", "no address"),
        ("scaled", server.url("/large")),
    ]
    lines = ["\t".join(row) for row in rows] + ["one column", "three\tcolumns\there"]
    (source / "Train_GCC-training.tsv").write_bytes("\r\n".join(lines).encode() + b"\r\n\xff\t" + rows[0][1].encode())  # no end of line
    (source / "Validation_GCC-1.1.0-Validation.tsv").write_text(f"someone\t{server.url('/good?3')}\n")
    splits = prepared(recipe, source, tmp_path / "out", shards=3)
    train = splits["train"]
    assert train.captions == {
        "train-gcc-training-00000001": {"en": ["a café by the sea ."]},
        "train-gcc-training-00000003": {"en": ["up again"]},
        "train-gcc-training-00000009": {"en": ["scaled"]},
    }
    assert train.metadata["train-gcc-training-00000001"] | {"captions": {}} == {
        "captions": {}, "alignment": "weak", "source": "train-gcc-training", "url": server.url("/good?1"),
    }  # fmt: skip
    assert train.images["train-gcc-training-00000001.jpg"] == GOOD
    assert "train-gcc-training-00000009.jpg" in train.images  # it was a PNG
    list_ = f"{source}/Train_GCC-training.tsv"
    assert train.counts.read == 12
    assert train.counts.skipped == {
        "http 404": 1, "no caption": 1, "not an image": 1, "robots": 1, "http 500 (the next run tries again)": 1, "not a web address": 1,
        "row is malformed": 2, "not UTF-8": 1,
    }  # fmt: skip
    assert train.counts.examples["http 404"] == f"{list_} line 2: {server.url('/status/404')}: Not Found"
    assert train.counts.examples["row is malformed"] == f"{list_} line 10 has 1 columns"
    assert train.counts.examples["not UTF-8"] == f"{list_} line 12"
    assert splits["validation"].captions == {"validation-gcc-1-1-0-validation-00000001": {"en": ["someone"]}}


def test_cc12m_address_then_caption(server, source, tmp_path):
    (source / "cc12m.tsv").write_text("".join(f"{server.url(f'/good?{n}')}\t<PERSON> number {n}\n" for n in range(10)))
    train = prepared(recipe, source, tmp_path / "out", shards=4)["train"]
    assert train.captions == {f"cc12m-{n + 1:08d}": {"en": [f"<PERSON> number {n}"]} for n in range(10)}
    assert len(list((tmp_path / "out" / "train").glob("*.tar"))) == 4


def test_what_may_pass_is_asked_again_by_the_next_run(server, source, tmp_path):
    (source / "cc12m.tsv").write_text("".join(f"{server.url(path)}\tx\n" for path in ("/good?1", "/good?2", "/down", "/status/404")))
    first = prepared(recipe, source, tmp_path / "out")["train"]
    assert first.counts.written == 2
    assert server.asked["/good?1"] == server.asked["/good?2"] == 1
    server.healthy = True
    server.asked.clear()
    second = prepared(recipe, source, tmp_path / "out")["train"]
    assert second.counts.written == 3
    assert second.counts.skipped == {"http 404": 1}
    assert server.asked["/down"] == 1
    assert not {"/good?1", "/good?2"} & server.asked.keys()  # the pictures are there
    assert second.images == dict.fromkeys([f"cc12m-0000000{number}.jpg" for number in (1, 2, 3)], GOOD)
    server.asked.clear()
    assert prepared(recipe, source, tmp_path / "out")["train"] == second
    assert not server.asked
    (tmp_path / "new").mkdir()
    assert prepared(recipe, source, tmp_path / "new")["train"] == second


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("shards", [1, 2, 5, 40])
def test_ranges_cover_every_line_once(source, monkeypatch, piece, end, shards):
    lines = [b"x" * length for length in (3, 0, 50, 1, 1, 1, 20, 0, 4)]
    path = source / "list.tsv"
    path.write_bytes(b"\n".join(lines) + end)
    monkeypatch.setattr(recipe, "PIECE", piece)
    ranges = recipe.divide(str(path), shards)
    assert len(ranges) <= shards
    found = [(number, line) for its in ranges for number, line in enumerate(recipe._read(str(path), its), its.first_line)]
    assert found == list(enumerate(lines, 1))
    assert [its.begin for its in ranges[1:]] == [its.end for its in ranges[:-1]]


def test_parts_are_named_by_their_lines(source):
    path = source / "cc12m.tsv"

    def names() -> list[str]:
        return [part.name for part in recipe.parts(str(source), languages=("en",), shards=2, seed=0)["train"]]

    path.write_text("http://a/1\tone\nhttp://a/2\ttwo\n")
    before = names()
    path.write_text("http://a/1\tone\nhttp://a/2\ttow\n")
    assert [a == b for a, b in zip(before, names(), strict=True)] == [True, False]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"has no list \(\.tsv.*found there: nothing\. Expected are the lists"),
        ({"cc12m.tsv.gz": ""}, r"has no list \(\.tsv; unpack it.*found there: cc12m\.tsv\.gz"),
        ({"a.tsv": "http://a/1\tone\n", "b.tsv": "http://a/1\tone\n"}, r"a\.tsv and .*b\.tsv are both lists of the split train"),
        ({"a.tsv": "caption\tanother\n"}, r"one should hold web addresses; its first line is 'caption\\tanother'"),
        ({"a.tsv": ""}, "one should hold web addresses"),
    ],
)
def test_mistakes_are_told(source, files, message):
    for name, text in files.items():
        (source / name).write_text(text)
    with pytest.raises(UserError, match=message):
        recipe.parts(str(source), languages=("en",), shards=2, seed=0)
