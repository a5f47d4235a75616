"""Which rows are no negatives of one another."""

import torch

from raysys.objectives.related import related_rows, text_numbers


def test_texts_have_equal_numbers_where_they_are_equal_but_for_language_and_padding():
    ids = torch.tensor([[0, 5, 6, 90, 1], [0, 5, 6, 91, 0], [0, 6, 5, 90, 1], [0, 5, 90, 1, 1], [0, 5, 6, 7, 90]])
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    numbers = text_numbers(ids, mask).tolist()
    assert numbers[0] == numbers[1]
    assert len(set(numbers)) == 4


def test_many_texts_have_different_numbers():
    pairs = torch.cartesian_prod(torch.arange(300), torch.arange(300))
    ids = torch.cat([torch.zeros(90_000, 1, dtype=torch.int64), pairs, torch.full((90_000, 1), 299)], dim=1)
    assert len(text_numbers(ids, torch.ones_like(ids)).unique()) == 90_000


def test_rows_are_related_by_image_by_text_and_to_themselves():
    images = torch.tensor([0, 7, 7, 0, 9])
    texts = torch.tensor([[1, 2], [3, 4], [5, 6], [8, 1], [10, 11]])
    expected = torch.eye(5, dtype=torch.bool)
    expected[1, 2] = expected[2, 1] = expected[0, 3] = expected[3, 0] = True
    assert torch.equal(related_rows(images, texts), expected)
    assert torch.equal(related_rows(images, texts, slice(2, 4)), expected[2:4])
