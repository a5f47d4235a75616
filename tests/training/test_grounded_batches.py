"""Batches of triples and captions through the training loop: any number of workers does the same, and what is bad is accounted for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from raysys.data.bad import BadSamplePolicy
from raysys.data.batches import BatchFinisher
from raysys.data.grounded_batches import GroundedBatch
from raysys.data.grouped_plan import GroupedPlan
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.shares import Share
from raysys.storage import Storage
from raysys.training.failures import explain_failure
from raysys.training.job import Place, TrainingJob, Validation
from raysys.training.loop import train
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings
from tests.data.grounded_worlds import (
    PICTURES,
    SIZE,
    TRIPLES,
    builder,
    open_pictures,
    open_triples,
    write_documents,
    write_features,
    write_pictures,
)
from tests.training.processes import run_ranks

SKIP = BadSamplePolicy("skip", 0.5)
IMAGE = ImagePreprocessorSettings(size=8)
STEPS, GLOBAL_BATCH = 8, 10
CUT = 4
"""A picture that cannot be decoded."""


class Small(nn.Module):
    """Sentences as means of words, which are to be near their neighbours, their other captions and their pictures."""

    neighbour_keys = None
    exchange = None

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(400, SIZE)

    def sentence(self, ids: Tensor, mask: Tensor) -> Tensor:
        return (self.words(ids) * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)

    def forward(self, batch: GroundedBatch) -> dict[str, Tensor]:
        s = self.sentence(batch.input_ids, batch.attention_mask)
        around = [self.sentence(batch.previous_ids, batch.previous_mask), self.sentence(batch.next_ids, batch.next_mask)]
        other = self.sentence(batch.other_ids, batch.other_mask)
        triple, twice = batch.previous_mask.sum(dim=1) > 0, batch.other_mask.sum(dim=1) > 0
        return {
            "text": sum(((s - one).square().sum(dim=1) for one in around), torch.zeros(len(s))) * triple,
            "cluster": (s - other).square().sum(dim=1) * twice,
            "picture": (s - batch.features / 10).square().sum(dim=1) * (batch.image_ids != 0),
            "weight": batch.draws,
            "pictured": batch.image_ids != 0,
        }

    def losses(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        terms = {name: (rows[name] * rows["weight"]).sum() / rows["pictured"].sum() for name in ("text", "cluster", "picture")}
        return terms | {"share": rows["pictured"].float().mean()}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        return terms["text"] + terms["cluster"] + terms["picture"]

    def temperature_values(self, rows: dict[str, Tensor]) -> dict[str, float]:
        return {}


def score(rows: dict[str, np.ndarray]) -> dict[str, float]:
    return {"eval/rows": float(len(rows["text"])), "eval/picture": float(-rows["picture"].sum())}


def work(rank: int, workers: int, root: Path, text: str, pictures: str) -> dict[str, Any]:
    triples, captions = open_triples(text, SKIP), open_pictures(pictures, SKIP)
    features = write_features(root / f"vectors-{workers}-{rank}.npy", bad={CUT: "cannot be decoded (cut)"})
    settings = TrainingSettings(global_batch=GLOBAL_BATCH, micro_batch=3, workers=workers, zero_stage=1, checkpoint_every=4, log_every=1)
    lengths = np.concatenate([triples.lengths, np.zeros(PICTURES, np.int16)])
    groups = [range(TRIPLES), range(TRIPLES, TRIPLES + PICTURES)]
    order = (GLOBAL_BATCH, 0, 8, 4, "drop", settings.micro_batches)
    plan = GroupedPlan(groups, [3, 2], *order, lengths=lengths, mixed=True)
    build = builder(triples, captions, features, spares=plan.spares)
    validation = builder(triples, open_pictures(pictures, SKIP), features)
    job = TrainingJob(
        settings=settings,
        build=Small,
        plan=plan,
        builder=build,
        total_steps=STEPS,
        folder=RunFolder(Storage(), str(root / f"run-{workers}")),
        image=IMAGE,
        decode_threads=1,
        validation=Validation(validation, score, "eval/picture"),
    )
    finisher, found = BatchFinisher(IMAGE, 1, build), []
    shares = [Share(step, plan.draw_of(step), plan.slice(step, rank, workers)) for step in range(STEPS)]
    batches = [finisher(payload) for share in shares for payload in build([share])]
    place, phases = Place(rank, workers, torch.device("cpu")), Phases()
    train(job, place, batches, found.append, phases)
    try:
        with explain_failure(rank, phases, build.samples):
            raise KeyError("a fault")
    except Exception as error:
        return {"lines": found, "told": str(error), "last": batches[-1].ids[: batches[-1].count].tolist()}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("grounded-training")


@pytest.fixture(scope="module")
def runs(root) -> dict[int, list[dict[str, Any]]]:
    """Workers → what each of them found."""
    text, pictures = write_documents(root / "text"), write_pictures(root / "pictures")
    open_triples(text), open_pictures(pictures)  # makes the manifests
    return {workers: run_ranks(work, workers, workers, root, text, pictures) for workers in (1, 2)}


def test_any_number_of_workers_takes_the_same_steps(runs):
    alone, shared = (runs[workers][0]["lines"] for workers in (1, 2))
    names = {"train/loss", "train/grad_norm", *(f"train/loss_{name}" for name in ("text", "cluster", "picture", "share"))}
    steps = [[line for line in lines if "train/loss" in line] for lines in (alone, shared)]
    assert [len(some) for some in steps] == [STEPS, STEPS]
    for one, two in zip(*steps, strict=True):
        assert {name: one[name] for name in names} == pytest.approx({name: two[name] for name in names}, rel=1e-5)
        assert one["train/loss_share"] == pytest.approx(0.4)
    assert steps[0][-1]["train/loss"] != steps[0][0]["train/loss"]


def test_what_is_bad_is_replaced_in_training_and_left_out_of_validation(runs, root):
    for workers in (1, 2):
        lines = runs[workers][0]["lines"]
        assert sum(line.get("data/samples_replaced", 0) for line in lines) > 0
        evaluated = [line for line in lines if "eval/rows" in line]
        assert [line["eval/rows"] for line in evaluated] == [TRIPLES + PICTURES - 1] * 2
        (told,) = [json.loads(line) for line in (root / f"run-{workers}" / "ledger.jsonl").read_text().splitlines()]
        assert (told["key"], told["member"], told["cause"]) == (f"p{CUT:03}", "png", "image")
    alone, shared = ([line for line in runs[workers][0]["lines"] if "eval/rows" in line] for workers in (1, 2))
    assert [line["eval/picture"] for line in alone] == pytest.approx([line["eval/picture"] for line in shared], rel=1e-5)


def test_an_error_names_the_samples_of_both_kinds(runs, root):
    for rank, found in enumerate(runs[2]):
        assert f"rank {rank} failed" in found["told"]
        (named,) = [line for line in found["told"].splitlines() if line.startswith("samples of this rank: ")]
        assert str(root / "text" / "000000.tar") in named
        assert str(root / "pictures" / "000000.tar") in named
