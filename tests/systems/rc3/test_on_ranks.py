"""Real processes under real engines find what one process without an engine finds, however the batch is divided."""

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from raysys.data.plan import Plan
from raysys.storage import Storage
from raysys.systems.rc3.system import Rc3System
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.engine import make_engine
from raysys.training.engine_state import EngineState
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings
from raysys.training.step import StepResult, TrainingStep
from tests.systems.rc3.worlds import KINDS, batch, build, exchanged
from tests.training.processes import run_ranks
from tests.training.worlds import Sources

ROWS, STEPS = len(KINDS), 2
Case = tuple[str, int, str]
"""A system, a stage of ZeRO, and a way: each worker's share undivided; in micro-batches with exact gradients, in bfloat16 too; with graphs
kept; or plainly accumulated."""
FAST: list[Case] = [("rc3", 3, "exact"), ("rc3", 0, "kept"), ("m3p", 3, "whole")]
SLOW: dict[int, list[Case]] = {
    1: [("rc3", 0, "exact"), ("rc3", 1, "kept"), ("rc3", 2, "exact"), ("rc3", 3, "exact")],
    2: [(name, 3, "exact") for name in ("uc2", "vl-t5", "vl-bart", "rc3-no-rxvtcl", "memad", "xuniter")],
    4: [("rc3", 0, "exact"), ("rc3", 1, "kept"), ("rc3", 2, "whole"), ("rc3", 3, "exact")],
}


class Keeping(TrainingStep):
    """Tells the gradients of a step, before the optimizer has them."""

    gradients: dict[str, Tensor]

    def _update(self, of_batch: Any, values: Any) -> StepResult:
        from deepspeed.utils import safe_get_full_grad

        partitioned, self.gradients = self.engine.zero_optimization(), {}
        for name, parameter in self.engine.module.named_parameters():
            if parameter.requires_grad:
                self.gradients[name] = (safe_get_full_grad(parameter) if partitioned else parameter.grad).clone()
        return super()._update(of_batch, values)


def work(rank: int, workers: int, cases: list[Case], folder: str) -> list[dict[str, Any]]:
    return [one_case(rank, workers, case, f"{folder}/{number}") for number, case in enumerate(cases)]


def one_case(rank: int, workers: int, case: Case, folder: str) -> dict[str, Any]:
    name, stage, way = case
    plan = Plan(ROWS, ROWS, 0, micro_batches=workers if way == "whole" else 6 if workers < 4 else 8)
    settings = TrainingSettings(
        global_batch=ROWS,
        micro_batch=2 if way in ("exact", "bf16") else None,
        accumulation="plain" if way == "plain" else "exact",
        precision="bf16" if way == "bf16" else "fp32",
        zero_stage=stage,
        learning_rate=1e-20,
        weight_decay=0.0,
    )
    system = build(name, xtcl={"symmetric": True})
    system.checkpoint_activations()
    engine = make_engine(system, settings, workers)
    engine.train()
    state = EngineState(engine, settings.ema_decay)
    take_step = Keeping(engine, settings, plan, Sources(), rank, workers, Phases())  # type: ignore[arg-type]
    bounds = [0]
    for sizes in plan.micro_batch_sizes(ROWS, workers):
        bounds.append(bounds[-1] + sum(sizes))
    found: dict[str, Any] = {"steps": []}
    for step in range(STEPS):
        share = batch(step=step).rows(*bounds[rank : rank + 2])
        result = take_step(share)
        state.after_step()
        take_step.remember(share, state)
        found["steps"].append((result.terms, result.loss, take_step.gradients))
    found["histories"] = histories(system)
    if stage == 3 and name == "rc3":
        checkpoints = Checkpoints(RunFolder(Storage(), folder), 1)
        what = CheckpointState(step=STEPS, fingerprint="abc", workers=workers, zero_stage=stage, score=None)
        with checkpoints.kept():
            checkpoints.save(state, what, lambda: None)
            checkpoints.wait(lambda: None)
            dist.barrier()
        again = build(name, xtcl={"symmetric": True})
        resumed = make_engine(again, settings, workers)
        Checkpoints(RunFolder(Storage(), folder), 1).load(EngineState(resumed, settings.ema_decay), lambda: None)
        found["resumed"] = histories(again)
        resumed.destroy()
    engine.destroy()
    return found


