"""Contexts and targets over a token stream, never materialised.

Dimension letters: T tokens in the stream, D documents, N windows, B windows asked for,
C context length.

A stream is the documents of one partition, concatenated. A window is a position in it: the token
there is the target, the C tokens before it are the context. A document's first C positions have no
complete context within it, so they are not windows, and no context crosses documents. Left padding
is C tokens of BOS before each document: then every token of the document itself is a target.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neural_ngram.artifacts import read_array, read_json, write_array, write_json
from neural_ngram.errors import ArtifactError, WindowError
from neural_ngram.settings import WindowSettings
from neural_ngram.tokens.contexts import Contexts, distinct
from neural_ngram.tokens.tokenizer import Tokenizer

__all__ = ["Windows", "build_stream", "encode", "join", "load", "save", "token_type"]

IntArray = NDArray[np.integer]
DOCUMENTS_AT_ONCE = 1024


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

    @cached_property
    def distinct(self) -> Contexts:
        """The distinct contexts, which windows have each, and what follows them; found once."""
        return distinct(np.asarray(self.tokens), self.positions, self.context_length)

    @cached_property
    def largest_token(self) -> int:
        """The largest ID in the stream, 0 when it is empty."""
        return int(self.tokens.max(initial=0))

    @cached_property
    def count(self) -> int:
        """N, computed without the positions, which take eight bytes per window."""
        return int(np.maximum(np.diff(self.offsets) - self.context_length, 0).sum())

    def __len__(self) -> int:
        return self.count

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
    """Concatenate encoded documents: (T,) tokens and (D + 1,) offsets.

    The documents are consumed as they come; besides the result, memory holds a thousand of them.

    With `pad`, C tokens of it precede each document; without, a document of at most C tokens
    yields no window.

    Raises WindowError when an ID is outside the vocabulary or no document yields a window.
    """
    dtype = token_type(vocabulary_size)
    lead = np.full(0 if pad is None else context_length, 0 if pad is None else pad, dtype=np.int64)
    blocks, counts, stream = [np.empty(0, dtype=dtype)], list[int](), iter(documents)
    while block := list(islice(stream, DOCUMENTS_AT_ONCE)):
        tokens = np.concatenate([part for ids in block for part in (lead, ids)]).astype(np.int64)
        _require_inside(tokens, sum(map(len, blocks)), vocabulary_size)
        blocks.append(tokens.astype(dtype))
        counts += [len(lead) + len(ids) for ids in block]
    lengths = np.array(counts, dtype=np.int64)
    if not (lengths > context_length).any():
        raise WindowError(
            f"no document is longer than the context of {context_length} tokens "
            f"(the longest of {len(lengths)} has {lengths.max(initial=0)}); "
            "lower windows.context_length or set windows.padding=left"
        )
    return np.concatenate(blocks), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _require_inside(tokens: NDArray[np.int64], start: int, vocabulary_size: int) -> None:
    outside = np.flatnonzero((tokens < 0) | (tokens >= vocabulary_size))
    if len(outside):
        raise WindowError(
            f"token ID {tokens[outside[0]]} at stream position {start + outside[0]} lies outside "
            f"the vocabulary of {vocabulary_size}; encode the text with the tokenizer of this "
            "pipeline"
        )


def join(parts: Sequence[Windows]) -> Windows:
    """The windows of several partitions, one partition after another."""
    starts = np.cumsum([0, *(len(part.tokens) for part in parts)])
    inner = [part.offsets[:-1] + start for part, start in zip(parts, starts[:-1], strict=True)]
    return Windows(
        tokens=np.concatenate([part.tokens for part in parts]),
        offsets=np.concatenate([*inner, starts[-1:]]),
        context_length=parts[0].context_length,
        bos=parts[0].bos,
    )


def encode(
    texts: Iterable[str], tokenizer: Tokenizer, settings: WindowSettings
) -> tuple[Windows, dict[str, int]]:
    """The windows of some documents, and counts of documents and windows.

    A document is BOS, content, EOS, if the tokenizer has special tokens. The count `scored_bytes`
    is the UTF-8 text that the targets represent: all of it with left padding, otherwise without the
    first tokens of each document (an unknown word among these counts as the bytes of "<unk>").
    """
    C, padded = settings.context_length, settings.padding == "left"
    bos = [] if tokenizer.bos is None or padded else [tokenizer.bos]
    eos = [] if tokenizer.eos is None else [tokenizer.eos]
    counts = dict.fromkeys(("documents", "documents_without_window", "windows", "scored_bytes"), 0)

    def documents() -> Iterator[IntArray]:
        for text, ids in tokenizer.encode_with_text(texts):
            document = np.concatenate([bos, ids, eos]).astype(np.int64)
            counts["documents"] += 1
            if not padded and len(document) <= C:
                counts["documents_without_window"] += 1
            else:
                unscored = [] if padded else ids[: C - len(bos)].tolist()
                known = len(tokenizer.decode_bytes(unscored))
                counts["scored_bytes"] += len(text.encode()) - known
            yield document

    tokens, offsets = build_stream(
        documents(),
        context_length=C,
        vocabulary_size=tokenizer.vocabulary_size,
        pad=tokenizer.bos if padded else None,
    )
    windows = Windows(tokens=tokens, offsets=offsets, context_length=C, bos=tokenizer.bos)
    counts["windows"] = len(windows)
    return windows, counts


def save(windows: Windows, folder: Path, description: Mapping[str, Any]) -> None:
    """Write `tokens.npy`, `offsets.npy` and `windows.json` with the description."""
    write_array(folder / "tokens.npy", windows.tokens)
    write_array(folder / "offsets.npy", windows.offsets)
    own = {"context_length": windows.context_length, "bos": windows.bos}
    write_json(folder / "windows.json", {**description, **own})


def load(folder: Path) -> tuple[Windows, dict[str, Any]]:
    """Windows over the memory-mapped stream, and the description they were saved with.

    Raises ArtifactError when a file is missing, damaged or does not fit the others.
    """
    description = read_json(folder / "windows.json")
    tokens, offsets = read_array(folder / "tokens.npy"), read_array(folder / "offsets.npy")
    flat = tokens.ndim == offsets.ndim == 1
    if not (flat and tokens.dtype.kind == "u" and offsets.dtype == np.int64):
        raise ArtifactError(
            f"{folder}: tokens.npy holds {tokens.dtype} of shape {tokens.shape} and offsets.npy "
            f"{offsets.dtype} of {offsets.shape}, but they must be rows of unsigned numbers and of "
            "int64; delete the folder and run `dvc repro`"
        )
    if len(offsets) < 2 or offsets[0] or offsets[-1] != len(tokens) or (np.diff(offsets) < 0).any():
        raise ArtifactError(
            f"{folder}: offsets.npy does not fit the {len(tokens)} tokens of tokens.npy; "
            "delete the folder and run `dvc repro`"
        )
    context_length: Any = description.get("context_length")
    bos = description.get("bos")
    is_length = isinstance(context_length, int) and context_length >= 1
    if not (is_length and "bos" in description and (bos is None or isinstance(bos, int))):
        raise ArtifactError(
            f"{folder}/windows.json: context_length is {context_length!r} and bos is {bos!r}, but "
            "they must be a length and an ID or null; delete the folder and run `dvc repro`"
        )
    windows = Windows(tokens=tokens, offsets=offsets, context_length=context_length, bos=bos)
    return windows, description
