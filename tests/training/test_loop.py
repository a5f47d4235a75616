"""The loop in one process: what it refuses, what it reports, and the thread that fetches ahead."""

import functools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from raysys.data.bad import BadSample, Replacement
from raysys.data.batches import Batch
from raysys.data.images import ImagePreprocessorSettings
from raysys.storage import Storage
from raysys.systems.globetrotter import Globetrotter
from raysys.training.job import Place, TrainingJob, Validation
from raysys.training.loop import prefetch, train
from raysys.training.phases import Phases
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings
from tests.training.processes import run_ranks
from tests.training.worlds import SAMPLES, Shares, batch, build, model_settings, objective, plan, rows, tiny_backbone

TOTAL = 5
HERE = Place(0, 1, torch.device("cpu"))


class Diverging(Globetrotter):
    """Its second term ends in a number that is none at step 2."""

    calls = 0

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        terms = super().losses(vectors)
        self.calls += 1
        return terms | {"image_caption": terms["image_caption"] * float("nan")} if self.calls == 3 else terms


def score(vectors: dict[str, np.ndarray]) -> dict[str, float]:
    return {"eval/rows": float(len(vectors["view_1"])), "eval/ids": float(vectors["image_ids"].sum())}


def job(folder: Path, system: Any, **settings: Any) -> TrainingJob:
    training = TrainingSettings(**{"global_batch": 7, "zero_stage": 0, "workers": 1, "checkpoint_every": 3, "log_every": 2, **settings})
    return TrainingJob(
        settings=training,
        build=system,
        plan=plan(),
        builder=Shares(),  # type: ignore[arg-type]
        total_steps=TOTAL,
        folder=RunFolder(Storage(), str(folder)),
        image=ImagePreprocessorSettings(size=32),
        decode_threads=1,
    )


def outcome(wanted: TrainingJob, batches: Any) -> dict[str, Any]:
    """What `train` did: its error, what it reported, and where its checkpoints are."""
    reported: list[dict[str, Any]] = []
    error = ""
    try:
        train(wanted, HERE, batches, reported.append, Phases())
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return {"error": error, "reported": reported, "steps": [state.step for state in wanted.checkpoints.all()]}


def failing(after: int) -> Iterator[Batch]:
    yield from (batch(step) for step in range(after))
    raise ConnectionError("shard 7 cannot be read")


def work(rank: int, root: Path, backbone: str) -> dict[str, dict[str, Any]]:
    model = model_settings(backbone)
    plain = functools.partial(build, model, objective())
    batches = [batch(step) for step in range(TOTAL)]
    found = {
        "whole": outcome(job(root / "whole", plain), batches),
        "done": outcome(job(root / "whole", plain), []),
        "diverging": outcome(job(root / "diverging", lambda: Diverging(model, objective())), batches),
        "skipping": outcome(job(root / "skipping", lambda: Diverging(model, objective()), on_nonfinite="skip"), batches),
        "late": outcome(job(root / "late", plain), batches[1:]),
        "short": outcome(job(root / "short", plain), batches[:4]),
        "failing": outcome(job(root / "failing", plain), failing(2)),
        "unclipped": outcome(job(root / "unclipped", plain, clip_norm=0, zero_stage=1), batches),
    }
    met = [batch(step) for step in range(4)]
    met[1].replaced.append(Replacement(1, 0, 5, "s6", BadSample("data/000000.tar", "s5", "png", "image", "cut")))
    found["interrupted"] = outcome(job(root / "interrupted", plain, log_every=100), met)
    validated = job(root / "validated", plain)
    validation = Validation(Shares(), score, "eval/rows")  # type: ignore[arg-type]
    found["validated"] = outcome(TrainingJob(**{**vars(validated), "validation": validation}), batches)
    found["validated"]["scores"] = [state.score for state in validated.checkpoints.all()]
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("loop")


@pytest.fixture(scope="module")
def found(root) -> dict[str, dict[str, Any]]:
    return run_ranks(work, 1, root, tiny_backbone(root / "backbone"))[0]


