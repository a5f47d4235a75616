"""How many samples of a data set two languages share: what pairs of captions it has to offer (the paper's Table 5)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from raysys.shards.manifest import Manifest

_AT_ONCE = 1 << 16
"""Samples that are counted together; a sum of so many ones is exact in single precision."""


@dataclass(frozen=True)
class LanguagePairs:
    """Counts of a data set."""

    folder: str
    samples: int
    """Samples without a fault, in whichever languages."""
    images: int
    """Of them, those that have an image."""
    languages: tuple[str, ...]
    """BCP-47 tags."""
    counts: np.ndarray
    """int64 [languages, languages]: samples with texts in both, captions of an image or not; on the diagonal those with texts in the
    one language."""

    def lines(self) -> list[str]:
        """The table as text for a terminal: every pair once, at the language that comes first."""
        head = f"{self.folder}: {self.samples} samples, {self.images} with an image; samples that have texts in both languages"
        if not self.languages:
            return [f"{self.folder}: {self.samples} samples, none with texts"]
        width = max([len(tag) for tag in self.languages] + [len(str(self.counts.max()))])
        lines = [head, "  ".join(["  " + " " * width, *(f"{tag:>{width}}" for tag in self.languages)])]
        for row, tag in enumerate(self.languages):
            cells = ["" if column < row else str(count) for column, count in enumerate(self.counts[row].tolist())]
            lines.append("  ".join([f"  {tag:{width}}", *(f"{cell:>{width}}" for cell in cells)]))
        return lines

    def record(self) -> dict[str, Any]:
        """The same for json; `counts` is symmetric, rows and columns in the order of `languages`."""
        numbers = {"samples": self.samples, "images": self.images}
        return {"folder": self.folder, **numbers, "languages": list(self.languages), "counts": self.counts.tolist()}


def choose_languages(tags: Iterable[str]) -> tuple[str, ...]:
    """Language tags in their normal spelling, each once.

    Raises:
        UserError: not a language tag.
    """
    try:
        return tuple(dict.fromkeys(normalise_language(tag) for tag in tags))
    except ValueError as error:
        raise UserError(f"--languages: {error}") from None


def count_pairs(manifest: Manifest, languages: Sequence[str] = ()) -> LanguagePairs:
    """Count the samples that pairs of languages share; no shard is read.

    Args:
        languages: which, and in what order; all that the data set has, the most frequent first, if empty.
    """
    sound = manifest.table.filter(pc.is_null(manifest.table["fault"]))
    chosen = tuple(languages) or tuple(manifest.languages())
    number = {tag: place for place, tag in enumerate(chosen)}
    counts = np.zeros((len(chosen), len(chosen)), np.int64)
    for start in range(0, len(sound), _AT_ONCE):
        lists = sound["languages"].slice(start, _AT_ONCE).combine_chunks()
        owners = pc.list_parent_indices(lists).to_numpy()
        places = np.array([number.get(tag, -1) for tag in pc.list_flatten(lists).to_pylist()], np.int64)
        has = np.zeros((len(lists), len(chosen)), np.float32)
        has[owners[places >= 0], places[places >= 0]] = 1
        counts += (has.T @ has).astype(np.int64)
    images = int(np.count_nonzero(sound["image_id"].to_numpy()))
    return LanguagePairs(manifest.folder, len(sound), images, chosen, counts)
