"""The floor: the empirical conditional entropy of the next token given the last k.

Dimension letters: N windows, K distinct things, k context tokens, C context length.

No model that sees only the last k tokens has a lower mean loss on these windows than
H_k = H(context, next) − H(context), whatever its size. On other windows of the same source the
floor differs: H_k falls with k because fewer and fewer contexts repeat, so it is reported with two
corrections of that bias and the number of contexts that were seen only once.
"""

from dataclasses import dataclass

import numpy as np

from neural_ngram.errors import ConfigurationError, WindowError
from neural_ngram.ngram.counts import Counts, Floats, Tally, tallies
from neural_ngram.tokens.windows import Windows

__all__ = ["Entropy", "conditional_entropies"]

WINDOWS_IN_MEMORY = 1 << 24
TABLE = 1024


@dataclass(frozen=True, kw_only=True)
class Entropy:
    """What the windows say about the next token given the last `order` tokens."""

    order: int
    """k, the number of context tokens."""
    windows: int
    """N, the same for each order."""
    entropy_nats: float
    """Plug-in estimate: the exact floor on these windows, too low for the source."""
    miller_madow_nats: float
    """Bias-corrected by + (pairs − contexts) / 2N: Miller (1955), first order in 1/N."""
    grassberger_nats: float
    """Bias-corrected with ln n replaced by G(n): Grassberger (2003), arXiv:physics/0307138."""
    contexts: int
    """Distinct contexts."""
    pairs: int
    """Distinct (context, target) pairs."""
    contexts_seen_once: int
    """Contexts of a single window: each looks perfectly predictable but is no evidence of it."""

    @property
    def share_seen_once(self) -> float:
        """The fraction of the distinct contexts that were seen once."""
        return self.contexts_seen_once / self.contexts


def conditional_entropies(
    windows: Windows, *, windows_in_memory: int = WINDOWS_IN_MEMORY
) -> list[Entropy]:
    """H(next | last k tokens) in nats for k = 0 … C, over the same N targets for each k.

    windows_in_memory: a longer stream is counted in partitions of about this many windows, each a
    pass over the (memory-mapped) tokens; the result is the same to the last bit. A window takes
    100 to 150 bytes while it is in memory.

    Raises WindowError when there is no window, ConfigurationError when windows_in_memory < 1.
    """
    if windows_in_memory < 1:
        raise ConfigurationError(
            f"windows_in_memory is {windows_in_memory}, but at least one window must be held to be "
            f"counted; give a positive number (the default is {WINDOWS_IN_MEMORY})"
        )
    found = [
        _entropy(order, tally)
        for order, tally in enumerate(tallies(windows, windows_in_memory=windows_in_memory))
        if tally.pairs.total
    ]
    if not found:
        raise WindowError(
            f"a stream of {len(windows.tokens)} tokens yields no window with a context of "
            f"{windows.context_length}, so there is no entropy to measure; lower "
            "windows.context_length or add documents"
        )
    return found


def _entropy(order: int, tally: Tally) -> Entropy:
    N = tally.pairs.total
    entropy = _difference(tally, np.log(tally.contexts.sizes), np.log(tally.pairs.sizes))
    corrected = _difference(
        tally, _digamma_like(tally.contexts.sizes), _digamma_like(tally.pairs.sizes)
    )
    return Entropy(
        order=order,
        windows=N,
        entropy_nats=max(0.0, entropy),
        miller_madow_nats=entropy + (tally.pairs.distinct - tally.contexts.distinct) / (2 * N),
        grassberger_nats=corrected,
        contexts=tally.contexts.distinct,
        pairs=tally.pairs.distinct,
        contexts_seen_once=tally.contexts.seen_once,
    )


def _difference(tally: Tally, of_contexts: Floats, of_pairs: Floats) -> float:
    """(Σ over contexts of n f(n) − Σ over pairs of n f(n)) / N, with f(n) given for each size."""
    contexts, pairs = tally.contexts, tally.pairs
    joint = np.sum(pairs.numbers * pairs.sizes * of_pairs)
    return float(np.sum(contexts.numbers * contexts.sizes * of_contexts) - joint) / pairs.total


def _digamma_like(sizes: Counts) -> Floats:
    """Grassberger's G(n) = −γ − ln 2 + 2 (1 + 1/3 + … + 1/(2m − 1)) with m = n // 2.

    Above the table, the asymptotic series ln 2m + 1/24m² − 7/960m⁴, exact to the last bit there.
    """
    half = sizes // 2
    odd_harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, 2 * TABLE, 2))])
    exact = 2 * odd_harmonic[np.minimum(half, TABLE)] - np.euler_gamma - np.log(2)
    m = np.maximum(half, 1).astype(np.float64)
    return np.where(half <= TABLE, exact, np.log(2 * m) + 1 / (24 * m**2) - 7 / (960 * m**4))
