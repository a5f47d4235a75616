"""IGLUE from its published files: the tasks' records, and how they are joined with region features."""

import json
import pickle

import pytest

from raysys.errors import UserError
from tests.datasets.iglue_files import put, put_lmdb, record
from tests.datasets.recipes import recipe_module
from tests.datasets.written import notes, prepare, skipped

recipe = recipe_module("iglue.recipe")
ALL = recipe.LANGUAGES


XVNLI = [
    {
        "gold_label": "neutral",
        "sentence1": "Un homme.",
        "sentence2": "Il lit.",
        "captionID": "1.jpg#2",
        "pairID": "1.jpg#2r1e",
        "Flikr30kID": "1",
    },
    {
        "gold_label": "-",
        "sentence1": "Un homme.",
        "sentence2": "Il dort.",
        "captionID": "1.jpg#2",
        "pairID": "1.jpg#2r2e",
        "Flikr30kID": "1",
    },
    {"gold_label": "entailment", "sentence1": "Une femme.", "sentence2": "Elle court.", "pairID": "9.jpg#0r1e", "Flikr30kID": "9"},
    {"gold_label": "entailment", "sentence2": "Elle court.", "pairID": "9.jpg#0r1e"},
]


def test_records_name_their_images(tmp_path):
    put_lmdb(tmp_path / "source/features/flickr.lmdb", {"1": pickle.dumps(record(1))})
    put(tmp_path / "source", "XVNLI/annotations/fr/test.jsonl", XVNLI)
    put(tmp_path / "source", "XVNLI/annotations_machine-translate/fr/test.jsonl", XVNLI)
    put(tmp_path / "source", "XVNLI/annotations/ru/test.jsonl", XVNLI)
    written, counts = prepare(recipe, tmp_path / "source", tmp_path / "out", ("en", "fr"), shards=3)
    assert {split: list(samples) for split, samples in written.items()} == {"features-flickr": ["1"], "xvnli-test-fr": ["0000000"]}
    assert notes(written["xvnli-test-fr"]["0000000"]) == {
        "texts": {"fr": ["Il lit."]},
        "images": ["1"],
        "task": "xvnli",
        "id": "1.jpg#2r1e",
        "record": XVNLI[0],
        "source": "iglue",
    }
    assert skipped(counts["xvnli-test-fr"]) == {"no label": 1, "image has no features": 1, "field missing": 1}
    assert counts["xvnli-test-fr"].examples["image has no features"].endswith("XVNLI/annotations/fr/test.jsonl line 3: 9")


GQA = {"201": {"question": "¿Qué?", "imageId": "n16", "answer": "no"}, "202": {"question": " ", "imageId": "n16"}, "203": ["question"]}
NLVR2 = {"validation": {"61": "False"}, "sentence": "A curve.", "label": "False", "identifier": "dev-850-0-1"}
MARVL = {
    "concept": "39-Panci",
    "language": "id",
    "caption": "Panci.",
    "left_img": "39-0.jpg",
    "right_img": "39-11.jpg",
    "id": "id-0",
    "label": True,
}
FLICKR = {"sentences": ["耳ピアス", "帽子"], "id": 369771, "img_path": "COCO_val2014_000000369771.jpg"}
PUBLISHED = [
    ("xGQA/annotations/zero_shot/testdev_balanced_questions_pt.json", GQA, "xgqa-testdev-pt", "pt", ["¿Qué?"], ["n16"], "201"),
    ("gqa/annotations/testdev_balanced_questions.json", GQA, "xgqa-testdev-en", "en", ["¿Qué?"], ["n16"], "201"),
    ("xGQA/annotations/few_shot/bn/train_10.json", GQA, "xgqa-train-10-bn", "bn", ["¿Qué?"], ["n16"], "201"),
    ("marvl/zero_shot/annotations/marvl-id.jsonl", [MARVL], "marvl-test-id", "id", ["Panci."], ["39-0", "39-11"], "id-0"),
    (
        "marvl/few_shot/annotations/marvl-zh_train10x2.jsonl",
        [MARVL],
        "marvl-train10x2-zh-Hans",
        "zh-Hans",
        ["Panci."],
        ["39-0", "39-11"],
        "id-0",
    ),
    ("nlvr2/annotations/dev.jsonl", [NLVR2], "nlvr2-dev-en", "en", ["A curve."], ["dev-850-0-img0", "dev-850-0-img1"], "dev-850-0-1"),
    ("nlvr2/data/test1.json", [NLVR2], "nlvr2-test1-en", "en", ["A curve."], ["dev-850-0-img0", "dev-850-0-img1"], "dev-850-0-1"),
    (
        "xFlickrCO/annotations/ja/test.jsonl",
        [FLICKR],
        "xflickrco-test-ja",
        "ja",
        FLICKR["sentences"],
        ["COCO_val2014_000000369771"],
        "369771",
    ),
    (
        "flickr30k/annotations/valid_ann.jsonl",
        [FLICKR],
        "flickr30k-valid-ann-en",
        "en",
        FLICKR["sentences"],
        ["COCO_val2014_000000369771"],
        "369771",
    ),
]


