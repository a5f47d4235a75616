"""Training on one GPU: samples per second, the share of what the device can do, and the largest batch that is compared as a whole."""

import contextlib
import dataclasses
import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from raysys.benchmarks.ours import engine_step, random_batches
from raysys.data.batches import Batch
from raysys.models.images import ImageModelSettings
from raysys.models.text import TextModelSettings
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ModelSettings, ObjectiveSettings
from raysys.training.engine import make_engine
from raysys.training.settings import TrainingSettings

PEAKS = {"B200": 2250, "H200": 989, "H100 PCIe": 756, "H100": 989, "A100": 312, "L40S": 362, "L4": 121, "A10": 125, "RTX 4090": 165}
"""Part of a device's name → dense bfloat16 tensor operations, 10¹² per second, from the makers' data sheets; the first that fits counts."""
_TOKENS = 32


@dataclass(frozen=True)
class Pair:
    """An image network beside a text network, and on what they are measured."""

    text: dict[str, int]
    """Of :class:`TextModelSettings`."""
    image_size: int
    """Pixels."""
    batch: int
    """Samples of one forward pass."""
    vit: dict[str, int] | None = None
    """Of ViTConfig; None: a ResNet."""
    resnet: str = "resnet-18"

    def build(self, folder: Path) -> Globetrotter:
        """The system with random weights; a ViT's configuration is written to `folder`."""
        torch.manual_seed(0)
        backbone = self.resnet
        if self.vit:
            from transformers import ViTConfig

            ViTConfig.from_dict({**self.vit, "image_size": self.image_size}).save_pretrained(folder)
            backbone = str(folder)
        text = TextModelSettings.model_validate({"max_tokens": _TOKENS} | self.text)
        return Globetrotter(
            ModelSettings(image=ImageModelSettings(backbone=backbone, pretrained=False), text=text), ObjectiveSettings()
        ).train()


SIZES = {
    "full": {
        "ResNet-18 + text transformer": Pair({}, 224, 512),
        "ViT-B/16 + XLM-R base": Pair(
            {"hidden_size": 768, "layers": 12, "heads": 12, "intermediate_size": 3072, "vocabulary_size": 250_002},
            224,
            256,
            vit={"patch_size": 16},
        ),
    },
    "tiny": {
        "ResNet + text transformer": Pair({"hidden_size": 32, "layers": 1, "vocabulary_size": 100}, 32, 8, resnet="resnet-10-narrow"),
        "ViT + text transformer": Pair(
            {"hidden_size": 32, "layers": 1, "vocabulary_size": 100},
            32,
            8,
            vit={"patch_size": 16, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64},
        ),
    },
}
WAYS = (("sdpa", False), ("sdpa", True), ("eager", False), ("eager", True))
"""Attention, and whether the networks are compiled."""


@dataclass(frozen=True)
class Speed:
    """Steps of one way to train a pair."""

    pair: str
    attention: str
    compiled: bool
    batch: int
    seconds: float
    """Per step, median."""
    flops: float
    """Of a step: matrix products, convolutions and attention, forward and backward."""
    memory: int
    """Peak bytes on the device; 0 on a CPU."""


@dataclass(frozen=True)
class Largest:
    """The largest global batch with cached gradients."""

    pair: str
    micro_batch: int
    batch: int
    limit: str
    """What ended the search."""


@contextlib.contextmanager
def lone_process() -> Iterator[torch.device]:
    """A process group of this process alone, on the GPU if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
        os.environ.setdefault("LOCAL_RANK", "0")
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, init_method=f"file://{folder}/store", rank=0, world_size=1)
        try:
            yield device
        finally:
            dist.destroy_process_group()


def peak(device: torch.device) -> tuple[float, str]:
    """Operations per second in bfloat16, and where the figure is from: the table, or a large matrix product measured here."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    for part, tera in PEAKS.items():
        if part in name:
            return tera * 1e12, f"{name}: {tera} TFLOP/s by its data sheet"
    size = 8192 if device.type == "cuda" else 256
    matrix = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    seconds = min(_seconds(lambda: matrix @ matrix, device) for _ in range(10))
    return 2 * size**3 / seconds, f"{name}: {2 * size**3 / seconds / 1e12:.3g} TFLOP/s in a matrix product measured here"


