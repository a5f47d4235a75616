"""Triples of neighbouring sentences, from which a sentence encoder learns to tell what stands before and after.

Shards hold pieces of documents; the last two sentences of a piece begin the next one, so that every three neighbours stand together in one
piece, and in one alone. Triples are numbered by arithmetic on the manifests' counts of words: no text is read for that.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysys.data.bad import BadSample, BadSamplePolicy, refuse
from raysys.data.indexed import bad_samples, stored_members
from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from raysys.shards.layout import OWN_FORM
from raysys.shards.manifest import Manifest, load_or_build
from raysys.shards.reader import try_read_samples
from raysys.shards.sample import SampleError, decode_json
from raysys.shards.sentences import read_sentences
from raysys.storage import Storage, join


class Triple(NamedTuple):
    """Three neighbouring sentences of a document."""

    previous: str
    this: str
    next: str
    where: str
    """Shard, key and place of the middle sentence, for errors."""


class Triples:
    """All triples of neighbouring sentences of several data sets in one language, numbered from 0 in order of the documents.

    The numbering is that of the samples' keys, whichever shards they lie in. A triple is used if each of its sentences has 1 to
    `max_words` words (:func:`raysys.shards.sentences.count_words`). Memory: 2 bytes a sentence and 40 bytes a sample.

    Args:
        manifests: the data sets, in order.
        language: BCP-47 tag; samples in other languages and those without sentences are passed over.
        storage: the door to the shards.
        max_words: of each sentence.
        policy: what samples lead to that turn out to be bad when they are read.

    Raises:
        UserError: no triple in this language.
    """

    def __init__(
        self,
        manifests: Sequence[Manifest],
        language: str,
        storage: Storage,
        max_words: int = 30,
        policy: BadSamplePolicy | None = None,
    ):
        self.manifests = list(manifests)
        self.storage = storage
        self.languages = (normalise_language(language),)
        self.max_words = max_words
        self.policy = policy or BadSamplePolicy()
        rows, words = zip(*(_pieces(manifest, self.languages[0]) for manifest in self.manifests), strict=True)
        self._source = np.repeat(np.arange(len(rows), dtype=np.int32), [len(found) for found in rows])
        self._row = np.concatenate(rows)
        sizes = np.concatenate([pc.list_value_length(found).to_numpy(zero_copy_only=False) for found in words])
        self._begin = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        """[pieces + 1]: where in `_words` a piece begins."""
        self._words = np.concatenate([found.flatten().to_numpy() for found in words])
        """int16 [sentences]: words of each sentence, piece after piece."""
        usable = np.concatenate([[0], np.cumsum(self._usable(0, len(self._row)), dtype=np.int64)])
        self._first = usable[self._begin]
        """[pieces + 1]: the number of a piece's first triple."""
        self._candidates = int(np.maximum(sizes - 2, 0).sum())
        if not len(self):
            self._refuse()

    def _refuse(self) -> None:
        folders = ", ".join(manifest.folder for manifest in self.manifests)
        found = sorted({language for manifest in self.manifests for language in manifest.languages()})
        if self._candidates:
            why = f"its {self._candidates} triples of neighbours all have a sentence of more than {self.max_words} words, or of none"
        elif bad := self.bad:
            why = f"{len(bad)} samples are bad, the first: {bad[0]}"
        else:
            why = f"there are no three neighbouring sentences in {self.languages[0]}; languages there: {', '.join(found) or 'none'}"
        raise UserError(f"no ordered sentences to train on in {folders}: {why}; python jobs/prepare.py novels makes some")

    @classmethod
    def load(
        cls,
        folders: Sequence[str],
        language: str,
        storage: Storage,
        log: Callable[[str], None] = print,
        max_words: int = 30,
        policy: BadSamplePolicy | None = None,
    ) -> "Triples":
        """Open data sets by their folders, building manifests that are missing or of an older format.

        Raises:
            UserError: as the class itself; also where a sample is known to be bad, and the policy is `raise`.
            ShardError: a shard is damaged, and the policy is `raise`.
            BadDataError: more samples are bad than the policy allows.
        """
        policy = policy or BadSamplePolicy()
        manifests = [load_or_build(storage, folder, log, "skip" if policy.tolerant else "raise", OWN_FORM) for folder in folders]
        refuse(bad_samples(manifests), policy, sum(map(len, manifests)))
        return cls(manifests, language, storage, max_words, policy)

    def __len__(self) -> int:
        return int(self._first[-1])

    @property
    def left_out(self) -> int:
        """Triples that are not numbered, as one of their sentences is too long, or shows nothing."""
        return self._candidates - len(self)

    @property
    def total(self) -> int:
        """All triples in the language, those left out included."""
        return self._candidates

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """int16 [triples]: words of the middle sentence."""
        return self._words[self._usable(0, len(self._row))]

    @functools.cached_property
    def bad(self) -> list[BadSample]:
        """What indexing found: samples that cannot be used, and shards that could be read in part only (with an empty key)."""
        return bad_samples(self.manifests)

    @property
    def fingerprint(self) -> str:
        """Hex digest of the data sets' contents, their order, the language and the longest sentence."""
        parts = ["triples", *(manifest.fingerprint for manifest in self.manifests), *self.languages, str(self.max_words)]
        return hashlib.blake2b("|".join(parts).encode(), digest_size=16).hexdigest()

    def try_read(self, ids: np.ndarray) -> list[Triple | SampleError]:
        """The triples `ids`, in that order, with the error in the place of each whose sample is not what was indexed.

        Every sample is read once, however many of its triples are asked for.

        Raises:
            StorageError: a read failed.
            UserError: a shard is missing.
        """
        ids = np.asarray(ids, dtype=np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= len(self)):
            raise IndexError(f"triples {ids.min()} to {ids.max()} were asked for; there are {len(self)}")
        owners = self._owners(ids)
        found: list[Triple | SampleError | None] = [None] * len(ids)
        wanted = np.unique(owners)
        for piece, sentences in zip(wanted.tolist(), self._read(wanted), strict=True):
            mine = np.flatnonzero(owners == piece)
            if isinstance(sentences, SampleError):
                for place in mine.tolist():
                    found[place] = sentences
                continue
            middles = np.flatnonzero(self._usable(piece, piece + 1))[ids[mine] - self._first[piece]]
            shard, key = self._place(piece)
            for place, middle in zip(mine.tolist(), middles.tolist(), strict=True):
                where = f"{shard}: sample {key!r}, sentence {middle + 1}"
                found[place] = Triple(sentences[middle - 1], sentences[middle], sentences[middle + 1], where)
        return [triple for triple in found if triple is not None]

    def locate(self, triple: int) -> tuple[str, str]:
        """(shard, key) of the sample that holds a triple."""
        return self._place(int(self._owners(np.array([triple]))[0]))

    def describe_bad(self, triple: int, error: SampleError) -> BadSample:
        """What is told of the sample that holds a triple, which `error` says cannot be used."""
        return BadSample(*self.locate(triple), error.member, error.cause, error.reason)

    def stored_members(self, bad: BadSample) -> dict[str, bytes]:
        """The members of a bad sample as they lie in its shard now, as far as they can be read; none of another data set's sample."""
        return stored_members(self.manifests, self.storage, bad)

    def all_sentences(self, most: int | None = None, chunk: int = 256) -> Iterator[str]:
        """Every sentence, of any length, once and in order of the documents; what two pieces share is given out once.

        Samples that cannot be used are passed over, where the policy allows it: training names them.

        Args:
            most: sentences at most, taken from samples spread evenly over the data; None: all.
            chunk: samples that are read at a time.

        Raises:
            BadDataError: a bad sample, where the policy is `raise`.
        """
        pieces = len(self._row)
        count = pieces if most is None else min(pieces, -(-most * pieces // max(len(self._words), 1)) + 1)
        chosen = np.arange(count) * pieces // count
        left, before = len(self._words) if most is None else most, [""]
        for start in range(0, count, chunk):
            some = chosen[start : start + chunk]
            for piece, sentences in zip(some.tolist(), self._read(some), strict=True):
                if isinstance(sentences, SampleError):
                    self.policy.accept(BadSample(*self._place(piece), sentences.member, sentences.cause, sentences.reason))
                    continue
                new = [sentence for sentence in sentences[2 * (sentences[:2] == before) :] if sentence][:left]
                yield from new
                left, before = left - len(new), sentences[-2:]

    def _usable(self, start: int, stop: int) -> np.ndarray:
        """bool [sentences of pieces `start` to `stop`]: whether a sentence is the middle of a triple that is used."""
        begin = self._begin[start : stop + 1] - self._begin[start]
        words = self._words[self._begin[start] : self._begin[stop]]
        fits = (words >= 1) & (words <= self.max_words)
        middle = fits.copy()
        middle[1:] &= fits[:-1]
        middle[:-1] &= fits[1:]
        middle[begin[:-1]] = middle[begin[1:] - 1] = False  # no piece is empty
        return middle

    def _owners(self, ids: np.ndarray) -> np.ndarray:
        """The pieces that triples lie in."""
        return np.searchsorted(self._first, ids, side="right") - 1

    def _place(self, piece: int) -> tuple[str, str]:
        """(shard, key) of a piece."""
        manifest, row = self.manifests[self._source[piece]], int(self._row[piece])
        return join(manifest.folder, manifest.table["shard"][row].as_py()), manifest.table["key"][row].as_py()

    def _read(self, pieces: np.ndarray) -> list[list[str] | SampleError]:
        """The sentences of pieces, in that order."""
        found: list[list[str] | SampleError] = [[]] * len(pieces)
        for source in np.unique(self._source[pieces]):
            places = np.flatnonzero(self._source[pieces] == source)
            samples = try_read_samples(self.storage, self.manifests[source], self._row[pieces[places]])
            for place, sample in zip(places.tolist(), samples, strict=True):
                if isinstance(sample, SampleError):
                    found[place] = sample
                else:
                    found[place] = read_sentences(decode_json(sample.members["json"], sample.where), sample.where).sentences
        return found


def _pieces(manifest: Manifest, language: str) -> tuple[np.ndarray, pa.ListArray]:
    """Rows of the sound samples with sentences in a language, sorted by key, and the words of their sentences."""
    table = manifest.table.select(["key", "languages", "sentences", "fault"]).append_column("row", pa.array(np.arange(len(manifest))))
    table = table.filter(pc.and_(pc.is_null(table["fault"]), pc.greater(pc.list_value_length(table["sentences"]), 0)))
    tags = np.array([tags[0] for tags in table["languages"].to_pylist()], dtype=object)
    table = table.filter(pa.array(tags == language, pa.bool_())).sort_by("key")
    return table["row"].to_numpy(), table["sentences"].combine_chunks()