@pytest.mark.parametrize(("path", "content", "split", "language", "texts", "images", "identifier"), PUBLISHED)
def test_every_task_as_published(tmp_path, path, content, split, language, texts, images, identifier):
    put(tmp_path / "source", path, json.dumps(content) if isinstance(content, dict) else content)
    written, counts = prepare(recipe, tmp_path / "source", tmp_path / "out", ALL)
    assert list(written) == [split]
    (sample,) = (notes(members) for members in written[split].values())
    expected = content["201"] if isinstance(content, dict) else content[0]
    assert (sample["texts"], sample["images"], sample["id"], sample["record"]) == ({language: texts}, images, identifier, expected)
    assert skipped(counts[split]) == ({"no text": 1, "not a json object": 1} if content is GQA else {})


def test_translations_by_machine_are_left_out(tmp_path):
    put(tmp_path / "source", "xGQA/annotations/zero_shot/testdev_balanced_questions_pt.json", json.dumps(GQA))
    put(tmp_path / "source", "xGQA/annotations_machine-translate/zero_shot/testdev_balanced_questions_pt.json", json.dumps(GQA))
    put(tmp_path / "source", "marvl/marvl-id_gmt.jsonl", [MARVL])
    put(tmp_path / "source", "nlvr2/annotations/dev-id_gmt.jsonl", [NLVR2])
    assert list(recipe.parts(str(tmp_path / "source"), languages=ALL, shards=1, seed=0)) == ["xgqa-testdev-pt"]


def test_odd_lines_of_annotations_are_counted_by_cause(tmp_path):
    lines = [
        json.dumps(FLICKR),
        '{"sentences": ["a\\ud800"], "id": 1, "img_path": "1.jpg"}',
        '{"sentences": ["a"], "id": NaN, "img_path": "1.jpg"}',
        "not json",
        json.dumps(FLICKR | {"sentences": 7}),
        json.dumps(FLICKR | {"img_path": None}),
        json.dumps(FLICKR | {"sentences": ["\u200b", ""]}),
        "",
    ]
    put(tmp_path / "source", "xFlickrCO/annotations/de/test.jsonl", "\ufeff" + "\r\n".join(lines))
    written, counts = prepare(recipe, tmp_path / "source", tmp_path / "out", ALL)
    assert [notes(members)["id"] for members in written["xflickrco-test-de"].values()] == ["369771"]
    assert skipped(counts["xflickrco-test-de"]) == {
        "json holds half a surrogate pair or no number": 2,
        "not a json object": 1,
        "field of an unexpected kind": 2,
        "no text": 1,
    }


def test_bad_use_is_named(tmp_path):
    with pytest.raises(UserError, match=r"has neither features nor annotations of IGLUE in en. A folder with region features"):
        recipe.parts(str(tmp_path), languages=("en",), shards=1, seed=0)
    put(tmp_path, "xGQA/testdev_balanced_questions_de.json", '{"1": {"question"')
    with pytest.raises(UserError, match=r"testdev_balanced_questions_de.json cannot be used: not valid json: .*download it again"):
        recipe.parts(str(tmp_path), languages=("de",), shards=1, seed=0)
    put(tmp_path, "more/testdev_balanced_questions_de.json", "{}")
    with pytest.raises(UserError, match=r"more/testdev_.* and .*xGQA/testdev_.* are both xgqa-testdev-de"):
        recipe.parts(str(tmp_path), languages=("de",), shards=1, seed=0)
