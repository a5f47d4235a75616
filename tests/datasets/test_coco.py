"""COCO as it is published, in small: both years, Karpathy's splits, and all that can be wrong with it."""

import json
import pickle

import pytest

from raysys.errors import UserError
from raysys.storage import Storage, join
from tests.datasets.prepared import prepared
from tests.datasets.recipes import recipe_module
from tests.shards.tars import picture

recipe = recipe_module("coco.recipe")

LICENCES = [{"id": 3, "url": "http://creativecommons.org/licenses/by-nc-nd/2.0/", "name": "…"}, {"id": 4, "url": "http://x/by/2.0/"}]
TRAIN = {
    "info": {"year": 2017},
    "licenses": LICENCES,
    "images": [
        {"id": 25, "file_name": "000000000025.jpg", "license": 4, "flickr_url": "http://farm1/25.jpg", "height": 12, "width": 16},
        {"id": 9, "file_name": "000000000009.jpg", "license": 3, "coco_url": "http://images/9.jpg"},
        {"id": 30, "file_name": "000000000030.jpg", "license": 77},
        {"id": 31, "file_name": "000000000031.jpg"},
        {"id": 32, "file_name": "000000000032.jpg"},
        {"id": 33, "file_name": "000000000033.jpg"},
    ],
    "annotations": [
        {"image_id": 9, "id": 1, "caption": "Closeup of bins of food that include broccoli and bread."},
        {"image_id": 25, "id": 2, "caption": "A giraffe eating food from the top of the tree.\n"},
        {"image_id": 9, "id": 3, "caption": "Crème brûlée, ”quoted”"},
        {"image_id": 25, "id": 4, "caption": " \u200b"},
        {"image_id": 404, "id": 5, "caption": "Of nothing"},
        *({"image_id": number, "id": number, "caption": "A picture"} for number in (30, 31, 33)),
    ],
}


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "coco"
    for name in ("annotations", "train2017", "val2017"):
        (folder / name).mkdir(parents=True)
    (folder / "annotations" / "captions_train2017.json").write_text(json.dumps(TRAIN))
    val = {"images": [{"id": 7, "file_name": "000000000007.jpg"}], "annotations": [{"image_id": 7, "caption": "Seven"}]}
    (folder / "annotations" / "captions_val2017.json").write_text(json.dumps(val))
    (folder / "annotations" / "instances_val2017.json").write_text("{}")
    for number in (9, 25, 32):
        (folder / "train2017" / f"{number:012d}.jpg").write_bytes(picture(number, kind="JPEG"))
    (folder / "train2017" / "000000000030.jpg").write_bytes(picture(30, (64, 64), kind="JPEG")[:900])
    (folder / "train2017" / "000000000031.jpg").write_bytes(b"<html>not here any more</html>")
    (folder / "val2017" / "000000000007.jpg").write_bytes(picture(7))  # a PNG under the name of a JPEG
    return folder


def test_as_published(source, tmp_path):
    splits = prepared(recipe, source, tmp_path / "out")
    assert list(splits) == ["train", "validation"]
    train = splits["train"]
    assert train.metadata == {
        "000000000009": {
            "captions": {"en": ["Closeup of bins of food that include broccoli and bread.", "Crème brûlée, ”quoted”"]},
            "alignment": "weak",
            "source": "coco",
            "image_id": 9,
            "file_name": "000000000009.jpg",
            "licence": "http://creativecommons.org/licenses/by-nc-nd/2.0/",
            "url": "http://images/9.jpg",
        },
        "000000000025": {
            "captions": {"en": ["A giraffe eating food from the top of the tree."]},
            "alignment": "weak",
            "source": "coco",
            "image_id": 25,
            "file_name": "000000000025.jpg",
            "licence": "http://x/by/2.0/",
            "url": "http://farm1/25.jpg",
        },
    }
    assert train.images == {f"{number:012d}.jpg": picture(number, kind="JPEG") for number in (9, 25)}
    assert splits["validation"].images == {"000000000007.png": picture(7)}

    annotations = source / "annotations" / "captions_train2017.json"
    assert train.counts.read == 8  # six pictures, an empty caption and a stray one
    assert train.counts.skipped == {
        "image cannot be read": 2,
        "image missing": 1,
        "no caption": 1,
        "caption is empty": 1,
        "caption of a picture that is not listed": 1,
    }
    examples = train.counts.examples
    assert examples["image missing"] == f"{annotations} image 33: {source}/train2017/000000000033.jpg"
    assert examples["no caption"] == f"{annotations} image 32"
    assert examples["caption is empty"] == f"{annotations} image 25 caption 1"
    assert examples["caption of a picture that is not listed"] == f"{annotations} annotation 4: image 404"
    assert examples["image cannot be read"].startswith(f"{source}/train2017/00000000003")


def test_what_was_missing_is_made_when_it_is_there(source, tmp_path):
    prepared(recipe, source, tmp_path / "out")
    for number in (30, 31, 33):
        (source / "train2017" / f"{number:012d}.jpg").write_bytes(picture(number, kind="JPEG"))
    again = prepared(recipe, source, tmp_path / "out")["train"]
    assert sorted(again.metadata) == [f"{number:012d}" for number in (9, 25, 30, 31, 33)]
    assert again.counts.written == 5


