"""Parts of a batch of two kinds of rows, each kind of text as long as it has to be."""

import torch

from raysys.data.grounded_batches import GroundedBatch

LENGTHS = {"input": [3, 5, 2, 4], "previous": [2, 6, 0, 0], "next": [7, 1, 0, 0], "other": [0, 0, 0, 3]}
"""Two triples, a picture with one caption, one with two."""


def batch(**others: torch.Tensor) -> GroundedBatch:
    parts = {}
    for kind, sizes in LENGTHS.items():
        mask = (torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]).long()
        parts |= {f"{kind}_ids": (torch.arange(4)[:, None] + 10) * mask, "attention_mask" if kind == "input" else f"{kind}_mask": mask}
    fixed = {"ids": torch.arange(4), "image_ids": torch.tensor([0, 0, 8, 9]), "draws": torch.rand(4), "features": torch.rand(4, 2)}
    return GroundedBatch(step=7, count=4, replaced=[], cut_captions=0, **(fixed | parts | others))


def widths(part: GroundedBatch) -> dict[str, int]:
    found = {kind: getattr(part, f"{kind}_ids").shape[1] for kind in LENGTHS}
    assert found == {kind: getattr(part, "attention_mask" if kind == "input" else f"{kind}_mask").shape[1] for kind in LENGTHS}
    return found


def test_rows_are_as_long_as_the_longest_of_each_kind():
    whole = batch()
    for start in range(4):
        for stop in range(start + 1, 5):
            part = whole.rows(start, stop)
            assert (part.step, part.count) == (7, stop - start)
            assert widths(part) == {kind: max(sizes[start:stop]) for kind, sizes in LENGTHS.items()}
            for name, value in part.tensors().items():
                columns = value.shape[1] if value.dim() > 1 else None
                expected = whole.tensors()[name][start:stop]
                assert torch.equal(value, expected if columns is None else expected[:, :columns])


def test_no_rows_are_one_row_of_padding():
    part = batch().rows(2, 2)
    assert part.count == 0
    assert {len(value) for value in part.tensors().values()} == {1}


def test_what_a_run_has_not_stays_away():
    no_text = batch(previous_ids=None, previous_mask=None, next_ids=None, next_mask=None).rows(1, 3)
    assert no_text.previous_mask is no_text.next_ids is None
    assert set(no_text.to(torch.device("meta")).tensors()) == set(batch().tensors()) - {
        "previous_ids",
        "previous_mask",
        "next_ids",
        "next_mask",
    }
    assert no_text.to(torch.device("meta")).other_ids.device.type == "meta"
