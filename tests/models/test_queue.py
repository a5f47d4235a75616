import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raysys.models.queue import NeighbourQueue


def batch(seed: int, rows: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    units = [torch.nn.functional.normalize(torch.randn(rows, 3, generator=generator)) for _ in range(3)]
    return [*units, torch.randint(0, 9, (rows,), generator=generator)]


@given(st.integers(1, 12), st.lists(st.integers(0, 20), max_size=6))
@settings(max_examples=40, deadline=None)
def test_it_holds_the_latest_samples(size, batches):
    queue = NeighbourQueue(size, 3)
    pushed = [batch(seed, rows) for seed, rows in enumerate(batches)]
    for one in pushed:
        queue.push(*one)
    latest = [
        (caption.tolist(), image.tolist(), pytest.approx(float(image @ told), abs=1e-6), int(image_id))
        for one in pushed
        for caption, image, told, image_id in zip(*one, strict=True)
    ][-size:]
    there = list(zip(*(column.tolist() for column in queue.neighbours()), strict=True))
    assert len(there) == len(latest)
    assert sorted(there) == sorted(latest, key=lambda row: row[:2])


def test_it_goes_on_from_its_state():
    one, other = NeighbourQueue(7, 3), NeighbourQueue(7, 3)
    one.push(*batch(0, 5))
    other.load_state_dict(one.state_dict())
    for queue in (one, other):
        queue.push(*batch(1, 4))
    assert one.state_dict().keys() == {"captions", "images", "image_caption", "image_ids", "pushed"}
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_it_keeps_numbers_and_no_graph():
    queue = NeighbourQueue(4, 3)
    captions, images, told, ids = batch(0, 2)
    queue.push(captions.half().requires_grad_(), images.requires_grad_(), told, ids)
    held = queue.neighbours()
    assert not any(column.requires_grad for column in held)
    assert held.captions.dtype == torch.float32
    captions.zero_()
    assert held.captions.abs().sum() > 0
    assert not list(queue.parameters())
