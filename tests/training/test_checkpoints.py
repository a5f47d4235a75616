"""Checkpoints of real engines: what any number of workers in any ZeRO stage has written, any other goes on from."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from raysys.storage import Storage
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.engine_state import EngineState
from raysys.training.export import load_weights
from raysys.training.loss_scale import LossScale
from raysys.training.run_folder import RunFolder
from tests.training.engines import Network, adam_steps, full_state, let_go, make, train
from tests.training.processes import run_ranks

SAVED, END, DECAY = 3, 5, 0.8
Kind = tuple[str, int]
"""Precision and ZeRO stage."""
KINDS: tuple[Kind, ...] = (*(("fp32", stage) for stage in (0, 1, 2, 3)), *(("bf16", stage) for stage in (1, 2, 3)))
Source = tuple[int, Kind]


def at(root: Path, name: str) -> Checkpoints:
    return Checkpoints(RunFolder(Storage(), str(root / name)), keep=2)


def kinds_of(workers: int) -> tuple[Kind, ...]:
    """Three workers do without bfloat16, which takes no other way than by two."""
    return KINDS if workers < 3 else KINDS[:4]


def goes_on(source: Source, target: Source) -> bool:
    """Which are tried: each with itself, and of the others a third, among which is every pair of stages and of workers."""
    (workers, (precision, stage)), (others, (wanted, other)) = source, target
    return source == target or (precision == wanted and (workers + stage + others + other) % 3 == 0)


def name_of(source: Source) -> str:
    workers, (precision, stage) = source
    return f"{workers}-{precision}-{stage}"


def state_of(step: int, workers: int = 1, stage: int = 0, score: float | None = None) -> CheckpointState:
    return CheckpointState(step, "abc", workers, stage, score, micro_batches=3, skipped_steps=1)


def write_sources(rank: int, root: Path, workers: int) -> dict[Source, dict[str, Any]]:
    """A run of each kind, with a checkpoint after SAVED steps, and what it was then and at its end."""
    found: dict[Source, dict[str, Any]] = {}
    for kind in kinds_of(dist.get_world_size()):
        precision, stage = kind
        engine = make(stage, precision)
        engine.train()
        engine.loss_scaler = LossScale()
        state = EngineState(engine, DECAY)
        trained = {f"weight/{name}" for name, one in engine.module.named_parameters() if one.requires_grad}
        average = {name: weight for name, weight in full_state(engine).items() if name in trained}
        for step in range(SAVED):
            train(engine, step, step + 1, state)
            engine.loss_scaler.update(finite=step != 1)
            weights = full_state(engine)
            kept = min(DECAY, (2 + step) / (11 + step))  # 2/11 after the first step, 3/12 after the second
            average = {name: kept * mean + (1 - kept) * weights[name] for name, mean in average.items()}
        checkpoints = at(root, name_of((workers, kind)))
        checkpoints.save(state, state_of(SAVED, workers, stage))
        then = full_state(engine)
        losses = train(engine, SAVED, END, state)  # while it is being written
        checkpoints.wait()
        found[workers, kind] = {"then": then, "average": average, "losses": losses, "end": full_state(engine)}
        let_go(engine)
    dist.barrier()
    return found


def read_sources(rank: int, root: Path, sources: list[Source]) -> dict[tuple[Kind, Source], dict[str, Any]]:
    """Engines of each kind that go on from each source's checkpoint, one after the other."""
    found: dict[tuple[Kind, Source], dict[str, Any]] = {}
    for kind in kinds_of(dist.get_world_size()):
        precision, stage = kind
        engine = make(stage, precision, seed=99)
        engine.train()
        engine.loss_scaler = LossScale()
        state = EngineState(engine, DECAY)
        for source in sources:
            if not goes_on(source, (dist.get_world_size(), kind)):
                continue
            loaded = at(root, name_of(source)).load(state)
            then = full_state(engine)
            with state.averaged():
                average = full_state(engine)
            again, steps, scale = full_state(engine), adam_steps(engine), engine.loss_scaler.state_dict()
            losses = train(engine, SAVED, END, state)
            found[kind, source] = {
                **{"loaded": loaded, "then": then, "again": again, "average": average, "steps": steps, "scale": scale},
                **{"losses": losses, "end": full_state(engine)},
            }
        let_go(engine)
    return found


