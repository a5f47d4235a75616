"""Texts that say the same in several languages, without a picture: what RC³'s stream D_t is made of.

Two forms are read: captions without a picture, ``{"captions": {"en": ["…"], "de": ["…"]}}``, and many texts in one sample,
``{"texts": {"de": ["…", "…"], "en": ["…", "…"]}}``. In both, the i-th texts of all languages belong together.
"""

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from raysys.data.bad import BadSample, BadSamplePolicy, refuse
from raysys.data.indexed import bad_samples, stored_members
from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from raysys.shards.layout import Layout
from raysys.shards.lookup import single
from raysys.shards.manifest import Manifest, load_or_build
from raysys.shards.reader import RawSample, try_read_samples
from raysys.shards.sample import SampleError, UnknownLanguages, captions_by_language, decode_json
from raysys.storage import Storage, join


class Parallel(NamedTuple):
    """Texts that say the same."""

    texts: dict[str, str]
    """BCP-47 tag → text, in the languages in use, two at least."""
    where: str
    """Shard and key, for errors."""


class Pairs:
    """All parallel texts of several data sets, numbered from 0 by the manifests' counts: no text is read for that, or kept.

    A number stands for one place i in one sample at which two of the languages have a text, or more; which two are read is the
    builder's draw. Memory: 20 bytes a sample.

    Args:
        manifests: the data sets, in order.
        languages: languages to use, BCP-47; empty: all.
        storage: the door to the shards.
        layout: where texts lie in a sample.
        policy: what samples lead to that turn out to be bad when they are read.

    Raises:
        UserError: no sample has texts in two of the languages.
    """

    def __init__(
        self,
        manifests: Sequence[Manifest],
        languages: Sequence[str],
        storage: Storage,
        layout: Layout | None = None,
        policy: BadSamplePolicy | None = None,
    ):
        self.storage = storage
        self.layout = layout or Layout()
        self.policy = policy or BadSamplePolicy()
        self.manifests = list(manifests)
        found = {language for manifest in self.manifests for language in manifest.languages()}
        self.languages = tuple(normalise_language(language) for language in languages) or tuple(sorted(found))
        rows, counts = zip(*(parallel_counts(manifest, self.languages) for manifest in self.manifests), strict=True)
        self._source = np.repeat(np.arange(len(rows), dtype=np.int32), [len(some) for some in rows])
        self._row = np.concatenate(rows)
        self._first = np.concatenate([[0], np.cumsum(np.concatenate(counts), dtype=np.int64)])
        """[samples + 1]: the number of a sample's first texts."""
        if not len(self):
            folders = ", ".join(manifest.folder for manifest in self.manifests)
            why = f"; {len(self.bad)} are bad, the first: {self.bad[0]}" if self.bad else ""
            raise UserError(
                f"no parallel text in {folders}: no sample has texts in two of the languages {', '.join(self.languages)}; "
                f"languages there: {', '.join(sorted(found)) or 'none'}{why}"
            )

    @classmethod
    def load(
        cls,
        folders: Sequence[str],
        languages: Sequence[str],
        storage: Storage,
        log: Callable[[str], None] = print,
        layout: Layout | None = None,
        policy: BadSamplePolicy | None = None,
    ) -> "Pairs":
        """Open data sets by their folders, building manifests that are missing or of an older format.

        Raises:
            UserError: as the class itself; also where a sample is known to be bad, and the policy is `raise`.
            ShardError: a shard is damaged, and the policy is `raise`.
            BadDataError: more samples are bad than the policy allows.
        """
        layout, policy = layout or Layout(), policy or BadSamplePolicy()
        manifests = [load_or_build(storage, folder, log, "skip" if policy.tolerant else "raise", layout) for folder in folders]
        refuse(bad_samples(manifests), policy, sum(map(len, manifests)))
        return cls(manifests, languages, storage, layout, policy)

    def __len__(self) -> int:
        return int(self._first[-1])

    @property
    def total(self) -> int:
        """All stored samples, bad ones and those in other languages included."""
        return sum(map(len, self.manifests))

    @property
    def left_out(self) -> int:
        """Samples that are not numbered: bad ones, and those with texts in fewer than two of the languages."""
        return self.total - len(self._row)

    @functools.cached_property
    def bad(self) -> list[BadSample]:
        """What indexing found: samples that cannot be used, and shards that could be read in part only (with an empty key)."""
        return bad_samples(self.manifests)

    @property
    def fingerprint(self) -> str:
        """Hex digest of the data sets' contents, their order and the languages in use."""
        parts = ["pairs", *(manifest.fingerprint for manifest in self.manifests), *self.languages]
        return hashlib.blake2b("|".join(parts).encode(), digest_size=16).hexdigest()

    def try_read(self, ids: np.ndarray) -> list[Parallel | SampleError]:
        """The texts `ids`, in that order, with the error in the place of each that cannot be used.

        Every sample is read once, however many of its texts are asked for.

        Raises:
            StorageError: a read failed.
            UserError: a shard is missing.
        """
        ids = np.asarray(ids, dtype=np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= len(self)):
            raise IndexError(f"texts {ids.min()} to {ids.max()} were asked for; there are {len(self)}")
        owners = self._owners(ids)
        wanted = np.unique(owners)
        stored = dict(zip(wanted.tolist(), self._read(wanted), strict=True))
        found: list[Parallel | SampleError] = []
        for owner, place in zip(owners.tolist(), (ids - self._first[owners]).tolist(), strict=True):
            texts = stored[owner]
            if isinstance(texts, list) and place >= len(texts):
                shard, key = self._place(owner)
                reason = f"in no two languages there is a text {place + 1}: texts that show nothing stand among the others"
                found.append(SampleError(f"{shard}: sample {key!r}", reason, "json", "text"))
            else:
                found.append(texts[place] if isinstance(texts, list) else texts)
        return found

    def all_texts(self, most: int | None = None, chunk: int = 256) -> Iterator[tuple[str, str]]:
        """(language, text) of all texts in the languages in use, in order.

        Samples that cannot be used are passed over, where the policy allows it: training names them.

        Args:
            most: samples to read at most, evenly spaced; None: all.
            chunk: samples that are read at a time.

        Raises:
            BadDataError: a bad sample, where the policy is `raise`.
        """
        samples = len(self._row)
        chosen = np.arange(samples) if most is None or most >= samples else np.arange(most) * samples // most
        for start in range(0, len(chosen), chunk):
            some = chosen[start : start + chunk]
            for owner, texts in zip(some.tolist(), self._read(some), strict=True):
                if isinstance(texts, SampleError):
                    self.policy.accept(BadSample(*self._place(owner), texts.member, texts.cause, texts.reason))
                    continue
                yield from (item for place in texts for item in place.texts.items())

    def locate(self, number: int) -> tuple[str, str]:
        """(shard, key) of the sample that holds texts."""
        return self._place(int(self._owners(np.array([number]))[0]))

    def describe_bad(self, number: int, error: SampleError) -> BadSample:
        """What is told of the sample that holds texts, which `error` says cannot be used."""
        return BadSample(*self.locate(number), error.member, error.cause, error.reason)

    def stored_members(self, bad: BadSample) -> dict[str, bytes]:
        """The members of a bad sample as they lie in its shard now, as far as they can be read; none of another data set's sample."""
        return stored_members(self.manifests, self.storage, bad)

    def _owners(self, ids: np.ndarray) -> np.ndarray:
        """The samples, among those that are used, that texts lie in."""
        return np.searchsorted(self._first, ids, side="right") - 1

    def _place(self, owner: int) -> tuple[str, str]:
        """(shard, key) of a sample."""
        manifest, row = self.manifests[self._source[owner]], int(self._row[owner])
        return join(manifest.folder, manifest.table["shard"][row].as_py()), manifest.table["key"][row].as_py()

    def _read(self, owners: np.ndarray) -> list[list[Parallel] | SampleError]:
        """Of each sample, the texts that belong together, place after place."""
        found: list[list[Parallel] | SampleError] = [[]] * len(owners)
        for source in np.unique(self._source[owners]):
            places = np.flatnonzero(self._source[owners] == source)
            samples = try_read_samples(self.storage, self.manifests[source], self._row[owners[places]])
            for place, sample in zip(places.tolist(), samples, strict=True):
                try:
                    found[place] = sample if isinstance(sample, SampleError) else parallel_texts(sample, self.layout, self.languages)
                except SampleError as error:
                    found[place] = error
        return found


