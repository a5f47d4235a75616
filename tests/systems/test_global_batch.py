"""Learned temperatures, recomputed activations and batches that lack something, in every ZeRO stage on two real processes."""

import dataclasses
import functools

import pytest
import torch
from torch import Tensor

from raysys.data.batches import Batch
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ObjectiveSettings
from raysys.training.engine import backward, make_engine
from raysys.training.gather import gather_all
from raysys.training.settings import TrainingSettings
from tests.training.processes import run_ranks
from tests.training.worlds import batch, build, model_settings, objective, tiny_backbone

STAGES = (0, 1, 2, 3)
CASES = {"usual": (4, 3), "no masked token": (4, 3), "a rank without samples": (7, 0)}
"""Rows of the global batch of seven on each rank."""


def make(backbone: str, recompute: bool) -> Globetrotter:
    """Image and text network, both trained; pictures as they are and stored statistics, so that rows do not depend on each other."""
    model = model_settings(backbone, frozen=False)
    model = model.model_copy(update={"image": model.image.model_copy(update={"batch_norm": "frozen"})})
    temperatures = {"learned": True, "transitive": 0.2, "image": 0.3, "image_caption": 0.4}
    system = build(model, ObjectiveSettings.model_validate(objective().model_dump() | {"temperature": temperatures})).train()
    if recompute:
        system.checkpoint_activations()
    return system


def whole(case: str) -> Batch:
    given = batch(0, pictures=True)
    return dataclasses.replace(given, labels=torch.full_like(given.labels, -100)) if case == "no masked token" else given


def share(case: str, rank: int) -> Batch:
    start = sum(CASES[case][:rank])
    return whole(case).rows(start, start + CASES[case][rank])


@functools.cache
def one_process(backbone: str, case: str) -> tuple[float, dict[str, Tensor]]:
    system = make(backbone, recompute=False)
    system.training = False  # of the system alone: pictures as they are
    loss = system.total(system.losses(system(whole(case))))
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in system.named_parameters()}


def work(rank: int, backbone: str) -> dict:
    from deepspeed.utils import safe_get_full_grad

    found = {}
    for stage in STAGES:
        engine = make_engine(make(backbone, recompute=True), TrainingSettings(global_batch=7, zero_stage=stage), workers=2)
        engine.module.training = False
        for case, counts in CASES.items():
            vectors = gather_all(engine(share(case, rank)), list(counts))
            loss = engine.module.total(engine.module.losses(vectors))
            backward(engine, loss)
            found[stage, case] = loss.item(), {name: safe_get_full_grad(one).clone() for name, one in engine.module.named_parameters()}
            for group in engine.optimizer.param_groups:
                group["lr"] = 0.0
            engine.step()
        engine.destroy()
    return found


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


@pytest.fixture(scope="module")
def results(backbone) -> list[dict]:
    """What each of two processes found, all cases in one group of processes."""
    return run_ranks(work, 2, backbone)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stage", STAGES)
def test_loss_and_every_gradient_are_those_of_one_process(results, backbone, stage, case):
    loss, gradients = one_process(backbone, case)
    scale = max(float(gradient.norm()) for gradient in gradients.values())
    for found_loss, found in (result[stage, case] for result in results):
        assert found_loss == pytest.approx(loss, rel=1e-5)
        assert found.keys() == gradients.keys()
        for name, gradient in gradients.items():
            assert (found[name] - gradient).norm() <= 1e-5 * gradient.norm() + 1e-7 * scale, name
        assert all(found[f"temperatures.{one}.log_ratio"].abs() > 1e-3 for one in ("transitive", "image", "image_caption"))
        assert (found["cloze_head.dense.weight"].norm() > 0) == (case != "no masked token")
