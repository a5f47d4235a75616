"""What a rank holds: every element of the training state once over all ranks, and training not changed by being looked at."""

from typing import Any

import deepspeed
import pytest
import torch

from raysys.training.engine_state import EngineState
from tests.training.engines import Network, full_state, let_go, make, train
from tests.training.processes import run_ranks

STAGES = (0, 1, 2, 3)
WORKERS = 2


def work(rank: int) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for stage in STAGES:
        engine = make(stage)
        engine.train()
        losses = train(engine, 0, 3)
        expected = full_state(engine)
        let_go(engine)
        engine = make(stage)
        engine.train()
        state = EngineState(engine, ema_decay=0.5)
        found["seen", stage] = train(engine, 0, 3, state) == losses and all(
            tensor.equal(expected[name]) for name, tensor in full_state(engine).items()
        )
        found["written", stage] = [(one.key, one.start, one.values.clone()) for one in state.written()]
        found["full", stage], found["expected", stage] = expected, state.expected()
        with state.averaged():
            averages = full_state(engine)
        with pytest.raises(ZeroDivisionError), state.averaged():
            raise ZeroDivisionError
        left = full_state(engine)
        found["left", stage] = all(left[name].equal(averages[name]) for name in left) and not left["weight/scale"].equal(
            expected["weight/scale"]
        )
        let_go(engine)
    config = {"train_batch_size": 12, "zero_allow_untested_optimizer": True, "bf16": {"enabled": True}}
    for name, optimizer, more in (("bf16", torch.optim.AdamW, {}), ("sgd", torch.optim.SGD, {"bf16": {"enabled": False}})):
        network = Network()
        made = deepspeed.initialize(model=network, optimizer=optimizer(network.parameters(), lr=0.1), config=config | more)[0]
        with pytest.raises(AssertionError, match="is not known, only that of torch's Adam") as refused:
            EngineState(made)
        found[name] = str(refused.value)
        let_go(made)
    return found


@pytest.fixture(scope="module")
def ranks() -> list[dict[Any, Any]]:
    return run_ranks(work, WORKERS)


@pytest.mark.parametrize("stage", STAGES)
def test_moments_made_beforehand_change_nothing(ranks, stage):
    assert ranks[0]["seen", stage]
    assert ranks[1]["seen", stage]


@pytest.mark.parametrize("stage", STAGES)
def test_all_ranks_together_write_every_element_once(ranks, stage):
    full, shapes = ranks[0]["full", stage], ranks[0]["expected", stage]
    assert ranks[1]["expected", stage] == shapes
    counts = {key: torch.zeros(torch.Size(shape).numel(), dtype=torch.int64) for key, (shape, _) in shapes.items()}
    for rank in ranks:
        for key, start, values in rank["written", stage]:
            assert values.dtype == shapes[key][1]
            counts[key][start : start + len(values)] += 1
            if not key.startswith("ema/"):
                assert values.equal(full[key][start : start + len(values)]), key
    assert all((count == 1).all() for count in counts.values())
    kinds = {key.partition("/")[0] for key in shapes}
    assert kinds == {"weight", "exp_avg", "exp_avg_sq", "ema", "buffer"}
    assert "weight/again.weight" not in shapes, "one of two tied ones"
    assert "buffer/constant" not in shapes, "not part of the network's state"
    assert shapes["weight/first.weight"] == ((13, 7), torch.float32)


@pytest.mark.parametrize("stage", STAGES)
def test_after_an_error_nobody_waits_for_others_to_put_weights_back(ranks, stage):
    assert ranks[0]["left", stage]
    assert ranks[1]["left", stage]


def test_without_zero_the_work_is_shared_out(ranks):
    sizes = [sum(len(values) for key, _, values in rank["written", 0] if not key.startswith("buffer/")) for rank in ranks]
    assert abs(sizes[0] - sizes[1]) <= 1


def test_optimizers_that_are_not_known_are_refused(ranks):
    assert "SGD" in ranks[0]["sgd"]
    assert "state of" in ranks[0]["bf16"]
