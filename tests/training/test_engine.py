"""The engine on real processes: any ZeRO stage on any number of workers does what one plain PyTorch process does."""

import functools
import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from raysys.data.plan import slice_sizes
from raysys.errors import UserError
from raysys.systems.globetrotter import Globetrotter
from raysys.training.engine import engine_config, learning_rate_factor, make_engine, parameter_groups
from raysys.training.loop import gather_all
from raysys.training.settings import TrainingSettings
from tests.training.processes import run_ranks
from tests.training.worlds import batch, build, model_settings, objective, plan, tiny_backbone

STEPS = 3
WORLDS, STAGES = (1, 2, 3), (0, 1, 2, 3)
PART_STAGES = (0, 2, 3)
"""DeepSpeed's stages 1 and 2 are one optimizer."""
VARIANTS = {"product": (0, 1, 2), "rescaled": (2, 0, 1)}
"""The order of the batches: the first gradient is that of a full batch, or of one in which a third worker has no sample."""
PARTS = {
    "no L_t": {"transitive": 0},
    "L_t alone": {"image": 0, "image_caption": 0, "cloze": 0},
    "L_v alone": {"transitive": 0, "image_caption": 0, "cloze": 0},
    "L_c alone": {"transitive": 0, "image": 0, "image_caption": 0},
}


@dataclass
class Found:
    """What three steps of training gave."""

    terms: list[dict[str, float]]
    gradients: dict[str, Tensor]
    """Of the first and the last step, before clipping."""
    weights: dict[str, Tensor]
    rates: list[float]
    norms: list[float]
    start: dict[str, Tensor] = field(default_factory=dict)
    """Weights before the first step."""


def settings(stage: int, precision: str = "fp32") -> TrainingSettings:
    return TrainingSettings(
        global_batch=7,
        zero_stage=stage,  # type: ignore[arg-type]
        precision=precision,  # type: ignore[arg-type]
        learning_rate=3e-3,
        weight_decay=2.0,
        warmup_steps=2,
        schedule="cosine",
        clip_norm=0.5,
    )


def with_engine(rank: int, workers: int, system: Globetrotter, training: TrainingSettings) -> Found:
    """Three steps; gradients are taken of the first and the last."""
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_grad

    engine = make_engine(system, training, workers, total_steps=10)
    engine.train()
    found = Found([], {}, {}, [], [])
    for step, number in enumerate(VARIANTS[system.objective.transitive]):
        found.rates.append(engine.get_lr()[0])
        vectors = gather_all(engine(batch(number, rank, workers)), slice_sizes(plan().batch_size(number), workers))
        terms = engine.module.losses(vectors)
        engine.backward(engine.module.total(terms))
        found.terms.append({name: term.item() for name, term in terms.items()})
        for name, parameter in engine.module.named_parameters():
            if step != 1 and parameter.requires_grad:
                gradient = safe_get_full_grad(parameter)
                found.gradients[f"step {step}: {name}"] = torch.zeros(parameter.shape) if gradient is None else gradient.float().clone()
        engine.step()
        found.norms.append(float(engine.get_global_grad_norm() or 0))
    for name, parameter in engine.module.named_parameters():
        if not parameter.requires_grad:
            continue
        full = safe_get_full_fp32_param(parameter)
        found.weights[name] = (parameter if full is None else full).detach().float().clone()
    engine.destroy()
    return found


