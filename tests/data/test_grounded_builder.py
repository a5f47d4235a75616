"""Batches of triples and captions: the same rows for any number of workers, s⁺ never s, and each kind replaced by its own."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from raysys.data.bad import BadDataError, BadSamplePolicy
from raysys.data.batches import BatchFinisher
from raysys.data.features import FeatureCache
from raysys.data.grounded_batches import GroundedBatch
from raysys.data.grounded_builder import GroundedBuilder
from raysys.data.grouped_plan import GroupedPlan
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.pipeline import DATASET, PlannedData
from raysys.data.samples import Samples
from raysys.data.shares import Share
from raysys.data.triples import Triples
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.data.grounded_worlds import (
    DOCUMENTS,
    FORM,
    PICTURES,
    SENTENCES,
    SIZE,
    TRIPLES,
    builder,
    captions_of,
    open_pictures,
    open_triples,
    sentence,
    write_documents,
    write_features,
    write_pictures,
)
from tests.data.test_pipeline import consume
from tests.shards.tars import picture

COUNT = TRIPLES + PICTURES
SKIP = BadSamplePolicy("skip", 0.5)
KINDS = ("previous", "next", "other")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("grounded")
    return write_documents(folder / "text"), write_pictures(folder / "pictures")


@pytest.fixture(scope="module")
def world(folders, tmp_path_factory) -> tuple[Triples, Samples, FeatureCache]:
    features = write_features(tmp_path_factory.mktemp("vectors") / "vectors.npy")
    return open_triples(folders[0]), open_pictures(folders[1]), features


def finish(build: GroundedBuilder, ids: np.ndarray, step: int = 0, epoch: int = 0) -> GroundedBatch:
    (payload,) = build([Share(step, epoch, ids)])
    assert not payload.pictures
    return BatchFinisher(ImagePreprocessorSettings(size=8), 1, build)(payload)


def texts(build: GroundedBuilder, batch: GroundedBatch, kind: str = "input") -> list[str]:
    """What the rows say; the empty string where a row has no such text."""
    ids, mask = getattr(batch, f"{kind}_ids"), getattr(batch, "attention_mask" if kind == "input" else f"{kind}_mask")
    assert ids.shape == mask.shape
    assert ids.dtype == mask.dtype == torch.int64
    assert mask.shape[1] == mask.sum(dim=1).max(), "as long as the longest"
    assert (mask.diff(dim=1) <= 0).all()
    return [build.tokenizer.decode(row[: int(size)].tolist()) for row, size in zip(ids, mask.sum(dim=1), strict=True)]


def joined(build: GroundedBuilder, parts: list[GroundedBatch]) -> list[tuple]:
    """Rows of workers' shares one after another, as values that can be compared."""
    rows: list[tuple] = []
    for part in parts:
        columns = [part.ids, part.image_ids, part.draws]
        kinds = [texts(build, part, kind) for kind in ("input", *KINDS) if getattr(part, f"{kind}_ids") is not None]
        features = [] if part.features is None else [list(map(tuple, part.features.tolist()))]
        rows += list(zip(*(column.tolist() for column in columns), *kinds, *features, strict=True))[: part.count]
    return rows


def test_what_a_batch_holds(world):
    triples, captions, _ = world
    build = builder(*world)
    ids = np.random.default_rng(0).permutation(COUNT)
    batch = finish(build, ids, step=3, epoch=2)
    assert (batch.step, batch.count, batch.ids.tolist(), batch.replaced) == (3, COUNT, ids.tolist(), [])
    said = {kind: texts(build, batch, kind) for kind in ("input", *KINDS)}
    pictured = 0
    for row, number in enumerate(ids.tolist()):
        found = {kind: said[kind][row] for kind in said}
        if number < TRIPLES:
            document, place = divmod(number, SENTENCES - 2)
            around = [sentence(document, place + shift) for shift in range(3)]
            assert found == {"previous": around[0], "input": around[1], "next": around[2], "other": ""}
            assert batch.image_ids[row] == 0
            assert batch.features[row].tolist() == [0.0] * SIZE
        else:
            own = set(captions_of(number - TRIPLES))
            assert found["input"] in own
            assert found["previous"] == found["next"] == ""
            assert (found["other"] in own - {found["input"]}) if len(own) > 1 else (found["other"] == "")
            assert batch.image_ids[row] == captions.column("image_id")[number - TRIPLES] != 0
            assert batch.features[row].tolist() == [number - TRIPLES + 1.0] * SIZE
            pictured += 1
    assert pictured == PICTURES
    assert batch.features.dtype == batch.draws.dtype == torch.float32
    assert len(triples) == TRIPLES == DOCUMENTS * 30


