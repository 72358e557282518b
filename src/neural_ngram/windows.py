"""Contexts and targets over a token stream, never materialised.

Dimension letters: T tokens in the stream, D documents, N windows, B windows asked for,
C context length.

A stream is the documents of one partition laid end to end. A window is a position in it: the
token there is the target, the C tokens before it are the context. A document's first C positions
have no complete context of their own, so they are no windows, and no context crosses a document.
Left padding is C tokens of BOS in front of each document: then every token of the document proper
is a target.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import WindowError

__all__ = ["Windows", "build_stream", "token_type"]

IntArray = NDArray[np.integer]


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of one partition.

    tokens: (T,) token IDs, unsigned; may be memory-mapped.
    offsets: (D + 1,) where each document starts; the last entry is T.
    context_length: C, at least 1.
    bos: the ID that marks the beginning of a document, None when there is none.
    """

    tokens: IntArray
    offsets: NDArray[np.int64]
    context_length: int
    bos: int | None = None

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """(N,) the stream position of each window's target, ascending."""
        is_target = np.ones(len(self.tokens), dtype=bool)
        for lead in range(self.context_length):
            starts = self.offsets[:-1] + lead
            is_target[starts[starts < self.offsets[1:]]] = False
        return np.flatnonzero(is_target)

    def __len__(self) -> int:
        return len(self.positions)

    def contexts(self, index: slice | IntArray = slice(None)) -> IntArray:
        """(B, C) the contexts of the windows at `index`, oldest token first."""
        lags = np.arange(-self.context_length, 0)
        contexts: IntArray = self.tokens[self.positions[index][:, None] + lags]
        return contexts

    def targets(self, index: slice | IntArray = slice(None)) -> IntArray:
        """(B,) the targets of the windows at `index`."""
        targets: IntArray = self.tokens[self.positions[index]]
        return targets


def token_type(vocabulary_size: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds every ID below `vocabulary_size`."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if vocabulary_size - 1 <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    raise WindowError(
        f"a vocabulary of {vocabulary_size} tokens does not fit 32-bit IDs; "
        "lower tokenizer.vocabulary_size"
    )


def build_stream(
    documents: Iterable[IntArray], *, context_length: int, vocabulary_size: int, pad: int | None
) -> tuple[IntArray, NDArray[np.int64]]:
    """Lay encoded documents end to end: (T,) tokens and (D + 1,) offsets.

    With `pad`, C tokens of it stand in front of each document; without, a document of at most C
    tokens yields no window.

    Raises WindowError when an ID lies outside the vocabulary or no document yields a window.
    """
    dtype = token_type(vocabulary_size)
    lead = np.full(0 if pad is None else context_length, 0 if pad is None else pad, dtype=np.int64)
    parts = [np.concatenate([lead, np.asarray(ids, dtype=np.int64)]) for ids in documents]
    tokens = np.concatenate([lead[:0], *parts])
    outside = np.flatnonzero((tokens < 0) | (tokens >= vocabulary_size))
    if len(outside):
        raise WindowError(
            f"token ID {tokens[outside[0]]} at stream position {outside[0]} lies outside the "
            f"vocabulary of {vocabulary_size}; encode the text with the tokenizer of this pipeline"
        )
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    if not (lengths > context_length).any():
        raise WindowError(
            f"no document is longer than the context of {context_length} tokens "
            f"(the longest of {len(lengths)} has {lengths.max(initial=0)}); "
            "lower windows.context_length or set windows.padding=left"
        )
    return tokens.astype(dtype), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
