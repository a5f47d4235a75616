"""Sentences of books and captioned pictures, numbered as one."""

import hashlib
import itertools
from collections.abc import Sequence

from raysys.data.bad import BadSample, BadSamplePolicy
from raysys.data.samples import Samples
from raysys.data.shares import NumberedSamples
from raysys.data.triples import Triples
from raysys.shards.manifest import Manifest
from raysys.shards.sample import SampleError
from raysys.storage import Storage


class Streams:
    """Triples of sentences, numbered from 0, and after them captioned pictures; what a run trains on, with one policy and one budget.

    Args:
        triples: of the text corpus; None: there is none.
        captions: pictures with their captions; None: there are none.

    Raises:
        ValueError: neither.
    """

    def __init__(self, triples: Triples | None, captions: Samples | None):
        self.triples, self.captions = triples, captions
        self.parts: list[NumberedSamples] = [part for part in (triples, captions) if part is not None]
        if not self.parts:
            raise ValueError("neither triples nor captions to train on")
        self.first_caption = 0 if triples is None else len(triples)
        """Number of the first captioned picture."""

    def __len__(self) -> int:
        return sum(map(len, self.parts))

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
        told = [part.fingerprint if part is not None else "" for part in (self.triples, self.captions)]
        return hashlib.blake2b("|".join(told).encode(), digest_size=16).hexdigest()

    @property
    def total(self) -> int:
        """All stored samples, pieces of documents and pictures, those that are bad or not used included."""
        return sum(map(len, self.manifests))

    @property
    def left_out(self) -> int:
        """Triples and pictures that are not numbered."""
        return sum(part.left_out for part in self.parts)

    @property
    def bad(self) -> list[BadSample]:
        """What indexing found in both."""
        return list(itertools.chain.from_iterable(part.bad for part in self.parts))

    def is_caption(self, sample: int) -> bool:
        """Whether a sample is a captioned picture, and not a triple."""
        return sample >= self.first_caption

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
        return (self.parts[-1], sample - self.first_caption) if self.is_caption(sample) else (self.parts[0], sample)
