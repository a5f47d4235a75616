"""RC³'s batches: the same rows for any number of workers and wherever pictures are decoded; each stream replaced by its own."""

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch

from raysys.data.bad import BadDataError, BadSamplePolicy
from raysys.data.batches import BatchFinisher
from raysys.data.grouped_plan import GroupedPlan
from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.language_codes import language_ids
from raysys.data.masking import IGNORED
from raysys.data.pipeline import DATASET, PlannedData
from raysys.data.rc3_batches import PARALLEL, STRICT, WEAK, Rc3Batch
from raysys.data.rc3_builder import Rc3Builder
from raysys.data.samples import Samples
from raysys.data.shares import Share
from raysys.data.streams import Rc3Streams
from raysys.errors import UserError
from raysys.shards.sample import Sample
from raysys.storage import Storage
from tests.data.rc3_worlds import (
    COUNT,
    LANGUAGES,
    REGIONS,
    SIZE,
    STRICTS,
    WEAKS,
    builder,
    open_all,
    open_pairs,
    open_samples,
    parallel_captions,
    parallel_samples,
    regions_of,
    rois,
    strict_captions,
    strict_samples,
    tokenizer,
    weak_captions,
    weak_samples,
    write,
    write_all,
)
from tests.data.test_pipeline import consume
from tests.shards.tars import picture

