"""Multi30k from its published files: both tasks, with and without images, and everything that does not fit together."""

import gzip
from pathlib import Path

import pytest

from raysys.errors import UserError
from tests.datasets.recipes import recipe_module
from tests.datasets.written import notes, prepare, skipped
from tests.shards.tars import picture

recipe = recipe_module("multi30k.recipe")
BOTH = ("en", "de")


def lay(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Write files beneath `folder`; those whose name ends with ``.gz`` are compressed."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


TASK1 = {
    "data/task1/raw/train.en.gz": "A dog.\nTwo men\u2028 run.\n  \nA cat.\nA bird.\n",
    # a byte-order mark, Windows line ends, a line separator that is no line end, a last line without an end
    "data/task1/raw/train.de.gz": b"\xef\xbb\xbf" + "Ein Hund.\r\nZwei Männer rennen.\r\nEin Zug.\r\n\u200b\r\nEin Vogel.".encode(),
    "data/task1/tok/train.lc.norm.tok.de": "ein hund .\n",
    "data/task1/raw/val.en.gz": "A house.\n",
    "data/task1/raw/val.de.gz": "Ein Haus.\n",
    "data/task1/raw/val.fr.gz": "Une maison.\n",
    "data/task1/raw/test_2017_mscoco.en.gz": "Food.\nMore food.\n",
    "data/task1/image_splits/train.txt": "1.jpg\n2.jpg\n3.jpg\n4.jpg\n5.jpg\n",
    "data/task1/image_splits/val.txt": "6.jpg\n",
    "data/task1/image_splits/test_2017_mscoco.txt": "COCO_val2014_000000000007.jpg#41\nCOCO_val2014_000000000007.jpg#42\n",
}


def test_translations_with_images(tmp_path):
    source = lay(tmp_path / "source", TASK1)
    lay(source / "flickr30k-images", {f"{n}.jpg": picture(n, kind="JPEG") for n in (1, 2, 4, 5, 9)})
    lay(source / "flickr30k-images", {"6.jpg": picture(6, kind="JPEG")[:300]})
    written, counts = prepare(recipe, source, tmp_path / "out", BOTH)
    assert {split: list(samples) for split, samples in written.items()} == {
        "train": ["000001", "000002", "000004", "000005"],
        "validation": [],
        "test-2017-mscoco": ["000001", "000002"],
    }
    train = written["train"]
    assert notes(train["000001"]) == {
        "captions": {"en": ["A dog."], "de": ["Ein Hund."]},
        "alignment": "strict",
        "source": "multi30k",
        "image": "1.jpg",
        "group": "1",
    }
    assert {key: sample["jpg"] for key, sample in train.items()} == {f"00000{n}": picture(n, kind="JPEG") for n in (1, 2, 4, 5)}
    assert [notes(sample)["captions"] for sample in train.values()][1:] == [
        {"en": ["Two men\u2028 run."], "de": ["Zwei Männer rennen."]},
        {"en": ["A cat."]},
        {"en": ["A bird."], "de": ["Ein Vogel."]},
    ]
    assert skipped(counts["train"]) == {"empty line": 2, "image missing": 1}
    assert counts["train"].examples["image missing"] == f"{source}/data/task1/image_splits/train.txt line 3: 3.jpg"
    assert skipped(counts["validation"]) == {"image cannot be read": 1}
    assert counts["validation"].examples["image cannot be read"].startswith(f"{source}/flickr30k-images/6.jpg: ")
    assert counts["train"].examples["empty line"] in (f"{source}/data/task1/raw/train.{x}.gz line {n}" for x, n in (("en", 3), ("de", 4)))


def test_a_split_without_any_image_is_text_only(tmp_path):
    source = lay(tmp_path / "source", TASK1)
    written, counts = prepare(recipe, source, tmp_path / "out", ("en", "de", "fr"), shards=4)
    assert [sorted(sample) for samples in written.values() for sample in samples.values()] == [["json"]] * 8
    assert notes(written["validation"]["000001"])["captions"] == {"en": ["A house."], "de": ["Ein Haus."], "fr": ["Une maison."]}
    assert [notes(sample)["image"] for sample in written["test-2017-mscoco"].values()] == ["COCO_val2014_000000000007.jpg"] * 2
    assert [notes(sample)["group"] for sample in written["test-2017-mscoco"].values()] == ["COCO_val2014_000000000007"] * 2
    assert skipped(counts["train"]) == {"empty line": 2}


def test_independent_descriptions(tmp_path):
    texts = {f"task2/raw/train.{n}.{language}": f"{language}{n}a\n{language}{n}b\n" for n in range(1, 6) for language in BOTH}
    texts["task2/raw/train.2.de"] = b"\xff\n \n"
    source = lay(tmp_path / "source", texts | {"task2/image_splits/train_images.txt": "1.jpg\n2.jpg\n"})
    written, counts = prepare(recipe, source, tmp_path / "out", BOTH)
    assert list(written) == ["task2-train"]
    first, second = (notes(sample) for sample in written["task2-train"].values())
    assert first["captions"] == {"en": ["en1a", "en2a", "en3a", "en4a", "en5a"], "de": ["de1a", "de3a", "de4a", "de5a"]}
    assert second["captions"]["de"] == ["de1b", "de3b", "de4b", "de5b"]
    assert {first["alignment"], second["alignment"]} == {"weak"}
    assert (first["image"], second["image"]) == ("1.jpg", "2.jpg")
    assert skipped(counts["task2-train"]) == {"not UTF-8": 1, "empty line": 1}
    assert counts["task2-train"].examples["not UTF-8"] == f"{source}/task2/raw/train.2.de line 1"


def test_texts_alone_and_lines_without_any_caption(tmp_path):
    source = lay(tmp_path / "source", {"train.en": "One.\n\nThree.\n", "train.de": "Eins.\n\nDrei.\n"})
    written, counts = prepare(recipe, source, tmp_path / "out", BOTH, shards=8)
    assert list(written["train"]) == ["000001", "000003"]
    assert notes(written["train"]["000003"]) == {
        "captions": {"en": ["Three."], "de": ["Drei."]},
        "alignment": "strict",
        "source": "multi30k",
    }
    assert skipped(counts["train"]) == {"empty line": 2}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"raw/train.de": "eins\nzwei\n"}, r"raw/train.en has 3 lines and .*raw/train.de has 2; .*same image"),
        ({"image_splits/train.txt": "1.jpg\n"}, r"raw/train.en has 3 lines and .*image_splits/train.txt has 1;"),
        ({"more/train.de": "eins\nzwei\ndrei\n"}, r"more/train.de and .*raw/train.de are the same text"),
        ({"raw/train.1.de": "a\n", "raw/train.3.de": "a\n"}, r"train.3.de is there, train.2.de is not"),
        ({"raw/train.de": "a\nb\nc\n".encode("utf-16")}, r"raw/train.de is UTF-16 text"),
        ({"raw/train.de": gzip.compress(b"a\nb\nc\n")}, r"raw/train.de is compressed by gzip; let its name end with .gz"),
    ],
)
def test_files_that_do_not_fit_together_are_named(tmp_path, changes, says):
    source = lay(tmp_path, {"raw/train.en": "one\ntwo\nthree\n", "raw/train.de": "eins\nzwei\ndrei\n"} | changes)
    with pytest.raises(UserError, match=says):
        recipe.parts(str(source), languages=BOTH, shards=2, seed=0)


