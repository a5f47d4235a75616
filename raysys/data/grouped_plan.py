"""A plan that gives each of several groups of samples its share of every batch: languages, or data sets of different kinds.

Places in batches are dealt out to the groups in turn, over all steps: in each round of Σ shares places, group g has `shares[g]`, spread
evenly: at any time, each group has had what its share says, to within one. So every batch has of each group as many samples as its share
says, to within two; with equal shares, as many of each as of any other, to within one.

Each group is a stream of its own: pass after pass over its samples, each in another order, cut where the batches need it. A group of
few samples comes round more often than one of many, and within a group every sample comes as often as any other. As in the plain plan,
runs of neighbours are permuted, and those of a window of steps are mixed; everything is a pure function of the step.

Micro-batches are cut from the batch as it stands. Where the kinds of samples need different work, as sentences of books and captions of
pictures do, `mixed` puts the groups' rows evenly among one another, so that every micro-batch, and every worker, has its share of each.
"""

import heapq
from collections.abc import Sequence

import numpy as np

from raysys.data.plan import Plan, permuted_runs
from raysys.data.randomness import mix
from raysys.errors import UserError


class GroupedPlan(Plan):
    """The order of samples of several groups.

    An epoch is as many steps as in the plain plan: it takes as long and sees as many samples, though of small groups some of them
    several times and of large ones not all; where a group stands, it goes on in the next epoch (:attr:`passes_per_epoch`). All
    batches are full; where a group's pass ends, or it is small, a sample may be in a batch twice. A bad sample may be replaced by one of
    another group.

    Args:
        groups: each group's samples, int64, ascending, or a range where they lie side by side (which takes no memory); no sample in two
            groups; numbered from 0, together all there are.
        shares: places of each group in a round, at least 1 each.
        others: as in :class:`raysys.data.plan.Plan`. By length, each group is divided by itself.
        mixed: of n rows of a batch one after the other, each group has its share to within one (of three groups and more, within two).

    Raises:
        UserError: a group without samples; otherwise as :class:`raysys.data.plan.Plan`.
    """

    def __init__(self, groups: Sequence[np.ndarray | range], shares: Sequence[int], *others: object, mixed: bool = False, **named: object):
        super().__init__(sum(map(len, groups)), *others, **named)  # type: ignore[arg-type]
        if empty := [number for number, group in enumerate(groups) if not len(group)]:
            raise UserError(f"group {empty[0] + 1} of {len(groups)} has no samples, and cannot have a share of each batch")
        self.groups = list(groups)
        self.shares = list(shares)
        self.mixed = mixed
        self._round = _turns(self.shares)

    @property
    def dropped_per_epoch(self) -> int:
        """0: what an epoch does not reach, the next ones do."""
        return 0

    @property
    def passes_per_epoch(self) -> list[float]:
        """How often each group's samples are seen in an epoch."""
        places = self.steps_per_epoch * self.global_batch / sum(self.shares)
        return [places * share / len(group) for share, group in zip(self.shares, self.groups, strict=True)]

    def draw_of(self, step: int) -> int:
        """The window's number, for within an epoch samples come again."""
        return self.window_of(step)

    def batch_size(self, step: int) -> int:
        """Number of samples in global batch `step`: all are full."""
        return self.global_batch

    def _batches(self, window: int) -> list[np.ndarray]:
        steps = self.steps_of(window)
        dealt = np.stack([self._dealt(step) for step in range(steps.start, steps.stop + 1)])
        streams = []
        for group, places in enumerate(dealt.T.tolist()):
            samples = self._stream(group, places[0], places[-1])
            streams.append(self._cut(samples, np.diff(places).tolist(), group, places[0]))
        return [self._together(parts) for parts in zip(*streams, strict=True)]

    def _together(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """A batch of what each group gives to it."""
        if not self.mixed:
            return np.sort(np.concatenate(parts))
        # Row i of n stands at (i + ½) / n of the way: of any stretch of the batch, two groups have their shares within one.
        way = np.concatenate([(np.arange(len(part)) + 0.5) / len(part) for part in parts])
        return np.concatenate([np.sort(part) for part in parts])[np.argsort(way, kind="stable")]

    def _dealt(self, step: int) -> np.ndarray:
        """Places that each group has had in all batches before `step`."""
        rounds, rest = divmod(step * self.global_batch, len(self._round))
        return rounds * np.array(self.shares) + np.bincount(self._round[:rest], minlength=len(self.groups))

    def _stream(self, group: int, first: int, last: int) -> np.ndarray:
        """Samples `first` … `last` − 1 that a group gives, which are those of a window, mixed."""
        members = self.groups[group]
        order = np.random.Generator(np.random.Philox(key=int(mix(self.seed, group, first, 5)))).permutation(last - first)
        passes, positions = np.divmod(first + order, len(members))
        found = np.empty(len(order), dtype=np.int64)
        for number in np.unique(passes).tolist():
            here = passes == number
            found[here] = permuted_runs(positions[here], len(members), self.run_length, self.seed, group, number, 6)
        return found + members.start if isinstance(members, range) else members[found]


def _turns(shares: Sequence[int]) -> np.ndarray:
    """Which group each place of a round goes to, int64 [Σ shares].

    The i-th turn of a group comes when its share of the places dealt passes i, and before it passes i + 1: always the turn that can wait
    least (Baruah et al. 1996, "Proportionate Progress", for a single processor).
    """
    places = sum(shares)
    turns = [(i * places // share, -(-(i + 1) * places // share), group) for group, share in enumerate(shares) for i in range(share)]
    turns.sort(reverse=True)
    waiting: list[tuple[int, int]] = []
    dealt = []
    for place in range(places):
        while turns and turns[-1][0] <= place:
            heapq.heappush(waiting, turns.pop()[1:])
        dealt.append(heapq.heappop(waiting)[1])
    return np.array(dealt)


def language_groups(languages: Sequence[str], of_samples: Sequence[Sequence[str]] | np.ndarray) -> list[np.ndarray]:
    """The samples of each language.

    Args:
        languages: those in use.
        of_samples: the languages of each sample; others than those in use do not count.

    Raises:
        UserError: a sample has captions in several of the languages: it would belong to several groups.
    """
    number = {language: index for index, language in enumerate(languages)}
    found = np.empty(len(of_samples), dtype=np.int64)
    for sample, tags in enumerate(of_samples):
        usable = [number[tag] for tag in tags if tag in number]
        if len(usable) != 1:
            told = ", ".join(tag for tag in tags if tag in number) or "none"
            raise UserError(
                "data.balance languages needs samples with captions in one language each, and sample "
                f"{sample} has captions in {told}: use data.balance none, or give --data.languages such that each has one"
            )
        found[sample] = usable[0]
    return [np.flatnonzero(found == index) for index in range(len(languages))]


_FINENESS = 100


def tempered_shares(sizes: Sequence[int], exponent: float) -> list[int]:
    """Shares in proportion to sizeᵉˣᵖᵒⁿᵉⁿᵗ, as whole numbers, 100 on average and at least 1 (Conneau and Lample 2019, section 3.1).

    Args:
        sizes: samples of each group.
        exponent: 0: all equal; 1: as the samples are; between: the smaller groups more often than they are.
    """
    powers = np.array(sizes, dtype=np.float64) ** exponent
    return np.maximum(1, np.rint(_FINENESS * powers / powers.mean())).astype(int).tolist()