def histories(system: Rc3System) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in system.history.state_dict().items()}


def one_process(name: str) -> dict[str, Any]:
    """Without engine, processes and division."""
    system, found = build(name, xtcl={"symmetric": True}), []
    system.train()
    for step in range(STEPS):
        system.zero_grad()
        rows = system(exchanged(system, batch(step=step)))
        terms = system.losses(rows)
        system.total(terms).backward()
        gradients = {key: parameter.grad.clone() for key, parameter in system.named_parameters() if parameter.requires_grad}
        found.append(({key: term.item() for key, term in terms.items()}, system.total(terms).item(), gradients))
        system.remember({key: value.detach() for key, value in rows.items()})
    return {"steps": found, "histories": histories(system)}


def check(results: list[list[dict[str, Any]]], cases: list[Case]) -> None:
    expected = {name: one_process(name) for name in {name for name, _, _ in cases}}
    for of_rank in results:
        for case, found in zip(cases, of_rank, strict=True):
            wanted = expected[case[0]]
            for (terms, loss, gradients), (right_terms, right_loss, right) in zip(found["steps"], wanted["steps"], strict=True):
                assert terms == pytest.approx(right_terms, rel=1e-5, abs=1e-7), case
                assert loss == pytest.approx(right_loss, rel=1e-5), case
                assert set(gradients) == set(right)
                for key, gradient in right.items():
                    torch.testing.assert_close(gradients[key], gradient, rtol=1e-4, atol=1e-6, msg=f"{case}: {key}")
            for key, value in wanted["histories"].items():
                torch.testing.assert_close(found["histories"][key], value, rtol=1e-5, atol=0, msg=f"{case}: {key}")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[list[dict[str, Any]]]:
    """All engines in one group of two processes."""
    return run_ranks(work, 2, 2, FAST, str(tmp_path_factory.mktemp("checkpoints")))


def test_two_processes_are_as_one(results):
    check(results, FAST)


def test_later_steps_draw_negatives_nearer(results):
    terms = [terms for terms, _, _ in results[0][0]["steps"]]
    assert [terms[0][f"{name}_p_average"] for name in ("xtcl", "rxvtcl")] == [0, 0]
    assert all(terms[1][f"{name}_p_average"] > 0 for name in ("xtcl", "rxvtcl"))


def test_the_latest_losses_are_in_checkpoints(results):
    for of_rank in results:
        found = of_rank[0]
        assert found["resumed"].keys() == found["histories"].keys()
        for key, value in found["histories"].items():
            assert value.any()
            assert torch.equal(found["resumed"][key], value)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", SLOW)
def test_all_stages_ways_and_systems(ranks, tmp_path):
    check(run_ranks(work, ranks, ranks, SLOW[ranks], str(tmp_path)), SLOW[ranks])


@pytest.mark.slow
def test_in_bfloat16_and_with_plain_accumulation(tmp_path):
    expected = one_process("rc3")
    for rounded, plain in run_ranks(work, 2, 2, [("rc3", 3, "bf16"), ("rc3", 1, "plain")], str(tmp_path)):
        for (terms, _, gradients), (right, _, _) in zip(rounded["steps"], expected["steps"], strict=True):
            assert terms == pytest.approx(right, rel=0.05, abs=0.02)
            assert all(gradient.isfinite().all() for gradient in gradients.values())
        assert rounded["histories"]["histories.xtcl.values"].dtype == torch.float32
        assert plain["histories"]["histories.xtcl.pushed"] == STEPS * 3, "each turn is a batch of its own"
