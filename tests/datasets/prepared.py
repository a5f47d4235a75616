"""Data sets made from downloaded files, written into shards and read back as they lie there."""

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from raysys.shards.parts import Counts, write_parts
from raysys.shards.reader import split_name
from raysys.storage import Storage


@dataclass
class Split:
    """One split after it was written."""

    counts: Counts
    metadata: dict[str, dict[str, Any]]
    """Key → the json member."""
    images: dict[str, bytes]
    """Name of the image's member → content."""

    @property
    def captions(self) -> dict[str, dict[str, list[str]]]:
        return {key: metadata["captions"] for key, metadata in self.metadata.items()}


def prepared(recipe: ModuleType, source: Path | str, out: Path, shards: int = 2, languages: tuple[str, ...] = ()) -> dict[str, Split]:
    """Write everything that `recipe` makes of `source` in this process, without Ray; split → what lies in its shards."""
    splits = {}
    for split, parts in recipe.parts(str(source), languages=languages or recipe.LANGUAGES, shards=shards, seed=0).items():
        counts = write_parts(parts, str(out / split), Storage(), log=lambda line: None)
        assert counts.read == counts.written + sum(counts.skipped.values())
        splits[split] = read_split(out / split, counts)
    return splits


def read_split(folder: Path, counts: Counts) -> Split:
    """All samples of the shards in `folder`."""
    found = Split(counts, {}, {})
    for shard in sorted(folder.glob("*.tar")):
        with tarfile.open(shard) as archive:
            for member in archive:
                content = archive.extractfile(member)
                named = split_name(member.name)
                assert content
                assert named
                if named[1] == "json":
                    found.metadata[named[0]] = json.loads(content.read())
                else:
                    found.images[member.name] = content.read()
    return found