def test_what_is_reported_is_what_is_kept(found, root):
    whole = found["whole"]
    assert whole["error"] == ""
    assert whole["steps"] == [3, 5]
    assert [line["step"] for line in whole["reported"]] == [1, 2, 4, 5], "the first, each log_every-th and the last"
    assert RunFolder(Storage(), str(root / "whole")).metrics() == whole["reported"]
    for line in whole["reported"]:
        assert line["epoch"] == (line["step"] - 1) / 3
        parts = sum(line[f"train/loss_{name}"] for name in ("transitive", "image", "image_caption", "cloze"))
        assert line["train/loss"] == pytest.approx(parts, rel=1e-5)
        assert line["train/grad_norm"] > 0
        assert line["train/lr"] == 1e-4
        assert line["train/samples_per_second"] > 0
        assert 0 <= line["data/wait_fraction"] <= 1


def test_a_finished_run_has_nothing_to_do(found):
    assert found["done"] == {"error": "", "reported": [], "steps": [3, 5]}


def test_a_loss_that_is_not_finite_ends_the_run_and_names_step_term_and_samples(found):
    error = found["diverging"]["error"]
    assert error.startswith("CertainFailure: the loss is not finite at step 3 (")
    assert "image_caption = nan" in error
    assert "cloze = nan" not in error
    assert "temperature_image = 0.1" in error
    assert "all vectors are finite" in error
    assert found["diverging"]["steps"] == []


def test_by_policy_such_a_step_is_left_out_and_counted(found):
    assert found["skipping"]["error"] == ""
    assert found["skipping"]["steps"] == [3, 5]
    assert [(line["step"], line["train/skipped_steps"]) for line in found["skipping"]["reported"]] == [
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 1),
        (5, 1),
    ]
    assert found["skipping"]["reported"][2]["train/loss"] is None


def test_batches_that_do_not_continue_the_run_end_it(found):
    assert found["late"]["error"] == "RunFailed: rank 0 expected global batch 0 and got 1"
    assert found["short"]["error"] == "RunFailed: rank 0 expected global batch 4 and got the end of the data"
    assert found["short"]["steps"] == [3]


def test_an_error_while_reading_is_the_error_of_the_run(found):
    assert found["failing"]["error"] == "ConnectionError: shard 7 cannot be read"
    assert [line["step"] for line in found["failing"]["reported"]] == [1, 2], "what came before is trained on"


def test_what_a_checkpoint_has_behind_it_is_in_the_ledger(found, root):
    assert found["interrupted"]["steps"] == [3]
    assert [line["step"] for line in found["interrupted"]["reported"]] == [1]
    (line,) = (root / "interrupted" / "ledger.jsonl").read_text().splitlines()
    assert json.loads(line)["key"] == "s5"


def test_training_goes_on_without_clipping(found):
    assert found["unclipped"]["error"] == ""
    losses = [line["train/loss"] for line in found["unclipped"]["reported"]]
    assert losses[0] == pytest.approx(found["whole"]["reported"][0]["train/loss"], rel=1e-6)
    assert len(losses) == 4


def test_checkpoints_are_scored_on_every_validation_sample(found):
    assert found["validated"]["error"] == ""
    scored = [line for line in found["validated"]["reported"] if "eval/rows" in line]
    ids = float(rows(np.arange(SAMPLES), pictures=False)["image_ids"].sum())
    assert scored == [{"step": step, "eval/rows": SAMPLES, "eval/ids": ids} for step in (3, 5)]
    assert found["validated"]["scores"] == [SAMPLES, SAMPLES]
    plain = [line["train/loss"] for line in found["whole"]["reported"]]
    assert [line["train/loss"] for line in found["validated"]["reported"] if "train/loss" in line] == plain, "it leaves training alone"


def test_items_come_in_order_and_end():
    assert list(prefetch(range(100), size=3)) == list(range(100))
    assert list(prefetch([], size=1)) == []


def test_fetching_begins_at_once_and_stays_within_bounds():
    fetched: list[int] = []

    def items() -> Iterator[int]:
        for item in range(20):
            fetched.append(item)
            yield item

    incoming = prefetch(items(), size=2)
    deadline = time.monotonic() + 5
    while len(fetched) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert fetched == [0, 1, 2], "two wait, one is in hand"
    assert next(incoming) == 0
    assert list(incoming) == list(range(1, 20))


def test_an_error_is_raised_where_its_item_would_be():
    def items() -> Iterator[str]:
        yield "first"
        yield "second"
        raise OSError("gone")

    incoming = prefetch(items(), size=5)
    assert [next(incoming), next(incoming)] == ["first", "second"]
    with pytest.raises(OSError, match="gone"):
        next(incoming)


def test_fetching_does_not_keep_a_process_alive():
    prefetch(iter(range(10)), size=1)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "prefetch")
