"""Random numbers that depend on a seed alone, never on a library, a thread or a processor.

SplitMix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"): the
state grows by a fixed odd constant, and each output is a finalising mix of the state. Since the
n-th state is known without the ones before it, a whole block is drawn at once.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["SplitMix64"]

BLOCKS_ABOVE = 2**14

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class SplitMix64:
    """A stream of 64-bit numbers; `state` is all there is to save."""

    def __init__(self, seed: int) -> None:
        self.state = seed % 2**64

    def draw(self, count: int) -> NDArray[np.uint64]:
        """(count,) the next outputs, uniform over all 64-bit values."""
        steps = np.arange(1, count + 1, dtype=np.uint64)
        z = np.uint64(self.state) + steps * _GAMMA
        self.state = (self.state + count * int(_GAMMA)) % 2**64
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return z ^ (z >> np.uint64(31))

    def uniform(self, count: int) -> NDArray[np.float64]:
        """(count,) the next floats in [0, 1): the high 53 bits of each output times 2^-53."""
        return (self.draw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def permutation(self, size: int) -> NDArray[np.int64]:
        """(size,) a uniform permutation: Fisher-Yates from the last index down to 1."""
        partners = self._below(np.arange(size, 1, -1, dtype=np.uint64)).astype(np.int64)
        order = np.arange(size)
        done = _swap_in_blocks(order, partners)
        rest = order[: size - done].tolist()
        for last, other in zip(range(len(rest) - 1, 0, -1), partners[done:].tolist(), strict=True):
            rest[last], rest[other] = rest[other], rest[last]
        order[: size - done] = rest
        return order

    def _below(self, bounds: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """(n,) one unbiased integer below each bound, drawn in turn.

        A draw under 2^64 mod bound would favour small remainders; it is thrown away and drawn
        again, which shifts all later draws, so the rest is redone from there.
        """
        result = np.empty_like(bounds)
        done = 0
        while done < len(bounds):
            rest = bounds[done:]
            before = self.state
            draws = self.draw(len(rest))
            rejected = np.flatnonzero(draws < (np.uint64(0) - rest) % rest)
            good = int(rejected[0]) if len(rejected) else len(rest)
            result[done : done + good] = draws[:good] % rest[:good]
            done += good
            if len(rejected):
                self.state = (before + (good + 1) * int(_GAMMA)) % 2**64
        return result


def _swap_in_blocks(order: NDArray[np.int64], partners: NDArray[np.int64]) -> int:
    """Swap each last index with its partner, many at once while an array is faster than a list.

    Swaps are independent, and so may happen at once, when their partners differ and lie below all
    of their indices. Returns how many were done.
    """
    done, seen = 0, np.empty_like(order)
    while len(order) - done > BLOCKS_ABOVE:
        left = len(order) - done
        block = math.isqrt(left) // 3
        while block > 1:
            chosen = partners[done : done + block]
            number = np.arange(block)
            seen[chosen] = number
            if chosen.max() < left - block and (seen[chosen] == number).all():
                break
            block //= 2
        chosen = partners[done : done + block]
        lasts = np.arange(left - 1, left - 1 - block, -1)
        order[lasts], order[chosen] = order[chosen], order[lasts]
        done += block
    return done
