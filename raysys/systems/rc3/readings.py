"""What the encoder reads of a batch: rows of some kinds, each with one text or several, in as few passes as can be."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from raysys.data.batches import stack_texts
from raysys.data.rc3_batches import Rc3Batch
from raysys.models.visual import Visual
from raysys.models.visual_mbart import Encoded, VisualMBart


class Chosen(NamedTuple):
    """Some rows of a batch; never none, so that every worker runs every part of the network whatever its rows."""

    rows: Tensor
    """int64 [m]."""
    real: bool
    """Whether they were asked for; otherwise there are no such rows, and row 0 stands there for nothing."""
    of: int
    """Rows of the batch, n."""

    @classmethod
    def kinds(cls, batch: Rc3Batch, *kinds: int) -> "Chosen":
        """The rows of some kinds."""
        rows = torch.isin(batch.kinds, batch.kinds.new_tensor(kinds)).nonzero()[:, 0]
        return cls(rows, True, len(batch.kinds)) if len(rows) else cls(batch.kinds.new_zeros(1), False, len(batch.kinds))

    def spread(self, values: Tensor) -> Tensor:
        """What was found of the chosen rows, [m, …], in the rows of the batch, [n, …]; 0 in the others."""
        if not self.real:
            values = values * 0
        return values.new_zeros(self.of, *values.shape[1:]).index_add(0, self.rows, values)


@dataclass(frozen=True)
class Reading:
    """Texts, each with the image of its row where images are read."""

    rows: Tensor
    """int64 [k], rows of the batch; one may come several times."""
    ids: Tensor
    """int64 [k, L]."""
    mask: Tensor
    """int64 [k, L]."""
    hidden: Tensor | None = None
    """bool [k, R], regions that are not to be seen."""


def read(network: VisualMBart, readings: Mapping[str, Reading], image: Visual | None = None) -> dict[str, Encoded]:
    """What the encoder makes of each, in one pass: several would need several sets of hooks in ZeRO 3.

    Args:
        network: whose encoder reads.
        readings: by name; none gives nothing.
        image: of each row of the batch; None: the texts are read alone.
    """
    if not readings:
        return {}
    parts = list(readings.values())
    ids, mask = stack_texts([(part.ids, part.mask) for part in parts])
    images = [_seen(image, parts)] if image is not None else []
    encoded, found, start = network.encode(ids, mask, images), {}, 0
    for name, part in readings.items():
        rows = slice(start, start + len(part.rows))
        regions = encoded.region_states
        found[name] = Encoded(
            states=encoded.states[rows],
            mask=encoded.mask[rows],
            first=encoded.first[rows],
            text_states=encoded.text_states[rows],
            region_states=None if regions is None else regions[rows],
        )
        start = rows.stop
    return found


def _seen(image: Visual, parts: list[Reading]) -> Visual:
    seen = image.rows(torch.cat([part.rows for part in parts]))
    if seen.regions is not None and any(part.hidden is not None for part in parts):
        shape = seen.regions.shape[1]
        hidden = [part.rows.new_zeros(len(part.rows), shape).bool() if part.hidden is None else part.hidden for part in parts]
        seen.regions = seen.regions.masked_fill(torch.cat(hidden)[:, :, None], 0)
    return seen


def with_room(batch: Rc3Batch) -> Rc3Batch:
    """`batch` with place for one region at least, where regions are read: a share without any would have none."""
    if batch.regions is None or batch.regions.shape[1]:
        return batch
    parts = {name: value for name, value in batch.tensors().items() if name in ("regions", "boxes", "region_mask", "region_draws")}
    return replace(batch, **{name: value.new_zeros(len(value), 1, *value.shape[2:]) for name, value in parts.items()})  # type: ignore[arg-type]


def image_of(batch: Rc3Batch) -> Visual:
    """The images of the batch's rows."""
    return Visual(batch.regions, batch.boxes, batch.region_mask, batch.images, batch.has_pixels)
