"""The images of a task's records, found by key in other shards: pictures, regions of a detector, or both."""

import functools
import io
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from raysys.data.regions import MEMBER
from raysys.data.task_records import TaskRecords
from raysys.errors import UserError
from raysys.shards.manifest import Manifest
from raysys.shards.reader import RawSample, try_read_samples
from raysys.shards.sample import IMAGE_EXTENSIONS, SampleError
from raysys.storage import Storage, join

VisualForm = Literal["patches", "regions", "combined"]
"""Which form of an image is read: pixels, regions of a detector, or both."""


class TaskImages:
    """Where the images of some records lie; numbered from 0, each key once.

    Args:
        records: whose images.
        folders: folders of samples by key; where two have one, the first counts. A record's own sample is looked at before them.
        visual: what is needed of each image.
        storage: the door to the shards.

    Raises:
        UserError: a record's image is in none of the folders, or has not what is needed; names the first, and how many there are.
    """

    def __init__(self, records: TaskRecords, folders: Sequence[Manifest], visual: VisualForm, storage: Storage):
        self.storage, self.visual = storage, visual
        self.manifests = [*folders, *records.manifests]
        names = [
            key if key is not None else records.sample_of(place // records.images_each) for place, key in enumerate(records.image_keys)
        ]
        numbers: dict[Any, int] = {}
        flat = [numbers.setdefault(name, len(numbers)) for name in names]
        self.of_records = np.array(flat, dtype=np.int64).reshape(len(records), records.images_each)
        """int64 [records, images each]: the numbers of each record's images."""
        self.keys = [name if isinstance(name, str) else records.manifests[name[0]].table["key"][name[1]].as_py() for name in numbers]
        self._first = np.full(len(numbers), -1, dtype=np.int64)
        self._first[self.of_records[::-1].ravel()] = np.repeat(np.arange(len(records))[::-1], records.images_each)
        self.places: dict[str, np.ndarray] = {}
        """Kind of member → int64 [images, 2]: manifest and row."""
        for kind in self.kinds:
            self.places[kind] = self._find(kind, list(numbers), records, len(folders))

    def __len__(self) -> int:
        return len(self.keys)

    @functools.cached_property
    def kinds(self) -> tuple[str, ...]:
        """Members that are read of every image: `picture`, `regions`."""
        return {"patches": ("picture",), "regions": ("regions",), "combined": ("picture", "regions")}[self.visual]

    def _find(self, kind: str, names: list[Any], records: TaskRecords, folders: int) -> np.ndarray:
        holders = [_holding(manifest, kind) for manifest in self.manifests]
        by_key = [dict(_keys(manifest, has)) for manifest, has in zip(self.manifests[:folders], holders, strict=False)]
        found = np.full((len(names), 2), -1, dtype=np.int64)
        for image, name in enumerate(names):
            source, row = records.sample_of(int(self._first[image]))
            own = folders + source
            if holders[own][row]:
                found[image] = own, row
                continue
            at = next(((number, rows[name]) for number, rows in enumerate(by_key) if name in rows), None)
            if at:
                found[image] = at
        if len(missing := np.flatnonzero(found[:, 0] < 0)):
            self._refuse(kind, missing, names, records, folders)
        return found

    def _refuse(self, kind: str, missing: np.ndarray, names: list[Any], records: TaskRecords, folders: int) -> None:
        image = int(missing[0])
        shard, key = records.locate(int(self._first[image]))
        told = f"{shard}, record {key!r}: its image {self.keys[image]!r}"
        others = f" ({len(missing)} of {len(names)} images)" if len(missing) > 1 else ""
        where = ", ".join(manifest.folder for manifest in self.manifests[:folders]) or "no folder, as data.images is empty"
        there = any(names[image] in dict(_keys(manifest, None)) for manifest in self.manifests[:folders])
        if not there:
            raise UserError(
                f"{told} was looked for by its key in {where}, and is not there{others}; name the folders of images in data.images"
            )
        if kind == "regions":
            raise UserError(
                f"{told} has no regions (.{MEMBER}){others}, which visual {self.visual} needs: extract them with jobs/extract_rois.py, "
                "or use visual patches"
            )
        raise UserError(
            f"{told} has no picture{others}, which visual {self.visual} needs: name folders of pictures too, or use visual regions"
        )

    def check_regions(self, size: int) -> None:
        """Raise UserError where the regions of the first image are not of `size` numbers, which those of the others then are not either."""
        if "regions" not in self.kinds:
            return
        (_, found), *_ = self.read(np.array([0]))
        sample = found["regions"]
        if isinstance(sample, RawSample) and (width := region_width(sample)) not in (None, size):
            raise UserError(
                f"{self.locate(0)}: its regions are vectors of {width} numbers, and the network was pre-trained on {size}: extract them "
                "with jobs/extract_rois.py as those of pre-training were"
            )

    def read(self, images: np.ndarray) -> Iterator[tuple[int, dict[str, RawSample | SampleError]]]:
        """Number and, by kind, the stored sample of each of `images`, distinct numbers; the error in place of one that cannot be read."""
        read = {kind: self._read(self.places[kind][images]) for kind in self.kinds}
        for position, image in enumerate(images.tolist()):
            yield image, {kind: samples[position] for kind, samples in read.items()}

    def _read(self, places: np.ndarray) -> list[Any]:
        found = np.empty(len(places), dtype=object)
        for source in np.unique(places[:, 0]):
            positions = np.flatnonzero(places[:, 0] == source)
            samples = try_read_samples(self.storage, self.manifests[source], places[positions, 1])
            for position, sample in zip(positions, samples, strict=True):
                found[position] = sample
        return found.tolist()

    def locate(self, image: int) -> str:
        """Where an image lies, for people: its regions, where they are read."""
        source, row = self.places[self.kinds[-1]][image].tolist()
        manifest = self.manifests[source]
        return f"{join(manifest.folder, manifest.table['shard'][row].as_py())}: sample {self.keys[image]!r}"


def _holding(manifest: Manifest, kind: str) -> np.ndarray:
    """bool [samples]: which sound ones have a member of a kind."""
    lookup = manifest.lookup
    wanted = {MEMBER} if kind == "regions" else set(IMAGE_EXTENSIONS)
    of_kind = np.array([name in wanted for name in lookup.extension_names], dtype=bool)
    owners = np.repeat(np.arange(len(manifest)), np.diff(lookup.starts))
    has = np.zeros(len(manifest), dtype=bool)
    has[owners[of_kind[lookup.extensions]]] = True
    return has & manifest.table["fault"].is_null().to_numpy()


def _keys(manifest: Manifest, has: np.ndarray | None) -> Iterator[tuple[str, int]]:
    """(key, row) of the samples that `has` chooses, the first of equal keys last."""
    keys = manifest.table["key"].to_pylist()
    rows = range(len(keys)) if has is None else np.flatnonzero(has).tolist()
    return ((keys[row], row) for row in reversed(rows))


def region_width(sample: RawSample) -> int | None:
    """Numbers in the vectors of a sample's regions; None where they cannot be read."""
    try:
        with np.load(io.BytesIO(sample.members[MEMBER]), allow_pickle=False) as stored:
            return int(stored["features"].shape[1])
    except (KeyError, ValueError, OSError, EOFError, IndexError, zipfile.BadZipFile):
        return None
