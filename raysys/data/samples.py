"""The samples that a run trains on: several data sets seen as one, and the settings that choose them."""

import functools
import hashlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pydantic

from raysys.data.bad import BadSample, BadSamplePolicy, OnBadSample, refuse
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.indexed import bad_samples, stored_members
from raysys.errors import UserError
from raysys.settings import Settings
from raysys.shards.languages import normalise_language
from raysys.shards.layout import Layout
from raysys.shards.manifest import Manifest, load_or_build
from raysys.shards.reader import RawSample, read_samples, try_read_samples
from raysys.shards.sample import Captions, SampleError
from raysys.storage import Storage, join


class StoredDataSettings(Settings):
    """Where data lies, and how it is read."""

    folder: str = "data"
    """Folder, local or s3://, in which the folders named below lie."""
    layout: Layout = Layout()
    """Where images, captions and languages lie in a sample, for tars of other tools."""
    on_bad_sample: OnBadSample = "raise"
    """What a sample that cannot be used leads to: the run ends (raise), or another takes its place and it is named in ledger.jsonl
    (skip), and its members are copied beside the run as well (quarantine)."""
    max_bad_fraction: float = pydantic.Field(0.01, ge=0, le=1)
    """Share of the samples that may be bad; more end the run."""
    image: ImagePreprocessorSettings = ImagePreprocessorSettings()
    """How pictures are brought to one size."""
    cached_views: int = pydantic.Field(0, ge=0)
    """Views of each picture whose vectors are computed once and kept (needs model.image.frozen); 0: pictures go through the network
    at every step."""
    run_length: pydantic.PositiveInt = 64
    """Neighbouring samples that are read together."""
    window_steps: pydantic.PositiveInt = 16
    """Steps that one reading task fetches and whose samples are mixed."""

    @property
    def policy(self) -> BadSamplePolicy:
        """What bad samples lead to."""
        return BadSamplePolicy(self.on_bad_sample, self.max_bad_fraction)

    def load(
        self, names: Sequence[str], languages: Sequence[str], storage: Storage, log: Callable[[str], None] = print, **chosen: Any
    ) -> "Samples":
        """:meth:`Samples.load` of some of the named folders, by these settings."""
        return Samples.load([self.locate(name) for name in names], languages, storage, log, self.layout, self.policy, **chosen)

    def locate(self, folder: str) -> str:
        """Where one of the named folders lies: an absolute path or a URI."""
        if "://" in folder or os.path.isabs(folder):
            return folder
        return join(self.folder if "://" in self.folder else os.path.abspath(self.folder), folder)


class DataSettings(StoredDataSettings):
    """Which data, and how it reaches the training workers."""

    train: tuple[str, ...] = pydantic.Field(min_length=1)
    """Folders of shards to train on, beneath `folder` (or absolute, or s3://)."""
    validation: tuple[str, ...] = ()
    """Folders of shards that choose the best checkpoint; one language per image."""
    tests: dict[str, str] = pydantic.Field(default_factory=dict)
    """Folders of shards to score, by the name they have in the score table."""
    languages: tuple[str, ...] = ()
    """Languages to use (BCP-47); empty: all that the training data has."""
    decode: Literal["trainer", "cluster"] = "trainer"
    """Where pictures are decoded: in threads of the training workers, or by Ray Data tasks on CPU nodes."""
    decode_threads: pydantic.PositiveInt = 2
    """Decoding threads of each training worker (decode: trainer)."""
    balance: Literal["none", "languages"] = "none"
    """Which samples make a batch: as they come, or of every language its share (samples of rare languages then come round more often)."""
    balance_exponent: float = pydantic.Field(0.0, ge=0, le=1)
    """A language's share of a batch grows as this power of its samples (balance: languages): 0 all alike, 1 as they come."""
    last_batch: Literal["drop", "keep"] = "drop"
    """What happens to samples that do not fill a batch at the end of an epoch."""

    @pydantic.field_validator("languages")
    @classmethod
    def _one_spelling(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(normalise_language(language) for language in languages))

    @property
    def captioned(self) -> tuple[str, ...]:
        """Folders to train on whose samples are pictures with captions."""
        return self.train


