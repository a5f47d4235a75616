"""What there is to know of the machine this runs on."""

import importlib.metadata
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

LIBRARIES = ("torch", "ray", "deepspeed", "transformers", "numpy", "pyarrow", "pillow")
"""Those whose versions must agree."""


@dataclass(frozen=True)
class Disk:
    """The file system a folder lies on. Bytes."""

    free: int
    total: int


@dataclass(frozen=True)
class NodeFacts:
    """One machine. Memory in bytes."""

    python: str
    libraries: dict[str, str]
    """Version by name; ``none`` for one that is not installed."""
    memory: int
    """That processes started now can have."""
    shared_memory: int | None
    """Size of /dev/shm; None where there is none."""
    disks: dict[str, Disk]
    """By the folder that was asked for."""


def gather(folders: Sequence[str]) -> NodeFacts:
    """Look at this machine; `folders` are paths whose disks matter, and need not exist yet."""
    return NodeFacts(
        python=platform.python_version(),
        libraries={name: _version(name) for name in LIBRARIES},
        memory=min(psutil.virtual_memory().available, _container_memory()),
        shared_memory=shutil.disk_usage("/dev/shm").total if os.path.isdir("/dev/shm") else None,
        disks={folder: _disk(folder) for folder in folders},
    )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _container_memory(group: Path = Path("/sys/fs/cgroup")) -> int:
    """What the container's limit (cgroup v2) leaves; without a limit, more than any machine has."""
    try:
        return max(0, int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):  # "max", or another kind of control group
        return 1 << 60


def _disk(folder: str) -> Disk:
    """The disk of a folder or of the nearest one above it that exists."""
    path = Path(folder).absolute()
    usage = shutil.disk_usage(next(place for place in (path, *path.parents) if place.exists()))
    return Disk(usage.free, usage.total)
