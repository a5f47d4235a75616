"""A tiny Globetrotter and batches for it, without pictures, shards or Ray."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import ResNetConfig, ResNetModel

from raysys.data.bad import BadSamplePolicy
from raysys.data.batches import Batch
from raysys.data.builder import Payload, Share
from raysys.data.plan import Plan
from raysys.models.images import ImageModelSettings
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings, Weights

SAMPLES, VOCABULARY, LENGTH, FEATURES = 16, 300, 9, 8
SEED = 7


def plan() -> Plan:
    """Global batches of 7, 7 and 2: no share is even on 2 or 3 workers, and on 3 one has no sample of the last batch."""
    return Plan(SAMPLES, 7, SEED, run_length=4, window_steps=2, last_batch="keep")


def tiny_backbone(folder: Path) -> str:
    """An image network of 8 features, as a folder that `backbone:` takes."""
    torch.manual_seed(3)
    config = ResNetConfig(layer_type="basic", embedding_size=4, hidden_sizes=[4, FEATURES], depths=[1, 1])
    ResNetModel(config).save_pretrained(folder)
    return str(folder)


def model_settings(backbone: str, dropout: float = 0.0, frozen: bool = True) -> ModelSettings:
    """Networks of about 25 000 weights."""
    return ModelSettings.model_validate(
        {
            "image": ImageModelSettings(backbone=backbone, frozen=frozen),
            "text": {
                "hidden_size": 32,
                "layers": 1,
                "heads": 2,
                "intermediate_size": 48,
                "dropout": dropout,
                "max_tokens": 12,
                "vocabulary_size": VOCABULARY,
            },
            "head": {"size": 16},
        }
    )


def objective(variant: str = "rescaled", learned: bool = False, **weights: float) -> ObjectiveSettings:
    """All four losses, unless other weights are given."""
    values = {"transitive": variant, "margin": 0.0, "weights": Weights(**weights), "temperature": {"learned": learned}}
    return ObjectiveSettings.model_validate(values)


def build(model: ModelSettings, wanted: ObjectiveSettings) -> Globetrotter:
    """The same weights in every process."""
    torch.manual_seed(SEED)
    return Globetrotter(model, wanted)


def rows(ids: np.ndarray, pictures: bool) -> dict[str, np.ndarray]:
    """The samples `ids`, with image vectors or pictures; captions are as long as the longest of them."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(3, LENGTH + 1, (SAMPLES,), generator=generator)
    input_ids = torch.randint(5, VOCABULARY, (SAMPLES, LENGTH), generator=generator)
    hidden = torch.rand(SAMPLES, LENGTH, generator=generator) < 0.3
    features = torch.randn(SAMPLES, 2, FEATURES, generator=generator)
    images = torch.randint(0, 256, (SAMPLES, 3, 32, 32), dtype=torch.uint8, generator=generator)
    attention_mask = (torch.arange(LENGTH)[None] < lengths[:, None]).long()
    input_ids, hidden = input_ids * attention_mask, hidden & attention_mask.bool()
    image_ids = torch.arange(1, SAMPLES + 1)
    image_ids[[3, 9]] = 6  # one picture, three samples
    longest = int(lengths[ids].max())
    chosen = {
        "ids": torch.from_numpy(ids),
        "image_ids": image_ids[ids],
        "languages": torch.from_numpy(ids % 3),
        "input_ids": input_ids[ids, :longest],
        "attention_mask": attention_mask[ids, :longest],
        "masked_ids": torch.where(hidden, 4, input_ids)[ids, :longest],
        "labels": torch.where(hidden, input_ids, -100)[ids, :longest],
        **({"images": images[ids]} if pictures else {"features": features[ids]}),
    }
    return {name: value.numpy() for name, value in chosen.items()}


def batch(step: int, rank: int = 0, workers: int = 1, pictures: bool = False) -> Batch:
    """One worker's share of global batch `step` of the plan."""
    return share_of(plan(), step, rank, workers, pictures)


def share_of(order: Plan, step: int, rank: int, workers: int, pictures: bool = False) -> Batch:
    """One worker's share of global batch `step` of any plan over the sixteen samples."""
    ids = order.slice(step, rank, workers)
    shown = rows(ids if len(ids) else np.zeros(1, np.int64), pictures)
    tensors: dict[str, Any] = {name: torch.from_numpy(value) for name, value in shown.items()}
    return Batch(step=step, count=len(ids), replaced=[], cut_captions=0, **tensors)


class Sources:
    """What is asked of the samples behind the shares: sixteen, all of them sound."""

    fingerprint = "abc"
    policy = BadSamplePolicy()
    total = SAMPLES
    manifests = ()

    def __len__(self) -> int:
        return SAMPLES

    def locate(self, sample: int) -> tuple[str, str]:
        return "000000.tar", f"sample-{sample}"


class Shares:
    """Stands where shards are read."""

    samples = Sources()
    batch_type = Batch

    def __init__(self, pictures: bool = False):
        self.pictures = pictures

    def __call__(self, shares: Sequence[Share]) -> list[Payload]:
        payloads = []
        for share in shares:
            shown = rows(share.ids if len(share.ids) else np.zeros(1, np.int64), self.pictures)
            header = {"share": share, "members": [], "replaced": [], "cut_captions": 0, **shown}
            payloads.append(Payload(share.step, pickle.dumps(header), []))
        return payloads
