"""This project's own contenders: the planned pipeline, and the training step on the DeepSpeed engine."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch import Tensor

from raysys.benchmarks.measure import Contender
from raysys.benchmarks.step import Step, StepTimes, plain_step, time_steps
from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import BatchBuilder
from raysys.data.captions import all_captions
from raysys.data.encoding import TextForm
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.pipeline import iterate_batches, planned_dataset
from raysys.data.plan import Plan, slice_bounds
from raysys.data.samples import Samples
from raysys.data.tokenizer import encode, train_tokenizer
from raysys.models.images import ImageModelSettings
from raysys.models.text import TextModelSettings
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings
from raysys.training.engine import make_engine, set_learning_rate
from raysys.training.footprint import noise_batch
from raysys.training.loop import prefetch
from raysys.training.phases import Phases
from raysys.training.settings import TrainingSettings
from raysys.training.step import TrainingStep

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_EPOCHS = 200  # more than any round of a benchmark takes
_MAX_TOKENS = 50
_STEPS = 1000  # of training, more than any race has
PLAIN = "plain PyTorch"


def small_tokenizer(samples: Samples) -> "PreTrainedTokenizerFast":
    """A tokenizer trained on the captions of `samples`."""
    return train_tokenizer((caption for _, caption in all_captions(samples)), 1000, _MAX_TOKENS)


def tokens_of(tokenizer: "PreTrainedTokenizerFast", captions: list[str]) -> Tensor:
    """Token ids of captions, int64 [n, L], as a rival's training batch holds them."""
    return encode(tokenizer, captions, TextForm(_MAX_TOKENS)).input_ids


def planned_pipeline(
    samples: Samples,
    tokenizer: "PreTrainedTokenizerFast",
    size: int,
    batch_size: int,
    decode: Literal["trainer", "cluster"],
    threads: int = 2,
) -> Contender:
    """The pipeline as a training worker sees it, tokens and masks included; Ray must be running.

    Args:
        samples: the data.
        tokenizer: makes the tokens.
        size: of the pictures, pixels.
        batch_size: samples in a batch.
        decode: where pictures are decoded.
        threads: decoding threads of the worker (decode: trainer).
    """
    image = ImagePreprocessorSettings(size=size)
    plan = Plan(len(samples), batch_size, seed=0)
    there = image if decode == "cluster" else None
    builder = BatchBuilder(samples, tokenizer, TextForm(_MAX_TOKENS), seed=0, decode=there, spares=plan.spares)

    @contextlib.contextmanager
    def opened() -> Iterator[Iterator[Tensor]]:
        dataset = planned_dataset(plan, builder, 0, _EPOCHS * plan.steps_per_epoch, workers=1)
        (shard,) = dataset.streaming_split(1, equal=False)
        batches = prefetch(iterate_batches(shard, BatchFinisher(image, threads, builder)), size=2)
        yield (batch.images for batch in batches if batch.images is not None)

    return opened


def small_system(seed: int = 0, zero_dropout: bool = False) -> Globetrotter:
    """A Globetrotter that two cores can train from pixels."""
    torch.manual_seed(seed)
    text = TextModelSettings(
        hidden_size=256, layers=2, heads=4, intermediate_size=512, vocabulary_size=4000, dropout=0.0 if zero_dropout else 0.1
    )
    return Globetrotter(ModelSettings(image=ImageModelSettings(backbone="resnet-10-narrow"), text=text), ObjectiveSettings()).train()


def random_batches(steps: int, size: int, batch_size: int, vocabulary_size: int = 4000, length: int = 16) -> Iterator[Batch]:
    """Batches of noise in the shapes of real ones."""
    generator = torch.Generator().manual_seed(0)
    for step in range(steps):
        batch = noise_batch(batch_size, vocabulary_size, length, generator, step)
        yield replace(batch, images=torch.randint(0, 256, (batch_size, 3, size, size), dtype=torch.uint8, generator=generator))


def engine_step(engine: Any, settings: TrainingSettings, rank: int = 0, workers: int = 1) -> Step:
    """The step of the training loop, on this worker's shares of global batches.

    Args:
        engine: in training mode, from `make_engine` with `settings`.
        settings: of the training.
        rank: of this worker.
        workers: how many there are.
    """
    plan = Plan(_STEPS * settings.global_batch, settings.global_batch, seed=0, micro_batches=settings.micro_batches)
    # The samples behind the plan are only asked for when a loss is not finite.
    take_step = TrainingStep(engine, settings, plan, cast("Samples", None), rank, workers, Phases(engine.device))

    def step(batch: Batch) -> float:
        set_learning_rate(engine, settings, _STEPS, batch.step)
        return take_step(batch).loss

    return step


def race_steps(rank: int, workers: int, steps: int, size: int, global_batch: int) -> dict[str, StepTimes]:
    """Plain PyTorch, with DistributedDataParallel where there are several workers, and the engine without ZeRO and with ZeRO 1.

    They train equal networks on equal batches, in turns; called by every worker of a group of processes.

    Args:
        rank: of this worker.
        workers: processes of the group.
        steps: of each contender.
        size: of the pictures, pixels.
        global_batch: samples per step of all workers.
    """
    bounds = slice_bounds(global_batch, workers)
    batches = (batch.rows(bounds[rank], bounds[rank + 1]) for batch in random_batches(steps, size, global_batch))
    contenders = {PLAIN: plain_step(repeatable(small_system()), workers=workers)}
    for stage in (0, 1):
        settings = TrainingSettings.model_validate({"zero_stage": stage, "global_batch": global_batch, "workers": workers})
        engine = make_engine(repeatable(small_system()), settings, workers)
        contenders[f"engine, ZeRO {stage}"] = engine_step(engine, settings, rank, workers)
    return time_steps(contenders, batches)


def repeatable(system: Globetrotter) -> Globetrotter:
    """`system` with the same random numbers in its forward pass on a batch, whoever trains it."""
    system.register_forward_pre_hook(lambda module, inputs: torch.manual_seed(inputs[0].step) and None)
    return system
