"""Checkpoints of the real engine: a run that was cut and goes on in new processes is the run that was never cut."""

import contextlib
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from raysys.data.batches import Batch
from raysys.data.images import ImagePreprocessorSettings
from raysys.errors import UserError
from raysys.storage import Storage, StorageSettings
from raysys.training.checkpoints import Checkpoints, CheckpointState
from raysys.training.engine import make_engine
from raysys.training.export import load_weights
from raysys.training.loop import Place, TrainingJob, Validation, train, train_step
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings
from tests.training.processes import run_ranks
from tests.training.worlds import SAMPLES, SEED, Shares, batch, build, model_settings, objective, plan, rows, tiny_backbone

STAGES = (0, 1, 2, 3)
WORKERS, TOTAL, CUT = 2, 8, 7
HALF_WRITTEN = (1, 3)
"""Stages whose latest checkpoint, of step 6, was cut short: they go on from step 3."""
KINDS = ("frozen", "trained", "bf16")


def image_vectors(vectors: dict[str, np.ndarray]) -> dict[str, float]:
    """A number that no two sets of image vectors share, for want of a score that every network changes."""
    return {"eval/vectors": float((vectors["view_1"] * np.arange(vectors["view_1"].size).reshape(SAMPLES, -1)).sum())}


def job(folder: RunFolder, stage: int, backbone: str, kind: str = "frozen") -> TrainingJob:
    settings = TrainingSettings(
        global_batch=7,
        seed=SEED,
        zero_stage=stage,  # type: ignore[arg-type]
        precision="bf16" if kind == "bf16" else "fp32",
        learning_rate=3e-3,
        warmup_steps=3,
        schedule="cosine",
        clip_norm=0.5,
        checkpoint_every=3,
        log_every=1,
    )
    model = model_settings(backbone, dropout=0.1, frozen=kind != "trained")
    return TrainingJob(
        settings=settings,
        build=functools.partial(build, model, objective()),
        plan=plan(),
        builder=Shares(),  # type: ignore[arg-type]
        total_steps=TOTAL,
        folder=folder,
        image=ImagePreprocessorSettings(size=32),
        decode_threads=1,
        validation=Validation(Shares(pictures=True), image_vectors, "eval/vectors") if kind == "trained" else None,  # type: ignore[arg-type]
    )


def batches(rank: int, first: int, cut: int | None = None, kind: str = "frozen") -> Iterator[Batch]:
    for step in range(first, TOTAL):
        if step == cut:
            raise ConnectionError("the machine is gone")
        yield batch(step, rank, WORKERS, pictures=kind == "trained")


def run(rank: int, root: Path, name: str, stage: int, backbone: str, cut: int | None = None, kind: str = "frozen") -> int:
    """Train in the folder `name` until the end or the cut; returns the step at which this began."""
    wanted = job(local(root, name), stage, backbone, kind)
    first = wanted.checkpoints.next_step()
    dist.barrier()
    with contextlib.suppress(ConnectionError):
        train(wanted, place(rank), batches(rank, first, cut, kind), lambda line: None)
    return first


def place(rank: int) -> Place:
    return Place(rank, WORKERS, torch.device("cpu"))


def local(root: Path, name: str) -> RunFolder:
    return RunFolder(Storage(), str(root / name))


def trained_live(rank: int, wanted: TrainingJob, kind: str) -> dict[str, Tensor]:
    """Two steps, a checkpoint, and what the engine's system then holds."""
    import deepspeed

    torch.manual_seed(SEED)
    engine = make_engine(wanted.build(), wanted.settings, WORKERS, TOTAL)
    engine.train()
    for step in range(2):
        train_step(engine, batch(step, rank, WORKERS, pictures=kind == "trained"), wanted, place(rank))
    wanted.checkpoints.save(engine, CheckpointState(2, "abc", WORKERS, wanted.settings.zero_stage, None), rank, place(rank).barrier)
    with deepspeed.zero.GatheredParameters(list(engine.module.parameters()), enabled=wanted.settings.zero_stage == 3):
        live = {name: tensor.detach().clone() for name, tensor in [*engine.module.named_parameters(), *engine.module.named_buffers()]}
    engine.destroy()
    return live


