"""Measure this project beside what one would use instead, on this machine.

python jobs/benchmark.py ingest            # tar → training batch, beside webdataset + DataLoader
python jobs/benchmark.py step              # a training step on the engine, beside a plain PyTorch loop
"""

import functools
import sys
import tempfile

import tyro

from raysys.errors import run_program


def ingest(
    data: str | None = None, size: int = 224, batch_size: int = 64, rounds: int = 5, samples: int = 3000, warm_up: int = 2000, cpus: int = 4
) -> None:
    """Samples per second from tar to training batch at steady state, and CPU seconds per 1 000 samples.

    Args:
        data: Local folder of shards; made here if not given (2 000 JPEGs of 256–400 px).
        size: Side of the pictures in pixels.
        batch_size: Samples in a batch.
        rounds: How often each contender is measured; they take turns.
        samples: Samples timed in each round.
        warm_up: Samples before the clock starts.
        cpus: Logical CPUs of the local Ray.
    """
    import ray

    from raysys.benchmarks.ingest import PillowPreprocess, decoding_alone, shards_of, webdataset_loader
    from raysys.benchmarks.measure import take_turns, throughput_table
    from raysys.benchmarks.ours import planned_pipeline, small_tokenizer, tokens_of
    from raysys.benchmarks.photos import write_photos
    from raysys.data.images import ImagePreprocessor, ImagePreprocessorSettings
    from raysys.data.samples import Samples
    from raysys.storage import Storage
    from raysys.training.settings import RaySettings, TrainingSettings
    from raysys.training.trainer import start_ray

    with tempfile.TemporaryDirectory(prefix="raysys-benchmark-") as scratch:
        folder = data or write_photos(scratch)
        shards = shards_of(folder)
        start_ray(RaySettings(cpus=cpus), TrainingSettings(workers=1))
        found = Samples.load([folder], (), Storage(), log=lambda line: None)
        tokenizer = small_tokenizer(found)
        encode = functools.partial(tokens_of, tokenizer)
        ours = ImagePreprocessor(ImagePreprocessorSettings(size=size))
        contenders = {
            "webdataset, DataLoader(2), Pillow": webdataset_loader(shards, PillowPreprocess(size), batch_size, encode),
            "webdataset, DataLoader(2), our decoder": webdataset_loader(shards, ours, batch_size, encode),
            "raysys, decode: trainer": planned_pipeline(found, tokenizer, size, batch_size, "trainer"),
            "raysys, decode: cluster": planned_pipeline(found, tokenizer, size, batch_size, "cluster"),
            "decoding alone, one process, Pillow": decoding_alone(shards, PillowPreprocess(size), batch_size),
            "decoding alone, one process, ours": decoding_alone(shards, ours, batch_size),
        }
        results = take_turns(contenders, rounds, warm_up, samples)
        ray.shutdown()
    print(throughput_table(results, "webdataset, DataLoader(2), Pillow"))


def step(steps: int = 40, size: int = 64, batch_size: int = 64, threads: int = 1) -> None:
    """Seconds per training step on the DeepSpeed engine (ZeRO 0 and 1, one worker), beside a plain PyTorch loop.

    Args:
        steps: Steps each contender makes; they take turns.
        size: Side of the pictures in pixels.
        batch_size: Samples in a batch.
        threads: Threads of torch.
    """
    import torch

    from raysys.benchmarks.ours import alone, engine_step, random_batches, small_system
    from raysys.benchmarks.step import greatest_difference, plain_step, step_table, time_steps

    torch.set_num_threads(threads)
    with alone():
        contenders = {
            "plain PyTorch": plain_step(small_system()),
            "engine, ZeRO 0": engine_step(small_system(), 0, batch_size),
            "engine, ZeRO 1": engine_step(small_system(), 1, batch_size),
        }
        results = time_steps(contenders, random_batches(steps, size, batch_size))
    print(step_table(results, "plain PyTorch"))
    print(f"greatest relative difference of a loss from the plain loop's: {greatest_difference(results, 'plain PyTorch'):.1e}")


def main() -> None:
    tyro.extras.subcommand_cli_from_dict(
        {"ingest": ingest, "step": step},
        prog="benchmark.py",
        description="Measure this project beside what one would use instead.",
        args=sys.argv[1:],
    )


if __name__ == "__main__":
    run_program(main)
