"""Region features in an LMDB: key = image id, value = pickle of {img_h, img_w, features, boxes, …}."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import lmdb

from raysys.errors import UserError
from raysys.shards.parts import Skipped
from raysys.storage import Entry, is_remote

from .pickles import PickleError, PickleRefused, array, loads
from .regions import Regions, RegionsError, regions
from .stores import Item

_KEYS = b"keys"
"""Under this key some releases keep the pickled list of all image ids."""
_TENSORPACK = b"__keys__"


@dataclass(frozen=True)
class LmdbStore:
    """An LMDB on local disk: a folder with ``data.mdb``, or one file."""

    file: Entry

    @property
    def name(self) -> str:
        """Name of the folder or file, without ``.lmdb``."""
        path = self.file.uri.removesuffix("/data.mdb")
        return path.rpartition("/")[2].removesuffix(".lmdb").removesuffix(".mdb")

    def items(self) -> tuple[list[Item], list[Skipped]]:
        """Its images in order of keys, and the images that its own list of keys names in vain.

        Raises:
            UserError: no LMDB, cut short, or written by another tool.
        """
        with self._open() as environment, environment.begin() as transaction:
            if transaction.get(_TENSORPACK) is not None:
                raise UserError(
                    f"{self.file.uri} was written by tensorpack, for training one way only; give the LMDB or TSV it was made from"
                )
            keys = [bytes(key) for key in transaction.cursor().iternext(values=False)]
            listed = transaction.get(_KEYS)
        items, faults = [], []
        for key in keys:
            try:
                image_id = key.decode()
            except UnicodeDecodeError:
                faults.append(Skipped("image id is not UTF-8", self._where(repr(key))))
            else:
                if key != _KEYS:
                    items.append(Item(image_id, self._where(image_id)))
        try:
            expected = loads(listed) if listed else []
        except PickleError as error:
            raise self._explained(error, "keys") from None
        there = set(keys)
        missing = [key for key in expected if isinstance(key, bytes) and key not in there] if isinstance(expected, list) else []
        return items, faults + [Skipped("image listed but missing", self._where(key.decode(errors="replace"))) for key in missing]

    def read(self, items: Sequence[Item]) -> Iterator[Regions | RegionsError]:
        """The regions of some images.

        Raises:
            UserError: a pickle asks for something else than arrays and containers.
        """
        with self._open() as environment, environment.begin() as transaction:
            for item in items:
                try:
                    yield _decode(item.image_id, transaction.get(item.image_id.encode()))
                except RegionsError as error:
                    yield error
                except PickleRefused as error:
                    raise self._explained(error, item.image_id) from None
                except PickleError as error:
                    yield RegionsError("record cannot be read", str(error))

    def _where(self, image_id: str) -> str:
        return f"{self.file.uri} image {image_id}"

    def _explained(self, error: PickleError, image_id: str) -> UserError:
        advice = "nothing of it was run; do not trust this file" if isinstance(error, PickleRefused) else "download it again"
        return UserError(f"{self._where(image_id)}: {error}; {advice}")

    @contextlib.contextmanager
    def _open(self) -> Iterator[lmdb.Environment]:
        path = self.file.uri
        if is_remote(path):
            raise UserError(f"{path}: an LMDB is read in place and cannot lie in object storage; copy it to a disk that all machines reach")
        try:
            environment = lmdb.open(path, subdir=False, readonly=True, lock=False, readahead=False)
        except lmdb.Error as error:
            raise UserError(f"{path} is no LMDB that can be read ({error}); download it again") from None
        with environment:
            # Reading a page that is not there would end the process, so its size is looked at first.
            pages = environment.info()["last_pgno"] + 1
            needed, size = pages * environment.stat()["psize"], os.path.getsize(path)
            if size < needed:
                raise UserError(f"{path} is cut short: it has {size} of {needed} bytes; download it again")
            yield environment


def _decode(image_id: str, value: bytes | None) -> Regions:
    record = loads(value or b"")
    if not isinstance(record, dict):
        raise RegionsError("record cannot be read", f"{type(record).__name__} where a dict was expected")
    fields = {}
    for name in ("img_w", "img_h", "num_boxes", "features", "boxes"):
        found = array(record.get(name))
        fields[name] = record.get(name) if found is None else found
    if missing := [name for name in ("img_w", "img_h", "features", "boxes") if fields[name] is None]:
        raise RegionsError("record cannot be read", f"it has no {', '.join(missing)}")
    return regions(image_id, fields["img_w"], fields["img_h"], fields["num_boxes"], fields["features"], fields["boxes"])
