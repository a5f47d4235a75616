"""Samples that cannot be used: the policy that decides what they lead to, and what is told of them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from raysys.errors import CertainFailure, UserError

OnBadSample = Literal["raise", "skip", "quarantine"]


class BadDataError(CertainFailure):
    """Bad samples that the policy does not let the run go on with."""


@dataclass(frozen=True)
class BadSamplePolicy:
    """What bad samples lead to."""

    on_bad_sample: OnBadSample = "raise"
    """`raise`: the first one ends the run. `skip`: it is named in the ledger and another sample takes its place. `quarantine`: its
    members are also copied beside the run."""
    max_bad_fraction: float = 0.01
    """Share of the data that may be bad; more ends the run."""

    @property
    def tolerant(self) -> bool:
        """Whether a bad sample lets the run go on."""
        return self.on_bad_sample != "raise"

    def accept(self, bad: "BadSample") -> "BadSample":
        """`bad` itself, where it lets the run go on.

        Raises:
            BadDataError: it does not; says which sample, and what to do.
        """
        if not self.tolerant:
            raise BadDataError(f"{bad}; {_ADVICE}")
        return bad

    def check(self, bad: int, samples: int, first: str) -> None:
        """Raise where too many samples are bad.

        Args:
            bad: different samples known to be bad.
            samples: all samples of the data sets, bad ones included.
            first: one of the bad samples, for the message.

        Raises:
            BadDataError: more than `max_bad_fraction` of the samples are bad.
        """
        if bad > self.max_bad_fraction * samples:
            raise BadDataError(
                f"{bad} of {samples} samples are bad, more than data.max_bad_fraction {self.max_bad_fraction:g} allows; "
                f"one of them: {first}; "
                "look with jobs/shards.py validate, mend with jobs/shards.py repair, or allow more"
            )


_ADVICE = "to go on without such samples set data.on_bad_sample to skip or quarantine, or write a clean copy with jobs/shards.py repair"


class BadSample(NamedTuple):
    """One sample that cannot be used, and why."""

    shard: str
    """URI of the shard, or of the data set's folder."""
    key: str
    """Empty for a shard that is damaged as a whole."""
    member: str
    """Extension of the member at fault; empty where no single one is."""
    cause: str
    """What it is counted by, one of :data:`raysys.shards.sample.CAUSES`."""
    reason: str
    """For people."""

    def __str__(self) -> str:
        sample = f", sample {self.key!r}" if self.key else ""
        return f"{self.shard}{sample}{f', member .{self.member}' if self.member else ''}: {self.reason}"


class Replacement(NamedTuple):
    """A bad sample met in a worker's share of a global batch, and the sample that took its place."""

    step: int
    row: int
    """Of the share."""
    id: int
    """Number of the bad sample."""
    spare: str
    """Key of the sample in its place."""
    bad: BadSample


def refuse(bad: list[BadSample], policy: BadSamplePolicy, samples: int) -> None:
    """Raise for bad samples that were found before training, as the policy has it.

    Raises:
        UserError: there are any, and the policy is `raise`.
        BadDataError: there are more than the policy allows.
    """
    if bad and not policy.tolerant:
        others = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        share = len(bad) / samples
        more = f" (and data.max_bad_fraction to {share:.2g} or more)" if share > policy.max_bad_fraction else ""
        raise UserError(f"{bad[0]}{others}; {_ADVICE}{more}")
    if bad:
        policy.check(len(bad), samples, str(bad[0]))
