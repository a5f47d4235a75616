"""The actors that make shards with region features: each reads, computes and writes by itself, so that nothing large goes between them."""

import json
import logging
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import ray
import ray.data
import torch
from webdataset import TarWriter

from raysys.data.bad import BadDataError, BadSample
from raysys.data.regions import MEMBER
from raysys.errors import RunFailed, UserError
from raysys.models.region_features import RegionExtractor, RegionSettings
from raysys.shards.listing import PART_RECORD
from raysys.shards.manifest import Manifest
from raysys.shards.reader import RawSample, try_read_samples
from raysys.shards.sample import SampleError, decode_json
from raysys.storage import Storage, join
from raysys.training.resources import check_address

ADVICE = "to go on without such samples set --on-bad-sample skip, or write a clean copy with jobs/shards.py repair"


@dataclass
class Record:
    """What became of one shard's samples."""

    made_of: str
    """Stands for all that the shard's contents depend on."""
    size: int = 0
    """Bytes of the new shard; 0 where nothing was written and there is none."""
    read: int = 0
    written: int = 0
    left_out: list[BadSample] = field(default_factory=list)

    @classmethod
    def load(cls, storage: Storage, uri: str) -> "Record | None":
        """The record at `uri`; None where it is none of these."""
        try:
            values = json.loads(storage.read(uri))
            return cls(**values | {"left_out": [BadSample(*one) for one in values["left_out"]]})
        except (ValueError, TypeError, KeyError):
            return None

    def save(self, storage: Storage, uri: str) -> None:
        """Write it for :meth:`load`."""
        storage.write(uri, json.dumps(vars(self), ensure_ascii=False).encode())


@dataclass(frozen=True)
class Shard:
    """One shard to be made; picklable."""

    source: Manifest
    """Of this shard alone."""
    target: str
    """Folder of the copy."""
    made_of: str

    @property
    def uri(self) -> str:
        """Of the new shard."""
        return join(self.target, next(iter(self.source.shards)))

    @property
    def record_uri(self) -> str:
        """Of the new shard's record."""
        return self.uri.removesuffix(".tar") + PART_RECORD


class ShardExtractor:
    """Makes shards, with one detector and backbone for all of them.

    Args:
        regions: which regions, which vectors.
        tolerant: whether samples that cannot be used are left out; if not, the first one is an error.
        storage: the door to both data sets.
    """

    def __init__(self, regions: RegionSettings, tolerant: bool, storage: Storage):
        self.extract = RegionExtractor(regions)
        self.tolerant = tolerant
        self.storage = storage

    def __call__(self, shard: Shard) -> Record:
        """Write the shard, then its record.

        Raises:
            BadDataError: a sample cannot be used, and may not be left out.
        """
        record = Record(shard.made_of)
        self.storage.delete(shard.record_uri)  # first: it must never describe another shard than that beside it
        with tempfile.TemporaryDirectory(prefix="raysys-regions-") as folder:
            path = Path(folder, "shard.tar")
            with path.open("wb") as file, TarWriter(file, user="", group="", mtime=0, encoder=False) as writer:
                for start in range(0, len(shard.source), self.extract.settings.batch_size):
                    rows = np.arange(start, min(start + self.extract.settings.batch_size, len(shard.source)))
                    for item in self.samples(shard.source, rows):
                        record.read += 1
                        if isinstance(item, RawSample):
                            writer.write({"__key__": item.key, **item.members})
                            record.written += 1
                            continue
                        if not self.tolerant:
                            raise BadDataError(f"{item}; {ADVICE}")
                        record.left_out.append(item)
            if record.written:
                record.size = path.stat().st_size
                self.storage.upload(path, shard.uri)
            else:
                self.storage.delete(shard.uri)
        record.save(self.storage, shard.record_uri)
        return record

    def samples(self, source: Manifest, rows: np.ndarray) -> list[RawSample | BadSample]:
        """Samples `rows` of a shard with their regions, or why they have none."""
        keys, causes, faults = (source.table[name].take(rows).to_pylist() for name in ("key", "cause", "fault"))
        where = join(source.folder, next(iter(source.shards)))
        stored = try_read_samples(self.storage, source, rows)
        errors: dict[int, SampleError] = {}
        pictures: dict[int, tuple[bytes, dict[str, Any]]] = {}
        for number, sample in enumerate(stored):
            if faults[number]:
                errors[number] = SampleError("", faults[number], "", causes[number])
            elif isinstance(sample, SampleError):
                errors[number] = sample
            else:
                try:
                    pictures[number] = _picture(sample, source), decode_json(sample.members.get("json", b"{}"), "")
                except SampleError as error:
                    errors[number] = error
        regions_of = self.extract([content for content, _ in pictures.values()], [fields for _, fields in pictures.values()])
        found = dict(zip(pictures, regions_of, strict=True)) | errors
        results: list[RawSample | BadSample] = []
        for number, sample in enumerate(stored):
            regions = found[number]
            if isinstance(regions, SampleError):
                results.append(BadSample(where, keys[number], regions.member, regions.cause, regions.reason))
            else:
                assert isinstance(sample, RawSample)
                sample.members[MEMBER] = regions
                results.append(sample)
        return results


