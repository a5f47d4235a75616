"""What is hidden, and what is written instead, by hand."""

import torch

from raysys.systems.rc3.corruption import hidden_regions, hidden_spans, infilled, joined

IDS = torch.tensor([[0, 5, 6, 7, 8, 9, 90], [0, 5, 6, 91, 1, 1, 1]])
MASK = torch.tensor([[1] * 7, [1, 1, 1, 1, 0, 0, 0]])
LABELS = torch.tensor([[-100, 5, 6, -100, 8, -100, -100], [-100, -100, 6, -100, -100, -100, -100]])


def test_a_run_of_hidden_tokens_is_one_mask():
    ids, mask = infilled(IDS, MASK, LABELS, 4)
    assert [row[there.bool()].tolist() for row, there in zip(ids, mask, strict=True)] == [[0, 4, 7, 4, 9, 90], [0, 5, 4, 91]]


def test_spans_are_written_behind_their_sentinels():
    ids, mask = hidden_spans(IDS, MASK, LABELS, 4)
    assert [row[there.bool()].tolist() for row, there in zip(ids, mask, strict=True)] == [[0, 4, 5, 6, 4, 8, 90], [0, 4, 6, 91]]


def test_a_text_of_length_nothing_stays_so():
    nothing = torch.zeros_like(MASK)
    for found, mask in (infilled(IDS, nothing, LABELS, 4), hidden_spans(IDS, nothing, torch.full_like(LABELS, -100), 4)):
        assert not mask.any()
        assert not found.any()


def test_two_texts_stand_one_behind_the_other():
    ids, mask, labels = joined([(IDS, MASK), (IDS.flip(0), MASK.flip(0))], [LABELS, LABELS.flip(0)], longest=9)
    assert ids[0].tolist() == [0, 5, 6, 7, 8, 9, 90, 5, 6]
    assert ids[1][mask[1].bool()].tolist() == [0, 5, 6, 91, 5, 6, 7, 8, 9]
    assert labels[1].tolist() == [-100, -100, 6, -100, 5, 6, -100, 8, -100]


def test_regions_are_hidden_by_their_draws_and_at_least_one():
    draws = torch.tensor([[0.1, 0.5, 0.05], [0.9, 0.4, 0.01], [0.3, 0.2, 0.1]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 0, 0]])
    expected = [[True, False, True], [False, True, False], [False, False, False]]
    assert hidden_regions(draws, mask, 0.15).tolist() == expected
