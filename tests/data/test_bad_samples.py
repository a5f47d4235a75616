"""Bad samples that only show when they are read: named, replaced by the plan's spares, and of no influence on anything else."""

from pathlib import Path

import numpy as np
import pytest
import torch

from raysys.data.bad import BadDataError, BadSamplePolicy
from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import Share
from raysys.data.features import FeatureCache, save_features
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.pipeline import DATASET, PlannedData
from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.errors import UserError
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.data.test_pipeline import consume
from tests.data.worlds import builder, load, one_language
from tests.shards.tars import picture

COUNT, BATCH = 60, 10
IMAGE = ImagePreprocessorSettings(size=8)
CUT = {"s0007", "s0031"}
"""Keys of pictures that begin well and end too early: their headers can be read, their pixels cannot."""
CHANGED = "s0010"
"""Key of a sample one of whose bytes changed after the shards were indexed."""
SKIP = BadSamplePolicy("skip", 0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    folder: Path = tmp_path_factory.mktemp("bad")

    def data(number: int) -> bytes:
        whole = picture(number, (40, 30))
        return whole[: len(whole) // 2] if f"s{number:04}" in CUT else whole

    write_shards(
        (Sample("train", f"s{n:04}", data(n), "png", {"captions": one_language(n)}) for n in range(COUNT)), str(folder), 2, Storage()
    )
    samples = load([str(folder)])  # makes the manifest
    (raw,) = samples.read(np.flatnonzero(samples.column("key") == CHANGED))
    shard = folder / raw.shard
    stored = bytearray(shard.read_bytes())
    stored[stored.index(raw.members["png"]) + 40] ^= 1
    shard.write_bytes(stored)
    return str(folder)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(COUNT, BATCH, seed=3, run_length=7, window_steps=4)


def opened(folder: str, policy: BadSamplePolicy = SKIP) -> Samples:
    return load([folder], policy=policy)


def train(samples: Samples, plan: Plan, workers: int, steps: int, decode: ImagePreprocessorSettings | None = None) -> list[list[Batch]]:
    """Step by step, the workers' shares of the global batches."""
    build = builder(samples, decode=decode, spares=plan.spares)
    config = PlannedData(plan, build, last_step=steps, first_step=lambda: 0)
    shards = [shard[DATASET] for shard in config.configure({}, workers)]
    return [list(shares) for shares in zip(*consume(shards, BatchFinisher(IMAGE, 2, build)), strict=True)]


def test_batches_keep_their_size_and_are_the_same_for_all_workers_and_places_of_decoding(ray_session, folder, plan):
    samples = opened(folder)
    keys = samples.column("key")
    bad = {int(np.flatnonzero(keys == key)[0]): key for key in [*CUT, CHANGED]}
    steps = 2 * plan.steps_per_epoch
    runs = [train(samples, plan, 1, steps), train(samples, plan, 3, steps), train(samples, plan, 2, steps, IMAGE)]
    for shares in zip(*runs, strict=True):
        first, *others = (torch.cat([share.images[: share.count] for share in run]) for run in shares)
        assert all(torch.equal(first, other) for other in others)
        ids = [torch.cat([share.ids[: share.count] for share in run]).tolist() for run in shares]
        assert ids[0] == ids[1] == ids[2]
        step = shares[0][0].step
        planned = plan.batch(step).tolist()
        assert len(ids[0]) == BATCH
        assert not set(ids[0]) & set(bad)
        for now, then in zip(ids[0], planned, strict=True):
            assert now == then or then in bad, "no other row is touched"
        assert len(set(ids[0])) == BATCH
        told = [sorted((one.id, one.bad, one.spare) for share in run for one in share.replaced) for run in shares]
        assert told[0] == told[1] == told[2], "down to the last word"
        assert {one[0] for one in told[0]} == set(planned) & set(bad)
        for number, fault, spare in told[0]:
            assert fault.key == bad[number]
            assert (fault.cause, fault.member) == (("checksum", "") if fault.key == CHANGED else ("image", "png"))
            assert spare == keys[ids[0][planned.index(number)]]
    met = [one.id for run in runs[0] for share in run for one in share.replaced]
    assert sorted(met) == sorted(2 * list(bad)), "every bad sample is met once an epoch"


def test_the_default_is_to_name_the_first_one_and_stop(folder, plan):
    samples = opened(folder, BadSamplePolicy())
    keys = samples.column("key")

    def read(key: str, decode: ImagePreprocessorSettings | None = None) -> Batch:
        build = builder(samples, decode=decode, spares=plan.spares)
        (payload,) = build([Share(0, 0, np.flatnonzero(keys == key))])
        return BatchFinisher(IMAGE, 1, build)(payload)

    with pytest.raises(BadDataError, match=rf"^{folder}/00000[01]\.tar, sample 's0010': .*is not what was indexed.*on_bad_sample to skip"):
        read(CHANGED)
    for decode in (None, IMAGE):
        with pytest.raises(BadDataError, match=rf"^{folder}/00000[01]\.tar, sample 's0007', member \.png: cannot be decoded"):
            read("s0007", decode)
    assert read("s0008").count == 1


def test_more_than_the_allowed_share_ends_the_run(ray_session, folder, plan):
    samples = opened(folder, BadSamplePolicy("skip", 1.5 / COUNT))
    with pytest.raises(
        BadDataError,
        match=r"^2 of 60 samples are bad, more than data\.max_bad_fraction 0\.025 allows; one of them: .*jobs/shards\.py repair",
    ):
        train(samples, plan, 1, plan.steps_per_epoch)


def test_a_fault_met_by_a_reading_task_reaches_the_worker_as_it_is(ray_session, folder, plan):
    with pytest.raises(BadDataError, match=rf"^{folder}/00000[01]\.tar, sample 's00\d\d', member \.png: cannot be decoded") as failure:
        train(opened(folder, BadSamplePolicy("raise")), plan, 1, plan.steps_per_epoch, IMAGE)
    assert "\n" not in str(failure.value)


def test_a_batch_as_large_as_the_data_has_a_spare_for_every_bad_sample(folder):
    samples = opened(folder)
    whole = Plan(COUNT, COUNT, seed=0)
    build = builder(samples, decode=IMAGE, spares=whole.spares)
    for step in range(20):
        (payload,) = build([Share(step, step, whole.batch(step))])
        batch = BatchFinisher(IMAGE, 1, build)(payload)
        assert len(batch.ids) == COUNT
        assert len(batch.replaced) == 3


def test_data_of_which_nothing_can_be_used_says_why(tmp_path):
    write_shards(
        (Sample("train", f"s{n}", b"no picture", "png", {"captions": one_language(n)}) for n in range(3)), str(tmp_path), 1, Storage()
    )
    message = r"no sample that can be used in .*: 3 are bad, the first: .*000000\.tar, sample 's0', member .png: .*picture"
    with pytest.raises(UserError, match=message):
        opened(str(tmp_path))


def test_nothing_is_left_to_take_the_place(tmp_path):
    def sample(number: int) -> Sample:
        return Sample("train", f"s{number}", picture(number, (40, 30))[:900], "png", {"captions": one_language(number)})

    write_shards(map(sample, range(4)), str(tmp_path), 1, Storage())
    samples = opened(str(tmp_path), BadSamplePolicy("skip", 1.0))
    build = builder(samples, decode=IMAGE, spares=Plan(4, 2, seed=0).spares)
    with pytest.raises(BadDataError, match=r"step 0: no sample is left to take the place of .*sample 's"):
        build([Share(0, 0, np.array([0, 1]))])


def test_pictures_known_to_be_bad_from_kept_vectors(folder, plan, tmp_path):
    samples = opened(folder)
    uri = str(tmp_path / "vectors.npy")
    save_features(Storage(), uri, np.ones((COUNT, 2, 5)), {4: "cannot be decoded (cut)"})
    build = builder(samples, features=FeatureCache(Storage(), uri), spares=plan.spares)
    step = next(step for step in range(plan.steps_per_epoch) if 4 in plan.batch(step))
    (payload,) = build([Share(step, 0, plan.batch(step))])
    batch = BatchFinisher(IMAGE, 1, build)(payload)
    assert batch.features.shape == (BATCH, 2, 5)
    (told,) = [one for one in batch.replaced if one.id == 4]
    assert (told.bad.cause, told.bad.reason) == ("image", "cannot be decoded (cut)")
    assert 4 not in batch.ids.tolist()


def test_a_share_without_samples_is_padded_with_a_good_one(folder, plan, tmp_path):
    samples = opened(folder)
    uri = str(tmp_path / "vectors.npy")
    save_features(Storage(), uri, np.ones((COUNT, 2, 5)), {0: "cut", 1: "cut"})
    build = builder(samples, features=FeatureCache(Storage(), uri), spares=plan.spares)
    (payload,) = build([Share(9, 0, np.array([], dtype=np.int64))])
    batch = BatchFinisher(IMAGE, 1, build)(payload)
    assert (batch.count, len(batch.ids), batch.replaced) == (0, 1, [])
    assert int(batch.ids[0]) not in (0, 1)


def test_captions_that_are_cut_are_counted(tmp_path):
    long = {"de": ["Wort " * 60]}
    write_shards(
        (Sample("train", f"s{n}", picture(n), "png", {"captions": long if n % 3 else one_language(n)}) for n in range(9)),
        str(tmp_path),
        1,
        Storage(),
    )
    build = builder(opened(str(tmp_path)))
    (payload,) = build([Share(0, 0, np.arange(9))])
    assert BatchFinisher(IMAGE, 1, build)(payload).cut_captions == 6
