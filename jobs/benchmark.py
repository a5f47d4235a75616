"""Measure this project beside what one would use instead, on this machine.

python jobs/benchmark.py ingest            # tar → training batch, beside webdataset + DataLoader; --s3 s3://…: from object storage too
python jobs/benchmark.py index             # indexing, beside reading every byte once
python jobs/benchmark.py memory            # peak memory on data sets of growing size
python jobs/benchmark.py step              # a training step on the engine, beside plain PyTorch, on 1 and 2 workers
python jobs/benchmark.py checkpoints       # what checkpoints cost beside training, to disk or s3://
python jobs/benchmark.py gpu               # training on a GPU: samples per second, share of its peak, largest batch
python jobs/benchmark.py scaling           # bytes sent and memory taken by 1, 2 and 4 workers, beside the formulas of docs/scaling.md
python jobs/benchmark.py accumulation      # memory by global batch, in micro-batches of one size and undivided
python jobs/benchmark.py translation       # scoring sentence translation between many languages: seconds and peak memory
python jobs/benchmark.py rc3-memory        # memory of each worker that pre-trains RC³, beside what ZeRO predicts; the cost of its negatives
python jobs/benchmark.py skip-thought      # training SkipThought, beside plain PyTorch with nn.GRU and length bucketing
"""

import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import tyro

from raysys.errors import UserError, run_program


def ingest(
    data: str | None = None,
    s3: str | None = None,
    only: tuple[str, ...] = (),
    size: int = 224,
    batch_size: int = 64,
    rounds: int = 3,
    samples: int = 6000,
    warm_up: int = 12_000,
    cpus: int = 4,
) -> None:
    """Samples per second from tar to training batch at steady state, and CPU seconds per 1 000 samples.

    Args:
        data: Local folder of shards; made here if not given (2 000 JPEGs of 256–400 px).
        s3: s3:// folder into which the shards are copied, to read them from there too (endpoint and credentials from AWS_… variables).
        only: Measure only the contenders whose names hold one of these words, beside webdataset with Pillow.
        size: Side of the pictures in pixels.
        batch_size: Samples in a batch.
        rounds: How often each contender is measured; they take turns.
        samples: Samples timed in each round.
        warm_up: Samples before the clock starts: enough for Ray's processes to have started.
        cpus: Logical CPUs of the local Ray.
    """
    import torch

    from raysys.benchmarks.ingest import PillowPreprocess, decoding_alone, shards_of, signed_shards, webdataset_loader
    from raysys.benchmarks.measure import take_turns, throughput_table
    from raysys.benchmarks.ours import planned_pipeline, small_tokenizer, tokens_of
    from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
    from raysys.data.samples import Samples
    from raysys.storage import Storage, join

    with _photos(data, cpus) as folder:
        shards = shards_of(folder)
        torch.set_num_threads(1)  # as in a training worker with one CPU, and in the rival's processes
        found = Samples.load([folder], (), Storage(), log=lambda line: None)
        tokenizer = small_tokenizer(found)
        encode = functools.partial(tokens_of, tokenizer)
        pillow, ours = PillowPreprocess(size), ImagePreprocessor(ImagePreprocessorSettings(size=size))
        contenders = {
            "webdataset, DataLoader(2), Pillow": webdataset_loader(shards, pillow, batch_size, encode),
            "webdataset, DataLoader(2), our decoder": webdataset_loader(shards, ours, batch_size, encode),
            "raysys, decode: trainer": planned_pipeline(found, tokenizer, size, batch_size, "trainer"),
            "raysys, decode: cluster": planned_pipeline(found, tokenizer, size, batch_size, "cluster"),
            "decoding alone, one process, Pillow": decoding_alone(shards, pillow, batch_size),
            "decoding alone, one process, ours": decoding_alone(shards, ours, batch_size),
        }
        if s3:
            for shard in shards:
                Storage().upload(shard, join(s3, os.path.basename(shard)))
            remote = Samples.load([s3], (), Storage(), log=lambda line: None)
            contenders["webdataset from S3, Pillow"] = webdataset_loader(signed_shards(s3), pillow, batch_size, encode)
            contenders["webdataset from S3, our decoder"] = webdataset_loader(signed_shards(s3), ours, batch_size, encode)
            contenders["raysys from S3"] = planned_pipeline(remote, tokenizer, size, batch_size, "trainer")
        reference = next(iter(contenders))
        chosen = {name: way for name, way in contenders.items() if name == reference or not only or any(word in name for word in only)}
        print(throughput_table(take_turns(chosen, rounds, warm_up, samples), reference))


def index(data: str | None = None, rounds: int = 3, processes: int = 2, cpus: int = 4) -> None:
    """Bytes per second of indexing shards, beside reading their bytes once.

    Args:
        data: Folder of shards, local or s3://; made here if not given (2 000 JPEGs of 256–400 px).
        rounds: How often each way is measured; they take turns.
        processes: For indexing in processes, and threads for reading.
        cpus: Logical CPUs of the local Ray.
    """
    from raysys.benchmarks.indexing import compare, indexing_table
    from raysys.shards.manifest import Manifest
    from raysys.storage import Storage

    with _photos(data, cpus) as folder:
        manifest = Manifest.build(Storage(), folder)
        print(indexing_table(compare(Storage(), folder, rounds, processes), len(manifest), sum(manifest.shards.values())))


