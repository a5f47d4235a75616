"""Adds region features to the pictures of data sets: shard by shard, on actors of Ray Data.

A shard of the copy has the samples of its source, with the same keys and members, and ``.rois.npz`` beside them. Beside it lies
``NAME.part.json``, which says what it was made of and what was left out; run again, only shards without a record that fits are made.
"""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pydantic

from raysys.data.bad import BadDataError
from raysys.data.regions import MEMBER
from raysys.errors import RunFailed, UserError
from raysys.models.region_features import RegionSettings
from raysys.runs.region_actors import ADVICE, Record, Shard, ShardExtractor, actors_that_fit, run_on_actors
from raysys.shards.manifest import NAME, Manifest, find_datasets, load_or_build
from raysys.shards.reader import RawSample
from raysys.storage import Storage, StorageSettings, join


class ExtractRoisSettings(RegionSettings):
    """Which pictures, and who works on them."""

    data: str
    """A folder of shards, or one with several beneath it (local or s3://); every picture in them gets region features."""
    out: str
    """Folder or s3://… prefix to write into, with the same folders beneath it as `data`."""
    on_bad_sample: Literal["raise", "skip"] = "raise"
    """What a sample whose picture or boxes cannot be used leads to: the job ends, or the sample is left out, named and counted."""
    max_bad_fraction: float = pydantic.Field(0.01, ge=0, le=1)
    """Share of the samples that may be left out; more end the job."""
    workers: pydantic.NonNegativeInt | None = None
    """Actors, each with a detector of its own; by default as many as there are GPUs (with `gpu`), or as CPUs allow. 0: this process does
    the work, without Ray."""
    cpus_per_worker: pydantic.PositiveInt = 1
    """CPUs of an actor."""
    gpu: bool = False
    """Give each actor a GPU."""
    storage: StorageSettings = StorageSettings()
    """How to reach object storage."""

    @property
    def region(self) -> RegionSettings:
        """What the regions depend on."""
        return RegionSettings(**{name: getattr(self, name) for name in RegionSettings.model_fields})


def plan(settings: ExtractRoisSettings, storage: Storage, log: Callable[[str], None] = print) -> list[Shard]:
    """Every shard at or beneath `settings.data`, in order.

    Raises:
        UserError: no shards, a damaged one (unless bad samples may be left out), or `out` lies where `data` does.
    """
    data, out = (place if "://" in place else os.path.abspath(os.path.expanduser(place)) for place in (settings.data, settings.out))
    if f"{join(out)}/".startswith(f"{join(data)}/") or f"{join(data)}/".startswith(f"{join(out)}/"):
        raise UserError(f"--out: {settings.out} and --data {settings.data} lie within one another; the copy needs a folder of its own")
    described = settings.region.model_dump(mode="json") | {"weights": [_digest(settings.detector), _digest(settings.features)]}
    shards = []
    for folder in find_datasets(storage, data):
        manifest = load_or_build(storage, folder, log, settings.on_bad_sample)
        if manifest.damage and settings.on_bad_sample == "raise":
            raise UserError(f"{manifest.damage[0]}; {ADVICE}")
        target = join(out, folder.removeprefix(join(data)).lstrip("/")).rstrip("/")
        for one in _by_shard(manifest):
            made_of = hashlib.blake2b(json.dumps([described, one.fingerprint], sort_keys=True).encode(), digest_size=16).hexdigest()
            shards.append(Shard(one, target, made_of))
    return shards


def _by_shard(manifest: Manifest) -> Iterator[Manifest]:
    """A manifest of each shard alone; rows lie in the order of shards."""
    codes = {name: code for code, name in enumerate(manifest.lookup.shard_names)}
    for name, size in manifest.shards.items():
        code = codes.get(name, len(codes))  # no samples: behind them all
        rows = np.arange(*np.searchsorted(manifest.lookup.shards, [code, code + 1]))
        yield Manifest(manifest.folder, manifest.table.take(rows), {name: size}, layout=manifest.layout)


def _digest(name: str) -> str:
    """Stands for the contents of a folder; the same for what is none."""
    digest = hashlib.blake2b(digest_size=16)
    folder = Path(name).expanduser()
    for path in sorted(folder.iterdir()) if name and folder.is_dir() else ():
        if path.is_file():
            digest.update(f"{path.name}\0".encode() + hashlib.sha1(path.read_bytes(), usedforsecurity=False).digest())
    return digest.hexdigest()


def finished(shards: Sequence[Shard], storage: Storage) -> dict[int, Record]:
    """Records of the shards that a former run made, by their number."""
    records = {}
    for target in dict.fromkeys(shard.target for shard in shards):
        sizes = {entry.uri: entry.size for entry in storage.list(target)} if storage.exists(target) else {}
        for number, shard in enumerate(shards):
            if shard.target != target or shard.record_uri not in sizes:
                continue
            record = Record.load(storage, shard.record_uri)
            if record and record.made_of == shard.made_of and sizes.get(shard.uri, 0) == record.size:
                records[number] = record
    return records


