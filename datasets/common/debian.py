"""Reading a Debian package where dpkg is missing: an ar archive of tars."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from raysys.errors import UserError

_MAGIC = b"!<arch>\n"


def ar_members(file: BinaryIO) -> Iterator[tuple[str, int, int]]:
    """Yield (name, offset of the content, size) of each member of an ar archive.

    The format: an 8-byte magic, then per member a 60-byte header (name 16, time 12, uid 6, gid 6, mode 8, size 10, ``"`\\n"``)
    and the content, padded to an even length.

    Raises:
        ValueError: not an ar archive, or cut short.
    """
    if file.read(8) != _MAGIC:
        raise ValueError("not an ar archive")
    end = file.seek(0, io.SEEK_END)
    offset = len(_MAGIC)
    while offset < end:
        file.seek(offset)
        header = file.read(60)
        if len(header) < 60 or header[58:] != b"`\n":
            raise ValueError(f"damaged ar header at byte {offset}")
        size = int(header[48:58])
        offset += 60
        if offset + size > end:
            raise ValueError(f"cut short: {end - offset} of {size} bytes of {header[:16].decode().strip()}")
        yield header[:16].decode("ascii").strip().rstrip("/"), offset, size
        offset += size + size % 2


def read_files(package: Path, folder: str, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """Contents of the files of `package` beneath `folder` whose names end in one of `suffixes`, by path relative to `folder`.

    Raises:
        UserError: `package` is not a Debian package.
    """
    files: dict[str, bytes] = {}
    with package.open("rb") as file:
        try:
            name, offset, size = next(member for member in ar_members(file) if member[0].startswith("data.tar"))
        except (ValueError, StopIteration) as error:
            raise UserError(f"{package} is not a Debian package: {str(error) or 'no data.tar in it'}") from None
        file.seek(offset)
        content = file if offset + size == package.stat().st_size else io.BytesIO(file.read(size))
        with tarfile.open(fileobj=content, mode=f"r|{name.removeprefix('data.tar').removeprefix('.')}") as tar:
            for member in tar:
                path = member.name.removeprefix("./")
                if member.isfile() and path.startswith(folder + "/") and path.endswith(suffixes):
                    extracted = tar.extractfile(member)
                    assert extracted is not None
                    files[path.removeprefix(folder + "/")] = extracted.read()
    return files