def memory(sizes: tuple[int, ...] = (1, 4, 16), epochs: int = 2, size: int = 224, batch_size: int = 64, cpus: int = 4) -> None:
    """Peak memory of the pipeline in each epoch over data sets of growing size.

    Args:
        sizes: How many times 2 000 JPEGs of 256–400 px.
        epochs: Over each data set.
        size: Side of the pictures in pixels.
        batch_size: Samples in a batch.
        cpus: Logical CPUs of the local Ray.
    """
    from raysys.benchmarks.memory import enlarge, memory_table, memory_use
    from raysys.benchmarks.ours import small_tokenizer
    from raysys.data.samples import Samples
    from raysys.storage import Storage

    with _photos(None, cpus) as folder:
        tokenizer = small_tokenizer(Samples.load([folder], (), Storage(), log=lambda line: None))
        folders = [(times, enlarge(folder, Path(folder).parent / f"{times}x", times)) for times in sizes]
        print(memory_table(memory_use(folders, tokenizer, size, batch_size, epochs)))


@contextlib.contextmanager
def _photos(data: str | None, cpus: int) -> Iterator[str]:
    """A folder of shards: that of the person or one that is made now; Ray runs meanwhile."""
    import ray

    from raysys.benchmarks.photos import write_photos
    from raysys.training.settings import RaySettings, TrainingSettings
    from raysys.training.trainer import start_ray

    with tempfile.TemporaryDirectory(prefix="raysys-benchmark-") as scratch:
        folder = data or write_photos(scratch)
        start_ray(RaySettings(cpus=cpus), TrainingSettings(workers=1))
        yield folder
        ray.shutdown()


def step(workers: tuple[int, ...] = (1, 2), steps: int = 40, size: int = 64, batch_size: int = 64) -> None:
    """Seconds per training step on the DeepSpeed engine (ZeRO 0, 1), beside plain PyTorch (DistributedDataParallel on several workers).

    Args:
        workers: Numbers of workers, processes with one thread each.
        steps: Steps each contender makes; they take turns.
        size: Side of the pictures in pixels.
        batch_size: Samples of each worker.
    """
    from raysys.benchmarks.ours import PLAIN, race_steps
    from raysys.benchmarks.processes import run_processes
    from raysys.benchmarks.step import greatest_difference, step_table

    for count in workers:
        results = run_processes(race_steps, count, count, steps, size, count * batch_size)[0]
        print(f"workers: {count}\n{step_table(results, PLAIN)}")
        print(f"greatest relative difference of a loss from the plain loop's: {greatest_difference(results, PLAIN):.1e}")


def checkpoints(
    to: str | None = None, workers: int = 2, rounds: int = 5, size: int = 64, batch_size: int = 64, zero_stage: Literal[0, 1, 2, 3] = 1
) -> None:
    """Seconds that a checkpoint takes from training, and the share of it at one checkpoint a minute.

    Args:
        to: Folder to write to, local or s3://; a temporary one if not given.
        workers: Processes with one thread each.
        rounds: Checkpoints; the first one is not counted.
        size: Side of the pictures in pixels.
        batch_size: Samples of each worker.
        zero_stage: DeepSpeed ZeRO.
    """
    import statistics

    from raysys.benchmarks.checkpointing import cost_of_checkpoints
    from raysys.benchmarks.processes import run_processes

    with tempfile.TemporaryDirectory(prefix="raysys-benchmark-") as scratch:
        arguments = (workers, to or scratch, rounds + 1, size, batch_size, zero_stage)
        costs = run_processes(cost_of_checkpoints, workers, *arguments)[0][1:]
    print(f"checkpoint of {costs[0].size / 1e6:.0f} MB by {workers} workers; a step takes {costs[0].step:.3f} s")
    for name in ("blocked", "slowed", "written"):
        values = [getattr(cost, name) for cost in costs]
        print(f"{name:8} {statistics.median(values):7.3f} s ({min(values):.3f} to {max(values):.3f})")
    print(f"at one checkpoint a minute: {100 * statistics.median(cost.of_a_minute for cost in costs):.1f} % of training time")


def gpu(size: Literal["full", "tiny"] = "full", minutes: float = 7.0, steps: int = 20, compiled: bool = True) -> None:
    """Training in bfloat16 on one GPU: samples per second, share of its peak, largest exact batch, with and without compilation.

    Args:
        size: full: a ResNet-18 and a ViT-B/16, each beside a text transformer; tiny: to see on a CPU that it runs.
        minutes: After so many no further measurement begins.
        steps: Steps that are timed in each.
        compiled: Also with torch.compile; for a CPU it takes minutes.
    """
    import torch

    from raysys.benchmarks.gpu import measure_gpu

    if size == "full" and not torch.cuda.is_available():
        raise UserError("there is no GPU here; --size tiny runs the same on a CPU, to see that it works")
    print(measure_gpu(size, minutes, steps, compiled))


