"""What manifests tell of samples that cannot be used, and the members of such samples."""

import contextlib
import re
from collections.abc import Sequence

import pyarrow.compute as pc

from raysys.data.bad import BadSample
from raysys.errors import UserError
from raysys.shards.manifest import Manifest
from raysys.storage import Storage, StorageError, join

_MEMBER = re.compile(r"\.([\w.]+): (.*)", re.DOTALL)
"""How a manifest names the member at fault."""


def bad_samples(manifests: Sequence[Manifest]) -> list[BadSample]:
    """What indexing found: samples that cannot be used, and shards that could be read in part only (with an empty key)."""
    found = []
    for manifest in manifests:
        found += [BadSample(manifest.folder, "", "", "shard", reason) for reason in manifest.damage]
        for shard, key, cause, told in manifest.faults():
            named = _MEMBER.match(told)
            member, reason = named.groups() if named else ("", told)
            found.append(BadSample(join(manifest.folder, shard), key, member, cause, reason))
    return found


def stored_members(manifests: Sequence[Manifest], storage: Storage, bad: BadSample) -> dict[str, bytes]:
    """The members of a bad sample as they lie in its shard now, as far as they can be read; none of another data set's sample."""
    folder, _, shard = bad.shard.rpartition("/")
    members: dict[str, bytes] = {}
    for manifest in manifests:
        if manifest.folder != folder:
            continue
        same = pc.and_(pc.equal(manifest.table["shard"], shard), pc.equal(manifest.table["key"], bad.key))
        for sample in manifest.table.filter(same)["members"].to_pylist():
            for member in sample:
                with contextlib.suppress(StorageError, UserError):
                    members[member["extension"]] = storage.read(bad.shard, member["offset"], member["size"])
    return members
