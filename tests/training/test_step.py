"""A step on real processes: any number of workers, any ZeRO stage and any division into micro-batches do what one plain process does."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from raysys.data.plan import Plan
from raysys.errors import CertainFailure
from raysys.systems.globetrotter import Globetrotter
from raysys.training import step as step_module
from raysys.training.engine import make_engine, optimizer_step, set_learning_rate
from raysys.training.phases import Phases
from raysys.training.settings import TrainingSettings
from raysys.training.step import Tolerance, TrainingStep
from tests.training.processes import run_ranks
from tests.training.worlds import SAMPLES, SEED, Sources, build, model_settings, objective, share_of, tiny_backbone

STEPS, STAGES = 3, (0, 1, 2, 3)
WORLDS = (1, 2, pytest.param(4, marks=pytest.mark.slow))
PARTS = {"one each": None, "four": 4, "six": 6, "four kept": 4}
"""Micro-batches of each global batch. Of six, two or more fall to a worker, and on four workers not the same number to each."""
RATE, DECAY, CLIP = 3e-3, 2.0, 0.5
VARIANTS = {
    "rescaled": {"variant": "rescaled"},
    "product": {"variant": "product"},
    "learned": {"learned": True},
    "no L_t": {"transitive": 0},
    "L_t alone": {"image": 0, "image_caption": 0, "cloze": 0},
    "L_v alone": {"transitive": 0, "image_caption": 0, "cloze": 0},
    "L_c alone": {"transitive": 0, "image": 0, "image_caption": 0},
}


def plan(parts: int | None) -> Plan:
    """Global batches of 7, 7 and 2 samples: no share is even, and some worker or micro-batch has no sample of the last."""
    return Plan(SAMPLES, 7, SEED, run_length=4, window_steps=2, last_batch="keep", micro_batches=parts)


def settings(stage: int, **others: Any) -> TrainingSettings:
    return TrainingSettings(
        global_batch=7,
        zero_stage=stage,  # type: ignore[arg-type]
        learning_rate=RATE,
        weight_decay=DECAY,
        warmup_steps=2,
        schedule="cosine",
        clip_norm=CLIP,
        **others,
    )


def divided(stage: int, parts: str, **others: Any) -> TrainingSettings:
    """Settings by which memory is bounded, or every graph is kept."""
    return settings(stage, micro_batch=None if parts in ("one each", "four kept") else 2, **others)


@dataclass
class Found:
    """What three steps of training gave."""

    terms: list[dict[str, float]] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    gradients: list[dict[str, Tensor]] = field(default_factory=list)
    """Of each step, before clipping."""
    weights: dict[str, Tensor] = field(default_factory=dict)
    buffers: dict[str, Tensor] = field(default_factory=dict)
    start: dict[str, Tensor] = field(default_factory=dict)


def with_engine(rank: int, system: Globetrotter, training: TrainingSettings, parts: int | None, pictures: bool = False) -> Found:
    """Three steps, with the gradients that the optimizer is given."""
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_grad

    workers, found = dist.get_world_size(), Found()
    if training.activation_checkpointing:
        system.checkpoint_activations()
    engine = make_engine(system, training, workers)
    engine.train()

    def spy(engine: Any) -> tuple[float, bool]:
        gradients = {}
        for name, parameter in engine.module.named_parameters():
            if parameter.requires_grad:
                gradient = safe_get_full_grad(parameter)
                gradients[name] = torch.zeros(parameter.shape) if gradient is None else gradient.float().clone()
        found.gradients.append(gradients)
        return optimizer_step(engine)

    step_module.optimizer_step = spy
    take_step = TrainingStep(engine, training, plan(parts), Sources(), rank, workers, Phases())  # type: ignore[arg-type]
    for step in range(STEPS):
        set_learning_rate(engine, training, 10, step)
        result = take_step(share_of(plan(parts), step, rank, workers, pictures))
        assert result.updated
        found.terms.append(result.terms)
        found.norms.append(result.gradient_norm)
    step_module.optimizer_step = optimizer_step
    for name, parameter in engine.module.named_parameters():
        if parameter.requires_grad:
            full = safe_get_full_fp32_param(parameter)
            found.weights[name] = (parameter if full is None else full).detach().float().clone()
    found.buffers = {name: buffer.float().clone() for name, buffer in engine.module.named_buffers()}
    engine.destroy()
    return found


@functools.cache
def plain(backbone: str, variant: str) -> Found:
    """The same training in one process, written out without anything of ours but the networks and objectives."""
    system = build(model_settings(backbone), objective(**VARIANTS[variant]))
    found = Found(start={name: parameter.detach().clone() for name, parameter in system.named_parameters()})
    system.train()
    trained = {name: parameter for name, parameter in system.named_parameters() if parameter.requires_grad}
    groups = [
        {"params": [parameter for parameter in trained.values() if parameter.ndim > 1], "weight_decay": DECAY},
        {"params": [parameter for parameter in trained.values() if parameter.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups)
    for step, rate in enumerate((0.5 * RATE, RATE, RATE)):
        optimizer.zero_grad()
        terms = system.losses(system(share_of(plan(None), step, 0, 1)))
        system.total(terms).backward()
        for parameter in trained.values():
            # Where a part is trained by no loss, the engine decays its weights as those of the others.
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        found.terms.append({name: term.item() for name, term in terms.items()})
        found.gradients.append({name: parameter.grad.clone() for name, parameter in trained.items()})
        found.norms.append(float(nn.utils.clip_grad_norm_(trained.values(), CLIP)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    found.weights = {name: parameter.detach().clone() for name, parameter in trained.items()}
    return found


def cases(workers: int) -> Iterator[tuple[str, int, str, bool]]:
    """(objective, stage, division, activation checkpointing)."""
    for stage, parts in itertools.product(STAGES if workers > 1 else (0, 3), PARTS):
        yield "rescaled", stage, parts, False
    for stage in (0, 1, 3) if workers > 1 else (0,):
        yield "learned", stage, "four", False
        yield "rescaled", stage, "four", True
    if workers == 2:
        # DeepSpeed's stages 1 and 2 are one optimizer.
        for stage, variant in itertools.product((1, 3), ("product", "no L_t", "L_t alone", "L_v alone", "L_c alone")):
            yield variant, stage, "one each" if variant == "product" else "four", False


def work(rank: int, backbone: str) -> dict[Any, Found]:
    found: dict[Any, Found] = {}
    workers = dist.get_world_size()
    for case in cases(workers):
        variant, stage, parts, checkpointing = case
        system = build(model_settings(backbone), objective(**VARIANTS[variant]))
        found[case] = with_engine(rank, system, divided(stage, parts, activation_checkpointing=checkpointing), PARTS[parts])
    for stage in (0, 1, 3) if workers > 1 else (0,):
        system = build(model_settings(backbone, dropout=0.1, frozen=False), objective())
        found["random", stage] = with_engine(rank, system, divided(stage, "four"), PARTS["four"], pictures=True)
    system = build(model_settings(backbone, dropout=0.1, frozen=False), objective())
    found["random", "kept"] = with_engine(rank, system, divided(1, "four kept"), PARTS["four kept"], pictures=True)
    if workers == 2:
        for stage in STAGES:
            for parts in ("one each", "four"):
                system = build(model_settings(backbone), objective())
                found["bf16", stage, parts] = with_engine(rank, system, divided(stage, parts, precision="bf16"), PARTS[parts])
        system = build(model_settings(backbone), objective())
        found["plain"] = with_engine(rank, system, settings(1, accumulation="plain"), PARTS["four"])
    return found


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


@functools.cache
def results(workers: int, backbone: str) -> list[dict[Any, Found]]:
    """What each of so many workers found, in all cases."""
    return run_ranks(work, workers, backbone)


def assert_equal(found: Found, expected: Found) -> None:
    # Later steps start from weights in which Adam has magnified rounding.
    for step, tolerance in enumerate((1e-5, 1e-4, 1e-4)):
        assert found.terms[step] == pytest.approx(expected.terms[step], rel=tolerance, abs=1e-6)
        assert found.norms[step] == pytest.approx(expected.norms[step], rel=1e-4)
        assert found.gradients[step].keys() == expected.gradients[step].keys()
        for name, gradient in expected.gradients[step].items():
            # A gradient that is zero but for rounding, as that of every key's bias in attention, has no relative error.
            scale = max(gradient.norm().item(), 1e-3)
            assert (found.gradients[step][name] - gradient).norm() <= tolerance * scale, (step, name)
    assert found.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        if name.endswith("key.bias"):
            continue  # Adam makes full steps of its rounding errors
        # A gradient of next to nothing may be of either sign after rounding, and Adam makes as large a step of it as of any.
        change = (weight - expected.start[name]).norm()
        assert (found.weights[name] - weight).norm() <= 5e-3 * change + 1e-7, name


@pytest.mark.parametrize("workers", WORLDS)
def test_losses_gradients_and_weights_are_those_of_one_plain_process(backbone, workers):
    expected = plain(backbone, "rescaled")
    for term in ("transitive", "image", "image_caption", "cloze"):
        assert max(terms[term] for terms in expected.terms) > 0.01
    assert min(expected.norms) > CLIP, "clipping is part of the comparison"
    for case, rank in itertools.product(cases(workers), range(workers)):
        try:
            assert_equal(results(workers, backbone)[rank][case], plain(backbone, case[0]))
        except AssertionError as error:
            raise AssertionError(f"{case} on rank {rank}: {error}") from error


@pytest.mark.parametrize("stage", [0, 1, 3, "kept"])
@pytest.mark.parametrize("workers", WORLDS[1:])
def test_dropout_views_and_statistics_are_the_same_for_any_number_of_workers(backbone, workers, stage):
    expected = results(1, backbone)[0]["random", 0]
    expected.start = {
        name: value.detach().clone() for name, value in build(model_settings(backbone, frozen=False), objective()).named_parameters()
    }
    assert len([name for name in expected.buffers if name.endswith("running_mean")]) > 1
    for rank in range(workers):
        found = results(workers, backbone)[rank]["random", stage]
        assert_equal(found, expected)
        for name, buffer in expected.buffers.items():
            torch.testing.assert_close(found.buffers[name], buffer, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("parts", ["one each", "four"])
@pytest.mark.parametrize("stage", STAGES)
def test_bfloat16_is_near(backbone, stage, parts):
    expected = plain(backbone, "rescaled")
    trained = [(name, expected.start[name]) for name in expected.weights]
    for rank in range(2):
        found = results(2, backbone)[rank]["bf16", stage, parts]
        for step in range(STEPS):
            assert found.terms[step] == pytest.approx(expected.terms[step], rel=0.05, abs=0.02)
        moved, wanted = (torch.cat([(side.weights[name] - start).flatten() for name, start in trained]) for side in (found, expected))
        assert nn.functional.cosine_similarity(moved, wanted, dim=0) > 0.9, "the weights move the same way"


def test_plain_accumulation_compares_with_fewer(backbone):
    """By hand: four micro-batches of 1, 2, 2, 2 on two workers; the first of each worker meet, then the second."""
    system = build(model_settings(backbone), objective()).train()
    batch = share_of(plan(None), 0, 0, 1)
    turns = [system.losses(system(picked(batch, rows))) for rows in ((0, 3, 4), (1, 2, 5, 6))]
    expected = {name: (3 * turns[0][name].item() + 4 * turns[1][name].item()) / 7 for name in turns[0]}
    found = results(2, backbone)[0]
    assert found["plain"].terms[0] == pytest.approx(expected, rel=1e-5)
    assert expected["image"] < found["rescaled", 1, "four", False].terms[0]["image"], "fewer negatives are an easier task"


def picked(batch: Any, rows: tuple[int, ...]) -> Any:
    parts = [batch.rows(row, row + 1) for row in rows]
    longest = max(part.input_ids.shape[1] for part in parts)
    joined = {}
    for name in parts[0].tensors():
        values = [getattr(part, name) for part in parts]
        if values[0].ndim == 2 and name in ("input_ids", "attention_mask", "masked_ids", "labels"):
            values = [nn.functional.pad(value, (0, longest - value.shape[1]), value=-100 if name == "labels" else 0) for value in values]
        joined[name] = torch.cat(values)
    return type(batch)(**{**batch.__dict__, **joined, "count": len(rows)})


BROKEN = int(plan(None).batch(1)[-1])
"""With four micro-batches, a sample of the second turn of two workers."""


class Broken(Globetrotter):
    """Its second view of one sample is not finite, in step 1."""

    def forward(self, batch: Any) -> dict[str, Tensor]:
        vectors = super().forward(batch)
        if batch.step == 1:
            vectors["view_2"] = torch.where((batch.ids == BROKEN)[:, None], torch.nan, vectors["view_2"])
        return vectors


def broken(rank: int, backbone: str) -> dict[Any, Any]:
    workers, found = dist.get_world_size(), {}
    for stage, parts, way in itertools.product(STAGES, ("one each", "four"), ("exact", "plain")):
        torch.manual_seed(SEED)
        system = Broken(model_settings(backbone), objective())
        training = divided(stage, parts, accumulation=way)
        engine = make_engine(system, training, workers)
        engine.train()
        take_step = TrainingStep(engine, training, plan(PARTS[parts]), Sources(), rank, workers, Phases())  # type: ignore[arg-type]
        results = []
        for step in (1, 0):
            set_learning_rate(engine, training, 10, 0)
            results.append(take_step(share_of(plan(PARTS[parts]), step, rank, workers)))
        found[stage, parts, way] = results
        engine.destroy()
    return found


def test_a_loss_that_is_not_finite_leaves_the_weights_alone_and_names_what_is_to_blame(backbone):
    expected = plain(backbone, "rescaled").terms[0]
    for found in run_ranks(broken, 2, backbone):
        for (stage, parts, way), (bad, good) in found.items():
            assert not bad.updated
            assert "the loss is not finite at step 2 (" in bad.fault
            assert "image = nan" in bad.fault
            assert "temperature" in bad.fault
            assert f"not finite: view_2 of 000000.tar/sample-{BROKEN}" in bad.fault
            assert good.updated
            assert good.fault is None
            if way == "exact":
                assert good.terms == pytest.approx(expected, rel=1e-5), (stage, parts)


def test_only_so_many_steps_are_left_out():
    tolerance = Tolerance(TrainingSettings(on_nonfinite="skip", max_skipped_steps=2), skipped=2)
    tolerance.check("first")
    tolerance.skipped += 1
    with pytest.raises(CertainFailure, match=r"^second; 2 steps may be skipped \(training.max_skipped_steps\)$"):
        tolerance.check("second")
    with pytest.raises(CertainFailure, match=r"^at once$"):
        Tolerance(TrainingSettings(), skipped=1).check("at once")
