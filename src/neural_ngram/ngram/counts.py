"""How often contexts, and pairs of context and target, occur: by sorting the keys of `contexts`.

Dimension letters: N windows, K distinct keys, P partitions, k context tokens.

Pairs that do not fit into memory are partitioned by a hash of their context and counted one
partition at a time. No context is in two partitions, so the tallies simply add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from neural_ngram.tokens.contexts import Keys, lagged_tokens, pair_keys, run_starts, token_bits
from neural_ngram.tokens.windows import IntArray, Windows

__all__ = ["Tally", "chunks", "tallies"]

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
KNUTH = 0x9E3779B97F4A7C15


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Counts of counts: `numbers[i]` distinct items were each seen `sizes[i]` times."""

    sizes: Counts
    numbers: Counts

    @classmethod
    def of(cls, counts: Counts) -> "Spectrum":
        """The spectrum of (K,) counts."""
        sizes, numbers = np.unique(counts, return_counts=True)
        return cls(sizes=sizes, numbers=numbers.astype(np.int64))

    def __add__(self, other: "Spectrum") -> "Spectrum":
        sizes, place = np.unique(np.concatenate([self.sizes, other.sizes]), return_inverse=True)
        numbers = np.zeros(len(sizes), dtype=np.int64)
        np.add.at(numbers, place, np.concatenate([self.numbers, other.numbers]))
        return Spectrum(sizes=sizes, numbers=numbers)

    @property
    def distinct(self) -> int:
        """How many distinct items were seen."""
        return int(self.numbers.sum())

    @property
    def total(self) -> int:
        """How many items were seen, including repetitions."""
        return int(self.sizes @ self.numbers)

    @property
    def seen_once(self) -> int:
        """How many items were seen exactly once."""
        return int(self.numbers[self.sizes == 1].sum())


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The spectra of the contexts and of the (context, target) pairs of one order."""

    contexts: Spectrum
    pairs: Spectrum

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(contexts=self.contexts + other.contexts, pairs=self.pairs + other.pairs)


def tallies(windows: Windows, *, windows_in_memory: int) -> Iterator[Tally]:
    """The tally of each order k = 0 … C; about `windows_in_memory` windows are held at a time."""
    partitions = -(-len(windows.tokens) // windows_in_memory)
    if partitions <= 1:
        bits = token_bits(windows.tokens)
        for keys in pair_keys(_columns(windows), bits):
            yield _tally(keys, bits)
        return
    for order in range(windows.context_length + 1):
        parts = [
            _partition_tally(windows, order, (part, partitions), windows_in_memory)
            for part in range(partitions)
        ]
        yield sum(parts[1:], start=parts[0])


def chunks(windows: Windows, size: int) -> Iterator[Windows]:
    """The same windows in the same order, over stretches of `size` tokens of the stream.

    A stretch is read with the C tokens before it. It contains at most C tokens of an earlier
    document, and these are not targets: so each stretch is a stream of its own.
    """
    end_of_stream = len(windows.tokens)
    for first in range(0, end_of_stream, size):
        start, stop = max(0, first - windows.context_length), min(first + size, end_of_stream)
        low, high = np.searchsorted(windows.offsets, [start, stop], side="right")
        inner = windows.offsets[low:high]
        offsets = np.unique(np.concatenate([[start], inner, [stop]])) - start
        yield replace(windows, tokens=windows.tokens[start:stop], offsets=offsets)


def _columns(windows: Windows, kept: slice | NDArray[np.bool_] = slice(None)) -> Iterator[IntArray]:
    """(N,) each: the targets of the kept windows, the tokens one before, …, C before."""
    return lagged_tokens(windows.tokens, windows.positions[kept], windows.context_length)


def _tally(keys: Keys, bits: int) -> Tally:
    """The tally of (N,) pair keys, each seen once."""
    keys = np.sort(keys)
    starts = run_starts(keys)
    return _tally_runs(keys[starts], np.diff(starts, append=len(keys)), bits)


def _tally_runs(keys: Keys, counts: Counts, bits: int) -> Tally:
    """The tally of (K,) distinct sorted pair keys, each seen as often as its count says."""
    contexts = run_starts(keys >> np.uint64(bits))
    context_counts = np.add.reduceat(counts, contexts) if len(counts) else counts
    return Tally(contexts=Spectrum.of(context_counts), pairs=Spectrum.of(counts))


def _partition_tally(
    windows: Windows, order: int, partition: tuple[int, int], chunk_size: int
) -> Tally:
    """The tally of the pairs of one order whose context falls in `partition`, (number, P)."""
    found = [_distinct(chunk, order, partition) for chunk in chunks(windows, chunk_size)]
    columns = np.concatenate([columns for columns, _ in found], axis=1)
    counts = np.concatenate([counts for _, counts in found])
    bits = token_bits(columns)
    *_, keys = pair_keys(columns, bits)
    by_key = np.argsort(keys)
    starts = run_starts(keys[by_key])
    summed = np.add.reduceat(counts[by_key], starts) if len(starts) else counts
    return _tally_runs(keys[by_key[starts]], summed, bits)


def _distinct(windows: Windows, order: int, partition: tuple[int, int]) -> tuple[IntArray, Counts]:
    """(order + 1, K) the distinct pairs of a chunk in one partition, target first; (K,) counts."""
    kept = _context_hash(windows, order) % np.uint64(partition[1]) == partition[0]
    columns = np.stack(list(islice(_columns(windows, kept), order + 1)))
    *_, keys = pair_keys(columns, token_bits(columns))
    by_key = np.argsort(keys)
    starts = run_starts(keys[by_key])
    counts = np.diff(starts, append=len(keys)).astype(np.int64)
    return columns[:, by_key[starts]], counts


def _context_hash(windows: Windows, order: int) -> Keys:
    """(N,) a hash of the last `order` tokens of each context: Knuth's multiplicative hashing."""
    hashed = np.zeros(len(windows), dtype=np.uint64)
    for column in islice(_columns(windows), 1, order + 1):
        hashed = (hashed + column.astype(np.uint64) + np.uint64(1)) * np.uint64(KNUTH)
        hashed ^= hashed >> np.uint64(32)
    return hashed