@pytest.mark.parametrize("bucketed", [False, True])
def test_shares_of_workers_make_the_same_global_batch(world, bucketed):
    triples, captions, _ = world
    build = builder(*world)
    lengths = np.concatenate([triples.lengths, np.zeros(len(captions), np.int16)]) if bucketed else None
    groups = [range(TRIPLES), range(TRIPLES, COUNT)]
    plan = GroupedPlan(groups, [2, 1], 13, 3, run_length=7, window_steps=3, mixed=True, lengths=lengths)
    for step in (0, 4, 17):
        whole = joined(build, [finish(build, plan.batch(step), step, plan.draw_of(step))])
        assert [row[0] for row in whole] == plan.batch(step).tolist()
        for workers in (2, 3, 5, 20):  # with 20, some have no sample
            parts = [finish(build, plan.slice(step, rank, workers), step, plan.draw_of(step)) for rank in range(workers)]
            assert joined(build, parts) == whole
            assert len({tuple(part.tensors()) for part in parts}) == 1, "every worker has the same fields"


def test_captions_are_drawn_by_address_and_evenly(world):
    build, epochs = builder(*world), 240
    ids = np.array([TRIPLES + 4, TRIPLES + 3])  # three different captions, of four; one caption

    def drawn(build: GroundedBuilder, epochs: int) -> list[tuple[str, str]]:
        batches = [finish(build, ids, epoch=epoch) for epoch in range(epochs)]
        assert all(texts(build, batch, "other")[1] == "" for batch in batches)
        return [(texts(build, batch)[0], texts(build, batch, "other")[0]) for batch in batches]

    pairs = drawn(build, epochs)
    counts = Counter(pairs)
    assert len(counts) == 6, "each of three, with each of the other two"
    # χ² of six equally likely pairs: beyond 20.5 once in a thousand
    assert sum((count - epochs / 6) ** 2 / (epochs / 6) for count in counts.values()) < 20.5
    assert drawn(builder(*world), 20) == pairs[:20]
    assert drawn(builder(*world, seed=6), 20) != pairs[:20]