def _seconds(work: Callable[[], Any], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


def flops_of_step(system: Globetrotter, batch: Batch) -> float:
    """Operations of forward, losses and backward on `batch`, by torch's counter; with eager attention, of which it sees every product."""
    _attend(system, "eager")
    with FlopCounterMode(display=False) as counter:
        system.total(system.losses(system(batch))).backward()
    system.zero_grad(set_to_none=True)
    return float(counter.get_total_flops())


def _attend(system: Globetrotter, attention: str) -> None:
    for network in system.modules():
        if isinstance(network, PreTrainedModel) and network._supports_sdpa:
            network.set_attn_implementation(attention)


def speed(pair: Pair, name: str, attention: str, compiled: bool, flops: float, device: torch.device, folder: Path, steps: int) -> Speed:
    """Time steps of the training loop in bfloat16, one micro-batch each."""
    with _engine(pair, pair.batch, attention, compiled, folder) as (engine, settings):
        step, batch = engine_step(engine, settings), _batch(pair, pair.batch, device)
        for number in range(3):
            step(dataclasses.replace(batch, step=number))
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        times = [_seconds(functools.partial(step, dataclasses.replace(batch, step=3 + number)), device) for number in range(steps)]
        memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
        return Speed(name, attention, compiled, pair.batch, statistics.median(times), flops, memory)


def largest(pair: Pair, name: str, device: torch.device, folder: Path, most: int, seconds: float) -> Largest:
    """Double the global batch until it does not fit into the device's memory, `seconds` are over, or it would be more than `most`."""
    found, began = 0, time.perf_counter()
    with _engine(pair, pair.batch, "sdpa", False, folder) as (engine, settings):
        while True:
            batch = max(pair.batch, 2 * found)
            if batch > most or time.perf_counter() - began > seconds:
                return Largest(name, pair.batch, found, "the search, not the memory")
            try:
                wanted = settings.model_copy(update={"global_batch": batch, "micro_batch": pair.batch})
                engine_step(engine, wanted)(_batch(pair, batch, device))
            except torch.OutOfMemoryError:
                return Largest(name, pair.batch, found, "memory")
            found = batch


@contextlib.contextmanager
def _engine(pair: Pair, batch: int, attention: str, compiled: bool, folder: Path) -> Iterator[tuple[Any, TrainingSettings]]:
    settings = TrainingSettings(precision="bf16", zero_stage=1, global_batch=batch, workers=1)
    system = pair.build(folder)
    _attend(system, attention)
    if compiled:
        system.text.bert.compile()
        system.image.network.compile()
    engine = make_engine(system, settings, workers=1)
    engine.train()
    try:
        yield engine, settings
    finally:
        engine.destroy()
        del engine, system
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _batch(pair: Pair, samples: int, device: torch.device) -> Batch:
    """`samples` rows of noise on the device, made there of a few, for a host takes long to draw so many."""
    vocabulary = TextModelSettings.model_validate(pair.text).vocabulary_size
    few = next(random_batches(1, pair.image_size, min(samples, pair.batch), vocabulary, _TOKENS)).to(device)
    rows = {name: value.repeat(-(-samples // len(few.ids)), *[1] * (value.dim() - 1))[:samples] for name, value in few.tensors().items()}
    numbers = torch.arange(samples, device=device)
    return dataclasses.replace(few, **(rows | {"ids": numbers, "image_ids": numbers + 1}), count=samples)  # type: ignore[arg-type]


def measure_gpu(size: str, minutes: float, steps: int, compiled: bool = True) -> str:
    """All measurements, most telling first, until `minutes` are over; a Markdown table.

    Args:
        size: a key of :data:`SIZES`.
        minutes: after so many no further measurement begins.
        steps: timed in each.
        compiled: also with compiled networks; compiling for a CPU takes minutes.
    """
    ends = time.perf_counter() + 60 * minutes
    pairs, results, left_out = SIZES[size], [], 0
    with lone_process() as device, tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        best, source = peak(device)
        flops = {name: _flops_per_sample(pair, device, folder) * pair.batch for name, pair in pairs.items()}
        work: list[Callable[[], Speed | Largest]] = []
        for attention, compiles in WAYS if compiled else [way for way in WAYS if not way[1]]:
            for name, pair in pairs.items():
                work.append(functools.partial(speed, pair, name, attention, compiles, flops[name], device, folder, steps))
        for name, pair in pairs.items():
            most = 2**20 if device.type == "cuda" else 4 * pair.batch
            work.insert(len(pairs), functools.partial(largest, pair, name, device, folder, most, 60 * minutes / 8))
        for one in work:
            if time.perf_counter() > ends:
                left_out += 1
            else:
                results.append(one())
    speeds = [one for one in results if isinstance(one, Speed)]
    return report(source, best, speeds, [one for one in results if isinstance(one, Largest)], left_out)


def _flops_per_sample(pair: Pair, device: torch.device, folder: Path) -> float:
    few = min(8, pair.batch)
    return flops_of_step(pair.build(folder).to(device), _batch(pair, few, device)) / few


def report(source: str, best: float, speeds: list[Speed], batches: list[Largest], left_out: int) -> str:
    """Markdown of what was measured."""
    lines = [f"Device: {source}. Precision bf16, torch {torch.__version__}.", ""]
    lines += ["| pair | attention | compiled | batch | samples/s | TFLOP/s | of the peak | GiB |", "|---|---|---|---|---|---|---|---|"]
    for one in speeds:
        rate = one.flops / one.seconds
        lines.append(
            f"| {one.pair} | {one.attention} | {'yes' if one.compiled else 'no'} | {one.batch} | {one.batch / one.seconds:.0f} "
            f"| {rate / 1e12:.3g} | {rate / best:.1%} | {one.memory / 2**30:.1f} |"
        )
    lines += ["", "| pair | micro-batch | largest exact batch | ended by |", "|---|---|---|---|"]
    lines += [f"| {one.pair} | {one.micro_batch} | {one.batch} | {one.limit} |" for one in batches]
    if left_out:
        lines += ["", f"{left_out} measurements were left out, for the time was over."]
    if source.startswith("CPU"):
        lines += ["", "There is no GPU here. These figures show that the script runs; as measurements they mean nothing."]
    return "\n".join(lines)
