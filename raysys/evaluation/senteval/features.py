"""Feature rows of sentences and of pairs, made block by block from vectors that are kept once for each distinct sentence."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from raysys.errors import RunFailed
from raysys.evaluation.senteval.layout import Part

Encode = Callable[[Sequence[str]], np.ndarray]
"""Sentences → vectors, float [n, d]; not normalised."""

_AT_ONCE = 1024  # sentences per call of `encode`
_BLOCK_BYTES = 32 << 20
_IN_MEMORY_BYTES = 1 << 30
_FLAT = 1e-6


class Vectors:
    """Vectors of the distinct sentences of a task, float32 [u, d]; in a file that goes by itself where they are many."""

    def __init__(self, sentences: Sequence[str], encode: Encode, task: str) -> None:
        """Encode every distinct sentence once, those of like length together.

        Raises:
            RunFailed: what `encode` returns has not one finite vector for each sentence.
        """
        distinct = sorted(set(sentences), key=lambda sentence: (len(sentence), sentence))
        self.rows = {sentence: row for row, sentence in enumerate(distinct)}
        self.values: np.ndarray = np.empty((0, 0), dtype=np.float32)
        for start in range(0, len(distinct), _AT_ONCE):
            asked = distinct[start : start + _AT_ONCE]
            got = np.asarray(encode(asked), dtype=np.float32)
            if start == 0 and got.ndim == 2:
                self.values = _room(len(distinct), got.shape[1])
            if got.shape != (len(asked), self.values.shape[1]):
                raise RunFailed(f"{task}: {len(asked)} sentences were encoded and vectors of shape {got.shape} came back")
            if not np.isfinite(got).all():
                raise RunFailed(f"{task}: the vector of {asked[int(np.argmin(np.isfinite(got).all(axis=1)))]!r} is not finite")
            self.values[start : start + len(asked)] = got

    def features(self, part: Part) -> "Features":
        """Rows of `part`, all of whose sentences were encoded."""
        first = np.array([self.rows[sentence] for sentence in part.first])
        second = None if part.second is None else np.array([self.rows[sentence] for sentence in part.second])
        return Features(self.values, first, second)


def _room(count: int, width: int) -> np.ndarray:
    if 4 * count * width <= _IN_MEMORY_BYTES:
        return np.empty((count, width), dtype=np.float32)
    # Mapped, so that the system may take the memory back; the file has no name and ends with the mapping.
    return np.memmap(tempfile.TemporaryFile(), dtype=np.float32, mode="w+", shape=(count, width))


@dataclass(frozen=True)
class Features:
    """Rows of features, never held all at once."""

    vectors: np.ndarray
    """float32 [u, d]."""
    first: np.ndarray
    """int64 [n]: rows of `vectors`."""
    second: np.ndarray | None = None
    """int64 [n] for pairs."""

    def __len__(self) -> int:
        return len(self.first)

    @property
    def width(self) -> int:
        """Features of a row: d for sentences, 2 d for pairs."""
        return self.vectors.shape[1] * (1 if self.second is None else 2)

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """(rows, their features float32 [b, width]): the vector u of a sentence, [|u − v| ; u ∗ v] of a pair."""
        size = max(1, _BLOCK_BYTES // (4 * self.width))
        for start in range(0, len(self), size):
            rows = slice(start, min(start + size, len(self)))
            u = torch.from_numpy(self.vectors[self.first[rows]])
            if self.second is None:
                yield rows, u
            else:
                v = torch.from_numpy(self.vectors[self.second[rows]])
                yield rows, torch.cat([(u - v).abs_(), u * v], dim=1)

    @cached_property
    def principal(self) -> "Principal":
        """Mean and principal axes; read twice and reckoned once."""
        mean = torch.zeros(self.width, dtype=torch.float64)
        for _, block in self.blocks():
            mean += block.sum(dim=0, dtype=torch.float64)
        centre = (mean / len(self)).float()
        covariance = torch.zeros(self.width, self.width)
        for _, block in self.blocks():
            block -= centre
            covariance.addmm_(block.T, block, alpha=1 / len(self))
        variances, axes = torch.linalg.eigh(covariance)
        return Principal(centre, variances.clamp_min(max(float(variances[-1]) * _FLAT, 1e-12)), axes)


@dataclass(frozen=True)
class Principal:
    """Where features lie, and along which axes they vary."""

    mean: Tensor
    """float32 [width]."""
    variances: Tensor
    """float32 [width]: of the rows along each axis; not less than a millionth of the largest, as rounding makes so much."""
    axes: Tensor
    """float32 [width, width], orthogonal: an axis is a column."""
