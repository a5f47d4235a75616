"""Other rows' texts travel, images stay: each row is given the texts of its near rows, to be read with its own image."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from raysys.data.randomness import permute
from raysys.data.rc3_batches import PARALLEL, Rc3Batch
from raysys.objectives.related import related_rows, text_numbers

_ORDER = 61  # what a random draw is for


def with_near_texts(batch: Rc3Batch, gather: Callable[[Tensor], Tensor], first: int, near: int | None, one_way: bool = False) -> Rc3Batch:
    """`batch` with the texts of each row's near rows, and which these are (`near_rows`).

    The rows of a kind stand in a random order that closes to a circle; near are the rows at the distances 1, −1, 2, −2, … of a row. So
    where m is near to i, i is near to m. Rows of the same image, or with a text in common, are not near to one another.

    Args:
        batch: of this worker.
        gather: gives all workers' rows of a tensor.
        first: number of this worker's first row among them.
        near: how many before and after a row; None: all others of its kind.
        one_way: only the row at distance 1.
    """
    mine = slice(first, first + batch.count)
    kinds, image_ids = gather(batch.kinds), gather(batch.image_ids)
    longest = int(gather(torch.stack([batch.first_mask.sum(dim=1), batch.second_mask.sum(dim=1)], dim=1)).max())
    texts = {name: gather(_of_length(getattr(batch, name), longest)) for name in ("first_ids", "first_mask", "second_ids", "second_mask")}
    places = circle_places(kinds.cpu().numpy(), batch.step, near)
    rows = torch.from_numpy(places[:, :1] if one_way else places).to(kinds.device)
    numbers = torch.stack([text_numbers(texts[f"{name}_ids"], texts[f"{name}_mask"]) for name in ("first", "second")], dim=1)
    rows = torch.where(related_rows(image_ids, numbers).gather(1, rows.clamp(min=0)), -1, rows)[mine]
    if not batch.count:  # padding
        rows = kinds.new_full((len(batch.kinds), places.shape[1]), -1)
    chosen, there = rows.clamp(min=0), (rows >= 0).long()[:, :, None]
    found = {f"near_{name}": value[chosen] for name, value in texts.items()}
    found |= {name: value * there for name, value in found.items() if name.endswith("mask")}
    return replace(batch, **found, near_rows=rows)  # type: ignore[arg-type]


def circle_places(kinds: np.ndarray, step: int, near: int | None) -> np.ndarray:
    """The rows at the distances 1, −1, 2, −2, … of each, in a random circle of its kind: int64 [N, K]; −1 where the circle is too small.

    K is 2 · `near`, or of the largest circle; at least 1. Rows of kind PARALLEL have none.

    Args:
        kinds: int64 [N].
        step: chooses the order.
        near: greatest distance; None: all.
    """
    circles = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds[kinds != PARALLEL])]
    widest = max([len(circle) for circle in circles], default=0)
    places = np.full((len(kinds), max(1, widest - 1) if near is None else 2 * near), -1, dtype=np.int64)
    for circle in circles:
        size = len(circle)
        circle = circle[permute(np.arange(size), size, _ORDER, step, int(kinds[circle[0]]))]
        furthest = size // 2 if near is None else min(near, size // 2)
        for distance in range(1, furthest + 1):
            places[circle, 2 * distance - 2] = np.roll(circle, -distance)
            if 2 * distance != size:  # halfway round both ways lead to the same row
                places[circle, 2 * distance - 1] = np.roll(circle, distance)
    return places


def _of_length(rows: Tensor, length: int) -> Tensor:
    return F.pad(rows, (0, length - rows.shape[1]))[:, :length]
