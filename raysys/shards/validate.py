"""Reads every byte of a data set and names what is wrong with it."""

import functools
import io
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import PIL.Image

from raysys.shards.index import Fault, ShardIndex, index_members, until_damage
from raysys.shards.layout import OWN_FORM, Layout
from raysys.shards.listing import incomplete, list_shards
from raysys.shards.manifest import NAME, Manifest
from raysys.shards.pictures import explain_image_error
from raysys.shards.tar import Member, ShardError
from raysys.storage import Storage, is_remote, join

__all__ = ["Fault", "check_members", "validate"]


def validate(storage: Storage, folder: str, layout: Layout | None = None) -> Iterator[Fault]:
    """All faults of a data set, shard by shard in the order of their names.

    Checked: that archives are whole; that every sample has members of its own, readable text with captions, and images that
    decode to the last pixel; that no key lies in two shards; that shards are numbered without gaps and were finished by
    their writer; and, where there is a manifest, that shards, samples and contents are those that were indexed.

    Args:
        layout: where captions and images lie in a sample; None: as the manifest says, else the project's own form.

    Raises:
        UserError: no folder, no shards, or a manifest that cannot be read.
    """
    entries = list_shards(storage, folder)
    sizes = {entry.uri.rpartition("/")[2]: entry.size for entry in entries}
    manifest = Manifest.load(storage, folder) if storage.exists(join(folder, NAME)) else None
    layout = layout or (manifest.layout if manifest else OWN_FORM)
    for name, reason in incomplete(storage, folder, list(sizes)):
        yield Fault(name, 0, "", "", reason)
    if manifest:
        for name in manifest.shards.keys() - sizes.keys():
            yield Fault(name, 0, "", "", "the manifest lists this shard, but it is gone")
    threads = min(len(sizes), 8 if is_remote(folder) else os.cpu_count() or 1)
    seen: dict[str, str] = {}
    with ThreadPoolExecutor(threads) as pool:
        for index, faults in pool.map(functools.partial(_check_shard, storage, folder, layout, manifest), sizes.items()):
            yield from sorted(faults + repeated_keys(index, seen))


def _check_shard(
    storage: Storage, folder: str, layout: Layout, manifest: Manifest | None, shard: tuple[str, int]
) -> tuple[ShardIndex, list[Fault]]:
    name, size = shard
    where = join(folder, name)
    with storage.open(where) as file:
        return check_members(until_damage(file, size, where), name, size, layout, manifest)


def check_members(
    members: Iterable[Member | ShardError], shard: str, size: int, layout: Layout, manifest: Manifest | None
) -> tuple[ShardIndex, list[Fault]]:
    """(index, all faults) of a shard that these members make up: images are decoded whole, contents compared with the manifest."""
    undecodable: list[Fault] = []

    def decode(key: str, extension: str, member: Member) -> None:
        if layout.image_extension((extension,)):
            try:
                PIL.Image.open(io.BytesIO(member.data)).load()
            except Exception as error:  # Pillow's decoders raise errors of any kind on damaged data
                undecodable.append(Fault(shard, member.offset, key, extension, explain_image_error(error, member.data), "image"))

    index = index_members(members, shard, size, layout, visit=decode)
    faults = list(index.faults)
    blamed = {(fault.key, fault.member) for fault in faults}
    faults += [fault for fault in undecodable if (fault.key, fault.member) not in blamed]
    if manifest:
        faults += _differences(index, manifest)
    faults += [Fault(shard, damage.byte, "", "", damage.reason) for damage in index.damages]
    return index, faults


def repeated_keys(index: ShardIndex, seen: dict[str, str]) -> list[Fault]:
    """Keys of a shard that other shards hold too; `seen`, key → shard, grows by it."""
    faults = []
    for key, offset in zip(index.table["key"].to_pylist(), index.table["offset"].to_pylist(), strict=True):
        other = seen.setdefault(key, index.shard)
        if other != index.shard:
            faults.append(Fault(index.shard, offset, key, "", f"the same key lies in {other}", "duplicate"))
    return faults


def _differences(index: ShardIndex, manifest: Manifest) -> list[Fault]:
    """How a shard differs from what the manifest says of it."""
    if index.shard not in manifest.shards:
        return [Fault(index.shard, 0, "", "", "the manifest does not list this shard")]
    former = manifest.rows_of(index.shard)
    listed = dict(zip(former["key"].to_pylist(), _identities(former), strict=True))
    found = dict(zip(index.table["key"].to_pylist(), _identities(index.table), strict=True))
    faults = [
        Fault(index.shard, row[0], key, "", "the manifest lists it, but it is not there", "lost")
        for key, row in listed.items()
        if key not in found
    ]
    for key, row in found.items():
        if key not in listed:
            faults.append(Fault(index.shard, row[0], key, "", "the manifest does not list it"))
        elif row != listed[key]:
            changed = row[2] != listed[key][2]
            what, cause = ("its contents are", "checksum") if changed else ("its place is", "shard")
            faults.append(Fault(index.shard, row[0], key, "", f"{what} not what the manifest says", cause))
    return faults


def _identities(table) -> list[tuple[int, int, int]]:
    """(offset, size, checksum) of every row."""
    return list(zip(*(table[name].to_pylist() for name in ("offset", "size", "checksum")), strict=True))