IMAGE = ImagePreprocessorSettings(size=8)
SKIP = BadSamplePolicy("skip", 0.5)
GROUPS = [range(STRICTS), range(STRICTS, STRICTS + WEAKS), range(STRICTS + WEAKS, COUNT)]
VISUALS = ["regions", "patches", "combined"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[str, str, str]:
    return write_all(tmp_path_factory.mktemp("rc3"))


@pytest.fixture(scope="module")
def streams(folders) -> Rc3Streams:
    return open_all(folders)


def finish(build: Rc3Builder, ids: np.ndarray, step: int = 0, epoch: int = 0) -> Rc3Batch:
    (payload,) = build([Share(step, epoch, ids)])
    return BatchFinisher(IMAGE, 1, build)(payload)


def said_in(batch: Rc3Batch, name: str, field: str = "ids") -> list[tuple[int, ...]]:
    """The tokens of each row, without padding."""
    values, mask = getattr(batch, f"{name}_{field}"), getattr(batch, f"{name}_mask")
    assert values.shape == mask.shape
    assert values.dtype == mask.dtype == torch.int64
    assert mask.shape[1] == mask.sum(dim=1).max(), "as long as the longest"
    assert (mask.diff(dim=1) <= 0).all()
    return [tuple(row[: int(size)].tolist()) for row, size in zip(values, mask.sum(dim=1), strict=True)]


def rows_of(batch: Rc3Batch) -> list[tuple]:
    """Everything that is in each row but padding, as values that can be compared."""
    columns = [getattr(batch, name).tolist() for name in ("ids", "kinds", "image_ids", "first_languages", "second_languages")]
    columns += [said_in(batch, name, field) for name in ("first", "second") for field in ("ids", "masked", "labels")]
    if batch.regions is not None:
        there = batch.region_mask.bool()
        for field in ("regions", "boxes", "region_draws"):
            columns.append([str(row[mask].tolist()) for row, mask in zip(getattr(batch, field), there, strict=True)])
    if batch.images is not None:
        columns += [batch.has_pixels.tolist(), [row.numpy().tobytes() for row in batch.images]]
    return list(zip(*columns, strict=True))[: batch.count]


def joined(batches: list[Rc3Batch]) -> list[tuple]:
    assert len({tuple(batch.tensors()) for batch in batches}) == 1, "every worker has the same fields"
    return [row for batch in batches for row in rows_of(batch)]


def texts(batch: Rc3Batch, name: str) -> list[tuple[str, str]]:
    """(language, text) of each row; the language's token is at the end, and is that of its number."""
    core, tokens, numbers = tokenizer(), said_in(batch, name), getattr(batch, f"{name}_languages").tolist()
    tags = language_ids(core, LANGUAGES)
    found = []
    for row, number in zip(tokens, numbers, strict=True):
        assert (row[0], row[-1]) == (core.bos_token_id, tags[LANGUAGES[number]])
        found.append((LANGUAGES[number], core.decode(row[1:-1])))
    return found


def test_what_a_batch_holds(streams):
    build = builder(streams, strict_visual="combined")
    ids = np.random.default_rng(0).permutation(COUNT)
    batch = finish(build, ids, step=3, epoch=2)
    assert (batch.step, batch.count, batch.ids.tolist(), batch.replaced, batch.cut_captions) == (3, COUNT, ids.tolist(), [], 0)
    preprocess = ImagePreprocessor(IMAGE)
    for row, (number, one, other) in enumerate(zip(ids.tolist(), texts(batch, "first"), texts(batch, "second"), strict=True)):
        kind = int(batch.kinds[row])
        assert kind == [number in group for group in GROUPS].index(True)
        own = number - GROUPS[kind].start
        if kind == WEAK:
            captions = weak_captions(own)
            assert one[1] in captions[one[0]]
            assert other[1] in captions[other[0]]
        else:
            captions = strict_captions(own) if kind == STRICT else parallel_captions(own_sample(streams, number))
            place = captions[one[0]].index(one[1])
            assert captions[other[0]].index(other[1]) == place, "the same caption in both languages"
            assert kind == STRICT or place == own % 2
        assert one[0] != other[0]
        features, boxes = regions_of(own)
        count = min(len(features), REGIONS) if kind == STRICT else 0
        assert batch.region_mask[row].tolist() == [1] * count + [0] * (REGIONS - count)
        assert batch.regions[row, :count].tolist() == features[:count].tolist()
        assert not batch.regions[row, count:].any()
        if count:
            left, top, right, bottom = boxes[0] / [16, 12, 16, 12]
            expected = [left, top, right, bottom, (right - left) * (bottom - top)]
            np.testing.assert_allclose(batch.boxes[row, 0], expected, rtol=1e-6)
        shown = picture(own if kind == STRICT else 100 + own)
        assert bool(batch.has_pixels[row]) == (kind != PARALLEL) == (int(batch.image_ids[row]) != 0)
        assert torch.equal(batch.images[row], preprocess(shown) if kind != PARALLEL else torch.zeros(3, 8, 8, dtype=torch.uint8))
    assert batch.regions.dtype == batch.boxes.dtype == batch.region_draws.dtype == torch.float32
    assert batch.regions.shape == (COUNT, REGIONS, SIZE)


def own_sample(streams: Rc3Streams, number: int) -> int:
    """Which sample of D_t a number lies in."""
    return int(streams.locate(number)[1][1:])


@pytest.mark.parametrize("visual", VISUALS)
@pytest.mark.parametrize("decode", [None, IMAGE], ids=["decoded by the trainer", "decoded by the cluster"])
def test_shares_of_workers_make_the_same_global_batch(streams, visual, decode):
    build, other = builder(streams, strict_visual=visual), builder(streams, strict_visual=visual, decode=decode)
    plan = GroupedPlan(GROUPS, [2, 1, 2], 11, 3, run_length=4, window_steps=3, mixed=True)
    for step in (0, 5):
        whole = rows_of(finish(build, plan.batch(step), step, plan.draw_of(step)))
        assert [row[0] for row in whole] == plan.batch(step).tolist()
        for workers in (2, 3, 20):  # with 20, some have no sample
            parts = [finish(other, plan.slice(step, rank, workers), step, plan.draw_of(step)) for rank in range(workers)]
            assert joined(parts) == whole


def test_every_sample_comes_as_often_as_the_plan_says(streams):
    build = builder(streams)
    plan = GroupedPlan(GROUPS, [1, 1, 1], 12, 3, run_length=4, window_steps=4, mixed=True)
    steps = 4 * 11 * 18 // 12  # whole passes of D_t (18), and 44 rows of each kind and a third of a batch
    met = Counter(number for step in range(steps) for number in finish(build, plan.batch(step), step, plan.draw_of(step)).ids.tolist())
    assert sum(met.values()) == 12 * steps
    for group in GROUPS:
        counts = [met[number] for number in group]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == 4 * steps


def test_micro_batches_are_trimmed_to_what_they_hold(streams):
    build = builder(streams, strict_visual="combined")
    ids = np.random.default_rng(1).permutation(COUNT)
    batch = finish(build, ids)
    for cut in ([0, 3, 10, COUNT], [0, 1, 2, COUNT - 1, COUNT]):
        parts = [batch.rows(start, stop) for start, stop in itertools.pairwise(cut)]
        assert joined(parts) == rows_of(batch)
        for part in parts:
            assert part.regions.shape[1] == part.region_mask.shape[1] == part.region_mask.sum(dim=1).max()
    alone = batch.rows(int(np.flatnonzero(ids >= GROUPS[PARALLEL].start)[0]), int(np.flatnonzero(ids >= GROUPS[PARALLEL].start)[0]) + 1)
    assert alone.regions.shape == (1, 0, SIZE)
    assert batch.rows(4, 4).count == 0


def test_near_texts_are_trimmed_by_their_own_mask(streams):
    from dataclasses import replace

    batch = finish(builder(streams), np.arange(4))
    lengths = torch.tensor([[3, 5], [2, 2], [7, 1], [0, 0]])
    mask = (torch.arange(9) < lengths[..., None]).long()
    near = replace(batch, near_first_ids=mask * 8, near_first_mask=mask, near_rows=torch.arange(8).view(4, 2))
    part = near.rows(0, 2)
    assert part.near_first_ids.shape == part.near_first_mask.shape == (2, 2, 5)
    assert part.near_rows.tolist() == [[0, 1], [2, 3]]
    assert near.rows(3, 4).near_first_ids.shape == (1, 2, 0)
    none = replace(batch, near_first_ids=mask[:, :0], near_first_mask=mask[:, :0])
    assert none.rows(1, 3).near_first_ids.shape == (2, 0, 0)


@pytest.mark.parametrize(
    ("kinds", "visual", "fields"),
    [
        ((STRICT,), "regions", {"regions"}),
        ((STRICT, PARALLEL), "patches", {"images"}),
        ((WEAK, PARALLEL), "regions", {"images"}),
        ((PARALLEL,), "combined", set()),
        ((STRICT, WEAK), "regions", {"regions", "images"}),
    ],
)
def test_a_run_has_the_fields_of_what_it_looks_at(folders, kinds, visual, fields):
    whole = open_all(folders)
    streams = Rc3Streams(*(part if kind in kinds else None for kind, part in enumerate(whole.kinds)))
    build = builder(streams, strict_visual=visual)
    batch = finish(build, np.arange(len(streams)))
    assert sorted(set(batch.kinds.tolist())) == list(kinds)
    assert {name for name in ("regions", "images") if getattr(batch, name) is not None} == fields
    for of, beside in (("regions", ("boxes", "region_mask", "region_draws")), ("images", ("has_pixels",))):
        assert {getattr(batch, name) is not None for name in beside} == {of in fields}
    if fields == {"regions"}:
        (payload,) = build([Share(0, 0, np.arange(3))])
        assert not payload.pictures
    empty = finish(build, np.array([], dtype=np.int64), step=4)
    assert (empty.count, empty.step, {len(value) for value in empty.tensors().values()}) == (0, 4, {1})
    assert empty.tensors().keys() == batch.tensors().keys()


def test_pairs_of_languages_and_captions_are_drawn_by_address_and_evenly(streams):
    build, epochs = builder(streams), 120
    number = np.array([1])  # three languages, two captions in each

    def drawn(build: Rc3Builder, epochs: int) -> list[tuple]:
        batches = [finish(build, number, epoch=epoch) for epoch in range(epochs)]
        return [(texts(batch, "first")[0], texts(batch, "second")[0][0]) for batch in batches]

    pairs = drawn(build, epochs)
    counts = Counter(pairs)
    assert len(counts) == 12, "6 ordered pairs of languages, two captions"
    # χ² of twelve equally likely ones: beyond 31.3 once in a thousand
    assert sum((count - epochs / 12) ** 2 / (epochs / 12) for count in counts.values()) < 31.3
    assert drawn(builder(streams), 20) == pairs[:20]
    assert drawn(builder(streams, seed=6), 20) != pairs[:20]


def test_the_first_language_can_be_fixed(folders):
    whole = open_all(folders)
    english = Samples.load([folders[0]], LANGUAGES, Storage(), print, pairs=True, including="en")
    assert len(english) == STRICTS // 2
    build = builder(Rc3Streams(english, whole.weak, None), first_language="en")
    batches = [finish(build, np.arange(len(english) + WEAKS), epoch=epoch) for epoch in range(8)]
    strict = [(LANGUAGES[a], LANGUAGES[b]) for batch in batches for a, b in languages_of(batch)[: len(english)]]
    assert {pair[0] for pair in strict} == {"en"}
    assert {pair[1] for pair in strict} == {"de", "fr", "ja"}
    assert len({pair for batch in batches for pair in languages_of(batch)[len(english) :]}) == 8, "of D_w as before"
    with pytest.raises(BadDataError, match=r"'s01'.*no texts that belong together in en and another of the languages in use"):
        finish(builder(whole, first_language="en"), np.array([1]))
    with pytest.raises(UserError, match=r"^no sample with captions in two of the languages en, de, fr among them, in "):
        Samples.load([folders[1]], ("en", "de"), Storage(), print, pairs=True, including="fr")


def languages_of(batch: Rc3Batch) -> list[tuple[int, int]]:
    return list(zip(batch.first_languages.tolist(), batch.second_languages.tolist(), strict=True))


def test_words_are_hidden_by_address_in_both_texts(streams):
    build, batches = builder(streams), []
    ids = np.array([1, 20, 30])
    for epoch in range(40):
        batches.append(finish(build, ids, epoch=epoch))
        for name in ("first", "second"):
            own = zip(*(said_in(batches[-1], name, field) for field in ("ids", "masked", "labels")), strict=True)
            for tokens, hidden, labels in own:
                assert any(label != IGNORED for label in labels)
                assert all(label in (IGNORED, token) for label, token in zip(labels, tokens, strict=True))
                assert all(label != IGNORED or token == seen for token, seen, label in zip(tokens, hidden, labels, strict=True))
                assert labels[0] == labels[-1] == IGNORED
    both = [
        [tuple(label != IGNORED for label in row) for row in said_in(batch, name, "labels")] for batch in batches for name in ("first",)
    ]
    assert len({tuple(rows) for rows in both}) > 20, "anew in each pass"
    again = finish(builder(streams), ids[[2, 0]], epoch=7)
    assert rows_of(again) == [rows_of(batches[7])[2], rows_of(batches[7])[0]]


def test_draws_of_regions_are_uniform_below_one_and_anew_in_each_pass(streams):
    build = builder(streams)
    draws = torch.cat(
        [batch.region_draws[batch.region_mask.bool()] for batch in (finish(build, np.arange(STRICTS), epoch=e) for e in range(15))]
    )
    assert draws.min() >= 0
    assert draws.max() < 1
    assert len(draws.unique()) > 0.99 * len(draws)
    assert abs(float(draws.mean()) - 0.5) < 4 / (12 * len(draws)) ** 0.5


def test_samples_in_fewer_than_two_of_the_languages_are_left_out_and_counted(folders):
    streams = Rc3Streams(
        *(open_(folder, None, ("en", "de")) for open_, folder in zip((open_samples, open_samples, open_pairs), folders, strict=True))
    )
    english = [n for n in range(STRICTS) if n % 2 == 0]
    assert [streams.locate(number)[1] for number in streams.numbers(STRICT)] == [f"s{n:02}" for n in english]
    assert {streams.locate(number)[1] for number in streams.numbers(WEAK)} == {f"w{n:02}" for n in range(WEAKS) if n % 4 == 0}
    assert {streams.locate(number)[1] for number in streams.numbers(PARALLEL)} == {"t00", "t03", "t06"}
    assert [part.left_out for part in streams.parts] == [STRICTS - len(english), WEAKS - 3, 6]
    batch = finish(builder(streams, languages=("en", "de")), np.arange(len(streams)))
    assert set(languages_of(batch)) == {(0, 1), (1, 0)}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory) -> tuple[str, str, str]:
    """In D_s a sample has no regions, and another's cannot be read; in D_w a picture cannot be decoded; in D_t a text is of a
    character that the tokenizer drops."""
    folder = tmp_path_factory.mktemp("damaged")
    strict, weak, parallel = strict_samples(), weak_samples({3: picture(103)[:400]}), parallel_samples()
    strict[4].extra = {}
    strict[9].extra = {"rois.npz": b"no regions"}
    parallel[2].metadata = {"captions": {"en": ["two words", "\u2028 "], "ja": [" ", "番号"]}}
    return write(folder / "strict", strict), write(folder / "weak", weak), write(folder / "parallel", parallel)