def scaling(workers: tuple[int, ...] = (1, 2, 4), global_batch: int = 32, micro_batch: int = 4) -> None:
    """What a training step sends and takes in each ZeRO stage, predicted and counted.

    Args:
        workers: Numbers of workers, processes with one thread each.
        global_batch: Samples per step of all workers.
        micro_batch: Samples of a forward pass where gradients are cached.
    """
    from raysys.benchmarks.scaling import compare, scaling_table, usual_cases

    print(scaling_table([one for count in workers for one in compare(usual_cases(global_batch, micro_batch), count)]))


def accumulation(global_batches: tuple[int, ...] = (64, 128, 256, 512, 1024), micro_batch: int = 16) -> None:
    """Peak memory of a training step by global batch.

    Args:
        global_batches: Samples per step, of one worker.
        micro_batch: Samples of a forward pass where gradients are cached.
    """
    from raysys.benchmarks.scaling import peaks, peaks_table

    print(peaks_table(global_batches, micro_batch, peaks(global_batches, micro_batch)))


def translation(captions: tuple[int, ...] = (200, 5000), languages: int = 52, dimensions: int = 128, threads: int = 2) -> None:
    """Seconds and peak memory of scoring sentence translation; the larger of the two usual sizes takes minutes.

    Args:
        captions: Numbers of captions in each language; each is measured in a process of its own.
        languages: Number of languages.
        dimensions: Of a sentence's vector.
        threads: Cores that matrix products may use.
    """
    from raysys.benchmarks.translation import measure_translation, translation_table

    print(translation_table([measure_translation(count, languages, dimensions, threads) for count in captions]))


def skip_thought(
    text: str | None = None,
    size: int = 512,
    word_size: int = 300,
    vocabulary: int = 20_000,
    max_words: int = 30,
    batch_size: int = 64,
    steps: int = 12,
    threads: int = 1,
) -> None:
    """Sentences per second in training, from equal weights on equal batches with the same optimizer, beside plain PyTorch.

    Args:
        text: Text file with a sentence a line, in order; if not given, sentences with lengths and word frequencies as in novels are made.
        size: Of a sentence's vector and of the decoders' states.
        word_size: Of the word vectors.
        vocabulary: Words, special tokens included.
        max_words: Of a sentence.
        batch_size: Sentences of a step.
        steps: Each contender makes; they take turns.
        threads: Of torch, in this one process.
    """
    import torch

    from raysys.benchmarks.skip_thought import made_up_sentences, race, sentences_of, skip_thought_table
    from raysys.models.skip_thought import SkipThoughtSettings

    torch.set_num_threads(threads)
    settings = SkipThoughtSettings(size=size, word_size=word_size, vocabulary_size=vocabulary, max_words=max_words)
    sentences = sentences_of(text, vocabulary, max_words) if text else made_up_sentences(20_000, vocabulary, max_words)
    print(skip_thought_table(race(settings, sentences, batch_size, steps), batch_size))


def rc3_memory(
    workers: tuple[int, ...] = (1, 2, 4),
    global_batch: int = 24,
    micro_batch: int = 3,
    near_batches: tuple[int, ...] = (12, 24, 48),
    threads: int = 1,
) -> None:
    """Peak memory of each worker that pre-trains RC³ in bf16 with ZeRO 3, recomputed activations and cached gradients, beside what ZeRO
    predicts; and memory and time of its negatives, of 1 and 2 near rows and of all.

    Args:
        workers: Numbers of workers, processes with one thread each.
        global_batch: Samples per step of all workers.
        micro_batch: Samples of a forward pass; a multiple of 3, so that all have rows of each kind.
        near_batches: Global batches at which the negatives are measured.
        threads: Of torch, in this process.
    """
    import torch

    from raysys.benchmarks.rc3_memory import STREAMS, Case, compare, compare_near, near_table, shares_table

    if micro_batch % STREAMS:
        raise UserError(f"--micro-batch {micro_batch} is no multiple of {STREAMS}")
    torch.set_num_threads(threads)
    case = Case(global_batch=global_batch, micro_batch=micro_batch)
    print(shares_table(compare(case, workers)), end="\n\n", flush=True)
    print(near_table(compare_near(case, (1, 2, None), near_batches)))


def main() -> None:
    tyro.extras.subcommand_cli_from_dict(
        {
            one.__name__.replace("_", "-"): one
            for one in (ingest, index, memory, step, checkpoints, gpu, scaling, accumulation, translation, rc3_memory, skip_thought)
        },
        prog="benchmark.py",
        description="Measure this project beside what one would use instead.",
        args=sys.argv[1:],
    )


if __name__ == "__main__":
    run_program(main)
