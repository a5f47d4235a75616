"""Flickr30k as it is published, in small: both files of captions, the malformed row, Karpathy's splits, what can be wrong."""

import json

import pytest

from raysys.errors import UserError
from tests.datasets.prepared import prepared
from tests.datasets.recipes import recipe_module
from tests.shards.tars import picture

recipe = recipe_module("flickr30k.recipe")

TOKEN = [
    "1000092795.jpg#0\tTwo young guys with shaggy hair look at their hands .",
    "1000092795.jpg#1\tTwo young , White males are outside near many bushes .",
    "2199200615.jpg#4\tA dog runs across the grass .",
    "2199200615.jpg#0\tThe dog\u2019s caf\u00e9 # 9",
    "10002456.jpg#0\tSeveral men in hard hats .",
    "no tab and no number",
    "10002456.jpg#0\tThe number of another one .",
    "36979.jpg#0\t",
    "36979.jpg#1\tA group of friends .",
    "55.jpg#0\tNot there .",
]
CSV = [
    "image_name| comment_number| comment",
    "1000092795.jpg| 0| Two young guys | with shaggy hair .",
    "1000092795.jpg| 1| Two young , White males .",
    "2199200615.jpg| 3| A dog .",
    "2199200615.jpg| 4   A dog runs across the grass .",
    "2199200615.jpg| dog| No number .",
]


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "flickr"
    images = folder / "flickr30k-images"
    images.mkdir(parents=True)
    for name in ("1000092795", "2199200615", "10002456"):
        (images / f"{name}.jpg").write_bytes(picture(int(name), kind="JPEG"))
    (images / "36979.jpg").write_bytes(b"")
    return folder


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_token_file(source, tmp_path, end):
    (source / "results_20130124.token").write_bytes(b"\xef\xbb\xbf" + end.join(TOKEN).encode() + end.encode() + b"9.jpg#0\t\xff\xfe\n")
    train = prepared(recipe, source, tmp_path / "out")["train"]
    assert train.captions == {
        "1000092795": {
            "en": ["Two young guys with shaggy hair look at their hands .", "Two young , White males are outside near many bushes ."]
        },
        "2199200615": {"en": ["The dog’s café # 9", "A dog runs across the grass ."]},
        "10002456": {"en": ["Several men in hard hats ."]},
    }
    assert train.images["10002456.jpg"] == picture(10002456, kind="JPEG")
    assert train.metadata["10002456"] | {"captions": {}} == {
        "captions": {}, "alignment": "weak", "source": "flickr30k", "file_name": "10002456.jpg",
    }  # fmt: skip
    where = f"{source}/results_20130124.token"
    assert train.counts.read == 9  # five pictures, one caption that is empty and three rows that cannot be used
    assert train.counts.examples == {
        "row is malformed": f"{where} line 6",
        "caption has the number of another one": f"{where} line 7: 10002456.jpg#0",
        "not UTF-8": f"{where} line 11",
        "caption is empty": f"{where} 36979.jpg caption 0",
        "image cannot be read": f"{source}/flickr30k-images/36979.jpg: the member is empty",
        "image missing": f"{where} 55.jpg: {source}/flickr30k-images/55.jpg",
    }
    assert set(train.counts.skipped.values()) == {1}


def test_csv_with_its_malformed_row(source, tmp_path):
    (source / "flickr30k-images").rename(source / "inner")
    (source / "flickr30k_images").mkdir()
    (source / "inner").rename(source / "flickr30k_images" / "flickr30k_images")
    (source / "flickr30k_images" / "results.csv").write_text("\n".join(CSV) + "\n")
    train = prepared(recipe, source, tmp_path / "out", shards=1)["train"]
    assert train.captions == {
        "1000092795": {"en": ["Two young guys | with shaggy hair .", "Two young , White males ."]},
        "2199200615": {"en": ["A dog .", "A dog runs across the grass ."]},
    }
    assert train.counts.skipped == {"row is malformed": 1}
    assert train.counts.examples["row is malformed"].endswith("results.csv line 6")


def test_karpathy_splits(source, tmp_path):
    images = [
        {"filename": f"{name}.jpg", "split": split, "sentences": [{"raw": f"{split} one"}, {"raw": f"{split} two"}]}
        for name, split in (("2199200615", "train"), ("1000092795", "val"), ("10002456", "test"))
    ]
    (source / "dataset_flickr30k.json").write_text(json.dumps({"dataset": "flickr30k", "images": images}))
    splits = prepared(recipe, source, tmp_path / "out")
    assert {split: its.captions for split, its in splits.items()} == {
        "train": {"2199200615": {"en": ["train one", "train two"]}},
        "validation": {"1000092795": {"en": ["val one", "val two"]}},
        "test": {"10002456": {"en": ["test one", "test two"]}},
    }


def test_mistakes_are_told(source, tmp_path):
    def parts(folder):
        return recipe.parts(str(folder), languages=("en",), shards=1, seed=0)

    with pytest.raises(UserError, match=r"has no file of captions .*found there: flickr30k-images\. Expected are results_2013"):
        parts(source)
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match=r"has no folder of pictures .*found there: nothing"):
        parts(tmp_path / "other")
    (source / "dataset_flickr30k.json").write_text(json.dumps({"images": [{"filename": "1.jpg", "split": "odd", "sentences": []}]}))
    with pytest.raises(UserError, match="has not the form of Karpathy's splits"):
        parts(source)