def first_processes(rank: int, root: Path, backbone: str, store: RunFolder) -> dict[tuple[str, int], dict[str, Tensor]]:
    # ZeRO 3 comes last: it replaces torch's linear function for the whole process, by one that rounds differently.
    with contextlib.suppress(ConnectionError):
        train(job(store, 1, backbone), place(rank), batches(rank, 0, CUT), lambda line: None)
    for cut, name in ((None, "whole"), (CUT, "cut")):
        run(rank, root, f"{name}-trained", 1, backbone, cut, "trained")
    for stage in STAGES:
        for cut, name in ((None, "whole"), (CUT, "cut")):
            run(rank, root, f"{name}-{stage}", stage, backbone, cut)
    dist.barrier()
    if rank == 0:
        for stage in HALF_WRITTEN:
            Path(root, f"cut-{stage}", "checkpoints", "step-00000006", "complete.json").unlink()
    return {
        (kind, stage): trained_live(rank, job(local(root, f"live-{kind}-{stage}"), stage, backbone, kind), kind)
        for kind in KINDS
        for stage in STAGES
    }


def new_processes(rank: int, root: Path, backbone: str, store: RunFolder) -> dict[Any, int]:
    """Go on with what was cut; returns the steps at which that was."""
    wanted = job(store, 1, backbone)
    resumed: dict[Any, int] = {"store": wanted.checkpoints.next_step()}
    dist.barrier()
    train(wanted, place(rank), batches(rank, resumed["store"]), lambda line: None)
    resumed["trained"] = run(rank, root, "cut-trained", 1, backbone, kind="trained")
    return resumed | {stage: run(rank, root, f"cut-{stage}", stage, backbone) for stage in STAGES}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def backbone(root) -> str:
    return tiny_backbone(root / "backbone")


@pytest.fixture(scope="module")
def store(object_store) -> RunFolder:
    return RunFolder(Storage(StorageSettings(endpoint=object_store.endpoint)), f"{object_store.bucket_uri}/runs/checkpoints")


@pytest.fixture(scope="module")
def live(root, backbone, store) -> list[dict[tuple[str, int], dict[str, Tensor]]]:
    return run_ranks(first_processes, WORKERS, root, backbone, store)


@pytest.fixture(scope="module")
def resumed(live, root, backbone, store) -> dict[Any, int]:
    return run_ranks(new_processes, WORKERS, root, backbone, store)[0]


def figures(folder: RunFolder) -> list[dict[str, Any]]:
    """Metrics without what depends on the machine."""
    timed = ("train/samples_per_second", "data/wait_fraction")
    return [{name: value for name, value in line.items() if name not in timed} for line in folder.metrics()]


