"""IGLUE: region features of images, each stored once, and the records of its tasks, which name the images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raysys.errors import UserError
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample
from raysys.storage import Entry

from ..common.lines import find_files, part_name, share
from .lmdb_store import LmdbStore
from .regions import RegionsError, sample_key
from .stores import Item, Store
from .tasks import Annotations, find_annotations
from .tsv_store import TsvStore

SOURCE = (
    "A folder with region features (folders with data.mdb, .lmdb files, or .tsv files of ten columns) and/or the folder `datasets` of "
    "github.com/e-bug/iglue (XVNLI/annotations/fr/test.jsonl, marvl/zero_shot/annotations/marvl-id.jsonl, …), zip files unpacked."
)
LANGUAGES = ("en", "ar", "bn", "de", "es", "fr", "id", "ja", "ko", "pt", "ru", "sw", "ta", "tr", "zh-Hans")
AVAILABLE = LANGUAGES


@dataclass(frozen=True)
class Images:
    """Regions of some consecutive images of one file."""

    name: str
    split: str
    store: Store
    items: tuple[Item, ...]
    faults: tuple[Skipped, ...]
    """Of the file as a whole; told by its first part."""

    def __call__(self) -> Iterator[Sample | Skipped]:
        yield from self.faults
        for item, found in zip(self.items, self.store.read(self.items), strict=True):
            if isinstance(found, RegionsError):
                yield Skipped(found.cause, f"{item.where}: {found.detail}")
                continue
            metadata = {"texts": {}, "image": item.image_id, "width": found.width, "height": found.height, "source": "iglue"}
            yield Sample(self.split, sample_key(item.image_id), None, metadata=metadata, extra={"rois.npz": found.npz()})


@dataclass(frozen=True)
class Records:
    """Every `of`-th record of one file of annotations, from record `index` on."""

    name: str
    annotations: Annotations
    missing: frozenset[str]
    """Keys of images that have no features though others of the file have."""
    index: int
    of: int

    def __call__(self) -> Iterator[Sample | Skipped]:
        for number, record in enumerate(self.annotations.records()):
            if number % self.of != self.index:
                continue
            absent = [key for key in record.images if key in self.missing]
            if record.fault or absent:
                yield Skipped(record.fault or "image has no features", f"{record.where}{': ' if absent else ''}{', '.join(absent)}")
                continue
            metadata = {
                "texts": {self.annotations.language: record.texts},
                "images": record.images,
                "task": self.annotations.task,
                "id": record.identifier,
                "record": record.fields,
                "source": "iglue",
            }
            yield Sample(self.annotations.split, f"{number:07d}", None, metadata=metadata)


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """A split `features-<file>` for every file of features, and `<task>-<split>-<language>` for every file of annotations.

    Raises:
        UserError: neither is there, files that cannot be read, or two of one name.
    """
    files = find_files(source)
    found: dict[str, list[Part]] = {}
    known: set[str] = set()
    for store in _stores(files):
        split = f"features-{sample_key(store.name).replace('%', '-')}"
        if split in found:
            raise UserError(f"--source: {source} has features in two files or folders called {store.name!r}; rename one of them")
        items, faults = _distinct(store)
        known.update(sample_key(item.image_id) for item in items)
        found[split] = list(_image_parts(split, store, items, faults, shards))
    annotations = [item for item in find_annotations(files) if item.language in languages]
    if not found and not annotations:
        raise UserError(f"--source: {source} has neither features nor annotations of IGLUE in {' '.join(languages)}. {SOURCE}")
    for item in annotations:
        images = {key for record in item.records() for key in record.images}
        missing = frozenset(images - known) if images & known else frozenset()
        own = [(item, missing, index, shards) for index in range(shards)]
        found[item.split] = [Records(part_name(f"iglue {item.split} {part[2]}/{shards}", item, sorted(missing)), *part) for part in own]
    return found


def _stores(files: Sequence[Entry]) -> Iterator[Store]:
    for file in files:
        name = file.uri.rpartition("/")[2]
        if name == "data.mdb" or name.endswith(".lmdb"):
            yield LmdbStore(file)
        elif name.endswith(".tsv"):
            yield TsvStore(file)


def _distinct(store: Store) -> tuple[list[Item], list[Skipped]]:
    """The images of a file; of two with the same key, the first one."""
    items, faults = store.items()
    firsts: dict[str, Item] = {}
    for item in items:
        key = sample_key(item.image_id)
        if not key:
            faults.append(Skipped("no image id", item.where))
        elif firsts.setdefault(key, item) is not item:
            faults.append(Skipped("image is there twice", item.where))
    return list(firsts.values()), faults


def _image_parts(split: str, store: Store, items: Sequence[Item], faults: Sequence[Skipped], shards: int) -> Iterator[Part]:
    count = max(1, min(shards, len(items)))
    for index in range(count):
        lines = share(len(items), index, count)
        own = (store, tuple(items[lines.start : lines.stop]), tuple(faults) if index == 0 else ())
        yield Images(part_name(f"iglue {split} {index}", *own), split, *own)
