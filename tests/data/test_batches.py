"""Batches are the same rows whatever the number of workers and wherever pictures are decoded."""

import io
import itertools

import numpy as np
import PIL.Image
import pytest
import torch

from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import Share
from raysys.data.features import FeatureCache, save_features
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.plan import Plan
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.data.worlds import LANGUAGES, all_languages, builder, load, one_language, write_dataset

IMAGE = ImagePreprocessorSettings(size=12)
COUNT, VIEWS, SIZE = 60, 4, 5


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    return load([write_dataset(folder / "one", COUNT // 2), write_dataset(folder / "all", COUNT // 2, all_languages, first=200)])


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Vector [sample, view, :] holds (10 · sample + view) / 4, which float16 can."""
    uri = str(tmp_path_factory.mktemp("features") / "vectors.npy")
    values = 10 * np.arange(COUNT)[:, None] + np.arange(VIEWS)[None]
    save_features(Storage(), uri, np.repeat(values[:, :, None] / 4, SIZE, axis=2))
    return FeatureCache(Storage(), uri)


@pytest.fixture(scope="module")
def finish():
    """(builder, step, epoch, ids) → the batch, as a worker makes it."""

    def finished(build, step, epoch, ids):
        (payload,) = build([Share(step, epoch, ids)])
        return BatchFinisher(IMAGE, 2, build)(payload)

    return finished


def joined(parts: list[Batch]) -> dict[str, torch.Tensor]:
    """Rows of workers' shares one after another, without the rows and columns that are padding."""
    length = max(int(part.attention_mask[: part.count].sum(dim=1).max()) for part in parts if part.count)
    padding = {"input_ids": 0, "masked_ids": 0, "attention_mask": 0, "labels": -100}
    rows: dict[str, list[torch.Tensor]] = {}
    for part in parts:
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                if name in padding:
                    assert (value[:, length:] == (value[0, length:] if name != "labels" else -100)).all()
                    value = torch.nn.functional.pad(value, (0, length - value.shape[1]), value=padding[name])
                    value = torch.where(torch.arange(length) < part.attention_mask.sum(dim=1, keepdim=True), value, padding[name])
                rows.setdefault(name, []).append(value[: part.count])
    return {name: torch.cat(values) for name, values in rows.items()}


@pytest.mark.parametrize("source", ["pictures", "features"])
def test_shares_of_workers_make_the_same_global_batch(samples, features, finish, source):
    build = builder(samples, features=features if source == "features" else None)
    plan = Plan(COUNT, 13, seed=3, run_length=7, window_steps=2, last_batch="keep")
    for step in (0, 4, 7):  # 4 is the last batch of the first epoch: 8 samples
        epoch = plan.epoch_of(step)
        whole = joined([finish(build, step, epoch, plan.batch(step))])
        assert whole["ids"].tolist() == plan.batch(step).tolist()
        for workers in (2, 3, 5, 20):  # with 20, some have no sample
            parts = [finish(build, step, epoch, plan.slice(step, rank, workers)) for rank in range(workers)]
            assert sum(part.count for part in parts) == len(plan.batch(step))
            assert all(part.step == step for part in parts)
            shares = joined(parts)
            assert shares.keys() == whole.keys() >= {"images" if source == "pictures" else "features", "labels", "masked_ids", "image_ids"}
            for name, value in whole.items():
                assert torch.equal(shares[name], value), (name, workers)


def test_what_a_batch_holds(samples, finish):
    build = builder(samples)
    ids = np.array([0, 5, 31, 59])
    batch = finish(build, 6, 1, ids)
    assert batch.ids.tolist() == ids.tolist()
    assert batch.image_ids.tolist() == samples.column("image_id")[ids].tolist()
    assert batch.images.shape == (4, 3, 12, 12)
    assert batch.images.dtype == torch.uint8
    for raw, number, row in zip(samples.read(ids), ids, range(4), strict=True):
        language, text = build.draw_caption(raw, *build.caption_draws(np.array([number]), 1)[0])
        assert samples.languages[int(batch.languages[row])] == language
        drawn = (one_language if number < 30 else all_languages)(int(raw.key[1:]))
        assert text in drawn[language]
        tokens = batch.input_ids[row][batch.attention_mask[row].bool()]
        assert build.tokenizer.decode(tokens.tolist(), skip_special_tokens=True).strip() == text
    hidden = batch.labels != -100
    assert torch.equal(batch.labels[hidden], batch.input_ids[hidden])
    assert torch.equal(batch.masked_ids[~hidden], batch.input_ids[~hidden])
    assert hidden.any(dim=1).all()
    assert batch.to(torch.device("meta")).input_ids.device.type == "meta"


def test_a_worker_without_samples_gets_a_row_of_padding(samples, features, finish):
    for options in ({}, {"features": features}):
        batch = finish(builder(samples, **options), 3, 0, np.array([], dtype=np.int64))
        assert batch.count == 0
        assert batch.step == 3
        tensors = [value for value in vars(batch).values() if isinstance(value, torch.Tensor)]
        assert {len(value) for value in tensors} == {1}


def test_decoding_on_the_cluster_or_in_the_trainer_is_the_same_bit_by_bit(tmp_path, finish):
    kinds = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP", "gif": "GIF"}

    def pictures():
        for n, (extension, kind) in enumerate(kinds.items()):
            gradient = np.linspace(0, 255, 40 * 70 * 3).reshape(40, 70, 3) + np.random.default_rng(n).normal(0, 20, (40, 70, 3))
            buffer = io.BytesIO()
            PIL.Image.fromarray(gradient.clip(0, 255).astype(np.uint8)).save(buffer, kind)
            yield Sample("train", f"k{n}", buffer.getvalue(), extension, {"captions": one_language(n)})

    write_shards(pictures(), str(tmp_path / "kinds"), 1, Storage())
    samples = load([str(tmp_path / "kinds")])
    ids = np.arange(4)
    here = finish(builder(samples), 0, 0, ids)
    there = finish(builder(samples, decode=IMAGE), 0, 0, ids)
    assert here.images.float().std() > 1
    for name, value in vars(here).items():
        same = torch.equal(value, vars(there)[name]) if isinstance(value, torch.Tensor) else value == vars(there)[name]
        assert same, name
    (payload,) = builder(samples)([Share(0, 0, ids)])
    assert [bytes(picture) for picture in payload.pictures] == [samples.picture(raw)[1] for raw in samples.read(ids)]
    assert b"uint8" not in payload.header  # encoded pictures travel, no pixels


def test_captions_are_drawn_anew_in_each_epoch_and_evenly(samples):
    build = builder(samples)
    epochs = 800
    raw = samples.read(np.array([45]))[0]
    drawn = [build.draw_caption(raw, *build.caption_draws(np.array([45]), epoch)[0])[0] for epoch in range(epochs)]
    counts = np.array([drawn.count(language) for language in LANGUAGES])
    assert counts.sum() == epochs
    # χ² of four equally likely languages: beyond 16.3 once in a thousand
    assert ((counts - epochs / 4) ** 2 / (epochs / 4)).sum() < 16.3
    repeats = sum(a == b for a, b in itertools.pairwise(drawn)) / (epochs - 1)
    assert abs(repeats - 1 / 4) < 0.05

    raw = samples.read(np.array([4]))[0]  # two captions in one language

    def draws(source):
        return [source.draw_caption(raw, *source.caption_draws(np.array([4]), epoch)[0])[1] for epoch in range(300)]

    texts = draws(build)
    assert abs(texts.count(texts[0]) / 300 - 0.5) < 0.1
    assert texts == draws(builder(samples))
    assert texts != draws(builder(samples, seed=6))


def test_masks_are_drawn_anew_in_each_epoch(samples, finish):
    build = builder(samples)
    labels = [finish(build, 0, epoch, np.arange(30, 60)) for epoch in range(6)]
    patterns = {tuple((batch.labels != -100).flatten().tolist()) for batch in labels}
    assert len(patterns) == 6


def test_cached_views_the_first_as_it_is_and_another_in_turn(samples, features):
    build = builder(samples, features=features)
    ids = np.arange(COUNT)
    seen = np.stack([build.draw_views(ids, epoch) for epoch in range(90)])  # [epoch, sample, 2, size]
    assert seen.shape == (90, COUNT, 2, SIZE)
    assert seen.dtype == np.float16
    assert (seen[:, :, 0] == (10 * ids / 4)[None, :, None]).all()
    others = np.rint(seen[:, :, 1, 0] * 4 - 10 * ids)
    assert set(np.unique(others)) == {1, 2, 3}
    shares = [(others == view).mean() for view in (1, 2, 3)]
    assert np.allclose(shares, 1 / 3, atol=0.03)


def test_one_cached_view_stands_for_both(tmp_path, samples):
    save_features(Storage(), str(tmp_path / "x.npy"), np.arange(COUNT * SIZE, dtype=float).reshape(COUNT, 1, SIZE))
    build = builder(samples, features=FeatureCache(Storage(), str(tmp_path / "x.npy")))
    views = build.draw_views(np.array([7, 3]), 0)
    assert (views[:, 0] == views[:, 1]).all()
    assert views[0, 0].tolist() == list(range(7 * SIZE, 8 * SIZE))


@pytest.mark.parametrize("decode", [None, IMAGE])
def test_where_no_picture_is_seen_none_travels_and_none_is_needed(tmp_path, finish, decode):
    texts = (Sample("train", f"t{n}", None, "png", {"captions": {"en": [f"number {n}"]}}) for n in range(4))
    write_shards(texts, str(tmp_path), 1, Storage())
    batch = finish(builder(load([str(tmp_path)]), decode=decode, pictures=False), 0, 0, np.arange(4))
    assert batch.images is batch.features is None
    assert batch.image_ids.tolist() == [0, 0, 0, 0]
    assert batch.input_ids.shape[0] == 4
