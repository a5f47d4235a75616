"""Two real processes under ZeRO 3, one of them with triples alone and the other with captions alone, are as one process."""

import pytest
import torch
from torch import Tensor

from raysys.data.plan import Plan
from raysys.training.engine import backward, make_engine
from raysys.training.gather import gather_all
from raysys.training.phases import Phases
from raysys.training.settings import TrainingSettings
from raysys.training.step import TrainingStep
from tests.systems.grounded.worlds import CAPTIONS, TRIPLES, batch, build, model_settings
from tests.training.processes import run_ranks
from tests.training.worlds import Sources, tiny_backbone

CASES = {"t-cp-g": (TRIPLES, CAPTIONS), "t-cm": (TRIPLES, CAPTIONS), "gs-both": (0, CAPTIONS)}
"""Rows of each rank; a rank without any has one row of padding."""
DIVIDED = "t-cp-g"
"""Takes a step in micro-batches too."""
ROWS = TRIPLES + CAPTIONS


def one_process(name: str, backbone: str) -> tuple[dict[str, float], dict[str, Tensor]]:
    system = build(name, model_settings(backbone))
    terms = system.losses(system(batch(name)))
    system.total(terms).backward()
    return _numbers(terms), {key: parameter.grad for key, parameter in system.named_parameters() if parameter.requires_grad}


def _numbers(terms: dict[str, Tensor]) -> dict[str, float]:
    return {key: term.item() for key, term in terms.items()}


def undivided(name: str, backbone: str, rank: int) -> tuple[dict[str, float], dict[str, Tensor]]:
    from deepspeed.utils import safe_get_full_grad

    system, counts = build(name, model_settings(backbone)), CASES[name]
    system.checkpoint_activations()
    engine = make_engine(system, TrainingSettings(global_batch=sum(counts), zero_stage=3), workers=2)
    start = sum(counts[:rank])
    rows = gather_all(engine(batch(name).rows(start, start + counts[rank])), list(counts))
    terms = engine.module.losses(rows)
    backward(engine, engine.module.total(terms))
    trained = [(key, parameter) for key, parameter in engine.module.named_parameters() if parameter.requires_grad]
    found = _numbers(terms), {key: safe_get_full_grad(parameter).clone() for key, parameter in trained}
    engine.step()
    engine.destroy()
    return found


def divided(backbone: str, rank: int) -> tuple[dict[str, float], float]:
    """Of a step in micro-batches of one or two rows: the terms, and the length of the gradient."""
    plan = Plan(ROWS, ROWS, 0, micro_batches=6)
    settings = TrainingSettings(global_batch=ROWS, micro_batch=2, zero_stage=3)
    engine = make_engine(build(DIVIDED, model_settings(backbone)), settings, workers=2)
    step = TrainingStep(engine, settings, plan, Sources(), rank, 2, Phases())  # type: ignore[arg-type]
    bounds = [0, sum(plan.micro_batch_sizes(ROWS, 2)[0]), ROWS]
    found = step(batch(DIVIDED).rows(*bounds[rank : rank + 2]))
    engine.destroy()
    return found.terms, found.gradient_norm


def work(rank: int, backbone: str) -> dict:
    return {name: undivided(name, backbone, rank) for name in CASES} | {"divided": divided(backbone, rank)}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


@pytest.fixture(scope="module")
def results(backbone) -> list[dict]:
    """What each of two processes found, all systems in one group of processes."""
    return run_ranks(work, 2, backbone)


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_are_those_of_one_process(results, backbone, name):
    terms, gradients = one_process(name, backbone)
    for of_rank in results:
        found, of_weights = of_rank[name]
        assert found == pytest.approx(terms, rel=1e-5)
        assert set(of_weights) == set(gradients)
        for key, gradient in gradients.items():
            assert gradient.any(), key
            torch.testing.assert_close(of_weights[key], gradient, rtol=1e-4, atol=1e-6)


def test_a_step_in_micro_batches_has_the_correlation_and_the_negatives_of_the_whole_batch(results, backbone):
    terms, gradients = one_process(DIVIDED, backbone)
    norm = torch.cat([gradient.flatten() for gradient in gradients.values()]).norm().item()
    for of_rank in results:
        found, length = of_rank["divided"]
        assert found == pytest.approx(terms, rel=1e-5)
        assert length == pytest.approx(norm, rel=1e-4)