def test_of_2014_and_beneath_images(source, tmp_path, capsys):
    annotations = source / "annotations"
    for path in annotations.iterdir():
        path.unlink()
    image = {"id": 57870, "file_name": "COCO_train2014_000000057870.jpg"}
    (annotations / "captions_train2014.json").write_text(
        json.dumps({"images": [image], "annotations": [{"image_id": 57870, "caption": "A restaurant"}]})
    )
    (annotations / "captions_val2014.json").write_text(json.dumps({"images": [], "annotations": []}))
    (source / "images" / "train2014").mkdir(parents=True)
    (source / "images" / "train2014" / image["file_name"]).write_bytes(picture(1, kind="JPEG"))
    splits = prepared(recipe, source, tmp_path / "out")
    assert {split: its.captions for split, its in splits.items()} == {"train": {"000000057870": {"en": ["A restaurant"]}}}
    assert f"left out for want of pictures: val2014/, which {annotations}/captions_val2014.json describes" in capsys.readouterr().err


def test_karpathy_splits(source, tmp_path):
    def image(number: int, split: str, folder: str = "val2014") -> dict:
        name = f"COCO_{folder}_{number:012d}.jpg"
        return {"cocoid": number, "filepath": folder, "filename": name, "split": split, "sentences": [{"raw": f"{split} {number}"}]}

    images = [image(3, "test"), image(25, "restval"), image(9, "train", "train2014"), image(7, "val"), image(8, "test")]
    (source / "dataset_coco.json").write_text(json.dumps({"dataset": "coco", "images": images}))
    (source / "val2014").mkdir()
    (source / "val2014" / "COCO_val2014_000000000003.jpg").write_bytes(picture(3, kind="JPEG"))
    splits = prepared(recipe, source, tmp_path / "out")  # the other pictures lie in the folders of 2017
    assert {split: its.captions for split, its in splits.items()} == {
        "train": {"000000000009": {"en": ["train 9"]}, "000000000025": {"en": ["restval 25"]}},
        "validation": {"000000000007": {"en": ["val 7"]}},
        "test": {"000000000003": {"en": ["test 3"]}},
    }
    assert splits["train"].metadata["000000000025"]["published_split"] == "restval"
    assert splits["test"].counts.skipped == {"image missing": 1}


def test_from_object_storage(source, tmp_path, object_store, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", object_store.endpoint)
    remote = join(object_store.bucket_uri, "coco-as-published")
    for path in source.rglob("*.*"):
        Storage().upload(path, join(remote, path.relative_to(source).as_posix()))
    there, here = prepared(recipe, remote, tmp_path / "there"), prepared(recipe, source, tmp_path / "here")
    assert {split: its.metadata for split, its in there.items()} == {split: its.metadata for split, its in here.items()}
    assert there["train"].counts.skipped == here["train"].counts.skipped
    with pytest.raises(UserError, match=r"has no annotations/.*found there: 000000000007\.jpg"):
        recipe.parts(join(remote, "val2017"), languages=("en",), shards=1, seed=0)


def test_more_shards_than_pictures(source):
    parts = recipe.parts(str(source), languages=("en",), shards=100, seed=0)
    assert {split: len(its) for split, its in parts.items()} == {"train": 6, "validation": 1}
    assert pickle.loads(pickle.dumps(parts["train"][0])) == parts["train"][0]


def test_a_parts_name_tells_when_it_would_differ(source, tmp_path):
    def names() -> list[str]:
        return [part.name for part in recipe.parts(str(source), languages=("en",), shards=2, seed=0)["train"]]

    before = names()
    assert names() == before
    changed = json.loads(json.dumps(TRAIN))
    changed["annotations"][0]["caption"] = "Other words"  # of image 9, the first of part 0
    (source / "annotations" / "captions_train2017.json").write_text(json.dumps(changed))
    assert [a == b for a, b in zip(before, names(), strict=True)] == [False, True]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda source: [p.unlink() for p in (source / "annotations").iterdir()], "has no annotations/captions_train2017.json"),
        (lambda source: [(source / f"{n}2017").rename(source / n) for n in ("train", "val")], r"no images in train2017/.* or val2017"),
        (lambda source: (source / "annotations/captions_train2017.json").write_text('{"images": '), "cannot be used"),
        (lambda source: (source / "annotations/captions_val2017.json").write_text('{"images": [{}]}'), "not the form of COCO"),
        (lambda source: (source / "dataset_coco.json").write_text('{"images": [{"cocoid": 1}]}'), "has not the form of Karpathy's splits"),
        (lambda source: source.rename(source.with_name("elsewhere")), "the folder .* does not exist"),
    ],
)
def test_mistakes_are_told(source, spoil, message):
    spoil(source)
    with pytest.raises(UserError, match=message):
        recipe.parts(str(source), languages=("en",), shards=1, seed=0)


def test_what_is_there_instead_is_listed(tmp_path):
    (tmp_path / "train.zip").touch()
    with pytest.raises(UserError, match=r"found there: train\.zip\. Expected is COCO as cocodataset\.org publishes it"):
        recipe.parts(str(tmp_path), languages=("en",), shards=1, seed=0)
