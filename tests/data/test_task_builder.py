"""Batches of records: texts with their language, one or two images in any form, the same for any number of workers."""

import os
import pickle

import numpy as np
import pytest
import torch

from raysys.data.bad import BadDataError, BadSamplePolicy
from raysys.data.batches import BatchFinisher
from raysys.data.encoding import TextForm
from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.language_codes import language_ids
from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer
from raysys.data.plan import Plan
from raysys.data.shares import Share
from raysys.data.task_batches import TaskBatch
from raysys.data.task_builder import TaskBuilder, TaskInputs
from raysys.data.task_images import TaskImages
from raysys.data.task_records import TaskRecords
from raysys.shards.manifest import load_or_build
from raysys.storage import Storage
from tests.data.task_worlds import ANSWERS, IMAGES, REGION_SIZE, TEXTS, image_sample, text_of, write, write_world
from tests.shards.tars import picture

STORAGE, IMAGE = Storage(), ImagePreprocessorSettings(size=8)
TOKENIZER = train_multilingual_tokenizer([text for texts in TEXTS.values() for text in texts], tuple(TEXTS), 300, 24)
TAGS = language_ids(TOKENIZER, tuple(TEXTS))


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> str:
    return write_world(tmp_path_factory.mktemp("world"))


def builder(world: str, task: str, folder: str, visual: str = "combined", images: str = "images", **more) -> TaskBuilder:
    policy, spares = more.pop("policy", None), more.pop("spares", None)
    target = "de" if task == "mmt" else None
    records = TaskRecords.load(task, [f"{world}/{folder}"], STORAGE, "en", target, policy, lambda line: None)
    found = TaskImages(records, [load_or_build(STORAGE, f"{world}/{images}", lambda line: None)], visual, STORAGE)
    inputs = TaskInputs(TextForm(24), IMAGE, 2, REGION_SIZE, more.pop("classes", ()))
    return pickle.loads(pickle.dumps(TaskBuilder(records, found, TOKENIZER, TAGS, inputs, spares, **more)))


def finish(build: TaskBuilder, ids: np.ndarray) -> TaskBatch:
    (payload,) = build([Share(3, 0, ids)])
    return BatchFinisher(IMAGE, 1, build)(payload)


def said(ids: torch.Tensor, mask: torch.Tensor, language: str) -> list[str]:
    rows = [row[: int(size)].tolist() for row, size in zip(ids, mask.sum(dim=1), strict=True)]
    assert all(row[0] == TOKENIZER.bos_token_id and row[-1] == TAGS[language] for row in rows)
    return TOKENIZER.batch_decode([row[1:-1] for row in rows])


def numbers(build: TaskBuilder, ids: np.ndarray) -> list[int]:
    """Which of the world's records they are: their texts end with it."""
    return [int(text.rpartition(" ")[2]) for text in build.samples.texts(ids)]


def test_a_batch_with_two_images_in_both_forms(world):
    build = builder(world, "marvl", "nlvr2-train-en", classes=("false", "true"))
    ids = np.array([5, 0, 17])
    batch, wanted = finish(build, ids), numbers(build, ids)
    assert said(batch.text_ids, batch.text_mask, "en") == [text_of(number, "en") for number in wanted]
    assert batch.labels.tolist() == [number % 2 for number in wanted]
    assert (batch.target_ids, batch.near_ids, batch.step, batch.count) == (None, None, 3, 3)
    assert batch.pixels.shape == (3, 2, 3, 8, 8)
    assert batch.regions.shape == (3, 2, 2, REGION_SIZE)
    for row, number in enumerate(wanted):
        for place in range(2):
            image = (number + place) % IMAGES
            assert torch.equal(batch.pixels[row, place], ImagePreprocessor(IMAGE)(picture(image)))
            count = min(2, 1 + image % 3)
            assert batch.region_mask[row, place].tolist() == [1] * count + [0] * (2 - count)
            assert batch.regions[row, place, :, 0].tolist() == [image + region / 8 for region in range(count)] + [0] * (2 - count)
            expected = [4 * (count - 1) / 16, 3 / 12, (4 * (count - 1) + 8) / 16, 9 / 12]
            torch.testing.assert_close(batch.boxes[row, place, count - 1], torch.tensor([*expected, 8 / 16 * 6 / 12]))


@pytest.mark.parametrize(("visual", "absent"), [("patches", ("regions", "boxes", "region_mask")), ("regions", ("pixels",))])
def test_forms_that_are_not_read_are_absent(world, visual, absent):
    batch = finish(builder(world, "xvnli", "xvnli-train-en", visual), np.arange(2))
    assert {name for name in ("regions", "boxes", "region_mask", "pixels") if getattr(batch, name) is None} == set(absent)


def test_answers_that_training_has_not_have_no_number(world):
    build = builder(world, "xgqa", "xgqa-train-en", classes=ANSWERS[:2])
    ids = np.arange(6)
    assert finish(build, ids).labels.tolist() == [(0, 1, -1)[number % 3] for number in numbers(build, ids)]


def test_translations_are_in_their_language(world):
    build = builder(world, "mmt", "mmt-train")
    ids = np.arange(4)
    batch = finish(build, ids)
    assert said(batch.target_ids, batch.target_mask, "de") == [text_of(number, "de") for number in numbers(build, ids)]
    assert said(batch.text_ids, batch.text_mask, "en") == build.samples.texts(ids)


def test_shares_of_workers_make_the_same_global_batch(world):
    build, plan = builder(world, "itr", "flickr30k-train-en", "patches"), Plan(24, 7, seed=1, window_steps=2, micro_batches=4)
    whole = finish(build, plan.batch(1))
    for workers in (2, 4):
        parts = [finish(build, plan.slice(1, rank, workers)) for rank in range(workers)]
        for name in ("ids", "text_numbers", "image_ids", "pixels"):
            assert torch.equal(torch.cat([getattr(part, name)[: part.count] for part in parts]), getattr(whole, name))


def test_other_texts_of_validation_are_apart_and_do_not_depend_on_the_batch(world):
    build = builder(world, "itr", "flickr30k-train-en", "patches", others=3)
    batch, alone = finish(build, np.arange(24)), finish(build, np.array([7]))
    assert batch.near_rows[7].tolist() == alone.near_rows[0].tolist()
    images = build.images.of_records[:, 0]
    for record, others in enumerate(batch.near_rows.tolist()):
        assert len(set(others)) == 3
        assert all(images[other] != images[record] for other in others)
        assert said(batch.near_ids[record], batch.near_mask[record], "en") == build.samples.texts(np.array(others))


def test_records_of_a_broken_picture_are_named_and_replaced(world, tmp_path):
    broken = [image_sample(number) for number in range(IMAGES)]
    broken[4].image = broken[4].image[:60]
    write(tmp_path / "broken", broken)
    images, plan = os.path.relpath(tmp_path / "broken", world), Plan(24, 24, seed=1)
    with pytest.raises(BadDataError, match=r"nlvr2-train-en/.*cannot be decoded"):
        finish(builder(world, "marvl", "nlvr2-train-en", "patches", images), plan.batch(0))
    skip = BadSamplePolicy("skip", 0.5)
    build = builder(world, "marvl", "nlvr2-train-en", "patches", images, policy=skip, spares=plan.spares)
    batch = finish(build, plan.batch(0))
    replaced = sorted(numbers(build, np.array([one.id for one in batch.replaced])))
    assert replaced == [3, 4, 15, 16], "each of whose two images is the broken one"
    assert "cannot be decoded" in batch.replaced[0].bad.reason
