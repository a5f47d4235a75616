"""The samples of a shard that a former run wrote, for a part that is made again."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from raysys.shards.layout import OWN_FORM
from raysys.shards.reader import split_name
from raysys.shards.tar import ShardError, iterate_members


class FormerSample(NamedTuple):
    """What was written of one sample."""

    image: bytes | None
    extension: str
    """Of the image; empty without one."""
    metadata: dict[str, Any]
    """The json member."""


class FormerShard(Mapping[str, FormerSample]):
    """Key → sample of a shard on local disk; the contents stay there until they are asked for. Usable from several threads.

    Raises:
        ShardError: the shard is damaged.
    """

    def __init__(self, path: Path):
        self._places: dict[str, dict[str, tuple[int, int]]] = {}
        self._file = path.open("rb")
        try:
            for member in iterate_members(self._file, path.stat().st_size, str(path)):
                if named := split_name(member.name):
                    self._places.setdefault(named[0], {})[named[1]] = (member.offset, member.size)
        except ShardError:
            self.close()
            raise

    def __getitem__(self, key: str) -> FormerSample:
        places = self._places[key]
        extension = OWN_FORM.image_extension(list(places)) or ""
        image = self._read(places[extension]) if extension else None
        return FormerSample(image, extension, json.loads(self._read(places["json"])))

    def _read(self, place: tuple[int, int]) -> bytes:
        offset, size = place
        return os.pread(self._file.fileno(), size, offset)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
