"""Samples whose pictures are fetched from the web while the shards are written."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from raysys.shards.former import FormerSample
from raysys.shards.parts import Skipped
from raysys.shards.sample import Sample
from raysys.storage import Storage, join

from .described import PictureError
from .download import Failed, Limits, download
from .scaling import Picture, scale_down

CONTACT = "RAYSYS_CONTACT"
"""Environment variable: an address under which administrators of servers can reach you, sent along with every request."""


@dataclass(frozen=True)
class WebPicture:
    """A picture on the web with its captions."""

    key: str
    url: str
    metadata: dict[str, Any]
    where: str
    """How a person finds the record in the source."""


def default_limits() -> Limits:
    """What one part may ask of the network, with the person's contact."""
    return Limits(contact=os.environ.get(CONTACT, ""))


def fetch_all(
    split: str, records: Iterable[WebPicture | Skipped], limits: Limits, former: Mapping[str, FormerSample]
) -> Iterator[Sample | Skipped]:
    """The samples of `records`, in order, those of `former` with the pictures they had; what was skipped before stays so."""
    skipped: list[Skipped] = []

    def known(record: WebPicture) -> Picture | None:
        sample = former.get(record.key)
        return Picture(sample.image, sample.extension) if sample and sample.image else None

    def wanted() -> Iterator[tuple[WebPicture, str]]:
        for record in records:
            if isinstance(record, Skipped):
                skipped.append(record)
            else:
                yield record, record.url

    for record, result in download(wanted(), limits, known):
        yield from skipped
        skipped.clear()
        if isinstance(result, Failed):
            again = " (the next run tries again)" if result.passing else ""
            yield Skipped(f"{result.cause}{again}", f"{record.where}: {record.url}: {result.detail}", result.passing)
        else:
            yield Sample(split, record.key, result.data, result.extension, record.metadata)
    yield from skipped


def read_all(split: str, records: Iterable[WebPicture | Skipped], folder: str, longest_side: int) -> Iterator[Sample | Skipped]:
    """The samples of `records`, whose pictures a person has fetched into `folder`, scaled down like those from the web.

    A picture is looked for by the path of its address, then by the path's last part, each as it is and with ``%20`` and the like
    decoded.
    """
    storage = Storage()
    for record in records:
        if isinstance(record, Skipped):
            yield record
            continue
        path = record.url.partition("://")[2].partition("/")[2].partition("?")[0]
        names = [path, unquote(path), path.rpartition("/")[2], unquote(path).rpartition("/")[2]]
        safe = [name for name in dict.fromkeys(names) if name and ".." not in name.split("/")]
        uri = next((uri for name in safe if storage.exists(uri := join(folder, name))), None)
        if uri is None:  # the person may still be fetching
            yield Skipped("image missing", f"{record.where}: {record.url}", retry=True)
            continue
        try:
            picture = scale_down(storage.read(uri), longest_side)
        except PictureError as error:
            yield Skipped(error.cause, f"{record.where}: {uri}: {error.detail}", retry=True)
        else:
            yield Sample(split, record.key, picture.data, picture.extension, record.metadata)
