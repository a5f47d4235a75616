"""ledger.jsonl: every sample that could not be used, by name and reason, and what was done about it."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from raysys.data.bad import BadSample, Replacement
from raysys.data.batches import Batch
from raysys.data.samples import Samples
from raysys.errors import UserError
from raysys.storage import StorageError
from raysys.training.gather import gather_objects
from raysys.training.run_folder import RunFolder

LEDGER = "ledger.jsonl"
QUARANTINE = "quarantine"
"""Folder beneath the run's into which the members of bad samples are copied."""


class Ledger:
    """One JSON object a line: `shard`, `key`, `member`, `cause`, `reason`, `step` and `replaced_by`
    (null where indexing or validation met it), `copies` (in quarantine).

    A sample has one line however often it is met; a resumed run keeps the lines there are. Written whole, as object storage cannot append.

    Args:
        folder: the run.
        sources: the data, the same policy for all; it says whether members are copied.
    """

    def __init__(self, folder: RunFolder, sources: Sequence[Samples]):
        self.folder = folder
        self.sources = sources
        self.policy = sources[0].policy
        stored = folder.read_text(LEDGER) if folder.storage.exists(folder.path(LEDGER)) else ""
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in stored.splitlines() if line]
        self._known = {(line["shard"], line["key"]) for line in self.lines}

    def add(self, bad: BadSample, step: int | None = None, replaced_by: str | None = None, write: bool = True) -> bool:
        """Note a bad sample; whether it was new. With `write` off nothing is copied into quarantine."""
        if (bad.shard, bad.key) in self._known:
            return False
        self._known.add((bad.shard, bad.key))
        copies = self._copy(bad) if write and self.policy.on_bad_sample == "quarantine" else []
        self.lines.append({**bad._asdict(), "step": step, "replaced_by": replaced_by, "copies": copies})
        return True

    def _copy(self, bad: BadSample) -> list[str]:
        copies = []
        members = [member for samples in self.sources for member in samples.stored_members(bad).items()]
        for extension, data in members:
            name = f"{bad.key}.{extension}".lstrip("/").replace("..", "_")
            path = self.folder.path(QUARANTINE, bad.shard.rpartition("/")[2].removesuffix(".tar"), name)
            try:
                self.folder.storage.write(path, data)
            except (StorageError, UserError) as error:  # a key that is no file name, a full disk: the ledger says so instead
                copies.append(f"not copied: {error}")
            else:
                copies.append(path)
        return copies

    def causes(self) -> dict[str, int]:
        """Bad samples so far by cause, in the order of causes' names."""
        return dict(sorted(Counter(line["cause"] for line in self.lines).items()))

    def counts(self) -> dict[str, int]:
        """Metrics: bad samples so far, in all and by cause."""
        return {"data/samples_bad": len(self.lines), **{f"data/samples_bad_{cause}": number for cause, number in self.causes().items()}}

    def check(self) -> None:
        """Raise RunFailed where more samples are bad than the policy allows."""
        if self.lines:
            line, total = self.lines[-1], sum(samples.total for samples in self.sources)
            self.policy.check(len(self.lines), total, f"{line['shard']}, sample {line['key']!r}: {line['reason']}")

    def flush(self) -> None:
        """Write the file."""
        self.folder.write_text(LEDGER, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines))


class SampleAccounts:
    """What all workers together have met in their batches; every worker has one, the first writes the ledger.

    Args:
        ledger: of the run.
        rank, workers: of this worker.
    """

    def __init__(self, ledger: Ledger, rank: int, workers: int):
        self.ledger = ledger
        self.rank, self.workers = rank, workers
        self._replaced: list[Replacement] = []
        self._left_out: list[Replacement] = []
        self._cut = self._captions = 0

    def note(self, batch: Batch) -> None:
        """Take in this worker's share of a global batch."""
        self._replaced += batch.replaced
        self._cut += batch.cut_captions
        self._captions += batch.count

    def note_left_out(self, batch: Batch) -> None:
        """Take in a share of the validation data, where bad samples are left out and not replaced."""
        self._left_out += batch.replaced

    def settle(self) -> dict[str, float]:
        """Metrics of all workers' batches since the last call; to be called by all workers together.

        Raises:
            RunFailed: more bad samples than the policy allows.
        """
        shares = gather_objects((self._replaced, self._left_out, self._cut, self._captions), self.workers)
        self._replaced, self._left_out, self._cut, self._captions = [], [], 0, 0
        replaced = sorted((one for share in shares for one in share[0]), key=lambda one: (one.step, one.id))
        left_out = sorted((one for share in shares for one in share[1]), key=lambda one: one.id)
        writes = self.rank == 0
        new = [self.ledger.add(one.bad, one.step, one.spare, writes) for one in replaced]
        new += [self.ledger.add(one.bad, write=writes) for one in left_out]
        if any(new):
            if self.rank == 0:
                self.ledger.flush()
            self.ledger.check()
        cut, captions = sum(share[2] for share in shares), sum(share[3] for share in shares)
        return {**self.ledger.counts(), "data/samples_replaced": len(replaced), "data/captions_cut_fraction": cut / max(captions, 1)}
