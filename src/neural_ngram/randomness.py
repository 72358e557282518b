"""Random numbers that depend on a seed alone, never on a library, a thread or a processor.

SplitMix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"): the
state grows by a fixed odd constant, and each output is a finalising mix of the state. Since the
n-th state is known without the ones before it, a whole block is drawn at once.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["SplitMix64", "uniform_of_each"]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class SplitMix64:
    """A stream of 64-bit numbers; `state` is all that needs to be saved."""

    def __init__(self, seed: int) -> None:
        self.state = seed % 2**64

    def draw(self, count: int) -> NDArray[np.uint64]:
        """(count,) the next outputs, uniform over all 64-bit values."""
        steps = np.arange(1, count + 1, dtype=np.uint64)
        states = np.uint64(self.state) + steps * _GAMMA
        self.state = (self.state + count * int(_GAMMA)) % 2**64
        return _mix(states)

    def uniform(self, count: int) -> NDArray[np.float64]:
        """(count,) the next floats in [0, 1): the high 53 bits of each output times 2^-53."""
        return _unit(self.draw(count))

    def permutation(self, size: int) -> NDArray[np.int64]:
        """(size,) a uniform permutation: Fisher-Yates from the last index down to 1."""
        partners = self._below(np.arange(size, 1, -1, dtype=np.uint64)).astype(np.int64)
        order = np.arange(size)
        _swap_in_turn(order, partners)
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
            small = np.flatnonzero(draws < rest)  # 2^64 mod bound is below the bound
            rejected = small[draws[small] < (np.uint64(0) - rest[small]) % rest[small]]
            good = int(rejected[0]) if len(rejected) else len(rest)
            result[done : done + good] = draws[:good] % rest[:good]
            done += good
            if len(rejected):
                self.state = (before + (good + 1) * int(_GAMMA)) % 2**64
        return result


def uniform_of_each(states: NDArray[np.uint64]) -> NDArray[np.float64]:
    """(S,) the next float in [0, 1) of each of S streams, whose states move on in place."""
    states += _GAMMA
    return _unit(_mix(states))


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def _unit(outputs: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (outputs >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _swap_in_turn(order: NDArray[np.int64], partners: NDArray[np.int64]) -> None:
    """Swap each last index with its partner, from the last down to 1, as if one after another.

    A swap can be done at once when no swap that comes before it touches either of its places; of
    a block of swaps most can, and the others wait for the next round (Shun et al. 2015,
    "Sequential random permutation, list contraction and tree contraction are highly parallel").
    """
    partner_of = np.concatenate([[0], partners[::-1]])
    first = np.empty_like(order)
    stop = len(order)
    while stop > 1:
        start = max(1, stop - max(stop // 16, 1000))
        waiting = np.arange(start, stop)
        while len(waiting):
            partner = partner_of[waiting]
            first[waiting] = waiting
            first[partner] = waiting  # of several the last, which is the largest
            free = (first[waiting] == waiting) & (first[partner] == waiting)
            here, there = waiting[free], partner[free]
            order[here], order[there] = order[there], order[here]
            waiting = waiting[~free]
        stop = start
