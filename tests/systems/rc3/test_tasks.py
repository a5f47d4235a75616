"""The network on the five tasks: losses against loops in NumPy, parts read and frozen, the same for one and several workers."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from raysys.data.plan import slice_bounds
from raysys.data.task_batches import TaskBatch
from raysys.models.visual_mbart import VisualMBart, VisualMBartSettings
from raysys.systems.rc3.tasks import TASK_NAMES, TASK_TITLES, TaskSystem, images_of, matching_loss

SIZES = VisualMBartSettings(
    size=16, layers=1, decoder_layers=1, heads=2, feed_forward=32, vocabulary_size=60, max_tokens=12, region_size=6, regions=3, patch=8,
    image_size=16, dropout=0.0,
)  # fmt: skip
CLASSES = {"xvnli": 3, "xgqa": 5, "marvl": 2}
N = 7


def system(task: str, visual: str = "combined", **more) -> TaskSystem:
    torch.manual_seed(3)
    return TaskSystem(task, VisualMBart(SIZES), visual, CLASSES.get(task, 0), **more)


def batch(task: str, visual: str = "combined", rows: int = N) -> TaskBatch:
    generator, images = torch.Generator().manual_seed(5), 2 if task == "marvl" else 1
    mask = (torch.arange(9) < torch.randint(3, 10, (rows, 1), generator=generator)).long()
    ids, every = torch.randint(5, 60, (rows, 9), generator=generator) * mask, torch.arange(rows)
    parts: dict[str, Tensor] = {"text_ids": ids, "text_mask": mask, "text_numbers": every, "image_ids": every}
    if task == "mmt":
        parts |= {"target_ids": ids.flip(0), "target_mask": mask.flip(0)}
    if task in CLASSES:
        parts["labels"] = torch.where(every == 2, -1, every % CLASSES[task])
    if visual != "regions":
        parts["pixels"] = torch.randint(0, 256, (rows, images, 3, 16, 16), dtype=torch.uint8, generator=generator)
    if visual != "patches":
        parts["regions"] = torch.randn(rows, images, 3, 6, generator=generator)
        parts["boxes"] = torch.rand(rows, images, 3, 5, generator=generator)
        parts["region_mask"] = (torch.arange(3) < 1 + every[:, None, None] % 3).expand(rows, images, 3).long()
    return TaskBatch(step=4, count=rows, ids=every, replaced=[], cut_captions=0, **parts)


def exchanged(on: TaskSystem, whole: TaskBatch, workers: int) -> list[TaskBatch]:
    """Each worker's share after the exchange, for which the others' rows are cut out of the whole batch by hand."""
    bounds = slice_bounds(len(whole.ids), workers)
    shares = [whole.rows(first, last) for first, last in itertools.pairwise(bounds)]
    asked: list[list[Tensor]] = [[] for _ in shares]

    class NeedsOthers(Exception):
        pass

    def run(rank: int, known: list[Tensor]) -> TaskBatch:
        place = iter(range(99))

        def gather(rows: Tensor) -> Tensor:
            number = next(place)
            if number == len(asked[rank]):
                asked[rank].append(rows[: shares[rank].count])
            if number >= len(known):
                raise NeedsOthers
            return known[number]

        return on.exchange(shares[rank], gather, bounds[rank])

    known: list[Tensor] = []
    while True:
        try:
            return [run(rank, known) for rank in range(workers)]
        except NeedsOthers:
            for rank in range(workers):
                try:
                    run(rank, known)
                except NeedsOthers:
                    continue
            known.append(torch.cat([asked[rank][len(known)] for rank in range(workers)]))


def one_worker(on: TaskSystem, whole: TaskBatch) -> dict[str, Tensor]:
    return on(whole if on.exchange is None else on.exchange(whole, lambda rows: rows, 0))


@pytest.mark.parametrize("task", TASK_NAMES)
def test_every_trained_parameter_has_a_gradient_and_what_is_not_read_is_frozen(task):
    for visual in ("patches", "regions", "combined"):
        on = system(task, visual)
        on.total(on.losses(one_worker(on, batch(task, visual)))).backward()
        trained = {name for name, value in on.named_parameters() if value.requires_grad}
        missing = {name for name, value in on.named_parameters() if value.requires_grad and value.grad is None}
        assert not missing
        assert any(name.startswith("network.mbart.model.decoder.layers") for name in trained) == (task == "mmt")
        assert any("of_region" in name for name in trained) == (visual != "patches")
        assert any("of_patch" in name for name in trained) == (visual != "regions")
    assert TASK_TITLES.keys() == set(TASK_NAMES)


@pytest.mark.parametrize("task", ["xvnli", "xgqa", "marvl"])
def test_classes_against_a_loop(task):
    on, whole = system(task), batch(task)
    rows = on(whole)
    encoded = on.network.encode(whole.text_ids, whole.text_mask, images_of(whole))
    logits = (encoded.first @ on.head.weight.T + on.head.bias).detach().double().numpy()
    nll = [np.log(np.exp(row).sum()) - row[label] for row, label in zip(logits, whole.labels.tolist(), strict=True) if label >= 0]
    assert len(nll) == N - 1, "an answer that training has not teaches nothing"
    assert on.losses(rows)[task].item() == pytest.approx(np.mean(nll), rel=1e-5)
    assert rows["answers"].tolist() == logits.argmax(axis=1).tolist() == on.answer(whole).tolist()


def test_translations_count_every_word_alike():
    on, whole = system("mmt"), batch("mmt")
    rows = on(whole)
    assert rows["tokens"].tolist() == (whole.target_mask.sum(dim=1) - 1).tolist()
    assert on.losses(rows)["mmt"].item() == pytest.approx(rows["nll"].sum().item() / rows["tokens"].sum().item())
    languages = torch.stack([ids[int(mask.sum()) - 1] for ids, mask in zip(whole.target_ids, whole.target_mask, strict=True)])
    encoded = on.network.encode(whole.text_ids, whole.text_mask, images_of(whole))
    expected, _ = on.network.next_word_nll(encoded, whole.target_ids, whole.target_mask, languages)
    torch.testing.assert_close(rows["nll"], expected)


def by_loop(scores: np.ndarray, near: np.ndarray) -> float:
    """Both ways, from the scores that there are of each image and of each text."""
    count, terms = len(scores), []
    pairs = {(row, row): scores[row, 0] for row in range(count)}
    pairs |= {(row, other): scores[row, 1 + turn] for row in range(count) for turn, other in enumerate(near[row]) if other >= 0}
    for own in range(count):
        for of in (0, 1):
            every = [score for pair, score in pairs.items() if pair[of] == own]
            terms.append(np.log(np.sum(np.exp(every))) - pairs[own, own])
    return float(np.mean(terms))


def test_matching_loss_against_a_loop_and_its_gradient():
    generator = np.random.default_rng(0)
    near = np.array([[1, 3, -1], [0, 2, 4], [1, 4, 3], [0, 2, -1], [2, 1, 0]])
    scores = torch.tensor(generator.normal(size=(5, 4)), requires_grad=True)
    numbers = torch.arange(5)
    loss = matching_loss(scores, torch.from_numpy(near), numbers)
    assert loss.item() == pytest.approx(by_loop(scores.detach().numpy(), near), rel=1e-12)
    loss.backward()
    for place in np.ndindex(5, 4):
        moved = [scores.detach().numpy().copy() for _ in range(2)]
        moved[0][place] += 1e-6
        moved[1][place] -= 1e-6
        slope = (by_loop(moved[0], near) - by_loop(moved[1], near)) / 2e-6
        assert scores.grad[place].item() == pytest.approx(slope, abs=1e-8)
    part = matching_loss(scores.detach()[1:], torch.from_numpy(near)[1:], numbers[1:])
    assert torch.isfinite(part), "rows whose near ones are in another part of the batch"


@pytest.mark.parametrize("near", [1, 2, 5])
def test_near_texts_are_those_of_other_rows_and_the_same_for_any_number_of_workers(near):
    on, whole = system("itr", near=near), batch("itr")
    whole = dataclasses.replace(whole, image_ids=torch.tensor([0, 0, 1, 2, 3, 4, 5]), text_numbers=torch.tensor([0, 1, 2, 3, 3, 5, 6]))
    alone = on.exchange(whole, lambda rows: rows, 0)
    assert alone.near_rows.shape == (N, 2 * near)
    for row, others in enumerate(alone.near_rows.tolist()):
        kept = [other for other in others if other >= 0]
        assert len(set(kept)) == len(kept)
        assert row not in kept
        assert all(whole.image_ids[other] != whole.image_ids[row] for other in kept)
        assert all(whole.text_numbers[other] != whole.text_numbers[row] for other in kept)
        assert all(row in alone.near_rows[other] for other in kept), "near to one another"
        for turn, other in enumerate(others):
            size = int(alone.near_mask[row, turn].sum())
            assert size == (int(whole.text_mask[other].sum()) if other >= 0 else 0)
            assert torch.equal(alone.near_ids[row, turn, :size], whole.text_ids[other, :size])
    loss = on.losses(on(alone))["itr"]
    assert torch.isfinite(loss)
    for workers in (2, 4):
        parts = exchanged(on, whole, workers)
        rows = [on(part) for part in parts]
        together = {name: torch.cat([one[name][: part.count] for one, part in zip(rows, parts, strict=True)]) for name in rows[0]}
        assert together["row_numbers"].tolist() == list(range(N))
        assert on.losses(together)["itr"].item() == pytest.approx(loss.item(), rel=1e-5)


def test_scores_are_of_the_image_with_each_text():
    on, whole = system("itr"), batch("itr")
    given = on.exchange(whole, lambda rows: rows, 0)
    scores = on(given)["scores"]
    (visual,) = images_of(whole)
    for row in range(N):
        for turn, text in enumerate([row, *given.near_rows[row].tolist()]):
            length = int(whole.text_mask[text].sum())
            single = visual.rows(torch.tensor([row]))
            alone = on.match(whole.text_ids[text : text + 1, :length], whole.text_mask[text : text + 1, :length], single)
            assert alone.item() == pytest.approx(scores[row, turn].item(), abs=1e-5)


def test_layers_of_pre_training_begin_where_it_ended():
    heads = {
        "matching.dense.weight": torch.full((1, 16), 2.0),
        "matching.dense.bias": torch.ones(1),
        "of_regions.dense.weight": torch.ones(2),
    }
    on = system("itr")
    on.begin(heads)
    assert on.matching.dense.weight.unique().tolist() == [2.0]
    system("xvnli").begin(heads)
    gated = system("mmt", "regions", gated=True)
    gated.begin({"gate.dense.weight": torch.full((16, 6), 0.5), "gate.dense.bias": torch.zeros(16)})
    whole = batch("mmt", "regions")
    assert not torch.equal(gated.encode(whole).states, gated.network.encode(whole.text_ids, whole.text_mask).states)
    assert not any(value.requires_grad for value in gated.network.visual.parameters())


def test_a_batch_of_another_task_is_refused():
    with pytest.raises(ValueError, match="lacks what the task"):
        system("mmt")(batch("xvnli"))