def write_and_read(rank: int, root: Path, sources: list[Source]) -> tuple[dict, dict]:
    workers = dist.get_world_size()
    written = write_sources(rank, root, workers)
    return written, read_sources(rank, root, [*sources, *written])


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def matrix(root) -> tuple[dict[Source, dict[str, Any]], dict[tuple[int, Kind, Source], dict[str, Any]]]:
    """(what was written, what was read by (workers, kind) from (workers, kind))."""
    written = run_ranks(write_sources, 2, root, 2)[0]
    read: dict[tuple[int, Kind, Source], dict[str, Any]] = {}
    for workers in (1, 3):
        new, found = run_ranks(write_and_read, workers, root, list(written))[0]
        written |= new
        read |= {(workers, *key): value for key, value in found.items()}
    read |= {(2, *key): value for key, value in run_ranks(read_sources, 2, root, list(written))[0].items()}
    return written, read


def test_everything_comes_back_from_any_workers_and_stage_to_any_other(matrix):
    written, read = matrix
    pairs = {(source[0], workers) for workers, _, source in read}
    assert pairs >= {(one, other) for one in (1, 2, 3) for other in (2, 3)} | {(1, 1), (2, 1)}
    stages = {(source[1], kind) for _, kind, source in read}
    assert len(stages) == 4 * 4 + 3 * 3
    for (workers, kind, source), found in read.items():
        told = f"{source} → {(workers, kind)}"
        expected = written[source]["then"]
        assert found["loaded"] == state_of(SAVED, source[0], source[1][1]), told
        assert found["steps"] == {SAVED}, told
        assert found["scale"] == {"value": 2.0**15, "good_steps": 1}, told
        assert expected.keys() == found["then"].keys()
        for name, tensor in expected.items():
            assert found["then"][name].equal(tensor), f"{told}: {name}"
            assert found["again"][name].equal(tensor), f"{told}: {name} after the averages were in its place"
    assert written[1, ("fp32", 0)]["then"]["exp_avg/back.weight"].abs().sum() > 0
    assert int(written[1, ("fp32", 0)]["then"]["buffer/seen"]) == SAVED


def test_training_goes_on_as_if_nothing_had_happened(matrix):
    written, read = matrix
    same = 0
    for (workers, kind, source), found in read.items():
        told, expected = f"{source} → {(workers, kind)}", written[source]
        if source == (workers, kind):
            same += 1
            assert found["losses"] == expected["losses"], told
            for name, tensor in expected["end"].items():
                assert found["end"][name].equal(tensor), f"{told}: {name}"
        loose = kind[0] == "bf16"
        assert found["losses"] == pytest.approx(expected["losses"], rel=2e-2 if loose else 1e-5), told
        for name, tensor in expected["end"].items():
            if not loose:
                torch.testing.assert_close(found["end"][name], tensor, rtol=1e-3, atol=2e-6, msg=f"{told}: {name}")
    assert same == sum(len(kinds_of(workers)) for workers in (1, 2, 3))


def test_the_average_is_that_of_the_steps(matrix):
    written, read = matrix
    for (workers, kind, source), found in read.items():
        for name, average in written[source]["average"].items():
            assert not average.equal(written[source]["then"][name])
            told = f"{source} → {(workers, kind)}: {name}"
            torch.testing.assert_close(found["average"][name], average.to(found["average"][name].dtype), rtol=1e-5, atol=1e-6, msg=told)


def test_exported_weights_are_the_averages(matrix, root):
    written, read = matrix
    for source, expected in written.items():
        system = Network()
        checkpoints = at(root, name_of(source))
        latest = checkpoints.latest()
        assert latest is not None
        load_weights(system, checkpoints, latest)
        average = next(found["average"] for (_, _, other), found in read.items() if other == source)
        for name, parameter in system.named_parameters():
            assert parameter.detach().view(-1).equal(average[f"weight/{name}"].float()), f"{source}: {name}"
        for name in ("seen", "ring", "open"):
            buffer = system.get_buffer(name)
            assert buffer.view(-1).equal(expected["then"][f"buffer/{name}"].to(buffer.dtype)), f"{source}: {name}"
        assert system.again.weight is system.first.weight


def test_each_rank_writes_its_part(matrix, root):
    for source in matrix[0]:
        workers, (_, stage) = source
        sizes = [file.stat().st_size for file in sorted((root / name_of(source)).glob("checkpoints/*/rank-*.safetensors"))]
        assert len(sizes) == workers
        if stage == 0:
            assert max(sizes) < 12_000 / workers + 3_000, "headers are of the same size whoever writes"
