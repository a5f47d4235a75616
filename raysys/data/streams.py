"""Data sets of different kinds, numbered as one: sentences of books and captioned pictures, or the three streams of RC³."""

import hashlib
import itertools
from collections.abc import Sequence

import numpy as np

from raysys.data.bad import BadSample, BadSamplePolicy
from raysys.data.pairs import Pairs
from raysys.data.samples import Samples
from raysys.data.shares import NumberedSamples
from raysys.data.triples import Triples
from raysys.shards.manifest import Manifest
from raysys.shards.sample import SampleError
from raysys.storage import Storage

STRICT, WEAK, PARALLEL = range(3)
"""Kinds of samples of RC³: pictures with translations (D_s), pictures with texts that agree loosely (D_w), text alone (D_t)."""


class NumberedParts:
    """Several kinds of samples, numbered from 0 in order of the kinds; what a run trains on, with one policy and one budget.

    Args:
        kinds: the samples of each kind; None: there are none, which takes no numbers.

    Raises:
        ValueError: there are none of any kind.
    """

    def __init__(self, kinds: Sequence[NumberedSamples | None]):
        self.kinds = list(kinds)
        self.parts = [part for part in self.kinds if part is not None]
        if not self.parts:
            raise ValueError("there is nothing to train on")
        self._starts = np.cumsum([0, *(0 if part is None else len(part) for part in self.kinds)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def policy(self) -> BadSamplePolicy:
        """What bad samples lead to."""
        return self.parts[0].policy

    @property
    def storage(self) -> Storage:
        """The door to the shards."""
        return self.parts[0].storage

    @property
    def manifests(self) -> Sequence[Manifest]:
        """The data sets, in order."""
        return [manifest for part in self.parts for manifest in part.manifests]

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages in use."""
        return tuple(dict.fromkeys(language for part in self.parts for language in part.languages))

    @property
    def fingerprint(self) -> str:
        """Hex digest of the contents, their order and the languages in use."""
        told = [part.fingerprint if part is not None else "" for part in self.kinds]
        return hashlib.blake2b("|".join(told).encode(), digest_size=16).hexdigest()

    @property
    def total(self) -> int:
        """All stored samples, those that are bad or not used included."""
        return sum(map(len, self.manifests))

    @property
    def left_out(self) -> int:
        """Samples that are not numbered."""
        return sum(part.left_out for part in self.parts)

    @property
    def bad(self) -> list[BadSample]:
        """What indexing found in all of them."""
        return list(itertools.chain.from_iterable(part.bad for part in self.parts))

    def numbers(self, kind: int) -> range:
        """The numbers of the samples of a kind."""
        return range(int(self._starts[kind]), int(self._starts[kind + 1]))

    def kinds_of(self, samples: np.ndarray) -> np.ndarray:
        """int64: which kind each of `samples` is of."""
        return np.searchsorted(self._starts, samples, side="right") - 1

    def locate(self, sample: int) -> tuple[str, str]:
        """(shard, key) of sample `sample`."""
        part, number = self._within(sample)
        return part.locate(number)

    def describe_bad(self, sample: int, error: SampleError) -> BadSample:
        """What is told of sample `sample`, which `error` says cannot be used."""
        part, number = self._within(sample)
        return part.describe_bad(number, error)

    def stored_members(self, bad: BadSample) -> dict[str, bytes]:
        """The members of a bad sample as they lie in its shard now, as far as they can be read; none of another data set's sample."""
        return {name: data for part in self.parts for name, data in part.stored_members(bad).items()}

    def _within(self, sample: int) -> tuple[NumberedSamples, int]:
        kind = int(self.kinds_of(np.array(sample)))
        part = self.kinds[kind] if 0 <= sample < len(self) else None
        if part is None:
            raise IndexError(f"sample {sample} was asked for; there are {len(self)}")
        return part, sample - int(self._starts[kind])


class Streams(NumberedParts):
    """Triples of sentences, and after them captioned pictures.

    Args:
        triples: of the text corpus; None: there is none.
        captions: pictures with their captions; None: there are none.

    Raises:
        ValueError: neither.
    """

    def __init__(self, triples: Triples | None, captions: Samples | None):
        super().__init__([triples, captions])
        self.triples, self.captions = triples, captions
        self.first_caption = self.numbers(1).start
        """Number of the first captioned picture."""

    def is_caption(self, sample: int) -> bool:
        """Whether a sample is a captioned picture, and not a triple."""
        return sample >= self.first_caption


class Rc3Streams(NumberedParts):
    """The three streams of RC³: D_s, after them D_w, after them D_t.

    Args:
        strict: pictures with captions that are translations of each other; None: there are none.
        weak: pictures with texts in several languages that are not parallel; None: there are none.
        parallel: pairs of texts without pictures; None: there are none.

    Raises:
        ValueError: none of them.
    """

    def __init__(self, strict: Samples | None, weak: Samples | None, parallel: Pairs | None):
        super().__init__([strict, weak, parallel])
        self.strict, self.weak, self.parallel = strict, weak, parallel
