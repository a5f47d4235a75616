"""The door itself: picks local disk or object storage by the URI."""

import os
import threading
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow.fs

from raysys.errors import UserError
from raysys.settings import Settings
from raysys.storage.base import Entry, is_remote
from raysys.storage.identity import redacted
from raysys.storage.local import LocalDisk

if TYPE_CHECKING:
    from raysys.storage.s3 import ObjectStore


class StorageSettings(Settings):
    """Where object storage is reached. Credentials come from the environment or the instance's role, never from here."""

    endpoint: str | None = None
    """URL of the S3 endpoint; by default that of AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, else Amazon's."""
    region: str | None = None
    """S3 region; by default that of AWS_REGION or AWS_DEFAULT_REGION, else us-east-1."""


def _first_set(*values: str | None) -> str | None:
    return next((value for value in values if value), None)


class Storage:
    """Reads, writes and lists files behind plain paths, ``file://`` and ``s3://`` URIs.

    Safe to use from several threads; picklable (clients are made anew in the other process, the endpoint and region that
    were in force here travel along). All methods raise UserError for what is missing or forbidden (it names bucket, key and
    endpoint) and StorageError for a transfer that failed after retries.
    """

    def __init__(self, settings: StorageSettings | None = None):
        settings = settings or StorageSettings()
        self.endpoint = _first_set(settings.endpoint, os.environ.get("AWS_ENDPOINT_URL_S3"), os.environ.get("AWS_ENDPOINT_URL"))
        if self.endpoint:
            _check_endpoint(self.endpoint)
        self.region = _first_set(settings.region, os.environ.get("AWS_REGION"), os.environ.get("AWS_DEFAULT_REGION")) or "us-east-1"
        self._disk = LocalDisk()
        self._lock = threading.Lock()
        self._store: ObjectStore | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "region": self.region}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._disk, self._lock, self._store = LocalDisk(), threading.Lock(), None

    @property
    def _s3(self) -> "ObjectStore":
        from raysys.storage.s3 import ObjectStore  # boto3 costs a quarter of a second: only those who need it pay

        with self._lock:
            if self._store is None:
                self._store = ObjectStore(self.endpoint, self.region)
            return self._store

    def read(self, uri: str, offset: int = 0, size: int | None = None) -> bytes:
        """`size` bytes from byte `offset` on (to the end by default); never fewer than asked for.

        A connection that breaks is resumed at the byte where it broke.
        """
        if offset < 0 or (size is not None and size < 0):
            raise ValueError(f"offset {offset} and size {size} must not be negative")
        if size == 0:
            return b""
        return self._s3.read(uri, offset, size) if is_remote(uri) else self._disk.read(_path(uri), offset, size)

    def open(self, uri: str) -> BinaryIO:
        """A binary file for reading from beginning to end; remote ones resume by themselves."""
        return self._s3.open(uri) if is_remote(uri) else self._disk.open(_path(uri))

    def write(self, uri: str, data: bytes) -> None:
        """Write a whole object. Readers see the former object or the new one, never a part; folders are made as needed."""
        if is_remote(uri):
            self._s3.write(uri, data)
        else:
            self._disk.write(_path(uri), data)

    def upload(self, local_path: str | Path, uri: str) -> None:
        """Copy a local file to `uri`, atomically."""
        if is_remote(uri):
            self._s3.upload(os.fspath(local_path), uri)
        else:
            with self._disk.open(os.fspath(local_path)) as source:
                self._disk.copy(source, _path(uri))

    def download(self, uri: str, local_path: str | Path) -> None:
        """Copy `uri` to a local file, atomically."""
        with self.open(uri) as source:
            self._disk.copy(source, os.fspath(local_path))

    def size(self, uri: str) -> int:
        """Size of an object in bytes."""
        return self._s3.size(uri) if is_remote(uri) else self._disk.size(_path(uri))

    def exists(self, uri: str) -> bool:
        """Whether there is an object or a folder at `uri`."""
        return self._s3.exists(uri) if is_remote(uri) else self._disk.exists(_path(uri))

    def delete(self, uri: str, recursive: bool = False) -> None:
        """Delete an object, or with `recursive` everything beneath a folder; what is not there counts as deleted."""
        if is_remote(uri):
            self._s3.delete(uri, recursive)
        else:
            self._disk.delete(_path(uri), recursive)

    def list(self, uri: str, suffix: str = "") -> list[Entry]:
        """All objects beneath the folder `uri` whose names end with `suffix`, sorted by URI.

        URIs begin with `uri` as it was given. Object storage knows no empty folders: one without objects does not exist.
        """
        return self._s3.listing(uri, suffix) if is_remote(uri) else self._disk.listing(_path(uri), suffix, uri.rstrip("/") or "/")

    def describe(self, uri: str) -> str:
        """Where `uri` lies and who asks for it, such as ``endpoint http://… with credentials from env (access key ending in …)``."""
        return str(self._s3) if is_remote(uri) else "local disk"

    def clock(self, uri: str) -> float | None:
        """The time at the store of `uri`, in full seconds since 1970; None for local disk and where the store does not tell it."""
        return self._s3.clock(uri) if is_remote(uri) else None

    def arrow_filesystem(self, uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
        """(pyarrow filesystem, path in it) for libraries that take one, with the same endpoint and region."""
        if not is_remote(uri):
            return pyarrow.fs.LocalFileSystem(), os.path.abspath(_path(uri))
        scheme, _, host = (self.endpoint or "").rpartition("://")
        options = {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"} if self.endpoint else {}
        return pyarrow.fs.S3FileSystem(region=self.region, **options), uri.removeprefix("s3://")


def _check_endpoint(endpoint: str) -> None:
    """Raise UserError for what is no address of a store, or holds what must stay secret."""
    parts = urllib.parse.urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"the S3 endpoint {redacted(endpoint)!r} cannot be used: http://host:port or https://host was expected")
    if parts.username or parts.password or parts.query:
        raise UserError(
            f"the S3 endpoint {parts.scheme}://{parts.hostname} is given with credentials: these come from the environment only"
        )


def _path(uri: str) -> str:
    """The local path of a plain path or a ``file://`` URI."""
    if uri.startswith("file://"):
        return urllib.parse.unquote(uri.removeprefix("file://"))
    scheme, separator, _ = uri.partition("://")
    if separator:
        raise UserError(f"{redacted(uri)}: storage of the kind {scheme}:// is not known; use a path, file:// or s3://")
    if not uri:
        raise UserError("an empty path was given where a file or folder was expected")
    return os.path.expanduser(uri)
