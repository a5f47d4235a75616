"""A tiny network, and batches of all three kinds of rows for it."""

from typing import Any

import torch
from torch import Tensor

from raysys.data.masking import IGNORED
from raysys.data.rc3_batches import PARALLEL, STRICT, WEAK, Rc3Batch
from raysys.systems.rc3.build import make_rc3
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings
from raysys.systems.rc3.system import Rc3System

VOCABULARY, TOKENS, REGIONS, REGION_SIZE, SIZE = 60, 9, 3, 6, 16
BOS, PAD, MASK = 0, 1, 4
LANGUAGES = 4
"""Their tokens are the last of the vocabulary."""
KINDS = (PARALLEL, PARALLEL, PARALLEL, STRICT, WEAK, STRICT, WEAK, STRICT, WEAK, STRICT, STRICT, WEAK)
"""The first rows are of one kind: a worker that has these alone reads no image."""


def model_settings(dropout: float = 0.0) -> Rc3ModelSettings:
    return Rc3ModelSettings.model_validate(
        {
            "network": {
                **{"size": SIZE, "layers": 1, "decoder_layers": 1, "heads": 2, "feed_forward": 20, "dropout": dropout},
                **{"vocabulary_size": VOCABULARY, "max_tokens": TOKENS, "region_size": REGION_SIZE, "regions": REGIONS},
                **{"patch": 4, "image_size": 8},
            }
        }
    )


def objective(**changes: Any) -> Rc3ObjectiveSettings:
    return Rc3ObjectiveSettings.model_validate(changes)


def build(name: str, **changes: Any) -> Rc3System:
    """The same weights in every process."""
    torch.manual_seed(3)
    return make_rc3(name, model_settings(), objective(**changes), LANGUAGES, mask_id=MASK)  # type: ignore[arg-type]


def batch(kinds: tuple[int, ...] = KINDS, step: int = 0, patches: bool = True) -> Rc3Batch:
    """A global batch; the third strict row shows the image of the first, and two weak rows have a text in common."""
    rows, generator = len(kinds), torch.Generator().manual_seed(step)
    of_kind = torch.tensor(kinds)
    first, second = ({} for _ in range(2))
    for texts in first, second:
        lengths = torch.randint(4, TOKENS + 1, (rows,), generator=generator)
        languages = torch.randint(0, LANGUAGES, (rows,), generator=generator)
        ids = torch.randint(5, VOCABULARY - LANGUAGES, (rows, TOKENS), generator=generator)
        ids[:, 0] = BOS
        ids[torch.arange(rows), lengths - 1] = VOCABULARY - LANGUAGES + languages
        texts |= {"ids": ids, "mask": (torch.arange(TOKENS) < lengths[:, None]).long(), "languages": languages}
        texts["hidden"] = torch.rand(rows, TOKENS, generator=generator) < 0.3
    image_ids = torch.where(of_kind == PARALLEL, 0, torch.arange(1, rows + 1))
    strict, weak = (of_kind == STRICT).nonzero()[:, 0], (of_kind == WEAK).nonzero()[:, 0]
    if len(strict) > 2:
        image_ids[strict[2]] = image_ids[strict[0]]
    if len(weak) > 1:
        for part in ("ids", "mask"):
            second[part][weak[1]] = first[part][weak[0]]
    region_mask = (torch.arange(REGIONS) < torch.randint(1, REGIONS + 1, (rows, 1), generator=generator)).long()
    fields: dict[str, Tensor] = {}
    for name, texts in (("first", first), ("second", second)):
        inside = torch.arange(TOKENS) < texts["mask"].sum(dim=1, keepdim=True) - 1
        hidden = texts["hidden"] & inside & (torch.arange(TOKENS) > 0)
        hidden[:, 1] = True
        fields |= {
            f"{name}_ids": torch.where(texts["mask"].bool(), texts["ids"], PAD),
            f"{name}_mask": texts["mask"],
            f"{name}_masked": torch.where(hidden, MASK, torch.where(texts["mask"].bool(), texts["ids"], PAD)),
            f"{name}_labels": torch.where(hidden, texts["ids"], IGNORED),
            f"{name}_languages": texts["languages"],
        }
    if patches:
        fields |= {
            "images": torch.randint(0, 256, (rows, 3, 8, 8), generator=generator).to(torch.uint8),
            "has_pixels": of_kind == WEAK,
        }
    return Rc3Batch(
        step=step,
        count=rows,
        ids=torch.arange(rows),
        replaced=[],
        cut_captions=0,
        kinds=of_kind,
        image_ids=image_ids,
        regions=torch.randn(rows, REGIONS, REGION_SIZE, generator=generator),
        boxes=torch.rand(rows, REGIONS, 5, generator=generator),
        region_mask=region_mask * (of_kind == STRICT).long()[:, None],
        region_draws=torch.rand(rows, REGIONS, generator=generator),
        **fields,  # type: ignore[arg-type]
    )


def exchanged(system: Rc3System, whole: Rc3Batch) -> Rc3Batch:
    """As one process does it."""
    return whole if system.exchange is None else system.exchange(whole, lambda rows: rows, 0)