def tensors_of(value: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from tensors_of(part, f"{path}/{key}")
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from tensors_of(part, f"{path}/{index}")


def state_of(checkpoints: Checkpoints, step: int) -> dict[str, Tensor]:
    """Every tensor of a checkpoint's files: weights, moments, buffers."""
    state = next(state for state in checkpoints.all() if state.step == step)
    with checkpoints.local(state) as folder:
        files = {file.name: torch.load(file, map_location="cpu", weights_only=False) for file in folder.glob("*.pt")}
    return dict(tensors_of(files))


@pytest.mark.parametrize("stage", [*STAGES, "store", "trained"])
def test_a_resumed_run_is_bit_equal_to_the_uninterrupted_one(resumed, root, backbone, store, stage):
    number = stage if stage in STAGES else 1
    whole = job(local(root, f"whole-{stage if stage != 'store' else 1}"), number, backbone)
    again = job(store if stage == "store" else local(root, f"cut-{stage}"), number, backbone)
    assert resumed[stage] == (3 if stage in HALF_WRITTEN else 6)
    everything = figures(whole.folder)
    lines = [line for line in everything if "train/loss" in line]
    assert len(everything) == TOTAL + (3 if stage == "trained" else 0), "validated with each of three checkpoints"
    assert [line["step"] for line in lines] == list(range(1, TOTAL + 1))
    assert len({line["train/loss"] for line in lines}) == TOTAL
    assert all(line["train/grad_norm"] > 0.5 for line in lines), "clipping is part of the comparison"
    assert figures(again.folder) == everything
    expected, found = state_of(whole.checkpoints, TOTAL), state_of(again.checkpoints, TOTAL)
    assert any("exp_avg_sq" in name for name in expected)
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert tensor.equal(found[name]), name


def test_stages_train_alike(resumed, root):
    expected = figures(local(root, "whole-0"))
    for stage in STAGES[1:]:
        for line, other in zip(figures(local(root, f"whole-{stage}")), expected, strict=True):
            assert line == pytest.approx(other, rel=1e-4)


def test_the_logged_learning_rate_is_that_of_the_step(resumed, root):
    rates = [line["train/lr"] for line in local(root, "whole-1").metrics()]
    assert rates[:4] == pytest.approx([1e-3, 2e-3, 3e-3, 3e-3])
    assert rates[4] > rates[5] > rates[6] > rates[7] > 0


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_exported_weights_are_those_of_the_live_engine(live, root, backbone, kind, stage):
    wanted = job(local(root, f"live-{kind}-{stage}"), stage, backbone, kind)
    system = build(model_settings(backbone, frozen=kind != "trained"), objective())
    for tensor in system.state_dict().values():
        tensor.fill_(7)
    latest = wanted.checkpoints.latest()
    assert latest is not None
    load_weights(system, wanted.checkpoints, latest)
    found = dict([*system.named_parameters(), *system.named_buffers()])
    expected = live[0][kind, stage]
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        value = found[name].to(tensor.dtype)
        assert value.equal(tensor), name
    if kind == "trained":
        assert live[0][kind, stage]["image.network.model.embedder.embedder.normalization.running_mean"].abs().sum() > 0
    assert not expected["text.bert.embeddings.word_embeddings.weight"].equal(
        build(model_settings(backbone), objective()).text.word_embeddings.weight.to(tensor.dtype)
    )


def test_weights_are_loaded_from_an_object_store(resumed, root, backbone, store):
    systems = [build(model_settings(backbone), objective()) for _ in range(2)]
    for system, folder in zip(systems, (store, local(root, "whole-1")), strict=True):
        checkpoints = Checkpoints(folder, keep=2)
        state = checkpoints.latest()
        assert state is not None
        assert state.step == TOTAL
        load_weights(system, checkpoints, state)
    for name, tensor in systems[1].state_dict().items():
        assert systems[0].state_dict()[name].equal(tensor), name


def test_what_was_validated_is_what_is_exported(resumed, root, backbone):
    checkpoints = Checkpoints(local(root, "whole-trained"), keep=2)
    state = checkpoints.latest()
    assert state is not None
    system = build(model_settings(backbone, frozen=False), objective())
    load_weights(system, checkpoints, state)
    pictures = torch.from_numpy(rows(np.arange(SAMPLES), pictures=True)["images"])
    with torch.inference_mode():
        vectors = system.eval().project_image(system.image(pictures)).numpy()
    assert image_vectors({"view_1": vectors})["eval/vectors"] == pytest.approx(state.score, rel=1e-4)


def test_weights_of_another_model_are_refused(live, root, backbone):
    checkpoints = Checkpoints(local(root, "live-frozen-1"), keep=2)
    other = build(model_settings(backbone), objective(cloze=0))
    state = checkpoints.latest()
    assert state is not None
    with pytest.raises(UserError, match=r"does not fit the run's settings: .*unexpected \['cloze_head"):
        load_weights(other, checkpoints, state)


class Engine:
    """Writes a file, as far as it gets."""

    def save_checkpoint(self, folder: str, tag: str, save_latest: bool) -> None:
        assert not save_latest, "only the mark, written last, says what is complete"
        Path(folder, tag, "states.pt").write_text(tag)


def save(checkpoints: Checkpoints, step: int, score: float | None = None, workers: int = 2, stage: int = 1) -> None:
    checkpoints.save(Engine(), CheckpointState(step, "abc", workers, stage, score), rank=0, barrier=lambda: None)


@pytest.fixture(params=["disk", "store"])
def checkpoints(request, tmp_path, store) -> Checkpoints:
    folder = local(tmp_path, "run") if request.param == "disk" else RunFolder(store.storage, f"{store.uri}-{tmp_path.name}")
    return Checkpoints(folder, keep=2)


def steps(checkpoints: Checkpoints) -> list[int]:
    return [state.step for state in checkpoints.all()]


def test_a_run_without_checkpoints_begins_at_step_0(checkpoints):
    assert checkpoints.all() == []
    assert checkpoints.latest() is checkpoints.best() is None
    assert checkpoints.next_step() == 0
    checkpoints.check_resumable("anything", 5, 3)


def test_the_latest_and_the_best_are_kept(checkpoints):
    for step, score in ((1, 0.3), (2, 0.9), (3, 0.1), (4, 0.9), (5, 0.2), (6, 0.8)):
        save(checkpoints, step, score)
    assert steps(checkpoints) == [4, 5, 6], "the later of two that are equally good"
    names = {entry.uri.split("/")[-2] for entry in checkpoints.folder.storage.list(checkpoints.folder.checkpoints)}
    assert names == {"step-00000004", "step-00000005", "step-00000006"}
    best, latest = checkpoints.best(), checkpoints.latest()
    assert best == CheckpointState(4, "abc", 2, 1, 0.9)
    assert latest == CheckpointState(6, "abc", 2, 1, 0.8)
    assert checkpoints.next_step() == 6


def test_without_scores_the_latest_is_the_best(checkpoints):
    for step in (1, 2, 3):
        save(checkpoints, step)
    assert steps(checkpoints) == [2, 3]
    assert checkpoints.best() == checkpoints.latest() == CheckpointState(3, "abc", 2, 1, None)


def test_a_checkpoint_without_its_mark_is_never_used_and_goes_when_the_next_is_written(checkpoints):
    save(checkpoints, 10)
    cut = f"{checkpoints.uri(20)}/states.pt"
    checkpoints.folder.storage.write(cut, b"half")
    assert checkpoints.next_step() == 10
    with checkpoints.local(checkpoints.latest()) as folder:
        assert (folder / "states.pt").read_text() == "step-00000010"
        assert json.loads((folder / "complete.json").read_text())["step"] == 10
    save(checkpoints, 30)
    assert steps(checkpoints) == [10, 30]
    assert not checkpoints.folder.storage.exists(cut)


def test_what_does_not_fit_is_refused_with_both_sides_and_the_way_out(tmp_path):
    checkpoints = Checkpoints(local(tmp_path, "run"), keep=2)
    save(checkpoints, 4, workers=2, stage=1)
    checkpoints.check_resumable("abc", 2, 1)
    for workers, stage in ((3, 1), (2, 2), (1, 0)):
        with pytest.raises(UserError) as refusal:
            checkpoints.check_resumable("abc", workers, stage)
        assert "was written by 2 workers with ZeRO 1" in str(refusal.value)
        assert "--training.workers 2 --training.zero-stage 1" in str(refusal.value)
        assert f"asked for {workers} and {stage}" in str(refusal.value)
        assert "--run.name" in str(refusal.value)
    with pytest.raises(UserError, match=r"other data .*fingerprint abc, now xyz.*--run\.name"):
        checkpoints.check_resumable("xyz", 2, 1)
    save(checkpoints, 5, workers=2, stage=0)
    checkpoints.check_resumable("abc", 7, 0)  # without ZeRO every worker holds everything


def test_a_checkpoint_that_cannot_be_loaded_says_which_and_what_to_do(tmp_path):
    class Broken(Engine):
        def load_checkpoint(self, folder: str, tag: str) -> tuple[None, dict]:
            return None, {}

    checkpoints = Checkpoints(local(tmp_path, "run"), keep=2)
    save(checkpoints, 4)
    with pytest.raises(UserError, match="step-00000004 cannot be loaded: delete its folder"):
        checkpoints.load(Broken())