def _picture(sample: RawSample, source: Manifest) -> bytes:
    extension = source.layout.image_extension(list(sample.members))
    if extension is None:
        raise SampleError("", f"no image among its members ({', '.join(sample.members)})", cause="layout")
    return sample.members[extension]


class _Actor:
    """On the cluster; errors that are meant for people come back as they are."""

    def __init__(self, regions: RegionSettings, tolerant: bool, storage: Storage, threads: int):
        torch.set_num_threads(threads)
        self.work = ShardExtractor(regions, tolerant, storage)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            result: Record | Exception = self.work(pickle.loads(row["shard"]))
        except (RunFailed, UserError) as error:
            result = error
        return {"number": row["number"], "result": pickle.dumps(result)}


def run_on_actors(
    shards: Sequence[Shard], regions: RegionSettings, tolerant: bool, storage: Storage, workers: int, cpus: int, gpu: bool
) -> Iterator[tuple[int, Record]]:
    """Yield (number of the shard, what became of it) as shards are finished.

    Args:
        workers: actors.
        cpus: CPUs of each.
        gpu: whether each has a GPU.
        shards, regions, tolerant, storage: of :class:`ShardExtractor`.

    Raises:
        BadDataError: a sample cannot be used, and may not be left out.
        RunFailed: an actor could not begin, or ended.
    """
    rows = [{"number": number, "shard": pickle.dumps(shard)} for number, shard in enumerate(shards)]
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
        cast("Any", _Actor),
        fn_constructor_args=(regions, tolerant, storage, cpus),
        compute=ray.data.ActorPoolStrategy(size=min(workers, len(rows))),
        num_cpus=cpus,
        num_gpus=1 if gpu else 0,
    )
    try:
        for row in dataset.iter_rows():
            result = pickle.loads(row["result"])
            if isinstance(result, Exception):
                raise result
            yield row["number"], result
    except ray.exceptions.RayError as error:
        raise RunFailed(f"an actor could not do its work: {' '.join(str(error).split())[-600:]}") from None


def connect_ray() -> None:
    """Connect to the cluster given by RAY_ADDRESS, or start a Ray of our own with a worker per CPU, if none runs yet."""
    if not ray.is_initialized():
        if address := os.environ.get("RAY_ADDRESS"):
            check_address(address)
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        else:
            # This Ray is ours alone, on the loopback interface, and ends with the job.
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")
            ray.init("local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def actors_that_fit(workers: int | None, cpus: int, gpu: bool) -> int:
    """How many actors to start in the Ray that runs: `workers`, or as many as there is room for.

    Raises:
        UserError: there is less room.
    """
    resources = ray.cluster_resources()
    room = int(resources.get("CPU", 0)) // cpus
    if gpu:
        room = min(room, int(resources.get("GPU", 0)))
    if room < (workers or 1):
        raise UserError(
            f"--workers: {workers or 1} of {cpus} CPUs{' and a GPU' if gpu else ''} each do not fit; "
            f"Ray has {int(resources.get('CPU', 0))} CPUs and {int(resources.get('GPU', 0))} GPUs"
        )
    return workers or room
