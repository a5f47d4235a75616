"""Fetching one file of a package from the Python package index, by pip alone; pinned, checked and cached as the other archives are."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from raysys.errors import UserError

from .archives import NO_NETWORK_NEEDED, accept, output, present, run, temporary_folder

_UNREACHABLE = (
    "NewConnectionError", "ConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "Failed to establish a new connection",
)  # fmt: skip


@dataclass(frozen=True)
class PypiArchive:
    """A file of a release on the Python package index: a wheel (`.whl`), or its source distribution."""

    name: str
    version: str
    file: str
    sha256: str


def fetch_pypi(archive: PypiArchive, cache: Path, log: Callable[[str], None] = print) -> Path:
    """Make sure that `archive` lies in `cache`, by `pip download`; nothing is installed.

    Raises:
        UserError: no pip, the index cannot be reached or does not have it, or a wrong checksum.
    """
    path = cache / archive.file
    if present(path, archive.sha256):
        return path
    form = "--only-binary" if archive.file.endswith(".whl") else "--no-binary"
    what = f"{archive.name}=={archive.version}"
    log(f"fetching {what} with pip into {cache}")
    with temporary_folder(cache) as folder:
        options = ["--no-deps", "--disable-pip-version-check", "--no-input", "--retries", "2", "--timeout", "30", form, ":all:"]
        done = run([sys.executable, "-m", "pip", "download", *options, what], folder, "pip")
        if done.returncode:
            lines = output(done)
            by_hand = f"put {archive.file} (sha256 {archive.sha256}) into {cache} by any means"
            for line in lines:
                if any(mark in line for mark in _UNREACHABLE):
                    cause = f"the network or the package index could not be reached ({line})"
                    raise UserError(f"{what} could not be fetched: {cause}; {by_hand}. {NO_NETWORK_NEEDED}")
            errors = [line for line in lines if "ERROR" in line or "No module named" in line] or lines
            raise UserError(f"pip could not fetch {what}: {' '.join(errors[:2])}; {by_hand}. {NO_NETWORK_NEEDED}")
        accept(folder / archive.file, archive.sha256, cache, what)
    return path
