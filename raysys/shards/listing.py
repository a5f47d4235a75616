"""Which tars make up a data set."""

import contextlib
import json
import re

from raysys.errors import UserError
from raysys.storage import Entry, Storage, join


def find_datasets(storage: Storage, uri: str) -> list[str]:
    """All folders at or beneath `uri` that hold tars, hidden ones left out. Raises UserError where there are none."""
    entries = storage.list(uri)
    base = join(uri)
    folders = {entry.uri.rpartition("/")[0] for entry in entries if entry.uri.endswith(".tar") and "/." not in entry.uri[len(base) :]}
    if not folders:
        raise UserError(_no_shards(uri, entries))
    return sorted(folders)


PART_RECORD = ".part.json"
"""Ending of the file that a preparation in parts leaves beside each shard."""


def missing_shards(storage: Storage, folder: str, names: list[str]) -> list[tuple[str, str]]:
    """:func:`gaps`, without those that a preparation left on purpose: its record says that no sample came of a part."""
    if not gaps(names):
        return []
    empty = []
    for entry in storage.list(folder, suffix=PART_RECORD):
        with contextlib.suppress(ValueError):
            if json.loads(storage.read(entry.uri)).get("size") == 0:
                empty.append(entry.uri.rpartition("/")[2].removesuffix(PART_RECORD) + ".tar")
    return [fault for fault in gaps(sorted({*names, *empty})) if fault[0] not in empty]


def gaps(names: list[str]) -> list[tuple[str, str]]:
    """(shard after the gap, what is missing) where the numbers in shards' names leave some out; nothing for other names.

    Where the numbers begin proves nothing: a folder may hold a part of a larger set.
    """
    numbers = {name: int(name.removesuffix(".tar")) for name in names if re.fullmatch(r"[0-9]+\.tar", name)}
    if not names or len(numbers) != len(names) or len({len(name) for name in names}) > 1:
        return []
    found = []
    expected = min(numbers.values())
    for name, number in sorted(numbers.items(), key=lambda item: item[1]):
        if number > expected:
            width = len(name) - len(".tar")
            missing = f"{expected:0{width}d}.tar" + (f" to {number - 1:0{width}d}.tar" if number - 1 > expected else "")
            found.append((name, f"there is no {missing} before it: the numbering has a gap"))
        expected = number + 1
    return found


def incomplete(storage: Storage, folder: str, names: list[str]) -> list[tuple[str, str]]:
    """(file, reason) of all that is wrong with a data set as a list of shards `names`: missing, unfinished and compressed ones."""
    return [*missing_shards(storage, folder, names), *unfinished(storage, folder, names), *packed(storage, folder)]


_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


def packed(storage: Storage, folder: str) -> list[tuple[str, str]]:
    """(file, reason) of compressed tars beside the shards: byte ranges cannot be read from them, and so nothing is read of them."""
    base = join(folder) + "/"
    names = [entry.uri[len(base) :] for entry in storage.list(folder)]
    return [
        (name, "it is compressed and no part of the data set: unpack it") for name in names if name.endswith(_PACKED) and "/" not in name
    ]


def unfinished(storage: Storage, folder: str, names: list[str]) -> list[tuple[str, str]]:
    """(shard, reason) of shards whose writer was stopped: img2dataset writes ``NNNNN_stats.json`` when a shard is done."""
    stats = {entry.uri.rpartition("/")[2].removesuffix("_stats.json") for entry in storage.list(folder, suffix="_stats.json")}
    return [
        (name, "its writer was stopped: there is no _stats.json for it")
        for name in names
        if stats and name.removesuffix(".tar") not in stats
    ]


def list_shards(storage: Storage, folder: str) -> list[Entry]:
    """The tars directly in `folder`, sorted by name."""
    entries = storage.list(folder)
    base = join(folder) + "/"
    found = [entry for entry in entries if entry.uri.endswith(".tar") and "/" not in entry.uri[len(base) :]]
    found = [entry for entry in found if not entry.uri[len(base) :].startswith(".")]
    if not found:
        raise UserError(_no_shards(folder, entries))
    return found


def _no_shards(folder: str, entries: list[Entry]) -> str:
    names = [entry.uri[len(join(folder)) + 1 :] for entry in entries]
    compressed = [name for name in names if name.endswith(_PACKED)]
    if compressed:
        return f"{folder} has no .tar shards, but compressed ones ({compressed[0]}): byte ranges cannot be read from those; unpack them"
    beneath = sorted({name.rpartition("/")[0] for name in names if name.endswith(".tar")})
    if beneath:
        return f"{folder} is not itself a folder of .tar shards; there are some in {', '.join(join(folder, name) for name in beneath[:5])}"
    return f"{folder} has no .tar shards; it holds {', '.join(names[:5]) + (', …' if len(names) > 5 else '') if names else 'nothing'}"
