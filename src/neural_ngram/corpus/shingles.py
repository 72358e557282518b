"""Sets of runs of characters or tokens, as 64-bit hashes.

Two different runs almost never have the same hash.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHARACTERS_AT_ONCE", "Hashes", "characters_of", "fraction_among", "runs"]

CHARACTERS_AT_ONCE = 2**18
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


def characters_of(text: str) -> NDArray[np.uint32]:
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def runs(values: NDArray[Any], width: int) -> Hashes:
    """A 64-bit polynomial hash of every run of `width` values, in the order of their ends."""
    coefficients = values.astype(np.uint64) + np.uint64(1)
    count = max(0, len(values) - width + 1)
    hashes = coefficients[:count].copy()
    for place in range(1, width):
        hashes *= _MULTIPLIER
        hashes += coefficients[place : place + count]
    return hashes


def fraction_among(hashes: Hashes, known: Hashes) -> float:
    """The fraction of `hashes` that occurs in `known`, which is sorted."""
    if not len(known):
        return 0.0
    places = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    return float((known[places] == hashes).mean())
