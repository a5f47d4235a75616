"""Tiny grounded systems and batches for them, without pictures or shards."""

import torch
from torch import Tensor

from raysys.data.grounded_batches import GroundedBatch
from raysys.systems.grounded.build import make_grounded
from raysys.systems.grounded.names import parts_of
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings
from tests.training.worlds import FEATURES

TRIPLES, CAPTIONS = 5, 4
"""Rows of a batch, triples first."""
VOCABULARY, LENGTH, SIZE = 40, 6, 12


def model_settings(backbone: str, encoder: str = "gru") -> GroundedModelSettings:
    """Networks of a few thousand weights."""
    text = {"encoder": encoder, "size": SIZE, "word_size": 8, "vocabulary_size": VOCABULARY, "layers": 1, "heads": 2, "dropout": 0.0}
    values = {"image": {"backbone": backbone}, "text": text, "space": {"size": 7, "hidden": 10}}
    return GroundedModelSettings.model_validate(values)


def objective(**changed: object) -> GroundedObjectiveSettings:
    """All losses weigh enough to be noticed."""
    weights = {"text": 1, "cluster": 0.5, "perceptual": 0.7, "cross_modal": 0.6, "ranking": 0.9, "caption": 0.8}
    return GroundedObjectiveSettings.model_validate({"weights": weights, **changed})


def build(name: str, model: GroundedModelSettings, wanted: GroundedObjectiveSettings | None = None):
    """The same weights in every process."""
    torch.manual_seed(7)
    return make_grounded(name, model, wanted or objective()).train()


def sentences(generator: torch.Generator, present: list[bool]) -> tuple[Tensor, Tensor]:
    """Random words where a row has a sentence, the other rows of length 0."""
    lengths = torch.randint(3, LENGTH + 1, (len(present),), generator=generator) * torch.tensor(present, dtype=torch.int64)
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    return torch.randint(5, VOCABULARY, mask.shape, generator=generator) * mask, mask


def batch(name: str, triples: int = TRIPLES, captions: int = CAPTIONS) -> GroundedBatch:
    """What a run of this system trains on: triples, or captions of a few pictures, or first these and then those.

    The last caption is the only one of its picture; two captions are of the same one.
    """
    generator, parts = torch.Generator().manual_seed(3), parts_of(name)
    triples, captions = triples * parts["triples"], captions * parts["captions"]
    rows, tensors = triples + captions, {}
    is_triple = [True] * triples + [False] * captions
    kinds = {"input": ("attention_mask", [True] * rows)}
    if parts["triples"]:
        kinds |= {"previous": ("previous_mask", is_triple), "next": ("next_mask", is_triple)}
    if parts["captions"]:
        kinds["other"] = "other_mask", [not triple and row < rows - 1 for row, triple in enumerate(is_triple)]
        tensors["features"] = torch.randn(rows, FEATURES, generator=generator) * ~torch.tensor(is_triple)[:, None]
    for kind, (mask, present) in kinds.items():
        tensors[f"{kind}_ids"], tensors[mask] = sentences(generator, present)
    pictures = torch.arange(1, captions + 1)
    pictures[1:2] = 1
    if parts["captions"] and captions > 1:
        tensors["features"][triples + 1] = tensors["features"][triples]
    return GroundedBatch(
        step=0,
        count=rows,
        ids=torch.arange(rows),
        replaced=[],
        cut_captions=0,
        image_ids=torch.cat([torch.zeros(triples, dtype=torch.int64), pictures]),
        draws=torch.rand(rows, generator=generator),
        **tensors,
    )
