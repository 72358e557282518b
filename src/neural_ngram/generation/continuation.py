"""Continuing a context: greedily or by sampling, one continuation or many at once.

Dimension letters: S samples, C context length, N new tokens, V vocabulary.
"""

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neural_ngram.errors import ModelError
from neural_ngram.generation.sampling import Sampler
from neural_ngram.model.network import Model, logits
from neural_ngram.tokens.tokenizer import Tokenizer

__all__ = [
    "Continuation",
    "TextStream",
    "collect",
    "continue_context",
    "continue_many",
    "cycle_length",
    "ended",
    "never_produced",
    "next_logits",
    "next_tokens",
]

# Rows sampled together: enough to be worth a call, few enough to stay in a processor's cache.
MOST_LOGITS, LEAST_ROWS = 2**17, 64


@dataclass(frozen=True)
class Continuation:
    """New token IDs and why they ended: `eos` (not among the IDs) or `limit`."""

    ids: list[int]
    stop: str


class TextStream:
    """Tokens to text as they arrive, holding back the bytes of an incomplete character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.separator = b""

    def feed(self, ids: Sequence[int]) -> str:
        """The text that can be shown now; all pieces and `close` add up to `decode`."""
        data = self.tokenizer.decode_bytes(ids)
        if not data:
            return ""
        text = self.decoder.decode(self.separator + data)
        self.separator = self.tokenizer.separator
        return text

    def close(self) -> str:
        """What is left: a broken character, shown as U+FFFD, or nothing."""
        return self.decoder.decode(b"", final=True)


def next_logits(model: Model, context: Sequence[int], masked: Sequence[int]) -> NDArray[np.float64]:
    """(V,) logits of the next token, minus infinity for masked tokens.

    Raises ModelError when an ID is outside the vocabulary, every token is masked, or a logit is not
    finite.
    """
    context_1C = np.array([list(context)])
    _require_known(model, context_1C, masked)
    return np.asarray(_logits(model, context_1C, masked)[0].double().numpy())


def _require_known(model: Model, context_SC: NDArray[np.int64], masked: Sequence[int]) -> None:
    V = model.architecture.vocabulary_size
    for kind, ids in (("context", context_SC), ("masked", np.array(masked, dtype=np.int64))):
        outside = ids[(ids < 0) | (ids >= V)]
        if len(outside):
            raise ModelError(
                f"{kind} token {outside[0]} lies outside the model's vocabulary of {V}; "
                "use the tokenizer that the model was trained with"
            )
    if len(set(masked)) == V:
        raise ModelError(f"all {V} tokens are masked, so none can come next; mask fewer tokens")


def _logits(model: Model, context_SC: NDArray[np.int64], masked: Sequence[int]) -> Tensor:
    with torch.no_grad():
        logits_SV = logits(model, torch.from_numpy(context_SC))
    if not math.isfinite(logits_SV.sum()):
        row, token = (~logits_SV.isfinite()).nonzero()[0]
        raise ModelError(
            f"the logit of token {token} is {logits_SV[row, token]}; train the model again"
        )
    for token in masked:
        logits_SV[:, token] = -torch.inf
    return logits_SV


def continue_context(
    model: Model,
    context: Sequence[int],
    *,
    markers: tuple[int | None, int | None],
    max_new_tokens: int,
    sampler: Sampler | None = None,
) -> Continuation:
    """Add tokens until EOS or the limit.

    `markers` are the special tokens BOS, which is never generated unless it is also EOS, and EOS.
    Without a sampler the most probable token is taken, ties to the lower ID.
    """
    return collect(next_tokens(model, context, markers, sampler), max_new_tokens)


def continue_many(
    model: Model,
    contexts: Sequence[Sequence[int]],
    *,
    markers: tuple[int | None, int | None],
    max_new_tokens: int,
    sampler: Sampler,
) -> list[Continuation]:
    """Each context continued by a sampler of `sampler.split`, a token of all of them at a time.

    What comes of one does not depend on how many are continued along with it.
    """
    states_S = sampler.generator.draw(len(contexts))
    together = max(LEAST_ROWS, MOST_LOGITS // model.architecture.vocabulary_size)
    continuations = []
    for start in range(0, len(contexts), together):
        group = slice(start, start + together)
        some = np.array(contexts[group]), states_S[group]
        ids = [list[int]() for _ in some[1]]
        for which, tokens in islice(_rounds(model, *some, markers, sampler), max_new_tokens):
            for sample, token in zip(which.tolist(), tokens.tolist(), strict=True):
                ids[sample].append(token)
        continuations += [ended(each, max_new_tokens) for each in ids]
    return continuations


def _rounds(
    model: Model,
    context_SC: NDArray[np.int64],
    states_S: NDArray[np.uint64],
    markers: tuple[int | None, int | None],
    sampler: Sampler,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Which samples get a token, and which token; those that end drop out."""
    which_S, eos = np.arange(len(states_S)), -1 if markers[1] is None else markers[1]
    masked = never_produced(markers)
    _require_known(model, context_SC, masked)
    memory_SV = torch.empty(len(states_S), model.architecture.vocabulary_size, dtype=torch.float64)
    while len(which_S):
        logits_SV = _logits(model, context_SC, masked)
        token_S = sampler.draw_each(logits_SV, states_S, memory_SV[: len(states_S)])
        context_SC = np.column_stack([context_SC[:, 1:], token_S])
        going = token_S != eos
        if not going.all():
            which_S, states_S, context_SC = which_S[going], states_S[going], context_SC[going]
        yield which_S, context_SC[:, -1]


def ended(ids: list[int], limit: int) -> Continuation:
    """What came of a continuation of at most `limit` tokens."""
    return Continuation(ids, "limit" if len(ids) == limit else "eos")


def never_produced(markers: tuple[int | None, int | None]) -> list[int]:
    """The IDs that are masked: BOS, unless it is EOS as well."""
    bos, eos = markers
    return [bos] if bos is not None and bos != eos else []


def next_tokens(
    model: Model,
    context: Sequence[int],
    markers: tuple[int | None, int | None],
    sampler: Sampler | None = None,
) -> Iterator[int]:
    """One token after another, until EOS, which is not among them."""
    window = list(context)
    while True:
        logits_V = next_logits(model, window, never_produced(markers))
        token = int(logits_V.argmax()) if sampler is None else sampler.draw(logits_V)
        if token == markers[1]:
            return
        yield token
        window = [*window[1:], token]


def collect(
    tokens: Iterator[int], limit: int, watch: Callable[[int], object] = lambda _: None
) -> Continuation:
    """The first `limit` tokens, shown to `watch` as they come."""
    ids = list[int]()
    for token in islice(tokens, limit):
        watch(token)
        ids.append(token)
    return ended(ids, limit)


def cycle_length(context: Sequence[int], ids: Sequence[int]) -> int | None:
    """The number of tokens in the cycle that a greedy continuation has entered; None: none so far.

    A fixed-context model that always takes the most probable token is in a cycle as soon as a
    context recurs.
    """
    length, seen = len(context), dict[tuple[int, ...], int]()
    stream = [*context, *ids]
    for end in range(length, len(stream) + 1):
        window = tuple(stream[end - length : end])
        if window in seen:
            return end - seen[window]
        seen[window] = end
    return None
