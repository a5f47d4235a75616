"""What a recipe's parts become: written as shards, indexed and read back."""

import json
import pickle
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

from raysys.shards.manifest import Manifest
from raysys.shards.parts import Counts, write_parts
from raysys.shards.reader import read_samples
from raysys.storage import Storage, join

Written = dict[str, dict[str, dict[str, bytes]]]
"""Split → key → members."""


def prepare(
    recipe: ModuleType, source: Path | str, out: Path, languages: tuple[str, ...], shards: int = 2, **more: Any
) -> tuple[Written, dict[str, Counts]]:
    """Write the data set as `jobs/prepare.py` does; split → samples and split → counts. Every split is indexed without faults."""
    written: Written = {}
    counts: dict[str, Counts] = {}
    for split, parts in recipe.parts(str(source), languages=languages, shards=shards, seed=0, **more).items():
        folder = join(str(out), split)
        parts = pickle.loads(pickle.dumps(parts))
        counts[split] = write_parts(parts, folder, Storage(), log=lambda line: None)
        assert len({part.name for part in parts}) == len(parts)
        written[split] = {}
        if counts[split].written:
            manifest = Manifest.build(Storage(), folder)
            assert manifest.faults() == []
            for sample in read_samples(Storage(), manifest, range(len(manifest))):
                written[split][sample.key] = sample.members
    return written, counts


def notes(members: dict[str, bytes]) -> dict[str, Any]:
    """The json member."""
    return json.loads(members["json"])


def skipped(counts: Counts) -> dict[str, int]:
    """Cause → records; checks the sum."""
    assert counts.read == counts.written + sum(counts.skipped.values())
    return dict(Counter(counts.skipped))
