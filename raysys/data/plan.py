"""The plan: which samples make up global batch k.

The order of training is a pure function of (number of samples, seed, epoch, global batch size, layout), never of the
number of workers, of timing or of failures::

    step k  →  the ids of global batch k  →  micro-batches, always the same  →  worker r of W takes the r-th part of them

An epoch is shuffled on two levels, so that storage is read in long ranges and yet neighbours are mixed:

* *runs* of neighbouring samples are permuted; where runs begin changes from epoch to epoch;
* a *window* of several steps is filled with consecutive runs and shuffled sample by sample.

Any step's ids are found directly, in memory that does not depend on the number of samples; a run resumed at step k
computes nothing for the steps before it.

Where the samples' lengths are given, a window is divided into batches by length, and the batches are shuffled: a batch then holds little
padding, every sample comes as often as without, and still everything is a function of the step.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from raysys.data.randomness import mix, permute
from raysys.errors import UserError


class Plan:
    """The order of samples over all epochs.

    Args:
        samples: number of samples, ≥ 1.
        global_batch: samples per step over all workers, ≥ 1.
        seed: chooses the order.
        run_length: neighbouring samples that stay together until windows mix them.
        window_steps: steps whose samples are mixed with one another; also what one reading task fetches.
        last_batch: `drop` leaves out the samples that do not fill a batch at the end of an epoch (other ones in each
            epoch), `keep` makes a smaller batch of them.
        micro_batches: parts that each global batch is divided into, whatever the number of workers; None: one for each worker.
        lengths: int16 [samples], whatever is to be alike within a batch, such as numbers of words; None: nothing is.

    Raises:
        UserError: no samples, or `drop` with fewer samples than one batch.
        ValueError: not as many lengths as samples.
    """

    def __init__(
        self,
        samples: int,
        global_batch: int,
        seed: int,
        run_length: int = 64,
        window_steps: int = 16,
        last_batch: Literal["drop", "keep"] = "drop",
        micro_batches: int | None = None,
        *,
        lengths: np.ndarray | None = None,
    ):
        if lengths is not None and len(lengths) != samples:
            raise ValueError(f"{len(lengths)} lengths of {samples} samples")
        if samples < 1:
            raise UserError("the data set has no samples: nothing can be planned")
        if samples < global_batch and last_batch == "drop":
            raise UserError(
                f"training.global_batch is {global_batch}, but the data has only {samples} samples: "
                f"lower it to at most {samples}, or set data.last_batch to keep"
            )
        self.samples = samples
        self.global_batch = global_batch
        self.seed = seed
        self.run_length = min(run_length, samples)
        self.window_steps = window_steps
        self.last_batch = last_batch
        self.micro_batches = micro_batches
        self.lengths = lengths
        self._latest: tuple[int, list[np.ndarray]] = (-1, [])
        self.steps_per_epoch = -(-samples // global_batch) if last_batch == "keep" else samples // global_batch
        self.windows_per_epoch = -(-self.steps_per_epoch // window_steps)

    @property
    def dropped_per_epoch(self) -> int:
        """Samples that one epoch leaves out because they do not fill a batch."""
        return max(0, self.samples - self.steps_per_epoch * self.global_batch)

    def epoch_of(self, step: int) -> int:
        """The epoch, counted from 0, that `step` belongs to."""
        return step // self.steps_per_epoch

    def draw_of(self, step: int) -> int:
        """Number that chooses captions, masks and views at `step`, the same over a window: what comes again is drawn anew."""
        return self.epoch_of(step)

    def window_of(self, step: int) -> int:
        """The window, counted over all epochs, that `step` belongs to."""
        epoch, step_in_epoch = divmod(step, self.steps_per_epoch)
        return epoch * self.windows_per_epoch + step_in_epoch // self.window_steps

    def steps_of(self, window: int) -> range:
        """The steps of a window: `window_steps` of them, fewer in the last window of an epoch."""
        epoch, window_in_epoch = divmod(window, self.windows_per_epoch)
        first = window_in_epoch * self.window_steps
        last = min(first + self.window_steps, self.steps_per_epoch)
        return range(epoch * self.steps_per_epoch + first, epoch * self.steps_per_epoch + last)

    def batch(self, step: int) -> np.ndarray:
        """The ids of global batch `step`: int64, ascending, `global_batch` long (the last of an epoch may be shorter).

        A plan with groups may give a sample twice; where it mixes them, ids are ascending within each group.
        """
        window = self.window_of(step)
        latest = self._latest
        if latest[0] != window:  # a window's steps are asked for one after the other
            self._latest = latest = window, self._batches(window)
        return latest[1][step - self.steps_of(window).start]

    def _batches(self, window: int) -> list[np.ndarray]:
        epoch, window_in_epoch = divmod(window, self.windows_per_epoch)
        sizes = [self.batch_size(step) for step in self.steps_of(window)]
        start = window_in_epoch * self.window_steps * self.global_batch
        size = min(self.window_steps * self.global_batch, self.samples - start)
        order = np.random.Generator(np.random.Philox(key=int(mix(self.seed, epoch, window_in_epoch, 1)))).permutation(size)
        chosen = permuted_runs(start + order[: sum(sizes)], self.samples, self.run_length, self.seed, epoch)
        return [np.sort(part) for part in self._cut(chosen, sizes, epoch, window_in_epoch)]

    def _cut(self, samples: np.ndarray, sizes: Sequence[int], *key: int) -> list[np.ndarray]:
        """A window's samples, in shuffled order, as parts of these sizes: as they come, or by length, the parts shuffled by `key`."""
        turns = np.arange(len(sizes))
        if self.lengths is not None:
            turns = np.random.Generator(np.random.Philox(key=int(mix(self.seed, *key, 7)))).permutation(turns)
            samples = samples[np.argsort(self.lengths[samples], kind="stable")]
        parts = np.split(samples, np.cumsum([sizes[turn] for turn in turns.tolist()])[:-1])
        return [parts[place] for place in np.argsort(turns)]

    def slice(self, step: int, rank: int, workers: int) -> np.ndarray:
        """The ids that worker `rank` of `workers` takes of global batch `step`: its micro-batches, one after the other.

        Ids are ascending, at least within a group, and so the samples of one run mostly meet in one worker's read.
        """
        ids = self.batch(step)
        bounds = slice_bounds(len(ids), self._parts(workers))
        first, last = self.micro_batch_range(rank, workers)
        return ids[bounds[first] : bounds[last]]

    def micro_batch_range(self, rank: int, workers: int) -> tuple[int, int]:
        """Number of the first micro-batch of worker `rank` of `workers`, and of the first one that is not its own any more."""
        bounds = slice_bounds(self._parts(workers), workers)
        return bounds[rank], bounds[rank + 1]

    def micro_batch_sizes(self, size: int, workers: int) -> list[list[int]]:
        """Of a batch of `size` samples, the samples in each micro-batch of each worker; they differ by at most one."""
        sizes = slice_sizes(size, self._parts(workers))
        return [sizes[slice(*self.micro_batch_range(rank, workers))] for rank in range(workers)]

    def _parts(self, workers: int) -> int:
        return self.micro_batches or workers

    def spares(self, step: int, sample: int) -> Iterator[int]:
        """All samples, in the order in which they may take the place of `sample`, which is bad, in global batch `step`.

        A pure function like the batch itself. Those outside the batch come first; among them, those that stand first for no other
        sample of the batch, so that two bad ones are given the same spare only where all of their own are bad too.
        """
        batch = self.batch(step)
        place = int(np.argmax(batch == sample))
        own = range(place, self.samples, self.global_batch)
        for outside in (True, False):
            numbers = itertools.chain(own, (number for number in range(self.samples) if number not in own))
            while some := list(itertools.islice(numbers, 64)):
                candidates = permute(np.array(some), self.samples, self.seed, step, 4)
                yield from candidates[np.isin(candidates, batch) != outside].tolist()

    def batch_size(self, step: int) -> int:
        """Number of samples in global batch `step`."""
        step_in_epoch = step % self.steps_per_epoch
        return min(self.global_batch, self.samples - step_in_epoch * self.global_batch)


def permuted_runs(positions: np.ndarray, samples: int, run_length: int, *key: int) -> np.ndarray:
    """Samples at `positions` of a pass over all `samples` in runs of neighbours, which `key` permutes; windows are not yet shuffled."""
    runs = samples // run_length
    shift = int(mix(*key, 2)) % samples
    run, offset = np.divmod(positions, run_length)
    whole = run < runs
    run[whole] = permute(run[whole], runs, *key, 3)
    return (run * run_length + offset + shift) % samples


def slice_bounds(size: int, parts: int) -> list[int]:
    """Where each of equal parts of `size` rows begins and, as the last entry, ends."""
    return [part * size // parts for part in range(parts + 1)]


def slice_sizes(size: int, parts: int) -> list[int]:
    """How many of `size` rows each of equal parts has."""
    bounds = slice_bounds(size, parts)
    return [after - before for before, after in itertools.pairwise(bounds)]
