"""Reads every byte of a data set and names what is wrong with it."""

import functools
import io
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import PIL.Image

from raysys.shards.index import Fault, ShardIndex, explain_image_error, index_shard
from raysys.shards.manifest import NAME, Manifest, gaps, list_shards
from raysys.shards.sample import IMAGE_EXTENSIONS
from raysys.shards.tar import Member
from raysys.storage import Storage, is_remote, join

__all__ = ["Fault", "validate"]


def validate(storage: Storage, folder: str) -> Iterator[Fault]:
    """All faults of a data set, shard by shard in the order of their names.

    Checked: that archives are whole; that every sample has members of its own, readable json with captions, and images that
    decode to the last pixel; that no key lies in two shards; that shards are numbered without gaps and were finished by
    their writer; and, where there is a manifest, that shards, samples and contents are those that were indexed.

    Raises:
        UserError: no folder, no shards, or a manifest that cannot be read.
    """
    entries = list_shards(storage, folder)
    sizes = {entry.uri.rpartition("/")[2]: entry.size for entry in entries}
    manifest = Manifest.load(storage, folder) if storage.exists(join(folder, NAME)) else None
    for name, reason in [*gaps(list(sizes)), *_unfinished(storage, folder, list(sizes))]:
        yield Fault(name, 0, "", "", reason)
    if manifest:
        for name in manifest.shards.keys() - sizes.keys():
            yield Fault(name, 0, "", "", "the manifest lists this shard, but it is gone")
    threads = min(len(sizes), 8 if is_remote(folder) else os.cpu_count() or 1)
    seen: dict[str, str] = {}
    with ThreadPoolExecutor(threads) as pool:
        for index, undecodable in pool.map(functools.partial(_read_shard, storage, folder), sizes.items()):
            faults = list(index.faults)
            blamed = {(fault.key, fault.member) for fault in faults}
            faults += [fault for fault in undecodable if (fault.key, fault.member) not in blamed]
            faults += _repeated_keys(index, seen)
            if manifest:
                faults += _differences(index, manifest)
            if index.damage:
                faults.append(Fault(index.shard, index.damage.byte, "", "", index.damage.reason))
            yield from sorted(faults)


def _read_shard(storage: Storage, folder: str, shard: tuple[str, int]) -> tuple[ShardIndex, list[Fault]]:
    name, size = shard
    undecodable: list[Fault] = []

    def decode(key: str, extension: str, member: Member) -> None:
        if extension in IMAGE_EXTENSIONS:
            try:
                PIL.Image.open(io.BytesIO(member.data)).load()
            except Exception as error:  # Pillow's decoders raise errors of any kind on damaged data
                undecodable.append(Fault(name, member.offset, key, extension, explain_image_error(error, member.data)))

    return index_shard(storage, folder, name, size, visit=decode), undecodable


def _unfinished(storage: Storage, folder: str, names: list[str]) -> list[tuple[str, str]]:
    """img2dataset writes ``NNNNN_stats.json`` when a shard is done."""
    stats = {entry.uri.rpartition("/")[2].removesuffix("_stats.json") for entry in storage.list(folder, suffix="_stats.json")}
    return [
        (name, "its writer was stopped: there is no _stats.json for it")
        for name in names
        if stats and name.removesuffix(".tar") not in stats
    ]


def _repeated_keys(index: ShardIndex, seen: dict[str, str]) -> list[Fault]:
    faults = []
    for key, offset in zip(index.table["key"].to_pylist(), index.table["offset"].to_pylist(), strict=True):
        other = seen.setdefault(key, index.shard)
        if other != index.shard:
            faults.append(Fault(index.shard, offset, key, "", f"the same key lies in {other}"))
    return faults


def _differences(index: ShardIndex, manifest: Manifest) -> list[Fault]:
    """How a shard differs from what the manifest says of it."""
    if index.shard not in manifest.shards:
        return [Fault(index.shard, 0, "", "", "the manifest does not list this shard")]
    listed = _rows(manifest, index.shard)
    found = dict(zip(index.table["key"].to_pylist(), _identities(index.table), strict=True))
    faults = [
        Fault(index.shard, row[0], key, "", "the manifest lists it, but it is not there") for key, row in listed.items() if key not in found
    ]
    for key, row in found.items():
        if key not in listed:
            faults.append(Fault(index.shard, row[0], key, "", "the manifest does not list it"))
        elif row != listed[key]:
            what = "its contents are" if row[2] != listed[key][2] else "its place is"
            faults.append(Fault(index.shard, row[0], key, "", f"{what} not what the manifest says"))
    return faults


def _rows(manifest: Manifest, shard: str) -> dict[str, tuple[int, int, int]]:
    lookup = manifest.lookup
    if shard not in lookup.shard_names:
        return {}
    table = manifest.table.filter(lookup.shards == lookup.shard_names.index(shard))
    return dict(zip(table["key"].to_pylist(), _identities(table), strict=True))


def _identities(table) -> list[tuple[int, int, int]]:
    """(offset, size, checksum) of every row."""
    return list(zip(*(table[name].to_pylist() for name in ("offset", "size", "checksum")), strict=True))
