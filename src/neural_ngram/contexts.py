"""Which windows share a context: what depends on the context alone is then computed once.

Dimension letters: N windows, U distinct contexts, P distinct pairs of context and target, B windows
of a batch, C context length.

Short contexts over a small vocabulary repeat: at C = 3 the 182,625 training windows of the names
corpus hold 5,438 contexts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from neural_ngram.windows import Windows

__all__ = ["Contexts", "distinct_contexts"]


@dataclass(frozen=True)
class Contexts:
    """The distinct contexts of a partition, ascending, and what follows them.

    windows: those of the partition. first: (U,) one that has each context.
    context_of: (N,) which context each window has.
    """

    windows: Windows
    first: NDArray[np.int64]
    context_of: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """(U, C) the tokens of each context."""
        return self.windows.contexts(self.first).astype(np.int64)

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """(N,) the token that each window predicts."""
        return self.windows.targets().astype(np.int64)

    @cached_property
    def sharing(self) -> NDArray[np.int64]:
        """(U,) how many windows have each context."""
        return np.bincount(self.context_of, minlength=len(self))

    @cached_property
    def pairs(self) -> "Pairs":
        """The distinct pairs of a context and a target."""
        base = self.windows.largest_token + 1
        keys = self.context_of * base + self.targets
        key_P, pair_of = np.unique(keys, return_inverse=True)
        context, target = np.divmod(key_P, base)
        return Pairs(context, target, pair_of)

    def expected_in_batch(self, batch_size: int) -> float:
        """How many distinct contexts a random batch holds: sum of 1 - (1 - n / N)^B."""
        with np.errstate(divide="ignore"):
            log_missed_U = batch_size * np.log1p(-self.sharing / len(self.context_of))
        return float(-np.expm1(log_missed_U).sum())


@dataclass(frozen=True)
class Pairs:
    """The distinct pairs of a context and a target, ascending.

    context: (P,) which context. target: (P,) which token. pair_of: (N,) which pair each window is.
    """

    context: NDArray[np.int64]
    target: NDArray[np.int64]
    pair_of: NDArray[np.int64]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(P,) how many windows are each pair."""
        return np.bincount(self.pair_of, minlength=len(self.context))


def distinct_contexts(windows: Windows) -> Contexts:
    """The distinct contexts of a partition, found by sorting once and kept with it."""
    kept = vars(windows)
    if "_distinct_contexts" not in kept:
        kept["_distinct_contexts"] = _analyse(windows)
    contexts: Contexts = kept["_distinct_contexts"]
    return contexts


def _analyse(windows: Windows) -> Contexts:
    tokens, positions = np.asarray(windows.tokens), windows.positions
    largest = windows.largest_token
    key_N, bound = np.zeros(len(positions), dtype=np.int64), 1
    for lag in range(windows.context_length, 0, -1):
        if bound * (largest + 1) > 2**62:
            _, key_N = np.unique(key_N, return_inverse=True)
            bound = len(positions)
        key_N = key_N * (largest + 1) + tokens[positions - lag]
        bound *= largest + 1
    _, first, inverse = np.unique(key_N, return_index=True, return_inverse=True)
    return Contexts(windows, first, inverse)
