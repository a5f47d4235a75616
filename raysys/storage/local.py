"""Files on a local or mounted disk."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

from raysys.errors import UserError
from raysys.storage.base import Entry, StorageError, join

_PARTIAL = ".partial"
"""Ending of files still being written; listings leave them out."""


class LocalDisk:
    """The operations of :class:`raysys.storage.Storage` on paths."""

    def read(self, path: str, offset: int, size: int | None) -> bytes:
        with _explained(path), open(path, "rb", buffering=0) as file:
            length = os.fstat(file.fileno()).st_size
            wanted = max(0, length - offset) if size is None else size
            data = os.pread(file.fileno(), wanted, offset)
            while 0 < len(data) < wanted:  # one pread moves 2 GiB at most
                more = os.pread(file.fileno(), wanted - len(data), offset + len(data))
                if not more:
                    break
                data += more
        if len(data) < wanted:
            raise StorageError(f"{path} ends at byte {length}: {wanted} bytes from byte {offset} were wanted, {len(data)} are there")
        return data

    def open(self, path: str) -> BinaryIO:
        with _explained(path):
            return open(path, "rb")

    def write(self, path: str, data: bytes) -> None:
        with _replacing(path) as file:
            file.write(data)

    def copy(self, source: BinaryIO, path: str) -> None:
        with _replacing(path) as file:
            shutil.copyfileobj(source, file, 1 << 20)

    def size(self, path: str) -> int:
        with _explained(path):
            if os.path.isdir(path):
                raise UserError(f"{path} is a folder where a file was expected")
            return os.stat(path).st_size

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def delete(self, path: str, recursive: bool) -> None:
        with _explained(path):
            if os.path.isdir(path) and not os.path.islink(path):
                if not recursive:
                    raise UserError(f"{path} is a folder; deleting it needs recursive=True")
                shutil.rmtree(path)
            else:
                Path(path).unlink(missing_ok=True)

    def listing(self, path: str, suffix: str, prefix: str) -> list[Entry]:
        """Files beneath `path`; their URIs begin with `prefix`, the way the caller spelt `path`."""
        if not os.path.isdir(path):
            what = "is a file where a folder was expected" if os.path.exists(path) else "does not exist"
            raise UserError(f"the folder {path} {what}")
        entries = []
        with _explained(path):
            for folder, _, names in os.walk(path, followlinks=True, onerror=_raise):
                relative = os.path.relpath(folder, path)
                base = prefix if relative == "." else join(prefix, relative)
                for name in names:
                    if name.endswith(suffix) and not name.endswith(_PARTIAL):
                        with contextlib.suppress(FileNotFoundError):  # removed by another process while we look
                            entries.append(Entry(join(base, name), os.stat(os.path.join(folder, name)).st_size))
        return sorted(entries)


def _raise(error: OSError) -> NoReturn:
    raise error


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise UserError(f"{error.filename or path}: {error.strerror}") from None
    except OSError as error:
        raise StorageError(f"{error.filename or path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end, complete and on disk, or not at all."""
    with _explained(path):
        folder = os.path.dirname(path) or "."
        os.makedirs(folder, exist_ok=True)
        if os.path.isdir(path):
            raise UserError(f"{path} is a folder where a file was to be written")
        handle, temporary = tempfile.mkstemp(suffix=_PARTIAL, prefix=f".{os.path.basename(path)}.", dir=folder)
        try:
            with open(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
