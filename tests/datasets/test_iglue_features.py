"""Region features of IGLUE, from LMDB and TSV: every form that is published, and every fault."""

import base64
import io
import pickle

import numpy as np
import pytest

from raysys.errors import UserError
from raysys.storage import Storage
from tests.datasets.iglue_files import put, put_lmdb, record, region_arrays, row
from tests.datasets.recipes import recipe_module
from tests.datasets.written import notes, prepare, skipped
from tests.object_store import environment

recipe = recipe_module("iglue.recipe")
regions = recipe_module("iglue.regions")
ALL = recipe.LANGUAGES


def rois(members: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    with np.load(io.BytesIO(members["rois.npz"]), allow_pickle=False) as arrays:
        assert {name: str(arrays[name].dtype) for name in arrays} == {"features": "float32", "boxes": "float32", "size": "int32"}
        return arrays["features"], arrays["boxes"], arrays["size"].tolist()


def test_an_lmdb_of_arrays_and_of_base64(tmp_path):
    features, boxes = region_arrays(3)
    encoded = record(3, img_w=640, img_h=480, num_boxes=3, features=base64.b64encode(features), boxes=base64.b64encode(boxes).decode())
    values = {f"{n}": pickle.dumps(record(n), protocol=n) for n in range(6) if n != 3}
    values |= {"3": pickle.dumps(encoded), "COCO_val2014_0007.jpg": pickle.dumps(record(7, features=region_arrays(7)[0].tobytes()))}
    put_lmdb(tmp_path / "source/flickr30k_boxes36.lmdb", values, [*(key.encode() for key in values), b"999"])
    written, counts = prepare(recipe, tmp_path / "source", tmp_path / "out", ALL, shards=3)
    (split,) = written
    assert split == "features-flickr30k_boxes36"
    assert list(written[split]) == ["0", "1", "2", "3", "4", "5", "COCO_val2014_0007"]
    for number, members in zip((0, 1, 2, 3, 4, 5, 7), written[split].values(), strict=True):
        found = rois(members)
        assert np.array_equal(found[0], region_arrays(number)[0])
        assert np.array_equal(found[1], region_arrays(number)[1])
        assert found[2] == [640, 480]
    assert notes(written[split]["COCO_val2014_0007"]) == {
        "texts": {},
        "image": "COCO_val2014_0007.jpg",
        "width": 640,
        "height": 480,
        "source": "iglue",
    }
    assert skipped(counts[split]) == {"image listed but missing": 1}
    assert counts[split].examples["image listed but missing"].endswith("flickr30k_boxes36.lmdb/data.mdb image 999")


BAD = {
    "cut": (pickle.dumps(record(0))[:-100], "record cannot be read"),
    "empty": (b"", "record cannot be read"),
    "list": (pickle.dumps([1, 2]), "record cannot be read"),
    "fields": (pickle.dumps({"img_h": 4, "img_w": 3}), "record cannot be read"),
    "objects": (pickle.dumps(record(0, features=np.array([["a"], [1]], dtype=object))), "record cannot be read"),
    "integers": (pickle.dumps(record(0, features=np.zeros((3, 2048), np.int32))), "features cannot be read"),
    "ragged": (pickle.dumps(record(0, features=np.zeros(3 * 2048 - 1, np.float32))), "features cannot be read"),
    "odd bytes": (pickle.dumps(record(0, boxes=b"\0\0\0")), "boxes cannot be read"),
    "fewer": (pickle.dumps(record(0, features=region_arrays(0)[0][:2])), "features and boxes do not fit"),
    "told": (pickle.dumps(record(0, num_boxes=36)), "features and boxes do not fit"),
    "none": (pickle.dumps(record(0, features=np.zeros((0, 2048), np.float32), boxes=np.zeros((0, 4), np.float32))), "no regions"),
    "nan": (pickle.dumps(record(0, features=np.full((3, 2048), np.nan, np.float32))), "numbers are not finite"),
    "size": (pickle.dumps(record(0, img_h=0)), "size is no number"),
    "no size": (pickle.dumps(record(0, img_h="high")), "size is no number"),
    "width": (pickle.dumps(record(0, boxes=region_arrays(0)[1][:, [2, 1, 0, 3]])), "boxes do not fit the image"),
    "outside": (pickle.dumps(record(0, img_w=100)), "boxes do not fit the image"),
    "fractions": (pickle.dumps(record(0, boxes=region_arrays(0)[1] / 640)), "boxes do not fit the image"),
}


def test_bad_records_of_an_lmdb_are_counted_by_cause(tmp_path):
    put_lmdb(tmp_path / "source/x.lmdb", {key: value for key, (value, _) in BAD.items()} | {"good": pickle.dumps(record(1))})
    written, counts = prepare(recipe, tmp_path / "source", tmp_path / "out", ALL)
    assert list(written["features-x"]) == ["good"]
    causes = [cause for _, cause in BAD.values()]
    assert skipped(counts["features-x"]) == {cause: causes.count(cause) for cause in causes}


@pytest.mark.parametrize("place", ["record", "keys"])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_asks_for_more_is_refused(tmp_path, place, protocol):
    class Malicious:
        def __reduce__(self):
            return open, (str(tmp_path / "created"), "w")

    evil = pickle.dumps({"features": Malicious()}, protocol=protocol)
    put_lmdb(tmp_path / "source/x.lmdb", {"1": pickle.dumps(record(1)), "2" if place == "record" else "keys": evil})
    with pytest.raises(
        UserError, match=rf"data.mdb image {'2' if place == 'record' else 'keys'}: its pickle asks for (_?io).open; .*do not trust"
    ):
        prepare(recipe, tmp_path / "source", tmp_path / "out", ALL)
    assert not (tmp_path / "created").exists()
    pickle.loads(evil)  # such a pickle does what is feared where it is let
    assert (tmp_path / "created").exists()


def test_an_lmdb_that_is_cut_short_or_none_is_named(tmp_path):
    path = put_lmdb(tmp_path / "x.lmdb", {str(n): pickle.dumps(record(n)) for n in range(20)}) / "data.mdb"
    data = path.read_bytes()
    for content, says in ((data[: len(data) // 2], r"data.mdb is cut short: it has \d+ of \d+ bytes"), (b"no" * 9999, "is no LMDB")):
        path.write_bytes(content)
        with pytest.raises(UserError, match=says):
            recipe.parts(str(tmp_path), languages=ALL, shards=2, seed=0)


def test_a_tsv(tmp_path):
    rows = [
        "\ufeff" + "\t".join(recipe_module("iglue.tsv_store").COLUMNS),
        row("n161313", 1, 36),
        row("n2", 2, 10, features="b'" + base64.b64encode(region_arrays(2, 10)[0].tobytes()).decode() + "'") + "\r",
        row("n3", 3, features="!!"),
        row("n4", 4).rpartition("\t")[0],
        row("", 5),
        row("folder/", 5),
        row("n161313.jpg", 6),
        "",
        row("größe", 7),
        row("n8", 8, num_boxes=4),
        row("n9", 9)[:5000],
    ]
    put(tmp_path / "source", "vg_gqa_obj36.tsv", "\n".join(rows))
    written, counts = prepare(recipe, tmp_path / "source", tmp_path / "out", ALL, shards=3)
    samples = written["features-vg_gqa_obj36"]
    assert [notes(sample)["image"] for sample in samples.values()] == ["n161313", "n2", "größe"]
    for (number, count), members in zip(((1, 36), (2, 10), (7, 3)), samples.values(), strict=True):
        found = rois(members)
        assert np.array_equal(found[0], region_arrays(number, count)[0])
        assert np.array_equal(found[1], region_arrays(number, count)[1])
    assert skipped(counts["features-vg_gqa_obj36"]) == {
        "features cannot be read": 2,
        "not 10 columns": 1,
        "no image id": 2,
        "image is there twice": 1,
        "features and boxes do not fit": 1,
    }
    assert counts["features-vg_gqa_obj36"].examples["not 10 columns"] == f"{tmp_path}/source/vg_gqa_obj36.tsv row 5 has 9"


@pytest.mark.parametrize(
    ("image_id", "key"),
    [
        ("759822302", "759822302"),
        ("a.JPG", "a"),
        (".jpg", "%2Ejpg"),
        ("v1.2", "v1%2E2"),
        ("a/_ß\n", "%5F%C3%9F%0A"),
        ("39-Panci/39-n-5.jpg", "39-n-5"),
        ("a_b-c", "a_b-c"),
    ],
)
def test_keys_of_images(image_id, key):
    assert regions.sample_key(image_id) == key


def test_features_in_object_storage(tmp_path, object_store):
    source = f"{object_store.bucket_uri}/{tmp_path.name}"
    with environment(AWS_ENDPOINT_URL=object_store.endpoint):
        Storage().write(f"{source}/a.tsv", "\n".join(row(f"{n}", n) for n in range(5)).encode())
        written, counts = prepare(recipe, source, tmp_path / "out", ALL)
        assert [np.array_equal(rois(sample)[0], region_arrays(n)[0]) for n, sample in enumerate(written["features-a"].values())] == [
            True
        ] * 5
        assert skipped(counts["features-a"]) == {}
        Storage().write(f"{source}/data.mdb", b"")
        with pytest.raises(UserError, match=r"data.mdb: an LMDB is read in place and cannot lie in object storage"):
            recipe.parts(source, languages=ALL, shards=1, seed=0)


def test_two_files_of_features_with_one_name_are_named(tmp_path):
    for folder in ("a", "b"):
        put(tmp_path, f"{folder}/x.tsv", row("1", 1))
    with pytest.raises(UserError, match="has features in two files or folders called 'x'; rename one of them"):
        recipe.parts(str(tmp_path), languages=ALL, shards=1, seed=0)


def test_float16_would_lose_numbers():
    features, _ = region_arrays(1)
    assert not np.array_equal(features.astype(np.float16).astype(np.float32), features)