BAD = {4: ("s04", "layout"), 9: ("s09", "image"), STRICTS + 3: ("w03", "image")}


def faults(streams: Rc3Streams) -> dict[int, tuple[str, str]]:
    """Number → key and cause of everything that is bad."""
    (number,) = [number for number in streams.numbers(PARALLEL) if streams.locate(number)[1] == "t02"]  # one place was counted
    return BAD | {number: ("t02", "text")}


def check_replaced(step: int, batches: list[Rc3Batch], streams: Rc3Streams, plan: GroupedPlan) -> set[int]:
    """Of a global batch in parts: each bad sample is named and replaced by one of its own stream, no other row is touched."""
    bad, planned = faults(streams), plan.batch(step)
    ids = np.concatenate([batch.ids[: batch.count].numpy() for batch in batches])
    assert (streams.kinds_of(planned) == streams.kinds_of(ids)).all()
    assert all(now not in bad and (now == then or then in bad) for now, then in zip(ids.tolist(), planned.tolist(), strict=True))
    told = {one.id: (one.bad.key, one.bad.cause) for batch in batches for one in batch.replaced}
    assert told == {number: bad[number] for number in planned.tolist() if number in bad}
    return set(told)


@pytest.mark.parametrize("decode", [None, IMAGE], ids=["decoded by the trainer", "decoded by the cluster"])
def test_what_is_bad_is_replaced_by_its_own_stream_and_named(damaged, decode):
    streams = open_all(damaged, SKIP)
    plan = GroupedPlan([streams.numbers(kind) for kind in range(3)], [2, 1, 1], 12, 3, run_length=4, window_steps=9, mixed=True)
    build = builder(streams, spares=plan.spares, decode=decode)
    one, two, met = BatchFinisher(IMAGE, 1, build), BatchFinisher(IMAGE, 2, build), set()
    for steps in map(plan.steps_of, range(3)):  # a window is read together
        draw = plan.draw_of(steps.start)
        shares = [[Share(step, draw, plan.slice(step, rank, 2)) for step in steps] for rank in range(2)]
        whole = map(one, build([Share(step, draw, plan.batch(step)) for step in steps]))
        parts = zip(*(map(two, build(of_rank)) for of_rank in shares), strict=True)
        for step, alone, shared in zip(steps, whole, parts, strict=True):
            assert rows_of(alone) == joined(list(shared))
            assert check_replaced(step, [alone], streams, plan) == check_replaced(step, list(shared), streams, plan)
            met |= check_replaced(step, [alone], streams, plan)
    assert met == faults(streams).keys()


