"""What makes a manifest of shards: all of them indexed in parallel, checked, and compared with what was known before."""

import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pyarrow as pa

from raysys.errors import UserError
from raysys.shards.index import ShardIndex, index_shard
from raysys.shards.layout import Layout, advice
from raysys.shards.rows import SCHEMA
from raysys.shards.tar import ShardError
from raysys.storage import Entry, Storage, is_remote


def index_shards(storage: Storage, folder: str, entries: Sequence[Entry], layout: Layout, processes: int = 0) -> Iterator[ShardIndex]:
    """Index shards in their order: in Ray tasks where Ray runs, else in `processes` of their own, else in threads.

    Args:
        processes: 0 for threads, which get in each other's way: of large data sets, processes index as many times as much as there
            are processors. They start anew, which takes a second or more and needs a main module that can be imported twice.
    """
    work = [(storage, folder, entry.uri.rpartition("/")[2], entry.size, None, layout) for entry in entries]
    if not work:
        return
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized() and len(work) > 1:
        task = ray.remote(num_cpus=1)(index_shard)
        references = [task.remote(*arguments) for arguments in work]
        try:
            for reference in references:
                yield ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None  # the sentence itself, not a traceback from another process
        return
    workers = min(len(work), processes or (16 if is_remote(folder) else os.cpu_count() or 1))
    with _processes(workers) if processes and len(work) > 1 else ThreadPoolExecutor(workers) as pool:
        yield from pool.map(_index, work)


def _index(arguments: tuple) -> ShardIndex:
    return index_shard(*arguments)


def _processes(count: int) -> ProcessPoolExecutor:
    """Processes that leave an interruption to the one that started them."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))


def check_layout(folder: str, index: ShardIndex, layout: Layout) -> None:
    """Refuse a shard none of whose samples has its text where the layout says, though they could be read.

    Raises:
        UserError: lists what was looked for, what was found and which setting to change.
    """
    broken = {"json", "text", "duplicate", "lost"}.intersection(fault.cause for fault in index.faults)
    if not index.table.num_rows or index.texts or broken:
        return
    seen = "; ".join(f"{count} × {members}" for members, count in index.found.most_common(5))
    fields = [name for name, _ in index.fields.most_common(12)]
    known = f"; json fields: {', '.join(fields)}" if fields else ""
    members = sorted({member for names in index.found for member in names.split(" + ")})
    reasons = Counter(reason for reason in index.table["fault"].to_pylist() if reason)
    first = f" ({reasons.most_common(1)[0][0]})" if reasons else ""
    raise UserError(
        f"{folder}: no sample of its first shard {index.shard} has a caption{first}; {layout.wanted()} was looked for, "
        f"found were samples of {seen}{known}{advice(members, fields)}"
    )


def with_lost(table: pa.Table, former: pa.Table) -> pa.Table:
    """Rows of a damaged shard, and what `former` lists of it: samples that are gone or changed become rows with a fault."""
    rows = {row["key"]: row for row in table.to_pylist()}
    for row in former.to_pylist():
        now = rows.get(row["key"])
        if now is None:
            lost = {"members": [], "languages": [], "captions": [], "texts": [], "sentences": [], "cause": "lost"}
            rows[row["key"]] = row | lost | {"fault": "it was listed before and is not found now: it lies in or beyond the damage"}
        elif now["checksum"] != row["checksum"] and now["fault"] is None:
            changed = {"cause": "checksum", "checksum": row["checksum"]}  # that of before: it stays a fault when indexed once more
            rows[row["key"]] = now | changed | {"fault": "its contents are not what was indexed before the shard was damaged"}
    return pa.Table.from_pylist(list(rows.values()), SCHEMA)


def all_damage(errors: Sequence[ShardError]) -> ShardError:
    """One error that names every damaged shard."""
    first = errors[0]
    others = "".join(f"\n  also {error}" for error in errors[1:10])
    more = f"\n  and {len(errors) - 10} more shards" if len(errors) > 10 else ""
    return ShardError(first.where, first.byte, f"{first.reason}{others}{more}", first.samples)
