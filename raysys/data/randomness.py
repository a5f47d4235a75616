"""Random numbers addressed by what they are for.

A draw is a pure function of its address (seed, epoch, sample, slot), so it does not depend on the number of workers, on
timing, or on what was drawn before. The mixing function is SplitMix64 (Steele, Lea and Flood 2014).
"""

from typing import Any

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(*address: Any) -> np.ndarray:
    """Hash integers to uniform 64-bit integers.

    Args:
        address: integers or integer arrays that broadcast against each other.

    Returns:
        uint64 array of the broadcast shape.
    """
    state = np.uint64(0)
    with np.errstate(over="ignore"):
        for part in address:
            state = _scramble((state ^ np.asarray(part).astype(np.uint64)) + _GOLDEN)
    return np.asarray(state)


def _scramble(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def uniform(*address: Any) -> np.ndarray:
    """Uniform float64 draws in [0, 1) for the given address; the shape is the address's broadcast shape."""
    return (mix(*address) >> np.uint64(11)) * (1.0 / (1 << 53))


def permute(positions: np.ndarray, size: int, *key: int) -> np.ndarray:
    """Where a pseudo-random permutation of range(size) sends `positions`, in memory independent of `size`.

    A four-round Feistel network over the smallest even number of bits that holds `size`, walked until it lands inside
    (Black and Rogaway 2002).

    Args:
        positions: integer array with values in [0, size).
        size: number of elements permuted.
        key: integers that choose the permutation.

    Returns:
        int64 array shaped like `positions`; a bijection of range(size).
    """
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    mask = np.uint64((1 << int(half)) - 1)
    rounds = [int(mix(*key, index)) for index in range(4)]
    values = np.asarray(positions).astype(np.uint64)
    outside = np.ones(values.shape, dtype=bool)
    while outside.any():
        left, right = values[outside] >> half, values[outside] & mask
        for round_key in rounds:
            left, right = right, left ^ (mix(round_key, right) & mask)
        values[outside] = (left << half) | right
        outside = values >= np.uint64(size)
    return values.astype(np.int64)