@pytest.mark.slow
def test_the_same_batches_come_through_ray(ray_session, damaged):
    streams = open_all(damaged, SKIP)
    plan = GroupedPlan([streams.numbers(kind) for kind in range(3)], [2, 1, 1], 12, 3, run_length=4, window_steps=2, mixed=True)
    build = builder(streams, spares=plan.spares)
    config = PlannedData(plan, build, last_step=5, first_step=lambda: 1)
    through_ray = consume([shard[DATASET] for shard in config.configure({}, 2)], BatchFinisher(IMAGE, 1, build))
    for step, shared in zip(range(1, 5), zip(*through_ray, strict=True), strict=True):
        assert joined(list(shared)) == rows_of(finish(build, plan.batch(step), step, plan.draw_of(step)))
        check_replaced(step, list(shared), streams, plan)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (4, r"strict/00000\d\.tar, sample 's04': it has no regions \(\.rois\.npz\): add them with jobs/extract_rois\.py"),
        (9, r"sample 's09', member \.rois\.npz: its regions cannot be read"),
        (STRICTS + 3, r"weak/00000\d\.tar, sample 'w03', member \.png"),
    ],
)
def test_the_default_is_to_name_the_first_one_and_stop(damaged, number, told):
    with pytest.raises(BadDataError, match=told):
        finish(builder(open_all(damaged)), np.array([number]))


