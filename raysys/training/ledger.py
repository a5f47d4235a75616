"""ledger.jsonl: every sample that could not be used, by name and reason, and what was done about it."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from raysys.data.bad import BadSample, Replacement
from raysys.data.batches import Rows
from raysys.data.shares import NumberedSamples
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
    Samples of other data than the ledger is opened for, such as of test splits, stay in the file and are not counted.

    Args:
        folder: the run.
        sources: the data, the same policy for all; it says whether members are copied.
    """

    def __init__(self, folder: RunFolder, sources: Sequence[NumberedSamples]):
        self.folder = folder
        self.sources = sources
        self.policy = sources[0].policy
        stored = folder.read_text(LEDGER) if folder.storage.exists(folder.path(LEDGER)) else ""
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in stored.split("\n") if line]  # keys may hold other ends of lines
        self._known = {_identity(line) for line in self.lines}
        self._folders = {manifest.folder for samples in sources for manifest in samples.manifests}

    def add(self, bad: BadSample, step: int | None = None, replaced_by: str | None = None, write: bool = True) -> bool:
        """Note a bad sample; whether it was new. With `write` off nothing is copied into quarantine."""
        line = {**bad._asdict(), "step": step, "replaced_by": replaced_by, "copies": []}
        if _identity(line) in self._known:
            return False
        self._known.add(_identity(line))
        if write and self.policy.on_bad_sample == "quarantine":
            line["copies"] = self._copy(bad)
        self.lines.append(line)
        return True

    def _copy(self, bad: BadSample) -> list[str]:
        copies = []
        members: dict[str, bytes] = {}
        for samples in self.sources:
            members |= samples.stored_members(bad)
        folder, _, shard = bad.shard.rpartition("/")
        # Data sets in folders of one name have shards of one name too.
        place = f"{folder.rpartition('/')[2]}-{hashlib.blake2b(folder.encode(), digest_size=4).hexdigest()}"
        for extension, data in members.items():
            parts = ["_" if part in ("", ".", "..") else part for part in f"{bad.key}.{extension}".split("/")]
            path = self.folder.path(QUARANTINE, place, shard.removesuffix(".tar"), *parts)
            try:
                self.folder.storage.write(path, data)
            except (StorageError, UserError, ValueError) as error:  # a key that is no file name, a full disk: the ledger says so
                copies.append(f"not copied: {error}")
            else:
                copies.append(path)
        return copies

    @property
    def counted(self) -> list[dict[str, Any]]:
        """The lines of the samples of `sources`."""
        return [line for line in self.lines if self._folders.intersection((line["shard"], line["shard"].rpartition("/")[0]))]

    def causes(self) -> dict[str, int]:
        """Bad samples so far by cause, in the order of causes' names."""
        return dict(sorted(Counter(line["cause"] for line in self.counted).items()))

    def counts(self) -> dict[str, int]:
        """Metrics: bad samples so far, in all and by cause."""
        causes = self.causes()
        return {"data/samples_bad": sum(causes.values()), **{f"data/samples_bad_{cause}": number for cause, number in causes.items()}}

    def check(self) -> None:
        """Raise BadDataError where more samples are bad than the policy allows."""
        if lines := self.counted:
            last, total = lines[-1], sum(samples.total for samples in self.sources)
            self.policy.check(len(lines), total, str(BadSample(*(last[field] for field in BadSample._fields))))

    def flush(self) -> None:
        """Write the file."""
        self.folder.write_text(LEDGER, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines))


def _identity(line: dict[str, Any]) -> tuple[str, str]:
    return line["shard"], line["key"] or line["reason"]  # a data set may have several damaged shards


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
        self._since: Counter[str] = Counter()

    def note(self, batch: Rows) -> None:
        """Take in this worker's share of a global batch."""
        self._replaced += batch.replaced
        self._cut += batch.cut_captions
        self._captions += batch.count

    def note_left_out(self, batch: Rows) -> None:
        """Take in a share of the validation data, where bad samples are left out and not replaced."""
        self._left_out += batch.replaced

    def settle(self) -> None:
        """Bring all workers' batches into the ledger, before a checkpoint says that they are done; called by all workers together.

        Raises:
            BadDataError: more bad samples than the policy allows.
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
        self._since.update(replaced=len(replaced), cut=sum(share[2] for share in shares), captions=sum(share[3] for share in shares))

    def take(self) -> dict[str, float]:
        """As :meth:`settle`; metrics of all workers' batches since the last call."""
        self.settle()
        since, self._since = self._since, Counter()
        return {
            **self.ledger.counts(),
            "data/samples_replaced": since["replaced"],
            "data/captions_cut_fraction": since["cut"] / max(since["captions"], 1),
        }
