"""The samples that a run trains on: several data sets seen as one, and the settings that choose them."""

import hashlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import pydantic

from raysys.data.images import ImagePreprocessorSettings
from raysys.errors import UserError
from raysys.settings import Settings
from raysys.shards.languages import normalise_language
from raysys.shards.manifest import Manifest, load_or_build
from raysys.shards.reader import RawSample, read_samples
from raysys.storage import Storage, join


class DataSettings(Settings):
    """Which data, and how it reaches the training workers."""

    folder: str = "data"
    """Folder, local or s3://, in which the folders named below lie."""
    train: tuple[str, ...] = pydantic.Field(min_length=1)
    """Folders of shards to train on, beneath `folder` (or absolute, or s3://)."""
    validation: tuple[str, ...] = ()
    """Folders of shards that choose the best checkpoint; one language per image."""
    tests: dict[str, str] = pydantic.Field(default_factory=dict)
    """Folders of shards to score, by the name they have in the score table."""
    languages: tuple[str, ...] = ()
    """Languages to use (BCP-47); empty: all that the training data has."""
    image: ImagePreprocessorSettings = ImagePreprocessorSettings()
    """How pictures are brought to one size."""
    decode: Literal["trainer", "cluster"] = "trainer"
    """Where pictures are decoded: in threads of the training workers, or by Ray Data tasks on CPU nodes."""
    decode_threads: pydantic.PositiveInt = 2
    """Decoding threads of each training worker (decode: trainer)."""
    cached_views: int = pydantic.Field(0, ge=0)
    """Views of each picture whose vectors are computed once and kept (needs model.image.frozen); 0: pictures go through the network
    at every step."""
    run_length: pydantic.PositiveInt = 64
    """Neighbouring samples that are read together."""
    window_steps: pydantic.PositiveInt = 16
    """Steps that one reading task fetches and whose samples are mixed."""
    last_batch: Literal["drop", "keep"] = "drop"
    """What happens to samples that do not fill a batch at the end of an epoch."""

    @pydantic.field_validator("languages")
    @classmethod
    def _one_spelling(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(normalise_language(language) for language in languages))

    def locate(self, folder: str) -> str:
        """Where one of the named folders lies: an absolute path or a URI."""
        if "://" in folder or os.path.isabs(folder):
            return folder
        return join(self.folder if "://" in self.folder else os.path.abspath(self.folder), folder)


class Samples:
    """All sound samples of several data sets that have a caption in one of `languages`, numbered from 0.

    `left_out` counts the others.

    Args:
        manifests: the data sets, in order.
        languages: languages to use; empty: all.
        storage: the door to the shards.

    Raises:
        UserError: no sample left, or a language without any.
    """

    def __init__(self, manifests: Sequence[Manifest], languages: Sequence[str], storage: Storage):
        self.storage = storage
        self.manifests = list(manifests)
        folders = ", ".join(manifest.folder for manifest in manifests)
        found = {language for manifest in manifests for language in manifest.languages()}
        self.languages = tuple(normalise_language(language) for language in languages) or tuple(sorted(found))
        missing = [language for language in self.languages if language not in found]
        if missing:
            raise UserError(
                f"data.languages: no sample in {folders} has a caption in {', '.join(missing)}; languages there: {', '.join(sorted(found))}"
            )
        wanted = set(self.languages)
        places = []
        for source, manifest in enumerate(self.manifests):
            tags, faults = manifest.table["languages"].to_pylist(), manifest.table["fault"].to_pylist()
            rows = [row for row in range(len(manifest)) if faults[row] is None and wanted.intersection(tags[row])]
            places.append(np.stack([np.full(len(rows), source), np.array(rows, dtype=np.int64)]))
        self._source, self._row = np.concatenate(places, axis=1).astype(np.int64)
        self.left_out = sum(len(manifest) for manifest in self.manifests) - len(self)
        if not len(self):
            raise UserError(f"no samples in {folders}")

    @classmethod
    def load(cls, folders: Sequence[str], languages: Sequence[str], storage: Storage, log: Callable[[str], None] = print) -> "Samples":
        """Open data sets by their folders, building manifests that are missing."""
        return cls([load_or_build(storage, folder, log) for folder in folders], languages, storage)

    def __len__(self) -> int:
        return len(self._row)

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
        """The members of samples `ids`, in that order, in as few ranged reads as possible."""
        found: list[RawSample | None] = [None] * len(ids)
        for source in np.unique(self._source[ids]):
            positions = np.flatnonzero(self._source[ids] == source)
            rows = self._row[ids[positions]].tolist()
            for position, sample in zip(positions, read_samples(self.storage, self.manifests[source], rows), strict=True):
                found[position] = sample
        return [sample for sample in found if sample is not None]
