"""Procrustes for any number of languages: one rotation per language, fitted to words that find each other.

The generalisation of orthogonal Procrustes analysis to more than two sets of points (Ten Berge, *Orthogonal Procrustes rotation for
two or more matrices*, Psychometrika 1977), on pairs of mutual nearest neighbours as in Globetrotter (§3.4).
"""

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from raysys.errors import RunFailed, UserError

_HOLD = 1e-6
"""Weight of staying where one is, as a share of M's norm: it decides only directions that no pair says anything of."""


class TooFewPairs(UserError):
    """Two languages have too few words that find each other."""

    def __init__(self, first: str, second: str, pairs: int, least: int):
        super().__init__(
            f"Procrustes: {first} and {second} have {pairs} mutual nearest neighbours, {least} are needed at least; "
            "give them larger vocabularies, leave one of the two out, or lower `least_pairs`"
        )
        self.first, self.second, self.pairs, self.least = first, second, pairs, least


@dataclass(frozen=True)
class Alignment:
    """What :func:`align` and :func:`fit` found."""

    rotations: dict[str, np.ndarray]
    """Language → orthogonal float64 [d, d]; the first language's is the identity. A word's column vector x becomes T x."""
    pairs: dict[tuple[str, str], int]
    """Languages (in the order given) → pairs of words they were aligned by."""
    objective: tuple[float, ...]
    """Mean squared distance of the paired unit vectors: as given, after the languages were put in place one after the other, and
    after every sweep. It only falls from then on."""

    def apply(self, vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Vectors [n, d] of each language, rotated: float32 [n, d]."""
        return {language: (rows @ self.rotations[language].T).astype(np.float32) for language, rows in vectors.items()}


def align(
    vectors: Mapping[str, np.ndarray],
    *,
    neighbours: int = 5,
    least_pairs: int = 20,
    sweeps: int = 100,
    tolerance: float = 1e-5,
    block_bytes: int = 128 << 20,
) -> Alignment:
    """Rotate every language so that words which are mutual nearest neighbours come together.

    A word of one language and one of another are a pair if each is among the other's `neighbours` nearest by cosine; :func:`fit`
    does the rest.

    Memory beside the argument: a float32 copy of it, the pairs, and blocks of `block_bytes`.

    Args:
        vectors: float [n, d] per language, at least two languages. Need not be normalised; zero rows pair with nothing.
        neighbours: k of the k nearest.
        least_pairs: pairs that every two languages must have.
        sweeps, tolerance: as of :func:`fit`.
        block_bytes: bound for the block of similarities held at a time.

    Raises:
        TooFewPairs: two languages have fewer than `least_pairs` pairs (or none); names them and the count.
        RunFailed: vectors that are not finite.
        ValueError: fewer than two languages, or vectors of several dimensions.
    """
    units = {language: _unit(rows, language) for language, rows in vectors.items()}
    if len({rows.shape[1] for rows in units.values()}) > 1:
        raise ValueError(f"vectors of one dimension were expected, got { ({a: tuple(rows.shape) for a, rows in units.items()}) }")
    pairs: dict[tuple[str, str], tuple[Tensor, Tensor]] = {}
    for a, b in itertools.combinations(units, 2):
        pairs[a, b] = mutual_neighbours(units[a], units[b], neighbours, block_bytes)
        if len(pairs[a, b][0]) < max(1, least_pairs):
            raise TooFewPairs(a, b, len(pairs[a, b][0]), max(1, least_pairs))
    del units
    return fit(vectors, pairs, sweeps=sweeps, tolerance=tolerance)


def fit(
    vectors: Mapping[str, np.ndarray],
    pairs: Mapping[tuple[str, str], tuple[Tensor, Tensor]],
    *,
    sweeps: int = 100,
    tolerance: float = 1e-5,
) -> Alignment:
    """Rotate every language so that given pairs of words come together.

    With x the unit column vectors of paired words, what is made small is Σ_{i<j} Σ_pairs ‖T_i x_i − T_j x_j‖². Lengths stay, so
    this makes the agreement Σ x_iᵀ T_iᵀ T_j x_j large. What in it depends on T_i is tr(T_iᵀ M_i) with M_i = Σ_{j≠i} T_j C_ij and
    **C_ij = Σ_pairs x_j x_iᵀ** (rows are of language j, columns of i). Over orthogonal matrices this is largest for T_i = U Vᵀ,
    where U S Vᵀ = SVD(M_i). So an update of one language never lowers the agreement, whatever the others are, and neither does a
    sweep over all of them.

    T of the first language is the identity and stays so: turning all languages together changes nothing. The others are put in
    place in order, each by those before it, then swept over. Directions in which M_i is zero (fewer pairs than dimensions) are
    turned as little as can be, instead of by what an SVD happens to return for them.

    C_ij, of which 52 languages have 1 326, are never formed: M_i is the sum of the partners' rotated vectors, times the words of i.

    Args:
        vectors: float [n, d] per language, at least two languages. Need not be normalised.
        pairs: every two languages, in the order of `vectors` → rows of the one and of the other, int64 [pairs] each.
        sweeps: most sweeps.
        tolerance: a sweep that lowers the objective by less than this share of it is the last one.

    Raises:
        RunFailed: vectors that are not finite.
        ValueError: fewer than two languages.
    """
    languages = list(vectors)
    if len(languages) < 2:
        raise ValueError(f"Procrustes needs at least two languages, got {languages}")
    rotated = {language: _unit(rows, language) for language, rows in vectors.items()}
    rotations = {language: torch.eye(rows.shape[1], dtype=torch.float64) for language, rows in rotated.items()}
    links = _links(rotated, pairs)
    objective = [_objective(rotated, links)]

    def turn(language: str, others: Sequence[str]) -> None:
        given = _unit(vectors[language], language)
        attraction = _partners(language, others, rotated, links).T.double() @ given.double()
        rotations[language] = _rotation(attraction, rotations[language])
        rotated[language] = given @ rotations[language].T.float()

    for place, language in enumerate(languages[1:], 1):
        turn(language, languages[:place])
    objective.append(_objective(rotated, links))
    for _ in range(sweeps):
        for language in languages[1:]:
            turn(language, languages)
        objective.append(_objective(rotated, links))
        if objective[-2] - objective[-1] <= tolerance * objective[-2]:
            break
    counts = {two: len(one) for two, (one, _) in pairs.items()}
    return Alignment({language: t.numpy() for language, t in rotations.items()}, counts, tuple(objective))


def mutual_neighbours(first: Tensor, second: Tensor, k: int, block_bytes: int = 128 << 20) -> tuple[Tensor, Tensor]:
    """Rows of `first` and of `second` that are among each other's `k` nearest: two int64 [pairs], sorted.

    Args:
        first, second: unit (or zero) vectors float32 [n, d] and [m, d]. Zero rows have no neighbours.
        k: of equally near ones as many count as there is room for.
        block_bytes: bound for the block of similarities held at a time.
    """
    n, m = len(first), len(second)
    of_first = torch.empty(n, min(k, m), dtype=torch.int64)
    nearest = torch.full((min(k, n), m), -torch.inf)
    of_second = torch.full((min(k, n), m), -1, dtype=torch.int64)
    rows = max(1, block_bytes // (4 * max(1, m)))
    for start in range(0, n, rows):
        block = first[start : start + rows] @ second.T
        of_first[start : start + rows] = block.topk(min(k, m), dim=1).indices
        best = block.topk(min(k, len(block)), dim=0)
        nearest, place = torch.cat([nearest, best.values]).topk(min(k, n), dim=0)
        of_second = torch.cat([of_second, best.indices + start]).gather(0, place)
    one_way = torch.arange(n)[:, None] * m + of_first
    other_way = of_second * m + torch.arange(m)
    pairs = torch.from_numpy(np.intersect1d(one_way.numpy(), other_way.numpy()))
    u, v = pairs // max(1, m), pairs % max(1, m)
    kept = first.any(dim=1)[u] & second.any(dim=1)[v]
    return u[kept], v[kept]


def _unit(rows: np.ndarray, language: str) -> Tensor:
    """Unit rows, float32 [n, d]; zero rows stay zero."""
    values = torch.as_tensor(np.asarray(rows, dtype=np.float32))
    if not values.isfinite().all():
        raise RunFailed(f"Procrustes: the word vectors of {language} are not all finite")
    return torch.nn.functional.normalize(values, dim=1)


_Pairs = Mapping[tuple[str, str], tuple[Tensor, Tensor]]
_Links = Mapping[tuple[str, str], Tensor]


def _links(vectors: Mapping[str, Tensor], pairs: _Pairs) -> dict[tuple[str, str], Tensor]:
    """(i, j) → sparse float32 [n_i, n_j] with a 1 for each pair of words, in both directions."""
    found = {}
    for (a, b), (u, v) in pairs.items():
        for one, other, rows, columns in ((a, b, u, v), (b, a, v, u)):
            shape = (len(vectors[one]), len(vectors[other]))
            with warnings.catch_warnings():  # torch tells everyone that the format is young
                warnings.simplefilter("ignore")
                found[one, other] = torch.sparse_coo_tensor(torch.stack([rows, columns]), torch.ones(len(rows)), shape).to_sparse_csr()
    return found


def _partners(language: str, others: Sequence[str], rotated: Mapping[str, Tensor], links: _Links) -> Tensor:
    """Of every word of a language the sum of its partners' rotated vectors in `others`, float32 [n, d]."""
    partners = torch.zeros_like(rotated[language])
    for other in others:
        if other != language:
            partners += links[language, other] @ rotated[other]
    return partners


def _rotation(attraction: Tensor, now: Tensor) -> Tensor:
    """U Vᵀ of M = U S Vᵀ; where M says nothing, as near to `now` as an orthogonal matrix can be."""
    u, _, vt = torch.linalg.svd(attraction + _HOLD * attraction.norm() * now)
    return u @ vt


def _objective(rotated: Mapping[str, Tensor], links: _Links) -> float:
    """Mean squared distance of all pairs: of unit vectors, 2 less twice the mean of their products."""
    pairs = sum(link.values().numel() for link in links.values())
    products = (rotated[one].double() * _partners(one, list(rotated), rotated, links).double() for one in rotated)
    return 2 - 2 * sum(float(product.sum()) for product in products) / pairs
