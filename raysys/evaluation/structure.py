"""How far the space of captions has the structure of the space of their pictures: mNNO, ρ_vis, C_inter and C_intra.

All four are exact. The sums over pairs of captions are closed forms in the sums of the vectors and of their outer products, so that
their cost grows with the number of captions, not of pairs; similarities of all pairs are formed for neighbours alone, a block of
rows at a time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from raysys.errors import UserError
from raysys.evaluation.ranking import codes, similarities, unit_vectors

_CHUNK_BYTES = 16 << 20  # of similarities or of vectors held at a time
_CONSTANT = 1e-7
"""A standard deviation of cosines below it is rounding of float32 vectors, not structure."""


@dataclass(frozen=True)
class Structure:
    """The four measures, as fractions; what random neighbours give stands beside mNNO, and 0 beside ρ_vis."""

    pictures: int
    """Pictures that have captions, n."""
    captions: int
    mNNO: float
    """Mean share of common nearest neighbours (Collell and Moens 2018): 1 / (n k) · Σ_i |NN_k(caption of i) ∩ NN_k(picture i)|."""
    mNNO_chance: float
    """k / (n − 1)"""
    rho_vis: float
    """Pearson correlation of cos(s, s') and cos(v_s, v_s') over all pairs of two captions; 0 where either is constant."""
    C_inter: float
    """Mean cosine over pairs of captions of different pictures."""
    C_intra: float
    """Mean cosine over pairs of captions of one picture; NaN where no picture has two."""
    overlaps: np.ndarray = field(repr=False)
    """float64 [n]: the share of common neighbours of each picture, in ascending order of its id; mNNO is their mean."""

    @property
    def metrics(self) -> dict[str, float]:
        """By name, without those that have nothing to count."""
        named = {"eval/mNNO": self.mNNO, "eval/rho_vis": self.rho_vis, "eval/C_inter": self.C_inter, "eval/C_intra": self.C_intra}
        return {name: value for name, value in named.items() if not math.isnan(value)}

    @property
    def chance(self) -> dict[str, float]:
        """What vectors that know nothing of the pictures get, for the metrics where that is known."""
        return {"eval/mNNO": self.mNNO_chance, "eval/rho_vis": 0.0}


def structure(captions: np.ndarray, image_of: npt.ArrayLike, images: np.ndarray, neighbours: int = 10, seed: int = 0) -> Structure:
    """Score the vectors of captions against those of their pictures.

    mNNO compares pictures with one caption each. It is the mean over as many rounds as the picture with most captions has: a round
    takes a caption of every picture, and all of a picture's captions have their turn, in an order drawn by `seed`, before one comes
    again. Neighbours are nearest by cosine, without the picture itself. Those that tie for the last places count with the
    probability that a random order takes them, drawn for captions and pictures apart; constant vectors get exactly chance.

    Args:
        captions: float [M, d]; need not be normalised.
        image_of: int [M], the picture of each caption as a row of `images`. Pictures that look the same may be one row.
        images: float [K, D]; rows that no caption names are left out.
        neighbours: k; n − 1 where there are fewer others.
        seed: of the order in which captions take their turns.

    Raises:
        ValueError: shapes that do not fit, or a row of `images` that is not there.
        UserError: captions of fewer than two pictures.
        RunFailed: vectors that are not finite.
    """
    rows = np.asarray(image_of, dtype=np.int64)
    if rows.shape != captions.shape[:1]:
        raise ValueError(f"{len(captions)} captions with the pictures of {len(rows)}")
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(images):
        raise ValueError(f"pictures {rows.min()} … {rows.max()} were named, there are {len(images)}")
    named, own = np.unique(rows, return_inverse=True)
    if len(named) < 2:
        raise UserError(f"the structure of a space needs captions of at least two pictures; there are {len(named)}")
    pictures = _units(images[named], "pictures")
    k = min(neighbours, len(named) - 1)
    overlaps = _overlaps(captions, own, pictures, k, seed)
    cosines = clusters(captions, own)
    return Structure(
        pictures=len(named),
        captions=len(rows),
        mNNO=float(overlaps.mean()),
        mNNO_chance=k / (len(named) - 1),
        rho_vis=_correlation(captions, own, pictures),
        C_inter=cosines.inter,
        C_intra=cosines.intra,
        overlaps=overlaps,
    )


@dataclass(frozen=True)
class Clusters:
    """Mean cosines within and between groups of vectors."""

    intra: float
    """Over all pairs of one group: C_intra; NaN where no group has two."""
    inter: float
    """Over all pairs of different groups: C_inter; NaN where there is one group."""
    groups: dict[object, tuple[float, float]]
    """Group → (mean cosine of its pairs, mean cosine of its vectors to all others)."""


def clusters(vectors: np.ndarray, groups: Sequence[object] | np.ndarray) -> Clusters:
    """C_intra and C_inter of `vectors`, float [M, d], whose groups are `groups` [M]; groups of one have no pairs to count."""
    names = list(groups.tolist() if isinstance(groups, np.ndarray) else groups)
    of = codes(names)
    count = np.bincount(of)
    sums, squares = np.zeros((len(count), vectors.shape[1])), np.zeros(len(count))
    for start, unit in _chunks(vectors):
        part = of[start : start + len(unit)]
        np.add.at(sums, part, unit)
        np.add.at(squares, part, (unit**2).sum(axis=1))
    whole = (sums**2).sum(axis=1)  # Σ of the cosines of a group's ordered pairs, those of a vector with itself included
    with np.errstate(invalid="ignore"):
        within, across = whole - squares, sums @ sums.sum(axis=0) - whole
        pairs, others = count * (count - 1), count * (len(of) - count)
        return Clusters(
            intra=float(within.sum() / np.float64(pairs.sum())),
            inter=float(across.sum() / np.float64(others.sum())),
            groups=dict(zip(dict.fromkeys(names), zip((within / pairs).tolist(), (across / others).tolist(), strict=True), strict=True)),
        )


def _chunks(vectors: np.ndarray, name: str = "captions") -> Iterator[tuple[int, np.ndarray]]:
    """(first row, unit vectors float64) of a few rows at a time."""
    rows = max(1, _CHUNK_BYTES // (8 * max(1, vectors.shape[1])))
    for start in range(0, len(vectors), rows):
        yield start, unit_vectors(vectors[start : start + rows], f"{name} from {start} on").numpy()


def _units(vectors: np.ndarray, name: str) -> np.ndarray:
    """Unit vectors as float32, which are multiples of 2⁻²⁵ as well: products in float64 stay exact, in half the memory."""
    units = np.empty(vectors.shape, np.float32)
    for start, unit in _chunks(vectors, name):
        units[start : start + len(unit)] = unit
    return units


def _overlaps(captions: np.ndarray, own: np.ndarray, pictures: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Expected share of common neighbours of each picture, float64 [n], as the mean over the rounds."""
    turns = _turns(own, seed)
    said, seen = _units(captions, "captions"), torch.from_numpy(pictures).double()
    found = np.zeros(len(pictures))
    rows = max(1, _CHUNK_BYTES // (8 * len(pictures)))
    for start in range(0, len(pictures), rows):
        near_pictures = _near(seen, start, start + rows, k)
        for turn in turns:
            near_captions = _near(torch.from_numpy(said[turn]).double(), start, start + rows, k)
            found[start : start + rows] += (near_pictures * near_captions).sum(axis=1)
    return found / (k * len(turns))


def _turns(own: np.ndarray, seed: int) -> np.ndarray:
    """Rows of captions, int64 [rounds, n]: that of each picture in each round."""
    shuffled = np.random.default_rng(seed).permutation(len(own))
    ordered = shuffled[np.argsort(own[shuffled], kind="stable")]
    count = np.bincount(own)
    first = np.cumsum(count) - count
    return ordered[first + np.arange(count.max())[:, None] % count]


def _near(vectors: torch.Tensor, start: int, end: int, k: int) -> np.ndarray:
    """Probability that each vector is among the k nearest of the rows `start` … `end`, float64 [rows, n]."""
    scores = similarities(vectors[start:end], vectors).numpy()
    scores[np.arange(len(scores)), np.arange(start, start + len(scores))] = -np.inf
    last = np.partition(scores, -k, axis=1)[:, -k, None]
    above, level = scores > last, scores == last
    free = k - np.count_nonzero(above, axis=1)
    return above + level * (free / np.count_nonzero(level, axis=1))[:, None]


def _correlation(captions: np.ndarray, own: np.ndarray, pictures: np.ndarray) -> float:
    """Pearson correlation of the cosines of captions and of their pictures over all pairs of two captions.

    With the mean vector m, w_i = u_i − m and a_i = m · w_i, the cosine of two captions is u_i · u_j = |m|² + a_i + a_j + w_i · w_j;
    with the same of their pictures, m', z_i and b_i, the sums over all (i, j) are

        Σ_ij (u_i · u_j − |m|²) (v_i · v_j − |m'|²) = 2 M Σ_i a_i b_i + ‖Σ_i w_i z_iᵀ‖²     (Frobenius norm),

    because the w_i, the z_i, the a_i and the b_i each sum to 0: nothing large is ever taken from something large. The pairs (i, i)
    are taken off at the end.
    """
    count = np.bincount(own)
    texts = _Centred(sum((unit.sum(axis=0) for _, unit in _chunks(captions)), np.zeros(captions.shape[1])) / len(own))
    views = _Centred(count.astype(np.float64) @ pictures / len(own))
    w_w, w_of, a = np.zeros((captions.shape[1],) * 2), np.zeros((len(pictures), captions.shape[1])), np.empty(len(own))
    own_x = np.empty(len(own))
    for start, unit in _chunks(captions):
        w, part = texts.centre(unit), slice(start, start + len(unit))
        w_w += w.T @ w
        np.add.at(w_of, own[part], w)
        a[part], own_x[part] = texts.terms(w)
    z = views.centre(pictures.astype(np.float64))
    b, own_y = (values[own] for values in views.terms(z))
    z_z = (z * count[:, None]).T @ z

    def moments(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], outer: np.ndarray) -> float:
        (p, own_p), (q, own_q) = first, second
        total, pairs = 2 * len(own) * (p @ q) + (outer**2).sum() - own_p @ own_q, len(own) * (len(own) - 1)
        return float(total / pairs - (own_p.sum() / pairs) * (own_q.sum() / pairs))

    x, y = (a, own_x), (b, own_y)
    spread_x, spread_y = (math.sqrt(max(0.0, moments(one, one, outer))) for one, outer in ((x, w_w), (y, z_z)))
    if spread_x < _CONSTANT or spread_y < _CONSTANT:
        return 0.0
    return float(np.clip(moments(x, y, w_of.T @ z) / (spread_x * spread_y), -1, 1))


@dataclass(frozen=True)
class _Centred:
    """Vectors around their mean, float64 [d]."""

    mean: np.ndarray

    def centre(self, unit: np.ndarray) -> np.ndarray:
        return unit - self.mean

    def terms(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m · w_i, the cosine of each vector with itself less |m|²), float64 [n] each."""
        a = w @ self.mean
        return a, 2 * a + (w**2).sum(axis=1)