def extract(settings: ExtractRoisSettings, log: Callable[[str], None] = print) -> dict[str, list[Record]]:
    """Write the copies and their manifests; folder of a copy → what became of each of its shards. Ray must be running, unless there are
    no workers.

    Raises:
        UserError: as :func:`plan`, and shards in `out` that are no copies of these.
        BadDataError: a sample cannot be used, or more than may be left out; shards that were finished by then are kept.
        RunFailed: an actor ended, or not one sample is left.
    """
    storage = Storage(settings.storage)
    shards = plan(settings, storage, log)
    records = finished(shards, storage)
    if records:
        log(f"{settings.out}: {len(records)} of {len(shards)} shards are there already")
    work = [number for number in range(len(shards)) if number not in records]
    _make_room(shards, {shards[number].target for number in work}, storage)
    total = sum(len(shard.source) for shard in shards)
    _check_share(records, total, settings)
    started, done = time.monotonic(), 0
    for number, record in _make([shards[number] for number in work], settings, storage):
        records[work[number]] = record
        done += record.read
        speed = done / max(time.monotonic() - started, 1e-9)
        log(
            f"{shards[work[number]].uri}: {record.written} of {record.read} samples ({len(records)} of {len(shards)} shards, {speed:.0f}/s)"
        )
        _check_share(records, total, settings)
    return _finish(shards, records, storage, log)


def _make(work: Sequence[Shard], settings: ExtractRoisSettings, storage: Storage) -> Iterator[tuple[int, Record]]:
    if not work:
        return
    tolerant = settings.on_bad_sample == "skip"
    if settings.workers == 0:
        yield from enumerate(map(ShardExtractor(settings.region, tolerant, storage), work))
        return
    workers = actors_that_fit(settings.workers, settings.cpus_per_worker, settings.gpu)
    yield from run_on_actors(work, settings.region, tolerant, storage, workers, settings.cpus_per_worker, settings.gpu)


def _make_room(shards: Sequence[Shard], changing: set[str], storage: Storage) -> None:
    """Take away manifests that would describe other shards than there will be; refuse folders with shards of others."""
    ours = {uri for shard in shards for uri in (shard.uri, shard.record_uri)}
    for target in dict.fromkeys(shard.target for shard in shards):
        for entry in storage.list(target, suffix=".tar") if storage.exists(target) else ():
            if entry.uri.rpartition("/")[0] == target and entry.uri not in ours:
                raise UserError(f"--out: {entry.uri} is no copy of a shard of --data; give a folder of its own, or remove it")
        if target in changing:
            storage.delete(join(target, NAME))


def _check_share(records: dict[int, Record], total: int, settings: ExtractRoisSettings) -> None:
    bad = [one for record in records.values() for one in record.left_out]
    if bad and settings.on_bad_sample == "raise":
        raise BadDataError(f"{bad[0]}; {ADVICE}")
    if len(bad) > settings.max_bad_fraction * total:
        raise BadDataError(
            f"{len(bad)} of {total} samples cannot be used, more than --max-bad-fraction {settings.max_bad_fraction:g} allows; "
            f"one of them: {bad[0]}"
        )


def _finish(shards: Sequence[Shard], records: dict[int, Record], storage: Storage, log: Callable[[str], None]) -> dict[str, list[Record]]:
    """Index the copies, and tell what became of the samples."""
    outcome: dict[str, list[Record]] = {}
    for number, shard in enumerate(shards):
        outcome.setdefault(shard.target, []).append(records[number])
    for target, its in outcome.items():
        read, written = sum(one.read for one in its), sum(one.written for one in its)
        left_out = [bad for one in its for bad in one.left_out]
        log(f"{target}: {read} samples read, {written} written with regions, {len(left_out)} left out")
        for cause, count in Counter(bad.cause for bad in left_out).most_common():
            log(f"  {count} × {cause}; the first: {next(bad for bad in left_out if bad.cause == cause)}")
        if written:
            layout = next(shard.source.layout for shard in shards if shard.target == target)
            load_or_build(storage, target, log, layout=layout)
    if not any(record.written for record in records.values()):
        raise RunFailed("nothing was written: not one sample has a picture that can be used")
    return outcome


def describe(settings: ExtractRoisSettings, log: Callable[[str], None] = print) -> list[str]:
    """Lines on what :func:`extract` would do, its speed tried on some pictures of the first shard; nothing is written but manifests.

    Raises:
        UserError: as :func:`plan`, or a network cannot be had.
    """
    storage = Storage(settings.storage)
    shards = plan(settings, storage, log)
    done = finished(shards, storage)
    samples = sum(len(shard.source) for shard in shards)
    rest = samples - sum(record.read for record in done.values())
    folders = len({shard.target for shard in shards})
    work = ShardExtractor(settings.region, True, storage)
    first = next(shard.source for shard in shards if len(shard.source))
    work.samples(first, np.arange(1))  # the first pass through a network takes longer
    started = time.monotonic()
    tried = work.samples(first, np.arange(min(settings.batch_size, len(first))))
    seconds = (time.monotonic() - started) / len(tried)
    found = [one for one in tried if isinstance(one, RawSample)]
    size = sum(len(one.members[MEMBER]) for one in found) / max(1, len(found))
    return [
        f"{samples} samples in {len(shards)} shards of {folders} data sets; {len(done)} shards are there already",
        f"up to {settings.regions} regions of {work.extract.feature_size} numbers each: data.region_size {work.extract.feature_size}",
        f"the first {len(tried)} samples: {len(found)} with regions, {size / 1e3:.0f} kB and {1e3 * seconds:.0f} ms each on one actor",
        f"{rest} samples are left to do: {rest * seconds / 60:.1f} minutes of one actor, {rest * size / 1e9:.2f} GB",
    ]