@pytest.mark.parametrize("kept", [0, 20, 60])
def test_a_cut_archive_is_named(tmp_path, kept):
    source = lay(tmp_path, {"train.en": "one\n" * 50, "train.de.gz": "".join(f"{n * 7919}\n" for n in range(50))})
    path = source / "train.de.gz"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"train.de.gz is cut short or damaged after line \d+ .*download it again"):
        recipe.parts(str(source), languages=BOTH, shards=2, seed=0)


def test_languages_that_are_not_there_are_named(tmp_path):
    lay(tmp_path, {"train.en": "one\n"})
    with pytest.raises(UserError, match=r"has no text of Multi30k in de, cs; take the others with --languages en. A folder"):
        recipe.parts(str(tmp_path), languages=("en", "de", "cs"), shards=2, seed=0)
    with pytest.raises(UserError, match="has no text of Multi30k in fr; A folder with"):
        recipe.parts(str(tmp_path), languages=("fr",), shards=2, seed=0)


def test_parts_are_named_by_what_they_depend_on(tmp_path):
    lay(tmp_path, {"train.en": "one\ntwo\n", "train.de": "eins\nzwei\n"})
    names = [part.name for part in recipe.parts(str(tmp_path), languages=BOTH, shards=2, seed=0)["train"]]
    assert [part.name for part in recipe.parts(str(tmp_path), languages=BOTH, shards=2, seed=0)["train"]] == names
    assert [part.name for part in recipe.parts(str(tmp_path), languages=("en",), shards=2, seed=0)["train"]] != names
    lay(tmp_path, {"train.de": "eins\nzwo\n"})
    assert [part.name for part in recipe.parts(str(tmp_path), languages=BOTH, shards=2, seed=0)["train"]] != names
