"""Samples of earlier steps as neighbours: the same queue, losses and weights for any number of workers, stage and division."""

import itertools
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.func import functional_call

from raysys.data.plan import Plan
from raysys.models.queue import Neighbours
from raysys.objectives.transitive import transitive_loss
from raysys.storage import Storage
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ObjectiveSettings
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.engine import make_engine, set_learning_rate
from raysys.training.engine_state import EngineState
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings
from raysys.training.step import TrainingStep
from tests.training.processes import run_ranks
from tests.training.worlds import SAMPLES, SEED, Sources, build, model_settings, objective, share_of, tiny_backbone

STEPS, SIZE, DECAY, RATE = 4, 10, 0.9, 3e-3
KEYS = ("momentum", "recent")


def plan(parts: int | None) -> Plan:
    return Plan(SAMPLES, 7, SEED, run_length=4, window_steps=2, last_batch="keep", micro_batches=parts)


def wanted(keys: str) -> ObjectiveSettings:
    return ObjectiveSettings.model_validate(
        objective().model_dump()
        | {"queue": {"size": SIZE, "keys": keys}, "contrast": "sigmoid", "bias": -2.0, "hardness": 0.1, "prefixes": (4, 8)}
    )


def training(stage: int, parts: str) -> TrainingSettings:
    return TrainingSettings(
        global_batch=7, zero_stage=stage, learning_rate=RATE, weight_decay=0.0, warmup_steps=0, schedule="constant", clip_norm=0,
        ema_decay=DECAY, micro_batch=2 if parts == "four" else None,
    )  # fmt: skip


def cases(workers: int) -> list[tuple[str, int, str]]:
    """(keys, stage, division); between the second step and the third, some write and load a checkpoint."""
    divisions = ((0, "one each"), (1, "four"), (3, "four")) if workers > 1 else ((0, "four kept"),)
    return [(keys, *division) for keys, division in itertools.product(KEYS, divisions)]


def trained(rank: int, system: Globetrotter, settings: TrainingSettings, parts: int | None, folder: str | None) -> dict[str, Any]:
    workers = dist.get_world_size()

    def start(system: Globetrotter) -> tuple[Any, EngineState, TrainingStep]:
        engine = make_engine(system, settings, workers)
        engine.train()
        state = EngineState(engine, settings.ema_decay)
        return engine, state, TrainingStep(engine, settings, plan(parts), Sources(), rank, workers, Phases())  # type: ignore[arg-type]

    engine, state, take_step = start(system)
    terms = []
    for step in range(STEPS):
        if folder and step == 2:
            checkpoints = Checkpoints(RunFolder(Storage(), folder), 1)
            what = CheckpointState(step=2, fingerprint="abc", workers=workers, zero_stage=settings.zero_stage, score=None)
            with checkpoints.kept():
                checkpoints.save(state, what, lambda: None)
                checkpoints.wait(lambda: None)
                dist.barrier()
            engine.destroy()
            engine, state, take_step = start(build(system.model, system.objective))
            Checkpoints(RunFolder(Storage(), folder), 1).load(state, lambda: None)
        set_learning_rate(engine, settings, 10, step)
        batch = share_of(plan(parts), step, rank, workers)
        result = take_step(batch)
        assert result.updated
        state.after_step()
        take_step.remember(batch, state)
        terms.append(result.terms)
    buffers = {name: buffer.clone() for name, buffer in engine.module.named_buffers() if name.startswith("queue.")}
    engine.destroy()
    return {"terms": terms, "buffers": buffers}


def work(rank: int, backbone: str, folder: str) -> dict[Any, Any]:
    found = {}
    for keys, stage, parts in cases(dist.get_world_size()):
        system = build(model_settings(backbone), wanted(keys))
        where = f"{folder}/{dist.get_world_size()}-{keys}-{stage}" if parts == "four" else None
        found[keys, stage, parts] = trained(rank, system, training(stage, parts), None if parts == "one each" else 4, where)
    return found


def plain(backbone: str, keys: str) -> dict[str, Any]:
    """One process, a Python list for a queue."""
    system = build(model_settings(backbone), wanted(keys)).train()
    weights = {name: one for name, one in system.named_parameters() if one.requires_grad}
    average = {name: one.detach().clone() for name, one in weights.items()}
    optimizer = torch.optim.AdamW(weights.values(), lr=RATE, weight_decay=0.0)
    queue: list[tuple[Tensor, ...]] = []
    terms = []
    for step in range(STEPS):
        batch = share_of(plan(None), step, 0, 1)
        vectors = system(batch)
        system.queue = None
        found = system.losses(vectors)
        held = Neighbours(*(torch.stack(column) for column in zip(*queue, strict=True))) if queue else None
        of_sizes = [
            transitive_loss(
                vectors["caption"][:, :size], vectors["view_1"], vectors["image_caption"], 0.1, vectors["image_ids"], 0.0, "rescaled",
                bias=vectors["bias_transitive"].mean(), hardness=0.1, neighbours=held and held._replace(captions=held.captions[:, :size]),
            )
            for size in (4, 8, 16)
        ]  # fmt: skip
        found["transitive"] = sum(of_sizes) / 3
        optimizer.zero_grad()
        sum(found.values()).backward()
        optimizer.step()
        terms.append({name: term.item() for name, term in found.items()})
        decay = min(DECAY, (2 + step) / (11 + step))
        for name, one in weights.items():
            average[name] = decay * average[name] + (1 - decay) * one.detach()
        with torch.no_grad():
            keyed = functional_call(system, average, (batch,)) if keys == "momentum" else {n: v.detach() for n, v in vectors.items()}
        queue += zip(keyed["caption"], keyed["view_1"], (keyed["view_1"] * keyed["image_caption"]).sum(1), keyed["image_ids"], strict=True)
        queue = queue[-SIZE:]
    return {"terms": terms, "queue": queue}


@pytest.mark.parametrize("workers", [1, *(pytest.param(workers, marks=pytest.mark.slow) for workers in (2, 4))])
def test_queue_and_losses_are_those_of_one_plain_process(tmp_path, workers):
    backbone = tiny_backbone(tmp_path / "backbone")
    found = run_ranks(work, workers, backbone, str(tmp_path))
    expected = {keys: plain(backbone, keys) for keys in KEYS}
    assert expected["momentum"]["terms"][3]["transitive"] != pytest.approx(expected["recent"]["terms"][3]["transitive"], rel=1e-3)
    for case in cases(workers):
        right = expected[case[0]]
        for rank in range(workers):
            for step in range(STEPS):
                assert found[rank][case]["terms"][step] == pytest.approx(right["terms"][step], rel=2e-4), (case, rank, step)
            buffers = found[rank][case]["buffers"]
            assert buffers["queue.pushed"] == 7 + 7 + 2 + 7
            order = [(13 + i) % SIZE for i in range(SIZE)]
            for name, column in zip(("captions", "images", "image_caption", "image_ids"), zip(*right["queue"], strict=True), strict=True):
                torch.testing.assert_close(buffers[f"queue.{name}"][order], torch.stack(column), rtol=1e-3, atol=1e-4, msg=f"{case} {name}")