def test_draws_are_uniform_below_one_and_anew_in_each_epoch(world):
    build = builder(*world)
    draws = torch.stack([finish(build, np.arange(COUNT), epoch=epoch).draws for epoch in range(20)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert len(draws.unique()) > 0.99 * draws.numel()
    assert abs(float(draws.mean()) - 0.5) < 4 / (12 * draws.numel()) ** 0.5
    assert torch.equal(finish(build, np.array([7, 99]), epoch=4).draws, draws[4, [7, 99]])


@pytest.mark.parametrize("kept", ["triples", "captions", "captions without vectors"])
def test_a_run_of_one_kind_has_the_fields_of_that_kind(world, kept):
    triples, captions, features = world
    if kept == "triples":
        batch = finish(builder(triples, None, None), np.array([5, 0]))
        assert batch.other_ids is batch.other_mask is batch.features is None
        assert batch.previous_ids is not None
    else:
        build = builder(None, captions, features if kept == "captions" else None)
        batch = finish(build, np.array([5, 0]))
        assert batch.previous_ids is batch.previous_mask is batch.next_ids is batch.next_mask is None
        assert texts(build, batch)[1] == captions_of(0)[0]
        assert (batch.features is None) == (kept != "captions")
        if batch.features is not None:
            assert batch.features[:, 0].tolist() == [6, 1]


def test_a_worker_without_samples_gets_a_row_of_padding(world):
    batch = finish(builder(*world), np.array([], dtype=np.int64), step=3)
    assert (batch.count, batch.step) == (0, 3)
    assert {len(value) for value in batch.tensors().values()} == {1}


def test_texts_that_are_cut_are_counted_once_a_row(tmp_path):
    long = "goes on " * FORM.max_tokens
    document = ["picture again", long, "a photo of", "picture again", "a photo of", "a photo of"]
    build = builder(open_triples(write_documents(tmp_path, [document])), None, None)
    assert finish(build, np.arange(4)).cut_captions == 2, "the triples whose sentence in the middle, or before it, is too long"


def changed(folder: str, samples: Samples | Triples, key: str) -> None:
    """One byte of a sample changes after its shard was indexed."""
    manifest = samples.manifests[0]
    (row,) = [row for row in range(len(manifest)) if manifest.table["key"][row].as_py() == key]
    shard = Path(folder, manifest.table["shard"][row].as_py())
    stored = bytearray(shard.read_bytes())
    stored[manifest.table["members"][row].as_py()[0]["offset"] + 20] ^= 1
    shard.write_bytes(stored)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory) -> tuple[str, str]:
    """A piece of a document, with the ten triples 40 to 49, and a picture's captions have changed."""
    folder = tmp_path_factory.mktemp("damaged")
    text, pictures = write_documents(folder / "text"), write_pictures(folder / "pictures")
    changed(text, open_triples(text), "1-010")
    changed(pictures, open_pictures(pictures), "p009")
    return text, pictures


BAD = {*range(40, 50), TRIPLES + 9, TRIPLES + 20}


def test_what_is_bad_is_replaced_by_its_own_kind_and_named(ray_session, damaged, tmp_path):
    triples, captions = open_triples(damaged[0], SKIP), open_pictures(damaged[1], SKIP)
    features = write_features(tmp_path / "vectors.npy", bad={20: "cannot be decoded (cut)"})
    plan = GroupedPlan([range(TRIPLES), range(TRIPLES, COUNT)], [2, 1], 12, 3, run_length=7, window_steps=9, mixed=True)
    build = builder(triples, captions, features, spares=plan.spares)
    steps = 2 * plan.steps_per_epoch

    finisher = BatchFinisher(ImagePreprocessorSettings(size=8), 1, build)
    config = PlannedData(plan, build, last_step=steps, first_step=lambda: 0)
    through_ray = zip(*consume([shard[DATASET] for shard in config.configure({}, 2)], finisher), strict=True)
    met = set()
    for step, shared in enumerate(through_ray):
        alone = [finish(build, plan.batch(step), step, plan.draw_of(step))]
        rows, planned = joined(build, alone), plan.batch(step).tolist()
        assert rows == joined(build, shared)
        ids = [row[0] for row in rows]
        assert not BAD & set(ids)
        for now, then in zip(ids, planned, strict=True):
            assert (now < TRIPLES) == (then < TRIPLES)
            assert now == then or then in BAD, "no other row is touched"
        told = [sorted((one.id, one.bad, one.spare) for share in shares for one in share.replaced) for shares in (alone, shared)]
        assert told[0] == told[1]
        assert {one[0] for one in told[0]} == BAD & set(planned)
        for number, fault, spare in told[0]:
            key = {TRIPLES + 9: "p009", TRIPLES + 20: "p020"}.get(number, "1-010")
            assert (fault.key, fault.cause) == (key, "image" if key == "p020" else "checksum")
            assert fault.shard.startswith(damaged[0] if number < TRIPLES else damaged[1])
            assert spare == build.samples.locate(ids[planned.index(number)])[1]
            met.add(number)
    assert step == steps - 1
    assert met == BAD


def test_a_bad_piece_of_text_is_one_bad_sample_however_many_triples_it_holds(damaged):
    build = builder(open_triples(damaged[0], BadSamplePolicy("skip", 1 / 9)), None, None)
    assert len(finish(build, np.arange(TRIPLES)).replaced) == 10, "one of nine pieces"
    strict = builder(open_triples(damaged[0], BadSamplePolicy("skip", 0.1)), None, None)
    with pytest.raises(BadDataError, match=r"^1 of 9 samples are bad, more than data\.max_bad_fraction 0\.1 allows"):
        finish(strict, np.arange(TRIPLES))


def test_the_default_is_to_name_the_first_one_and_stop(damaged):
    build = builder(open_triples(damaged[0]), open_pictures(damaged[1]), None)
    for number, named in ((45, rf"^{damaged[0]}/000000\.tar, sample '1-010'"), (TRIPLES + 9, rf"^{damaged[1]}/000000\.tar, sample 'p009'")):
        with pytest.raises(BadDataError, match=named + r": .*is not what was indexed.*on_bad_sample to skip"):
            finish(build, np.array([number]))


def test_a_caption_that_says_nothing_is_a_bad_sample(tmp_path):
    said = [["\ue000\ue001"], ["a photo"], ["a photo", "\ue000\ue001"]]
    samples = (Sample("train", f"p{n}", picture(n), "png", {"captions": {"en": said[n]}}) for n in range(3))
    write_shards(samples, str(tmp_path), 1, Storage())
    build = builder(None, open_pictures(str(tmp_path), BadSamplePolicy("skip", 1.0)), None)
    batch = finish(build, np.arange(3))
    assert batch.ids.tolist() == [1, 1, 1]
    assert [(one.bad.key, one.bad.cause) for one in batch.replaced] == [("p0", "text"), ("p2", "text")]
    assert "has no visible character" in batch.replaced[0].bad.reason


def test_nothing_of_its_kind_is_left_to_take_the_place(tmp_path, world):
    features = write_features(tmp_path / "vectors.npy", bad=dict.fromkeys(range(PICTURES), "cut"))
    triples, captions = (open_(samples.manifests[0].folder, BadSamplePolicy("skip", 1.0)) for open_, samples in
                         ((open_triples, world[0]), (open_pictures, world[1])))  # fmt: skip
    with pytest.raises(BadDataError, match=r"step 5: no sample is left to take the place of .*sample 'p0\d\d'"):
        finish(builder(triples, captions, features), np.array([0, TRIPLES + 3]), step=5)


def test_where_data_is_read_neither_torch_nor_transformers_is_imported():
    program = "import sys, raysys.data.grounded_builder; print({'torch', 'transformers'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
