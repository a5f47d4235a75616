"""What local and remote storage share: entries, the error of a failed transfer, and paths as URIs."""

from dataclasses import dataclass

from raysys.errors import RunFailed


class StorageError(RunFailed):
    """A transfer failed for a reason the person cannot have caused by a wrong path or right: cut, timed out, changed."""


@dataclass(frozen=True, order=True)
class Entry:
    """One object of a listing."""

    uri: str
    size: int
    """Bytes."""


def is_remote(uri: str) -> bool:
    """Whether `uri` lies in object storage."""
    return uri.startswith("s3://")


def join(uri: str, *parts: str) -> str:
    """`uri` with `parts` beneath it, separated by single slashes."""
    head = uri.rstrip("/") or ("/" if uri.startswith("/") else "")
    tail = [part.strip("/") for part in parts if part.strip("/")]
    return "/".join([head if head != "/" else "", *tail]) if tail and head else (head or "/".join(tail))