def test_nothing_of_its_stream_is_left_to_take_the_place(tmp_path, folders):
    weak = write(tmp_path, weak_samples({n: picture(100 + n)[:400] for n in range(WEAKS)}))
    samples = open_samples(weak, BadSamplePolicy("skip", 1.0))
    build = builder(Rc3Streams(open_samples(folders[0], SKIP), samples, None))
    with pytest.raises(BadDataError, match=r"step 5: no sample is left to take the place of .*sample 'w\d\d'"):
        finish(build, np.array([0, STRICTS + 2]), step=5)


def test_regions_of_another_size_name_the_setting(streams):
    with pytest.raises(UserError, match=rf"model\.network\.region_size is 7, .*'s02'.* are vectors of {SIZE} numbers: set it to {SIZE}"):
        finish(builder(streams, region_size=7), np.array([2]))


def test_equal_pictures_have_one_number_also_where_there_are_regions_alone(tmp_path):
    members = [rois(*regions_of(3)), rois(*regions_of(3)), rois(*regions_of(4))]
    samples = [Sample("s", f"s{n}", None, metadata={"captions": strict_captions(n)}, extra={"rois.npz": members[n]}) for n in range(3)]
    streams = Rc3Streams(open_samples(write(tmp_path, samples)), None, None)
    one, two, three = finish(builder(streams), np.arange(3)).image_ids.tolist()
    keys = [streams.locate(number)[1] for number in range(3)]
    numbers = dict(zip(keys, (one, two, three), strict=True))
    assert numbers["s0"] == numbers["s1"] != numbers["s2"]
    assert 0 not in numbers.values()


def test_where_data_is_read_neither_torch_nor_transformers_is_imported():
    program = "import sys, raysys.data.rc3_builder; print({'torch', 'transformers'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
