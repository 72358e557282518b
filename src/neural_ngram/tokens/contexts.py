"""Which windows share a context, so that what depends on the context alone is computed once.

Dimension letters: T tokens in the stream, N windows, U distinct contexts, P distinct pairs of
context and target, K distinct keys, B windows of a batch, C context length, k context tokens.

Short contexts over a small vocabulary repeat: at C = 3 the 182,625 training windows of the names
corpus hold 5,438 contexts.

A target with the k tokens before it is packed into 64 bits, the target lowest and the context above
it. Where the tokens no longer fit, the context so far is replaced by its rank among the distinct
contexts, which is again small: no order is too high and no vocabulary (below 2^32) too large.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Contexts",
    "Keys",
    "Pairs",
    "distinct",
    "lagged_tokens",
    "pair_keys",
    "run_starts",
    "token_bits",
]

IntArray = NDArray[np.integer]
Keys = NDArray[np.uint64]
KEY_BITS = 64


@dataclass(frozen=True, eq=False)
class Contexts:
    """The distinct contexts of a partition, ascending, and what follows them.

    stream: (T,) token IDs. positions: (N,) where in the stream each window's target is.
    context_length: C.
    first: (U,) the first window that has each context.
    context_of: (N,) which context each window has.
    """

    stream: IntArray
    positions: NDArray[np.int64]
    context_length: int
    first: NDArray[np.int64]
    context_of: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """(U, C) the tokens of each context, oldest first."""
        lags = np.arange(-self.context_length, 0)
        tokens: IntArray = self.stream[self.positions[self.first][:, None] + lags]
        return tokens.astype(np.int64)

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """(N,) the token that each window predicts."""
        return self.stream[self.positions].astype(np.int64)

    @cached_property
    def multiplicity(self) -> NDArray[np.int64]:
        """(U,) how many windows have each context."""
        return np.bincount(self.context_of, minlength=len(self))

    @cached_property
    def pairs(self) -> "Pairs":
        """The distinct pairs of a context and a target."""
        base = int(self.targets.max(initial=0)) + 1
        keys = self.context_of * base + self.targets
        key_P, pair_of = np.unique(keys, return_inverse=True)
        context, target = np.divmod(key_P, base)
        return Pairs(context, target, pair_of)

    def expected_in_batch(self, batch_size: int) -> float:
        """Expected number of distinct contexts in a random batch: sum of 1 - (1 - n / N)^B."""
        with np.errstate(divide="ignore"):
            log_missed_U = batch_size * np.log1p(-self.multiplicity / len(self.context_of))
        return float(-np.expm1(log_missed_U).sum())


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct pairs of a context and a target, ascending.

    context: (P,) which context. target: (P,) which token. pair_of: (N,) which pair each window is.
    """

    context: NDArray[np.int64]
    target: NDArray[np.int64]
    pair_of: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.context)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(P,) how many windows are each pair."""
        return np.bincount(self.pair_of, minlength=len(self.context))


def distinct(stream: IntArray, positions: NDArray[np.int64], context_length: int) -> Contexts:
    """The distinct contexts of the windows at some positions of a stream, found by sorting once."""
    bits = token_bits(stream)
    for key_N in pair_keys(lagged_tokens(stream, positions, context_length), bits):
        last_N = key_N
    _, first, context_of = np.unique(
        last_N >> np.uint64(bits), return_index=True, return_inverse=True
    )
    return Contexts(stream, positions, context_length, first, context_of)


def lagged_tokens(
    stream: IntArray, positions: NDArray[np.int64], context_length: int
) -> Iterator[IntArray]:
    """(N,) each: the targets, the tokens one before, two before, …, C before."""
    for lag in range(context_length + 1):
        yield stream[positions - lag]


def token_bits(tokens: IntArray) -> int:
    """The number of bits that the largest token needs."""
    return max(1, int(tokens.max(initial=0)).bit_length())


def pair_keys(columns: Iterable[IntArray], bits: int) -> Iterator[Keys]:
    """For k = 0, 1, …: (N,) keys, equal where the target and the k tokens before it are equal.

    columns: (N,) each: the targets, the tokens one before, two before, …; each below 2^bits.
    The low `bits` of a key are the target, the others represent the context.
    """
    rest = iter(columns)
    target = next(rest).astype(np.uint64)
    context, used = np.zeros_like(target), 0
    yield target
    for column in rest:
        context |= column.astype(np.uint64) << np.uint64(used)
        context, used = _with_room(context, used + bits, bits)
        yield context << np.uint64(bits) | target


def _with_room(keys: Keys, used: int, bits: int) -> tuple[Keys, int]:
    """The keys, or their ranks where `bits` more would not fit; and how many bits they use."""
    if used + bits <= KEY_BITS:
        return keys, used
    distinct, ranks = np.unique(keys, return_inverse=True)
    return ranks.astype(np.uint64), max(1, (len(distinct) - 1).bit_length())


def run_starts(keys: Keys) -> NDArray[np.intp]:
    """(K,) where each run of equal keys starts, in (N,) sorted keys."""
    is_start = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)