def parallel_texts(sample: RawSample, layout: Layout, languages: Sequence[str]) -> list[Parallel]:
    """What a sample says in two of `languages` or more, place after place.

    Raises:
        SampleError: it has no text, or none that can be read.
    """
    if layout.caption_member or layout.caption_field:
        texts = layout.read(sample.members, sample.where).captions
    else:
        if "json" not in sample.members:
            raise SampleError(sample.where, f"it has no .json member but {', '.join(sample.members)}", "", "layout")
        fields = decode_json(sample.members["json"], sample.where)
        stored = fields.get("captions") or fields.get("texts")
        if not isinstance(stored, dict):
            raise SampleError(sample.where, "it holds no texts by language, in 'captions' or 'texts'", "json", "layout")
        texts = texts_in_place(stored, sample.where, layout.unknown_languages)
    places = itertools.zip_longest(*(texts.get(language, ()) for language in languages), fillvalue="")
    together = [{language: text for language, text in zip(languages, place, strict=True) if text} for place in places]
    return [Parallel(some, sample.where) for some in together if len(some) > 1]


def texts_in_place(stored: Mapping[str, Any], where: str, unknown_languages: UnknownLanguages) -> dict[str, list[str]]:
    """As :func:`raysys.shards.sample.captions_by_language`, but a text that shows nothing stays, as an empty string: it holds the place of
    what other languages say there."""
    cleaned = captions_by_language(dict(stored), where, "json", unknown_languages)
    lists = {tag: [texts] if isinstance(texts, str) else texts for tag, texts in stored.items() if texts}
    if sum(map(len, cleaned.values())) == sum(map(len, lists.values())):
        return cleaned
    places = [
        captions_by_language({tag: texts[i] for tag, texts in lists.items() if i < len(texts)}, where, "json", unknown_languages)
        for i in range(max(map(len, lists.values())))
    ]
    return {language: [place.get(language, [""])[0] for place in places] for language in cleaned}


def parallel_counts(manifest: Manifest, languages: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the sound samples with texts in two of `languages` or more, int64 [n], and at how many places, int64 [n].

    These are as many as the language with the second most texts has.
    """
    tags = single(manifest.table["languages"])
    lengths = tags.value_lengths().fill_null(0).to_numpy()
    owners = np.repeat(np.arange(len(manifest)), lengths)
    counts = single(manifest.table["captions"]).flatten().to_numpy() + single(manifest.table["texts"]).flatten().to_numpy()
    wanted = np.isin(tags.flatten().to_numpy(zero_copy_only=False), list(languages))
    sound = single(manifest.table["fault"]).is_null().to_numpy(zero_copy_only=False)
    kept = wanted & sound[owners] & (counts > 0)
    owners, counts = owners[kept], counts[kept]
    order = np.lexsort((-counts, owners))
    owners, counts = owners[order], counts[order]
    begins = np.flatnonzero(np.diff(owners, prepend=-1))
    second = begins[np.diff(begins, append=len(owners)) > 1] + 1
    return owners[second].astype(np.int64), counts[second].astype(np.int64)
