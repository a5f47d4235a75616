"""This project's own contenders: the planned pipeline, and the training step on the DeepSpeed engine."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed
from torch import Tensor

from raysys.benchmarks.measure import Contender
from raysys.benchmarks.step import TrainingStep
from raysys.data.batches import Batch, BatchFinisher
from raysys.data.builder import BatchBuilder
from raysys.data.encoding import TextForm
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.pipeline import iterate_batches, planned_dataset
from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.data.tokenizer import encode, train_tokenizer
from raysys.models.images import ImageModelSettings
from raysys.models.text import TextModelSettings
from raysys.runs.build import training_captions
from raysys.systems.globetrotter import Globetrotter, ModelSettings, ObjectiveSettings
from raysys.training.engine import make_engine
from raysys.training.loop import prefetch
from raysys.training.settings import TrainingSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_EPOCHS = 200  # more than any round of a benchmark takes
_MAX_TOKENS = 50


def small_tokenizer(samples: Samples) -> "PreTrainedTokenizerFast":
    """A tokenizer trained on the captions of `samples`."""
    return train_tokenizer(training_captions(samples), 1000, _MAX_TOKENS)


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
        input_ids = torch.randint(5, vocabulary_size, (batch_size, length), generator=generator)
        hidden = torch.rand(batch_size, length, generator=generator) < 1 / 6
        yield Batch(
            step=step,
            count=batch_size,
            ids=torch.arange(batch_size),
            image_ids=torch.arange(1, batch_size + 1),
            languages=torch.zeros(batch_size, dtype=torch.int64),
            input_ids=input_ids,
            attention_mask=torch.ones_like(input_ids),
            masked_ids=torch.where(hidden, 4, input_ids),
            labels=torch.where(hidden, input_ids, -100),
            replaced=[],
            cut_captions=0,
            images=torch.randint(0, 256, (batch_size, 3, size, size), dtype=torch.uint8, generator=generator),
        )


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A process group of this process alone, which DeepSpeed wants."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("LOCAL_RANK", "0")
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()


def engine_step(system: Globetrotter, zero_stage: Literal[0, 1, 2, 3], batch_size: int) -> TrainingStep:
    """The step of the training loop on a DeepSpeed engine of one worker."""
    settings = TrainingSettings(zero_stage=zero_stage, global_batch=batch_size, workers=1)
    engine: Any = make_engine(system, settings, workers=1, total_steps=1000)

    def step(batch: Batch) -> float:
        loss = engine.module.total(engine.module.losses(engine(batch)))
        engine.backward(loss)
        engine.step()
        return loss.item()

    return step
