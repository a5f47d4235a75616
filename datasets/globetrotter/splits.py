"""The split rule of the paper, made sure of: images in one language for training and validation, the same captions in all for testing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from raysys.errors import UserError
from raysys.shards.parts import Skipped
from raysys.storage import Storage, join

from ..common.archives import to_stderr
from ..common.deal import LanguageDeal, lot
from .layout import ALL_LANGUAGES, COLLECTIONS, INDEPENDENT, Collection, Image, Text, find_english, find_listing, read_listing

SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""Name in the listings' names → ours."""
PIVOT = "en"
"""What all captions were translated from: images of any language may be listed in it as well."""


class Record(NamedTuple):
    """An image with the texts that one sample is made of."""

    key: str
    images: tuple[str, ...]
    """Where the image may lie beneath the source; none for a text without image."""
    texts: tuple[tuple[str, str], ...]
    """(language, path beneath the source); line i of all of them says the same."""
    translations: tuple[tuple[str, str], ...]
    """Such texts that are no captions of the sample, for systems that are trained with translations."""
    fields: tuple[tuple[str, str], ...]
    """Free fields of the sample."""
    by_line: bool = False
    """Make a sample of every line, not one of all."""


@dataclass
class Found:
    """What becomes one split."""

    records: list[Record] = field(default_factory=list)
    faults: list[Skipped] = field(default_factory=list)


Languages = dict[Image, dict[str, str]]
"""Image → language → path of its text."""


def find_splits(storage: Storage, source: str, languages: Sequence[str], seed: int) -> dict[str, Found]:
    """`train`, `validation` and `test` of all collections that are there, one collection after the other, each in the order of its keys.

    Args:
        languages: to keep, in BCP-47. What the listings have in others is no record.
        seed: of the lot that gives an image its language where all of them are listed for training.

    Raises:
        UserError: an image is in two splits, or in two languages of one (names image and files).
    """
    found = {split: Found() for split in SPLITS.values()}
    deal = LanguageDeal(languages, lot(seed, "globetrotter", "languages"))
    for collection in COLLECTIONS:
        listings = _Listings(storage, source, collection, languages, found)
        for split in ("train", "validation"):
            found[split].records += listings.one_language(split, deal)
        found["test"].records += listings.every_language()
    return found


class _Listings:
    """The listings of one collection, each image in the one split it belongs to."""

    def __init__(self, storage: Storage, source: str, collection: Collection, languages: Sequence[str], found: dict[str, Found]):
        self.storage, self.source, self.collection = storage, source, collection
        self.languages, self.found = languages, found
        self.independent: dict[str, Languages] = {}
        self.translated: dict[str, Languages] = {}
        owners: dict[Image, tuple[str, str]] = {}
        for published, split in reversed(SPLITS.items()):  # the test's images first: English is told from them
            self.translated[split] = self._read(ALL_LANGUAGES, published, owners)
            self.independent[split] = self._read(INDEPENDENT, published, owners) if published != "test" else {}
        self.english = find_english(storage, source, collection)

    def _read(self, kind: str, published: str, owners: dict[Image, tuple[str, str]]) -> Languages:
        split = SPLITS[published]
        its: Languages = {}
        uri = find_listing(self.storage, self.source, self.collection, kind, published)
        if uri is None:
            if (kind == ALL_LANGUAGES) == (published == "test"):
                to_stderr(f"note: {self.source} has no {self.collection.folder}/{kind}/listing_{published}.txt")
            return its
        for text in read_listing(uri, self.collection, kind):
            if isinstance(text, Skipped):
                self.found[split].faults.append(text)
                continue
            owner, path = owners.setdefault(text.image, (split, text.path))
            if owner == "test" and split != "test" and text.language == PIVOT and kind == INDEPENDENT:
                # The independent English is that of the images which were translated into all languages.
                self._leave_out(text, split, "English of an image of the test split")
            elif owner != split:
                raise self._inconsistent(text.image, f"two splits: {path} is listed for {owner}, {text.path} for {split}")
            elif its.setdefault(text.image, {}).setdefault(text.language, text.path) != text.path:
                self._leave_out(text, split, "another text of the image in its language")
        return its

    def _leave_out(self, text: Text, split: str, cause: str) -> None:
        if text.language in self.languages:
            self.found[split].faults.append(Skipped(cause, join(self.source, text.path)))

    def _inconsistent(self, image: Image, why: str) -> UserError:
        return UserError(
            f"--source: in {self.source} the image {image.files[0]} is in {why}. The splits must be disjoint: texts and listings are "
            "not of one publication; unpack dataset.tar.gz again into an empty folder"
        )

    def one_language(self, split: str, deal: LanguageDeal) -> list[Record]:
        """Images of a split with their texts in one language; those that all languages are listed for get one by lot.

        Raises:
            UserError: an image has texts of its own in two languages.
        """
        records = []
        for image in sorted(self.independent[split] | self.translated[split]):
            own, others = self.independent[split].get(image, {}), self.translated[split].get(image, {})
            its = others | own
            if len(own) > 1:
                own, others = {a: own[a] for a in own if a != PIVOT}, {a: own[a] for a in own if a == PIVOT} | others
            if len(own) > 1:
                paths = sorted(own.values())
                raise self._inconsistent(image, f"two languages of {split}: {paths[0]} and {paths[1]}")
            listed = list(own) or deal.deal(1, [language for language in self.languages if language in its])
            if listed and listed[0] in self.languages:
                language, path = listed[0], its[listed[0]]
                if PIVOT in self.languages and (english := self.english.get(path.rpartition("/")[2])):
                    others = {PIVOT: english} | others
                translations = tuple((a, others[a]) for a in self.languages if a in others and a != language)
                records.append(Record(image.key, image.files, ((language, path),), translations, self._fields))
        return records

    def every_language(self) -> list[Record]:
        """Images of the test split that have texts in each of the languages which the listing has."""
        its_images = self.translated["test"]
        listed = {language for its in its_images.values() for language in its}
        wanted = [language for language in self.languages if language in listed]
        records = []
        for image, its in sorted(its_images.items()):
            if lacking := [language for language in wanted if language not in its]:
                where = f"{image.files[0]}: {self.collection.folder}/{ALL_LANGUAGES} has no text in {', '.join(lacking)}"
                self.found["test"].faults.append(Skipped("not in every language", where))
            elif wanted:
                records.append(Record(image.key, image.files, tuple((a, its[a]) for a in wanted), (), self._fields))
        return records

    @property
    def _fields(self) -> tuple[tuple[str, str], ...]:
        return (("source", "globetrotter"), ("collection", self.collection.name))


def draw(records: Sequence[Record], counts: Iterable[int], seed: int) -> list[list[Record]]:
    """The records in disjoint lists: by lot as many as `counts` says for each, as far as they go, and the rest in a last one."""
    shuffled = lot(seed, "globetrotter", "test").sample(range(len(records)), len(records))
    drawn, begin = [], 0
    for count in (*counts, len(records)):
        drawn.append([records[index] for index in sorted(shuffled[begin : begin + count])])
        begin += count
    return drawn
