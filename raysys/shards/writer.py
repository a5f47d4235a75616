"""Writes samples as webdataset shards, byte for byte the same for the same samples."""

import contextlib
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from webdataset import TarWriter

from raysys.errors import UserError
from raysys.shards.reader import KNOWN_EXTENSIONS
from raysys.shards.sample import IMAGE_EXTENSIONS, MANIFEST_NAME, Sample
from raysys.storage import Storage, join

_FURTHER = KNOWN_EXTENSIONS - {"json", *IMAGE_EXTENSIONS}


def shard_name(number: int) -> str:
    """File name of shard `number`."""
    return f"{number:06d}.tar"


def write_shards(samples: Iterable[Sample], folder_uri: str, shards: int, storage: Storage) -> int:
    """Write one split as `shards` tars in `folder_uri`; sample i goes into shard i mod `shards`.

    Tars are built on local disk and handed to the storage whole, so that no half-written shard ever carries a shard's
    name; tars and a manifest that a former run left in the folder are removed. Fewer samples than shards give one shard
    per sample.

    Returns:
        The number of samples written.

    Raises:
        UserError: no samples, a number of shards below one, a key that is used twice or cannot be a key, an image
            extension the reader does not know.
    """
    if shards < 1:
        raise UserError(f"cannot write {folder_uri} as {shards} shards: the number of shards must be at least 1")
    count = 0
    keys: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="raysys-shards-") as folder, contextlib.ExitStack() as open_files:
        writers: list[TarWriter] = []
        for sample in samples:
            check_sample(sample, keys, folder_uri)
            if len(writers) < shards:
                file = open_files.enter_context(open(Path(folder, shard_name(len(writers))), "wb"))
                writers.append(TarWriter(file, user="", group="", mtime=0, encoder=False))
                open_files.callback(writers[-1].close)
            writers[count % shards].write(record_of(sample))
            count += 1
        if count == 0:
            raise UserError(f"there is nothing to write into {folder_uri}: the data set gave no samples")
        open_files.close()
        names = [shard_name(number) for number in range(len(writers))]
        storage.delete(join(folder_uri, MANIFEST_NAME))  # first: it must never describe other shards than those beside it
        for name in names:
            storage.upload(Path(folder, name), join(folder_uri, name))
    _remove_leftovers(storage, folder_uri, set(names))
    return count


def _remove_leftovers(storage: Storage, folder_uri: str, written: set[str]) -> None:
    for entry in storage.list(folder_uri):
        name = entry.uri.rpartition("/")[2]
        if entry.uri == join(folder_uri, name) and name.endswith(".tar") and name not in written:
            storage.delete(entry.uri)


def check_sample(sample: Sample, keys: set[str], folder_uri: str) -> None:
    """Raise UserError where `sample` cannot be written beside those of `keys`, to which its key is added."""
    key, name = sample.key, sample.key.rpartition("/")[2]
    if not name or name.startswith("_") or "." in name or key.startswith("/") or not key.isprintable():
        # Other webdataset readers end the key at the first dot and take names that begin with an underscore for their own.
        raise UserError(
            f"{folder_uri}: {key!r} cannot be the key of a sample: its last part must be printable, begin with no underscore, hold no dot"
        )
    if key in keys:
        raise UserError(f"{folder_uri}: two samples have the key {key!r}")
    keys.add(key)
    if sample.image is not None and sample.extension.lower() not in IMAGE_EXTENSIONS:
        raise UserError(
            f"{folder_uri}: sample {key!r}: {sample.extension!r} is not one of the image extensions {', '.join(IMAGE_EXTENSIONS)}"
        )
    if wrong := sorted(set(sample.extra) - _FURTHER):
        raise UserError(
            f"{folder_uri}: sample {key!r}: {wrong[0]!r} is not one of the extensions of further members: {', '.join(sorted(_FURTHER))}"
        )


def record_of(sample: Sample) -> dict[str, str | bytes]:
    """The sample as webdataset's writer takes it: extension → content."""
    text = json.dumps(sample.metadata, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    record: dict[str, str | bytes] = {"__key__": sample.key, "json": text.encode()}
    if sample.image is not None:
        record[sample.extension] = sample.image
    return record | sample.extra
