"""What builders of batches have in common: workers' shares of global batches, read together, with spares in the place of bad samples."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from raysys.data.bad import BadDataError, BadSample, BadSamplePolicy, Replacement
from raysys.shards.manifest import Manifest
from raysys.shards.sample import SampleError
from raysys.storage import Storage

if TYPE_CHECKING:
    from raysys.data.batches import Rows


class Share(NamedTuple):
    """What one worker takes of one global batch."""

    step: int
    epoch: int
    """Chooses captions and masks: :meth:`raysys.data.plan.Plan.draw_of`."""
    ids: np.ndarray
    """int64 [n]; may be empty."""


class Payload(NamedTuple):
    """A share as it travels from where it was read to where it is trained on."""

    step: int
    header: bytes
    """Pickled: everything but encoded pictures."""
    pictures: Sequence[bytes]
    """Encoded pictures of the rows; none where they were decoded already or vectors stand in for them."""


class NumberedSamples(Protocol):
    """What a run trains on, numbered from 0, such as :class:`raysys.data.samples.Samples`."""

    @property
    def policy(self) -> BadSamplePolicy:
        """What bad samples lead to."""

    @property
    def storage(self) -> Storage:
        """The door to the shards."""

    @property
    def manifests(self) -> Sequence[Manifest]:
        """The data sets, in order."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages in use."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that the numbering depends on."""

    @property
    def total(self) -> int:
        """All stored samples, bad ones included: what the share that may be bad is a share of."""

    @property
    def left_out(self) -> int:
        """Samples that are not numbered."""

    @property
    def bad(self) -> Sequence[BadSample]:
        """What indexing found."""

    def __len__(self) -> int:
        """How many are numbered."""

    def locate(self, sample: int) -> tuple[str, str]:
        """(shard, key) of a sample."""

    def describe_bad(self, sample: int, error: SampleError) -> BadSample:
        """What is told of a sample, which `error` says cannot be used."""

    def stored_members(self, bad: BadSample) -> dict[str, bytes]:
        """The members of a bad sample as they lie in its shard now, as far as they can be read; none of another data set's sample."""


Read = TypeVar("Read")
"""What a builder knows of a sample once it has read it."""


class ShareBuilder(ABC, Generic[Read]):
    """Reads samples and makes rows of them; picklable, for tasks anywhere in the cluster.

    Args:
        samples: the data, and the policy for what is bad in it.
        spares: (step, bad sample) → samples that may take its place, :meth:`raysys.data.plan.Plan.spares`; by default any.
    """

    def __init__(self, samples: NumberedSamples, spares: Callable[[int, int], Iterator[int]] | None):
        self.samples = samples
        self.spares = spares

    @property
    @abstractmethod
    def batch_type(self) -> "type[Rows]":
        """What :class:`raysys.data.batches.BatchFinisher` makes of a payload. Known to training workers alone, for it needs torch."""

    @abstractmethod
    def _read(self, ids: np.ndarray, epoch: int, bad: dict[int, BadSample]) -> dict[int, Read]:
        """The samples `ids`, by number; those that cannot be used are added to `bad` instead."""

    @abstractmethod
    def _payload(self, share: Share, chosen: Sequence[int], rows: Mapping[int, Read], bad: Mapping[int, BadSample]) -> Payload:
        """A share whose samples `chosen`, after replacement, are among `rows`."""

    def __call__(self, shares: Sequence[Share], bad: Mapping[int, BadSample] | None = None) -> list[Payload]:
        """Shares of global batches of one epoch, read together, for :class:`raysys.data.batches.BatchFinisher`.

        A share without samples is given one row of padding.

        Args:
            shares: best those of one window, whose samples lie side by side.
            bad: samples that are known to be bad, by number.

        Raises:
            BadDataError: a bad sample, where the policy is `raise`; otherwise too many of them, or none left to take the place of one.
        """
        (epoch,) = {share.epoch for share in shares}
        known = dict(bad or {})
        rows: dict[int, Read] = {}
        chosen = [share.ids.tolist() or [0] for share in shares]
        spares: dict[tuple[int, int], Iterator[int]] = {}
        while new := {sample for ids in chosen for sample in ids} - rows.keys() - known.keys():
            rows |= self._read(np.array(sorted(new)), epoch, known)
            for number, ids in enumerate(chosen):
                for place in [place for place, sample in enumerate(ids) if sample in known]:
                    if (number, place) not in spares:
                        spares[number, place] = self._spares(shares[number].step, ids[place])
                    ids[place] = next((spare for spare in spares[number, place] if spare not in known), ids[place])
                    if ids[place] in known:
                        raise BadDataError(f"step {shares[number].step}: no sample is left to take the place of {known[ids[place]]}")
        return [self._payload(share, ids, rows, known) for share, ids in zip(shares, chosen, strict=True)]

    def _spares(self, step: int, sample: int) -> Iterator[int]:
        return self.spares(step, sample) if self.spares else iter(range(len(self.samples)))

    def _blame(self, sample: int, error: SampleError, bad: dict[int, BadSample]) -> None:
        """Add `sample` to `bad`, if the policy allows it."""
        policy = self.samples.policy
        bad[sample] = policy.accept(self.samples.describe_bad(sample, error))
        # Several numbers can be of one stored sample, as triples are of a piece of a document.
        policy.check(len(set(bad.values())), self.samples.total, str(bad[sample]))

    def _replaced(self, share: Share, chosen: Sequence[int], bad: Mapping[int, BadSample]) -> list[Replacement]:
        """What took the place of which samples of a share."""
        return [
            Replacement(share.step, place, sample, self.samples.locate(chosen[place])[1], bad[sample])
            for place, sample in enumerate(share.ids.tolist())
            if sample in bad
        ]
