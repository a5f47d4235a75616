"""The plan on real Ray Data: whatever the timing and the number of workers, the planned batches in the planned order."""

import pickle
import random
import threading
import time
from collections.abc import Iterator, Sequence

import pytest
import torch

from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import Payload, Share
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.pipeline import DATASET, PlannedData, iterate_batches, planned_dataset
from raysys.data.plan import Plan
from tests.data.worlds import builder, load, write_dataset


class Ids:
    """A builder that sends nothing but what it was asked for, now and then late."""

    def __call__(self, shares: Sequence[Share]) -> list[Payload]:
        time.sleep(0.1 * random.random())
        return [Payload(share.step, pickle.dumps((*share[:2], share.ids.tolist())), [b"p"] * len(share.ids)) for share in shares]


def opened(payload: Payload) -> tuple[int, int, list[int]]:
    """What :class:`Ids` sent."""
    step, epoch, ids = pickle.loads(payload.header)
    assert payload.step == step
    assert [bytes(picture) for picture in payload.pictures] == [b"p"] * len(ids)
    return step, epoch, ids


def consume(shards: list, finisher) -> list[list]:
    """What each worker receives, all at once, each at its own unsteady pace."""
    received: list[list] = [[] for _ in shards]
    errors = []

    def work(rank: int) -> None:
        pace = random.Random(rank)
        try:
            for item in iterate_batches(shards[rank], finisher):
                received[rank].append(item)
                time.sleep(pace.choice([0, 0, 0, 0.01 * (rank + 1), 0.05]))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(shards))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a worker waits for ever"
    if errors:
        raise errors[0]
    return received


# 40 samples: 5 steps of 8 an epoch in windows of 3 and 2 steps; 41: a sixth step with a single sample.
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    ("samples", "last_batch", "first_step", "last_step"),
    [(40, "drop", 4, 17), (41, "keep", 1, 12)],
    ids=["from the middle of a window over three epochs", "last batch smaller than the number of workers"],
)
def test_each_worker_gets_its_slices_in_order(ray_session, samples, last_batch, first_step, last_step, workers):
    plan = Plan(samples, 8, seed=2, run_length=4, window_steps=3, last_batch=last_batch)
    dataset = planned_dataset(plan, Ids(), first_step, last_step, workers)
    received = consume(dataset.streaming_split(workers, equal=False), opened)
    steps = range(first_step, last_step)
    for rank in range(workers):
        assert received[rank] == [(step, plan.epoch_of(step), plan.slice(step, rank, workers).tolist()) for step in steps]
    for step, shares in zip(steps, zip(*received, strict=True), strict=True):
        assert [number for _, _, ids in shares for number in ids] == plan.batch(step).tolist()


def shared_rows(received: list[list[Batch]]) -> Iterator[dict[str, list[torch.Tensor]]]:
    """Step by step, the rows of the workers' shares in one list."""
    for shares in zip(*received, strict=True):
        yield {
            name: [row for share in shares for row in getattr(share, name)[: share.count]]
            for name in ("ids", "images", "image_ids", "languages")
        } | {"tokens": [row[mask.bool()] for s in shares for row, mask in zip(s.masked_ids[: s.count], s.attention_mask, strict=False)]}


def test_real_batches_are_the_same_for_all_numbers_of_workers_and_places_of_decoding(ray_session, tmp_path):
    samples = load([write_dataset(tmp_path / "train", 30)])
    image = ImagePreprocessorSettings(size=8)
    plan = Plan(30, 7, seed=4, run_length=5, window_steps=2, last_batch="keep")
    finisher = BatchFinisher(image, 2, builder(samples))

    def run(workers: int, decode: ImagePreprocessorSettings | None) -> list[dict[str, list[torch.Tensor]]]:
        config = PlannedData(plan, builder(samples, decode=decode), last_step=7, first_step=lambda: 3)
        shards = [shard[DATASET] for shard in config.configure({}, workers)]
        return list(shared_rows(consume(shards, finisher)))

    one, two = run(1, None), run(2, image)
    assert [len(step["ids"]) for step in one] == [7, 2, 7, 7]
    for left, right in zip(one, two, strict=True):
        assert all(torch.equal(a, b) for name in left for a, b in zip(left[name], right[name], strict=True))


def test_nothing_is_read_for_a_run_that_is_done(ray_session):
    config = PlannedData(Plan(10, 5, seed=1), Ids(), last_step=4, first_step=lambda: 4)
    assert config.configure({}, 2) == [{}, {}]


class Damaged:
    """A builder that cannot read one step."""

    def __call__(self, shares: Sequence[Share]) -> list[Payload]:
        if any(share.step == 2 for share in shares):
            raise ValueError("000001.tar: sample 's003' is not what was indexed")
        return [Payload(share.step, b"", ()) for share in shares]


def test_a_fault_in_reading_reaches_the_worker(ray_session):
    dataset = planned_dataset(Plan(40, 8, seed=2, window_steps=1), Damaged(), 0, 5, 1)
    with pytest.raises(Exception, match="sample 's003' is not what was indexed"):
        consume(dataset.streaming_split(1, equal=False), lambda payload: payload)