@functools.cache
def plain(backbone: str, variant: str = "rescaled", part: str = "") -> Found:
    """The same training in one process, written out without anything of ours but the networks and objectives."""
    system = build(model_settings(backbone), objective(variant, **PARTS.get(part, {})))
    found = Found([], {}, {}, [0.5 * 3e-3, 3e-3, 3e-3], [])
    found.start = {name: parameter.detach().clone() for name, parameter in system.named_parameters()}
    system.train()
    trained = {name: parameter for name, parameter in system.named_parameters() if parameter.requires_grad}
    groups = [
        {"params": [parameter for parameter in trained.values() if parameter.ndim > 1], "weight_decay": 2.0},
        {"params": [parameter for parameter in trained.values() if parameter.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups)
    for step, (rate, number) in enumerate(zip(found.rates, VARIANTS[variant], strict=True)):
        optimizer.zero_grad()
        terms = system.losses(system(batch(number)))
        system.total(terms).backward()
        for parameter in trained.values():
            # Where a part is trained by no loss, the engine decays its weights as those of the others.
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        found.terms.append({name: term.item() for name, term in terms.items()})
        if step != 1:
            found.gradients |= {f"step {step}: {name}": parameter.grad.clone() for name, parameter in trained.items()}
        found.norms.append(float(nn.utils.clip_grad_norm_(trained.values(), 0.5)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    found.weights = {name: parameter.detach().clone() for name, parameter in trained.items()}
    return found


def work(rank: int, backbone: str) -> dict[Any, Found]:
    workers = dist.get_world_size()
    model = model_settings(backbone)
    found: dict[Any, Found] = {}
    for stage, variant in itertools.product(STAGES, VARIANTS):
        found["exact", stage, variant] = with_engine(rank, workers, build(model, objective(variant)), settings(stage))
    if workers == 2:
        for stage, part in itertools.product(PART_STAGES, PARTS):
            found["parts", stage, part] = with_engine(rank, workers, build(model, objective(**PARTS[part])), settings(stage))
        for stage in STAGES:
            found["bf16", stage] = with_engine(rank, workers, build(model, objective()), settings(stage, "bf16"))
    return found


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


@pytest.fixture(scope="module")
def results(backbone) -> dict[int, list[dict[Any, Found]]]:
    """Number of workers → what each of them found, in all cases."""
    return {workers: run_ranks(work, workers, backbone) for workers in WORLDS}


def assert_equal(found: Found, expected: Found) -> None:
    # Later steps start from weights in which Adam has magnified rounding.
    tolerances = [1e-5, 1e-4, 1e-4]
    for terms, wanted, tolerance in zip(found.terms, expected.terms, tolerances, strict=True):
        assert terms == pytest.approx(wanted, rel=tolerance, abs=1e-6)
    assert found.norms in ([0.0] * STEPS, pytest.approx(expected.norms, rel=1e-4)), "DeepSpeed tells none without ZeRO"
    assert found.rates == pytest.approx(expected.rates, rel=1e-9)
    assert found.gradients.keys() == expected.gradients.keys()
    for name, gradient in expected.gradients.items():
        # A gradient that is zero but for rounding, as that of every key's bias in attention, has no relative error.
        scale = max(gradient.norm().item(), 1e-3)
        assert (found.gradients[name] - gradient).norm() <= tolerances[int(name[5])] * scale, name
    assert found.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        if name.endswith("key.bias"):
            continue  # Adam makes full steps of its rounding errors
        # A gradient of next to nothing may be of either sign after rounding, and Adam makes as large a step of it as of any.
        change = (weight - expected.start[name]).norm()
        assert (found.weights[name] - weight).norm() <= 5e-3 * change + 1e-7, name


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("workers", WORLDS)
def test_losses_gradients_and_weights_are_those_of_one_plain_process(results, backbone, workers, stage, variant):
    expected = plain(backbone, variant)
    for term in ("transitive", "image", "image_caption", "cloze"):
        assert max(terms[term] for terms in expected.terms) > 0.01
    assert min(expected.norms) > 0.5, "clipping is part of the comparison"
    for rank in range(workers):
        assert_equal(results[workers][rank]["exact", stage, variant], expected)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("stage", PART_STAGES)
def test_parts_that_no_loss_needs_are_left_out_and_the_rest_trains(results, backbone, stage, part):
    expected = plain(backbone, part=part)
    assert set(expected.terms[0]) == {"transitive", "image", "image_caption", "cloze"} - PARTS[part].keys()
    for rank in range(2):
        assert_equal(results[2][rank]["parts", stage, part], expected)


@pytest.mark.parametrize("stage", STAGES)
def test_bfloat16_is_near(results, backbone, stage):
    expected = plain(backbone)
    trained = [(name, expected.start[name]) for name in expected.weights]
    for rank in range(2):
        found = results[2][rank]["bf16", stage]
        for step in range(STEPS):
            assert found.terms[step] == pytest.approx(expected.terms[step], rel=0.05, abs=0.02)
        moved, wanted = (torch.cat([(side.weights[name] - start).flatten() for name, start in trained]) for side in (found, expected))
        assert nn.functional.cosine_similarity(moved, wanted, dim=0) > 0.9, "the weights move the same way"


def test_weights_have_decay_and_biases_and_norms_do_not(backbone):
    system = build(model_settings(backbone), objective())
    decayed, free = parameter_groups(system, TrainingSettings(weight_decay=0.1))
    names = {id(parameter): name for name, parameter in system.named_parameters()}
    assert decayed["weight_decay"] == 0.1
    assert free["weight_decay"] == 0
    assert all(names[id(parameter)].endswith("weight") for parameter in decayed["params"])
    assert all("orm" in names[id(parameter)] or "bias" in names[id(parameter)] for parameter in free["params"])
    together = {names[id(parameter)] for group in (decayed, free) for parameter in group["params"]}
    assert together == {name for name, parameter in system.named_parameters() if not name.startswith("image.")}, "frozen ones are in none"


def test_learning_rate_rises_and_falls():
    cosine = TrainingSettings(warmup_steps=4, schedule="cosine")
    assert [learning_rate_factor(cosine, 14, step) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert learning_rate_factor(cosine, 14, 4) == 1.0
    assert learning_rate_factor(cosine, 14, 9) == pytest.approx(0.5)
    assert learning_rate_factor(cosine, 14, 14) == pytest.approx(0.0)
    assert learning_rate_factor(cosine, 14, 99) == pytest.approx(0.0), "never below 0, nor up again"
    constant = TrainingSettings(warmup_steps=2, schedule="constant")
    assert [learning_rate_factor(constant, 14, step) for step in (0, 1, 2, 13)] == [0.5, 1.0, 1.0, 1.0]
    assert learning_rate_factor(TrainingSettings(schedule="cosine"), 1, 0) == 1.0


@pytest.mark.parametrize("workers", [1, 3, 7])
def test_engine_settings_hold_for_shares_that_differ(workers):
    config = engine_config(TrainingSettings(global_batch=5, zero_stage=2, precision="bf16", clip_norm=0.3), workers)
    assert config["train_batch_size"] == config["train_micro_batch_size_per_gpu"] * workers > 0
    assert config["zero_optimization"] == {"stage": 2}
    assert config["bf16"] == {"enabled": True}
    assert config["gradient_clipping"] == 0.3


def test_parts_with_a_learning_rate_of_their_own(backbone):
    system = build(model_settings(backbone), objective())
    settings = TrainingSettings(learning_rate=0.5, learning_rate_factors={"image_head": 0.1, "image_head.norm": 0.0})
    rates = {id(parameter): group["lr"] for group in parameter_groups(system, settings) for parameter in group["params"]}
    for name, parameter in system.named_parameters():
        if parameter.requires_grad:
            factor = 0.0 if name.startswith("image_head.norm") else 0.1 if name.startswith("image_head") else 1.0
            assert rates[id(parameter)] == pytest.approx(0.5 * factor), name
    assert parameter_groups(system, settings)[0]["lr"] == 0.5, "the rate that is logged"
    with pytest.raises(UserError, match=r"nothing that is trained is called eyes.*image_head"):
        parameter_groups(system, TrainingSettings(learning_rate_factors={"eyes": 2.0}))
