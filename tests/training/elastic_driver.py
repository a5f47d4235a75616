"""What a person's command does, as a process that can be killed: trains a tiny run on the Ray at RAY_ADDRESS, or on a local one."""

import argparse
import functools
import os
import pickle
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from raysys.data.batches import Batch
from raysys.data.builder import BatchBuilder
from raysys.data.encoding import TextForm
from raysys.data.plan import Plan
from raysys.errors import run_program
from raysys.models.text import TextModelSettings
from raysys.storage import Storage
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings
from raysys.training import trainer
from raysys.training.job import TrainingJob
from raysys.training.lease import claimed, wait_until_free
from raysys.training.progress import ProgressDisplay
from raysys.training.run_folder import RunFolder
from raysys.training.settings import RaySettings, TrainingSettings
from raysys.training.trainer import fit, start_ray
from tests.training.pictures import MAX_TOKENS, small_samples, small_tokenizer
from tests.training.test_trainer import IMAGE
from tests.training.worlds import SEED, model_settings, objective, tiny_backbone

SAMPLES, GLOBAL_BATCH, PARTS = 24, 7, 2
NOTES = "steps.txt"
"""File beneath a run's folder: a line for each forward pass, with step, rank, number of workers and process."""
GATE = "gate.txt"
"""File beneath a run's folder with the first step that may not be done yet."""


class Gated(Globetrotter):
    """Notes each forward pass, and does it once the gate is open for its step; raises at step `fault` on the last rank."""

    def __init__(self, model: ModelSettings, wanted: ObjectiveSettings, folder: str, fault: int):
        super().__init__(model, wanted)
        self.folder, self.fault = Path(folder), fault

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        workers = dist.get_world_size() if dist.is_initialized() else 1
        rank = dist.get_rank() if dist.is_initialized() else 0
        with (self.folder / NOTES).open("a") as file:
            file.write(f"{batch.step} {rank} {workers} {os.getpid()}\n")
        if batch.step == self.fault and rank == workers - 1:
            raise ValueError("the colour octarine cannot be seen")
        while batch.step >= int((self.folder / GATE).read_text()):
            time.sleep(0.05)
        return super().forward(batch)


def build_gated(model: ModelSettings, wanted: ObjectiveSettings, folder: str, fault: int) -> Globetrotter:
    torch.manual_seed(SEED)
    return Gated(model, wanted, folder, fault)


def open_gate(folder: Path, step: int) -> None:
    """Let all steps before `step` be done."""
    partial = folder / f"{GATE}.partial"
    partial.write_text(str(step))
    partial.rename(folder / GATE)


def make_job(folder: Path, steps: int, fault: int = -1, **settings: object) -> TrainingJob:
    """A run over 24 samples; `settings` are those of training."""
    folder.mkdir()
    open_gate(folder, steps)
    samples = small_samples(folder / "data", SAMPLES)
    builder = BatchBuilder(samples, small_tokenizer(samples), TextForm(MAX_TOKENS), seed=0)
    model = model_settings(tiny_backbone(folder / "backbone"), dropout=0.1, frozen=False)
    text = TextModelSettings(**{**model.text.model_dump(), "vocabulary_size": builder.tokenizer.get_vocab_size()})
    training = TrainingSettings.model_validate(
        {"global_batch": GLOBAL_BATCH, "steps": steps, "log_every": 1, "max_failures": 0, **settings}
    )
    return TrainingJob(
        settings=training,
        build=functools.partial(build_gated, model.model_copy(update={"text": text}), objective(), str(folder), fault),
        plan=Plan(SAMPLES, GLOBAL_BATCH, 0, run_length=4, window_steps=2, last_batch="keep", micro_batches=PARTS),
        builder=builder,
        total_steps=steps,
        folder=RunFolder(Storage(), str(folder)),
        image=IMAGE,
        decode_threads=1,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("job", type=Path, help="a pickled TrainingJob")
    parser.add_argument("--cpus", type=int, default=None, help="of a local Ray")
    parser.add_argument("--silence", type=float, help="seconds without a word after which a person is told")
    given = parser.parse_args()
    started = time.perf_counter()
    if given.silence:
        trainer.ProgressDisplay = functools.partial(ProgressDisplay, silence=given.silence)  # type: ignore[misc, assignment]
    job = pickle.loads(given.job.read_bytes())
    wait_until_free(job.folder)
    start_ray(RaySettings(cpus=given.cpus), job.settings)
    with claimed(job.folder) as lease:
        fit(job, "elastic", started, lease)
    print("done", flush=True)


if __name__ == "__main__":
    run_program(main)