class Samples:
    """All sound samples of several data sets that have a caption in one of `languages`, numbered from 0.

    Args:
        manifests: the data sets, in order.
        languages: languages to use; empty: all.
        storage: the door to the shards.
        layout: where images and captions lie in a sample.
        policy: what samples lead to that turn out to be bad when they are read.
        pairs: samples are read as texts in two languages. Those with captions in fewer than two of `languages` are left out, and some
            of the languages may be missing.
        including: a language that each of them must have; None: none.

    Raises:
        UserError: no sample left, or (but for `pairs`) a language without any.
    """

    def __init__(
        self,
        manifests: Sequence[Manifest],
        languages: Sequence[str],
        storage: Storage,
        layout: Layout | None = None,
        policy: BadSamplePolicy | None = None,
        pairs: bool = False,
        including: str | None = None,
    ):
        self.storage = storage
        self.layout = layout or Layout()
        self.policy = policy or BadSamplePolicy()
        self.manifests = list(manifests)
        folders = ", ".join(manifest.folder for manifest in manifests)
        found = {language for manifest in manifests for language, count in manifest.captions().items() if count}
        self.languages = tuple(normalise_language(language) for language in languages) or tuple(sorted(found))
        missing = [language for language in self.languages if language not in found]
        if missing and not pairs:
            raise UserError(
                f"data.languages: no sample in {folders} has a caption in {', '.join(missing)}; languages there: {', '.join(sorted(found))}"
            )
        wanted, needed = set(self.languages), {including} - {None}
        places = []
        for source, manifest in enumerate(self.manifests):
            tags, counts, faults = (manifest.table[name].to_pylist() for name in ("languages", "captions", "fault"))
            rows = [
                row
                for row in range(len(manifest))
                if faults[row] is None
                and any(counts[row])
                and len(wanted.intersection(tags[row])) >= 1 + pairs
                and needed.issubset(tags[row])
            ]
            places.append(np.stack([np.full(len(rows), source), np.array(rows, dtype=np.int64)]))
        self._source, self._row = np.concatenate(places, axis=1).astype(np.int64)
        if not len(self):
            among = f"in two of the languages {', '.join(self.languages)}" + (f", {including} among them," if including else "")
            what = f"with captions {among}" if pairs else "that can be used"
            why = f": {len(self.bad)} are bad, the first: {self.bad[0]}" if self.bad else ""
            raise UserError(f"no sample {what} in {folders}{why}")

    @classmethod
    def load(
        cls,
        folders: Sequence[str],
        languages: Sequence[str],
        storage: Storage,
        log: Callable[[str], None] = print,
        layout: Layout | None = None,
        policy: BadSamplePolicy | None = None,
        pairs: bool = False,
        including: str | None = None,
    ) -> "Samples":
        """Open data sets by their folders, building manifests that are missing.

        Raises:
            UserError: as the class itself; also where a sample is known to be bad, and the policy is `raise`.
            ShardError: a shard is damaged, and the policy is `raise`.
            BadDataError: more samples are bad than the policy allows.
        """
        layout, policy = layout or Layout(), policy or BadSamplePolicy()
        manifests = [load_or_build(storage, folder, log, "skip" if policy.tolerant else "raise", layout) for folder in folders]
        samples = cls(manifests, languages, storage, layout, policy, pairs, including)
        refuse(samples.bad, policy, samples.total)
        return samples

    def __len__(self) -> int:
        return len(self._row)

    @property
    def left_out(self) -> int:
        """Samples that are not numbered: bad ones, and those without captions in a language in use, or in two where pairs are read."""
        return self.total - len(self)

    @property
    def total(self) -> int:
        """All samples of the data sets: bad ones, and those in other languages, included."""
        return sum(len(manifest) for manifest in self.manifests)

    @functools.cached_property
    def bad(self) -> list[BadSample]:
        """What indexing found: samples that cannot be used, and shards that could be read in part only (with an empty key)."""
        return bad_samples(self.manifests)

    @property
    def fingerprint(self) -> str:
        """Hex digest of the data sets' contents, their order and the languages in use."""
        parts = [manifest.fingerprint for manifest in self.manifests] + list(self.languages)
        return hashlib.blake2b("|".join(parts).encode(), digest_size=16).hexdigest()

    def counts(self) -> dict[str, int]:
        """Samples per language in use; a sample with several languages counts for each."""
        totals = Counter(itertools.chain.from_iterable(self.column("languages")))
        return {language: totals[language] for language in self.languages}

    def column(self, name: str) -> np.ndarray:
        """A manifest column over all samples, as a NumPy array."""
        columns = [manifest.table[name].to_numpy(zero_copy_only=False) for manifest in self.manifests]
        starts = np.cumsum([0] + [len(column) for column in columns[:-1]])
        return np.concatenate(columns)[starts[self._source] + self._row]

    def read(self, ids: np.ndarray) -> list[RawSample]:
        """The members of samples `ids`, in that order, in as few ranged reads as possible.

        Raises:
            SampleError: a sample is not what was indexed.
        """
        return self._read(read_samples, ids)

    def try_read(self, ids: np.ndarray) -> list[RawSample | SampleError]:
        """As :meth:`read`, with the error in the place of each sample that is not what was indexed."""
        return self._read(try_read_samples, ids)

    def _read(self, read: Callable[..., list[Any]], ids: np.ndarray) -> list[Any]:
        sources = self._source[ids]
        found = np.empty(len(ids), dtype=object)
        for source in np.unique(sources):
            positions = np.flatnonzero(sources == source)
            for position, sample in zip(positions, read(self.storage, self.manifests[source], self._row[ids[positions]]), strict=True):
                found[position] = sample
        return found.tolist()

    def captions(self, sample: RawSample) -> Captions:
        """The text of a sample. Raises SampleError where there is none."""
        return self.layout.read(sample.members, sample.where)

    def picture(self, sample: RawSample) -> tuple[str, bytes]:
        """(extension of the member, encoded picture) of a sample. Raises SampleError where it has none."""
        extension = self.layout.image_extension(list(sample.members))
        if extension is None:
            raise SampleError(sample.where, f"no image among its members ({', '.join(sample.members)})", cause="layout")
        return extension, sample.members[extension]

    def stored_members(self, bad: BadSample) -> dict[str, bytes]:
        """The members of a bad sample as they lie in its shard now, as far as they can be read; none of another data set's sample."""
        return stored_members(self.manifests, self.storage, bad)

    def describe_bad(self, sample: int, error: SampleError) -> BadSample:
        """What is told of sample `sample`, which `error` says cannot be used."""
        return BadSample(*self.locate(sample), error.member, error.cause, error.reason)

    def locate(self, sample: int) -> tuple[str, str]:
        """(shard, key) of sample `sample`."""
        manifest, row = self.manifests[self._source[sample]], int(self._row[sample])
        return join(manifest.folder, manifest.table["shard"][row].as_py()), manifest.table["key"][row].as_py()
