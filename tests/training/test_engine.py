"""The engine on real processes: several backward passes, gradients that are not finite, precisions, learning rates."""

import itertools
import typing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from raysys.training.engine import (
    backward,
    engine_config,
    forget,
    learning_rate_factor,
    make_engine,
    optimizer_step,
    set_learning_rate,
)
from raysys.training.loss_scale import LossScale
from raysys.training.settings import TrainingSettings
from tests.training.processes import run_ranks

WORLDS, STAGES = (1, 2, 3), (0, 1, 2, 3)


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
    config = engine_config(TrainingSettings(global_batch=5, zero_stage=2, clip_norm=0.3), workers)
    assert config["train_batch_size"] == config["train_micro_batch_size_per_gpu"] * workers > 0
    assert config["zero_optimization"]["stage"] == 2
    assert not config["bf16"]["enabled"]
    assert config["gradient_clipping"] == 0.3


@pytest.mark.parametrize(("stage", "used"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_bfloat16_has_float32_weights_in_the_optimizer_without_zero_too(stage, used):
    config = engine_config(TrainingSettings(zero_stage=stage, precision="bf16"), workers=2)
    assert config["zero_optimization"]["stage"] == used
    assert config["bf16"] == {"enabled": True, "check_grad_overflow": True}


class TwoHeads(nn.Module):
    """A trunk and two heads, of which one may go unused."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.LayerNorm(16))
        self.first, self.second = nn.Linear(16, 7), nn.Linear(16, 3)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, rows: Tensor, both: bool = True) -> dict[str, Tensor]:
        hidden = self.trunk(rows.to(self.scale.dtype))
        return {"first": self.first(hidden) * self.scale, **({"second": self.second(hidden)} if both else {})}


ROWS, TURNS = 12, 4
ROWS_OF = torch.randn(TURNS, ROWS, 5, generator=torch.Generator().manual_seed(1))
PRECISIONS = ("fp32", "bf16", "fp16")


def loss_of(vectors: dict[str, Tensor]) -> Tensor:
    assert {rows.dtype for rows in vectors.values()} == {torch.float32}
    return sum(rows.square().sum() for rows in vectors.values()) / 24  # type: ignore[return-value]


@dataclass
class Turns:
    """What :data:`TURNS` steps on an engine gave."""

    gradients: list[dict[str, Tensor]]
    norms: list[float]
    weights: dict[str, Tensor]


def turns_of_one_process() -> Turns:
    """The same with plain PyTorch, in one backward pass per step."""
    system = TwoHeads()
    named = dict(system.named_parameters())
    matrices = [
        {"params": [one for one in named.values() if (one.ndim > 1) is matrix], "weight_decay": 2.0 * matrix} for matrix in (True, False)
    ]
    optimizer = torch.optim.AdamW(matrices, lr=3e-3)
    found = Turns([], [], named)
    for turn in range(TURNS):
        optimizer.zero_grad()
        loss_of(system(ROWS_OF[turn], both=turn < 2)).backward()
        for parameter in named.values():
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        found.gradients.append({name: parameter.grad.clone() for name, parameter in named.items()})
        found.norms.append(float(nn.utils.clip_grad_norm_(named.values(), 0.5)))
        optimizer.step()
    return found


def engine_of(rank: int, stage: int, precision: str) -> Any:
    training = settings(stage, precision).model_copy(update={"warmup_steps": 0, "schedule": "constant"})
    engine = make_engine(TwoHeads(), training, dist.get_world_size())
    engine.train()
    if engine.loss_scaler:
        engine.loss_scaler = LossScale(256.0, interval=1)
    return engine


def full(parameter: nn.Parameter, get: Any) -> Tensor:
    found = get(parameter)
    return (parameter.detach() if found is None else found).float().clone()


def turns_on_engine(rank: int, stage: int, precision: str, passes: int) -> Turns:
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_grad

    workers = dist.get_world_size()
    engine = engine_of(rank, stage, precision)
    found = Turns([], [], {})
    for turn in range(TURNS):
        parts = ROWS_OF[turn].tensor_split(workers)[rank].tensor_split(passes)
        with torch.no_grad():
            engine(parts[0])
        for number, part in enumerate(parts):
            # The mean over the workers is to be the sum over the rows of all.
            backward(engine, workers * loss_of(engine(part, both=turn < 2)), last=number == passes - 1)
            with torch.no_grad():
                engine(part)
        scale = engine.loss_scaler.value if engine.loss_scaler else 1.0
        gradients = {name: safe_get_full_grad(parameter) for name, parameter in engine.module.named_parameters()}
        found.gradients.append({name: torch.zeros(1) if one is None else one.float() / scale for name, one in gradients.items()})
        norm, made = optimizer_step(engine)
        assert made
        found.norms.append(norm)
    found.weights = {name: full(parameter, safe_get_full_fp32_param) for name, parameter in engine.module.named_parameters()}
    engine.destroy()
    return found


def held(engine: Any) -> dict[str, Tensor]:
    """Weights as the optimizer and as the forward pass have them, and this worker's moments and step counts."""
    from deepspeed.utils import safe_get_full_fp32_param

    found = {f"weight {name}": full(parameter, safe_get_full_fp32_param) for name, parameter in engine.module.named_parameters()}
    for number, state in enumerate(engine.basic_optimizer.state.values()):
        found |= {f"{key} {number}": torch.as_tensor(value).clone() for key, value in state.items()}
    with torch.no_grad():
        return found | engine(ROWS_OF[0])


def broken_step(rank: int, stage: int, precision: str, passes: int) -> tuple[dict[str, Tensor], ...]:
    """State before and after a step in which one pass of one worker has an infinite gradient in a part of the parameters."""
    engine = engine_of(rank, stage, precision)

    def one_step(broken: bool) -> tuple[float, bool]:
        for number in range(passes):
            vectors = engine(ROWS_OF[0].tensor_split(passes)[number])
            loss = loss_of(vectors)
            if broken and rank == dist.get_world_size() - 1 and number == 0:
                loss = loss + float("inf") * vectors["second"].sum()
            backward(engine, loss, last=number == passes - 1)
        return optimizer_step(engine)

    for _ in range(2):
        assert one_step(broken=False)[1]
    scale = engine.loss_scaler.value if engine.loss_scaler else None
    before = held(engine)
    norm, made = one_step(broken=True)
    assert not made
    assert not np.isfinite(norm)
    assert scale is None or engine.loss_scaler.value == scale / 2
    # A pass that was begun and given up leaves nothing behind either.
    backward(engine, 1e3 * loss_of(engine(ROWS_OF[0])), last=False)
    forget(engine)
    unchanged = held(engine)
    norm, made = one_step(broken=False)
    assert made
    changed = held(engine)
    engine.destroy()
    return before, unchanged, changed, {"norm": torch.tensor(norm)}


def scales(rank: int, stage: int) -> list[tuple[float, bool, float]]:
    """Loss scale, whether the step was made, and norm of the gradient, step by step, of a loss of next to nothing."""
    engine = engine_of(rank, stage, "fp16")
    engine.loss_scaler = LossScale(2.0**42, interval=3)
    found = []
    for _ in range(10):
        tried = engine.loss_scaler.value
        backward(engine, 1e-7 * loss_of(engine(ROWS_OF[0])))
        norm, made = optimizer_step(engine)
        found.append((tried, made, norm))
    engine.destroy()
    return found


def passes_of(workers: int) -> tuple[int, ...]:
    return (1, 3) if workers == 2 else (3,)


def passes_work(rank: int) -> dict[Any, Any]:
    workers = dist.get_world_size()
    found: dict[Any, Any] = {}
    for stage, passes in itertools.product(STAGES, passes_of(workers)):
        found["turns", stage, "fp32", passes] = turns_on_engine(rank, stage, "fp32", passes)
    if workers == 2:
        for stage, precision in itertools.product(STAGES, PRECISIONS):
            found["broken", stage, precision] = broken_step(rank, stage, precision, passes=2)
        for stage in STAGES:
            found["scales", stage] = scales(rank, stage)
            for precision in ("bf16", "fp16"):
                found["turns", stage, precision, 3] = turns_on_engine(rank, stage, precision, passes=3)
    return found


@pytest.fixture(scope="module")
def passes_results() -> dict[int, list[dict[Any, Any]]]:
    return {workers: run_ranks(passes_work, workers) for workers in WORLDS}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("workers", "passes"), [(workers, passes) for workers in WORLDS for passes in passes_of(workers)])
def test_several_backward_passes_are_one(passes_results, workers, stage, passes):
    expected = turns_of_one_process()
    assert min(expected.norms) > 0.5, "clipping is part of the comparison"
    for rank in range(workers):
        found = passes_results[workers][rank]["turns", stage, "fp32", passes]
        assert found.norms == pytest.approx(expected.norms, rel=1e-6)
        for gradients, wanted in zip(found.gradients, expected.gradients, strict=True):
            for name, gradient in wanted.items():
                assert (gradients[name] - gradient).norm() <= 1e-6 * max(gradient.norm().item(), 1e-3), name
        for name, weight in expected.weights.items():
            torch.testing.assert_close(found.weights[name], weight.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("precision", "tolerance"), [("bf16", 0.03), ("fp16", 0.005)])
@pytest.mark.parametrize("stage", STAGES)
def test_several_backward_passes_in_half_precision_are_near_one(passes_results, stage, precision, tolerance):
    expected = turns_of_one_process()
    for rank in range(2):
        found = passes_results[2][rank]["turns", stage, precision, 3]
        assert found.norms == pytest.approx(expected.norms, rel=tolerance)
        for gradients, wanted in zip(found.gradients, expected.gradients, strict=True):
            for name, gradient in wanted.items():
                assert (gradients[name] - gradient).norm() <= tolerance * max(gradient.norm().item(), 1e-3), name


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_gradient_that_is_not_finite_on_one_worker_changes_nothing_on_any(passes_results, stage, precision):
    for rank in range(2):
        before, unchanged, changed, norm = passes_results[2][rank]["broken", stage, precision]
        assert before.keys() == unchanged.keys()
        assert {name.split()[0] for name in before} == {"weight", "exp_avg", "exp_avg_sq", "step", "first", "second"}
        for name, value in before.items():
            assert torch.equal(unchanged[name], value), name
            assert not torch.equal(changed[name], value), name
            assert torch.isfinite(changed[name]).all(), name
        assert 0.1 < float(norm["norm"]) < 100, "nothing is left of the pass that was given up"


@pytest.mark.parametrize("stage", STAGES)
def test_the_loss_scale_is_found_and_small_gradients_survive(passes_results, stage):
    system = TwoHeads()
    (1e-7 * loss_of(system(ROWS_OF[0]))).backward()
    expected = float(nn.utils.get_total_norm([parameter.grad for parameter in system.parameters()]))
    for rank in range(2):
        found = passes_results[2][rank]["scales", stage]
        skipped = [made for _, made, _ in found].index(True)
        assert 2 <= skipped <= 6
        assert [tried for tried, _, _ in found[: skipped + 1]] == [2.0 ** (42 - halved) for halved in range(skipped + 1)]
        assert [made for _, made, _ in found[skipped : skipped + 3]] == [True] * 3
        assert found[skipped + 3][0] == 2 * found[skipped][0], "it is tried again after three good steps"
        assert found[skipped][2] == pytest.approx(expected, rel=0.01), "without scaling half of it would be zero in float16"


def test_learning_rates_are_a_function_of_the_step_alone():
    cosine = TrainingSettings(learning_rate=0.5, warmup_steps=4, schedule="cosine")

    class Optimizer:
        param_groups: typing.ClassVar = [{"factor": 1.0}, {"factor": 0.25}]

    class Engine:
        basic_optimizer = Optimizer

    for step, rate in [(9, 0.25), (0, 0.125), (4, 0.5), (9, 0.25)]:
        assert set_learning_rate(Engine, cosine, 14, step) == pytest.approx(rate)
        assert [group["lr"] for group in Optimizer.param_groups] == pytest.approx([rate, rate / 4])
