"""Records of the tasks as they are published, and their images by key: what is read, and what is said of what cannot be."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from raysys.data.bad import BadDataError, BadSamplePolicy
from raysys.data.task_images import TaskImages
from raysys.data.task_records import TaskRecords
from raysys.errors import UserError
from raysys.shards.manifest import load_or_build
from raysys.storage import Storage
from tests.data.task_worlds import IMAGES, image_sample, record, rois, text_of, translation, write
from tests.shards.tars import picture

STORAGE = Storage()


def load(
    task: str, folder: str, source: str | None = "en", target: str | None = None, policy: BadSamplePolicy | None = None
) -> TaskRecords:
    return TaskRecords.load(task, [folder], STORAGE, source, target, policy, lambda line: None)


def images(records: TaskRecords, *folders: str, visual: str = "combined") -> TaskImages:
    return TaskImages(records, [load_or_build(STORAGE, folder, lambda line: None) for folder in folders], visual, STORAGE)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("pictures"), [image_sample(number) for number in range(IMAGES)])


@pytest.mark.parametrize(
    ("task", "published", "answers", "keys"),
    [
        ("xvnli", "xvnli", ["entailment", "neutral", "contradiction", "entailment"], 1),
        ("xgqa", "xgqa", ["red", "two", "a ring", "red"], 1),
        ("marvl", "nlvr2", ["false", "true", "false", "true"], 2),
        ("marvl", "marvl", ["false", "true", "false", "true"], 2),
        ("itr", "xflickrco", [""] * 4, 1),
    ],
)
def test_records_as_published(tmp_path, task, published, answers, keys):
    folder = write(tmp_path / "records", [record(published, number) for number in range(4)], shards=1)
    records = load(task, folder)
    assert records.texts() == [text_of(number, "en") for number in range(4)]
    assert (records.answers(), records.tags(np.array([2])), records.images_each) == (answers, ["en"], keys)
    assert records.image_keys == [f"pic-{number + place}" for number in range(4) for place in range(keys)]
    assert records.locate(3)[1] == "0000003"
    assert pickle.loads(pickle.dumps(records)).fingerprint == records.fingerprint


def test_captions_of_one_image_are_records_of_their_own(tmp_path, pictures):
    records = load("itr", write(tmp_path / "records", [record("flickr30k", number) for number in range(3)], shards=1))
    assert records.texts() == [text + end for text in (text_of(number, "en") for number in range(3)) for end in ("", " !")]
    assert images(records, pictures).of_records[:, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_translations_of_one_caption_by_place(tmp_path):
    captions = {"en": ["one", "two"], "de": ["eins", "zwei"], "fr": ["un"]}
    folder = write(tmp_path / "records", [translation(0, captions=captions), translation(1, captions={"en": ["alone"]})])
    records = load("mmt", folder, "en", "de")
    assert list(zip(records.texts(), records.answers(), strict=True)) == [("one", "eins"), ("two", "zwei")]
    assert (records.left_out, records.target, len(load("mmt", folder, "fr", "en"))) == (1, "de", 1)


def test_images_are_found_where_they_lie(tmp_path, pictures):
    """The record's own first, then the folders in order, each member by itself."""
    own = translation(3)
    own.image, own.extra = picture(77), {}
    plain = write(tmp_path / "plain", [image_sample(number, regions=False) for number in range(IMAGES)])
    folder = write(tmp_path / "records", [own, translation(4)], shards=1)
    found = images(load("mmt", folder, "en", "de"), plain, pictures)
    members = {image: {kind: sample.members for kind, sample in its.items()} for image, its in found.read(np.array([0, 1]))}
    assert members[0]["picture"]["png"] == picture(77)
    assert members[1]["picture"]["png"] == picture(4)
    assert [members[image]["regions"]["rois.npz"] for image in (0, 1)] == [rois(3), rois(4)]
    assert found.places["picture"][:, 0].tolist() == [2, 0], "of the records themselves, and of the first folder"


@pytest.mark.parametrize(
    ("task", "sample", "told"),
    [
        ("xvnli", record("xgqa", 0), r"sample '0000000' is a record of the task 'xgqa', where those of xvnli were expected"),
        ("marvl", translation(0), r"is no record of a task, where those of nlvr2 or marvl were expected, for the task marvl"),
        ("mmt", record("xvnli", 0), r"has no captions, so that nothing can be translated; the task mmt reads what prepare.py multi30k"),
        ("xvnli", record("xvnli", 0, "de"), r"no record of the task xvnli in en; languages there: de"),
        ("mmt", translation(0, captions={"en": ["a"]}), r"no record of the task mmt in en with a translation into de"),
    ],
)
def test_records_of_something_else_are_refused(tmp_path, task, sample, told):
    with pytest.raises(UserError, match=told):
        load(task, write(tmp_path / "records", [sample]), "en", "de" if task == "mmt" else None)


@pytest.mark.parametrize(
    ("task", "changed", "told"),
    [
        ("xvnli", {"images": ["a", "b"]}, "'images' is no list of 1 keys, as records of xvnli have"),
        ("xvnli", {"record": {"label": "neutral"}}, "'record.gold_label' is null where text was expected"),
        ("marvl", {"record": {"label": "maybe"}}, "'record.label' is 'maybe' where true or false was expected"),
        ("xgqa", {"texts": "red"}, "'texts' is text where an object of language → texts was expected"),
        ("xgqa", {"texts": {"en": [" "]}}, "its texts show nothing"),
    ],
)
def test_bad_records_are_named_or_left_out(tmp_path, task, changed, told):
    published = "marvl" if task == "marvl" else task
    folder = write(tmp_path / "records", [record(published, 0, **changed), record(published, 1)], shards=1)
    with pytest.raises(BadDataError, match=f"sample '0000000'.*{told}"):
        load(task, folder)
    records = load(task, folder, policy=BadSamplePolicy("skip", 0.5))
    assert (len(records), records.left_out, records.bad[0].key) == (1, 1, "0000000")
    with pytest.raises(BadDataError, match="1 of 2 samples are bad"):
        load(task, folder, policy=BadSamplePolicy("skip", 0.4))


@pytest.mark.parametrize(
    ("visual", "key", "told"),
    [
        ("patches", "elsewhere", r"record '0000000': its image 'elsewhere' was looked for by its key in .*pictures.* name the folders"),
        (
            "regions",
            "plain",
            r"image 'plain' has no regions \(\.rois\.npz\), which visual regions needs: .*extract_rois\.py, or use visual",
        ),
        ("combined", "bare", r"image 'bare' has no picture, which visual combined needs: name folders of pictures too"),
    ],
)
def test_missing_images_are_named_before_training(tmp_path, visual, key, told):
    plain, bare = image_sample(1, regions=False), image_sample(2)
    plain.key, bare.key, bare.image = "plain", "bare", None
    there = write(tmp_path / "pictures", [plain, bare], shards=1)
    records = load("xvnli", write(tmp_path / "records", [record("xvnli", 0, images=[key])]))
    with pytest.raises(UserError, match=told):
        images(records, there, visual=visual)


def test_regions_of_another_width_are_named_before_training(tmp_path: Path, pictures: str):
    found = images(load("xvnli", write(tmp_path / "records", [record("xvnli", 0)])), pictures, visual="regions")
    found.check_regions(6)
    with pytest.raises(UserError, match=r"'pic-0': its regions are vectors of 6 numbers, and the network was pre-trained on 2048"):
        found.check_regions(2048)
