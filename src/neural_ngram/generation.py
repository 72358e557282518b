"""Continuing a context: greedily or by sampling."""

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.errors import ModelError
from neural_ngram.model import Model, logits
from neural_ngram.randomness import SplitMix64
from neural_ngram.tokenizer import Tokenizer

__all__ = [
    "Continuation",
    "Sampler",
    "TextStream",
    "collect",
    "continue_context",
    "cycle_length",
    "most_probable",
    "next_logits",
    "next_tokens",
    "opening_context",
    "truncate",
]


@dataclass(frozen=True)
class Continuation:
    """New token IDs and why they ended: `eos` (not among the IDs) or `limit`."""

    ids: list[int]
    stop: str


@dataclass(frozen=True)
class Sampler:
    """Draws from softmax(logits / temperature), truncated, by inverting its cumulative sum."""

    temperature: float
    generator: SplitMix64
    top_k: int | None = None
    top_p: float = 1.0

    def draw(self, logits_V: NDArray[np.float64]) -> int:
        """One token ID."""
        cumulative = self.weights(logits_V).cumsum()
        point = self.generator.uniform(1)[0] * cumulative[-1]
        return int(np.searchsorted(cumulative, point, side="right"))

    def weights(self, logits_V: NDArray[np.float64]) -> NDArray[np.float64]:
        """(V,) what each token is drawn in proportion to."""
        weights_V = np.exp((logits_V - logits_V.max()) / self.temperature)
        return truncate(weights_V, self.top_k, self.top_p)


def truncate(
    weights_V: NDArray[np.float64], top_k: int | None = None, top_p: float = 1.0
) -> NDArray[np.float64]:
    """(V,) the weights, zero for all but the heaviest tokens; ties go to the lower ID.

    The `top_k` heaviest stay (Fan, Lewis & Dauphin 2018), and of these the fewest that hold the
    share `top_p` of their sum (Holtzman et al. 2020).
    """
    if top_k is None and top_p == 1:
        return weights_V
    heaviest = np.argsort(-weights_V, kind="stable")[:top_k]
    cumulative = weights_V[heaviest].cumsum()
    kept = heaviest[: np.searchsorted(cumulative, top_p * cumulative[-1]) + 1]
    kept_V = np.zeros_like(weights_V)
    kept_V[kept] = weights_V[kept]
    return kept_V


class TextStream:
    """Tokens to text as they come, holding back the bytes of a character that is not yet whole."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.separator = b""

    def feed(self, ids: Sequence[int]) -> str:
        """The text that can be shown now; all pieces, then `close`, make what `decode` makes."""
        data = self.tokenizer.decode_bytes(ids)
        if not data:
            return ""
        text = self.decoder.decode(self.separator + data)
        self.separator = b" " if self.tokenizer.kind == "word" else b""
        return text

    def close(self) -> str:
        """What is left: a broken character, shown as U+FFFD, or nothing."""
        return self.decoder.decode(b"", final=True)


def opening_context(prompt: Sequence[int], *, length: int, bos: int | None) -> list[int]:
    """The last `length` tokens of the prompt, with BOS in front of a prompt that is shorter.

    Raises ModelError when it is shorter and there is no BOS.
    """
    if len(prompt) < length and bos is None:
        raise ModelError(
            f"the prompt has {len(prompt)} tokens but the model reads {length}, and without "
            "markers nothing can stand in front; give a longer generation.prompt"
        )
    return ([bos] * length if bos is not None else [])[: max(0, length - len(prompt))] + list(
        prompt[-length:]
    )


def next_logits(model: Model, context: Sequence[int], masked: Sequence[int]) -> NDArray[np.float64]:
    """(V,) logits of the next token, minus infinity for those that must not come.

    Raises ModelError when an ID lies outside the vocabulary, nothing is left, or a logit is not
    finite.
    """
    V = model.architecture.vocabulary_size
    for kind, ids in (("context", context), ("masked", masked)):
        outside = [token for token in ids if not 0 <= token < V]
        if outside:
            raise ModelError(
                f"{kind} token {outside[0]} lies outside the model's vocabulary of {V}; "
                "use the tokenizer that the model was trained with"
            )
    with torch.no_grad():
        logits_V: NDArray[np.float64] = (
            logits(model, torch.tensor([list(context)]))[0].double().numpy()
        )
    broken = np.flatnonzero(~np.isfinite(logits_V))
    if len(broken):
        raise ModelError(
            f"the logit of token {broken[0]} is {logits_V[broken[0]]}; train the model again"
        )
    logits_V[list(masked)] = -np.inf
    if len(set(masked)) == V:
        raise ModelError(f"all {V} tokens are masked, so none can come next; mask fewer")
    return logits_V


def most_probable(model: Model, context: Sequence[int], count: int) -> list[tuple[int, float]]:
    """The `count` most probable next tokens with their probabilities, ties to the lower ID."""
    logits_V = next_logits(model, context, ())
    p_V = np.exp(logits_V - logits_V.max())
    p_V /= p_V.sum()
    order = np.argsort(-p_V, kind="stable")[:count]
    return [(int(token), float(p_V[token])) for token in order]


def continue_context(
    model: Model,
    context: Sequence[int],
    *,
    markers: tuple[int | None, int | None],
    max_new_tokens: int,
    sampler: Sampler | None = None,
) -> Continuation:
    """Add tokens until EOS or the limit.

    `markers` are BOS, which is never produced unless it is EOS as well, and EOS. Without a sampler
    the most probable token is taken, ties to the lower ID.
    """
    return collect(next_tokens(model, context, markers, sampler), max_new_tokens)


def next_tokens(
    model: Model,
    context: Sequence[int],
    markers: tuple[int | None, int | None],
    sampler: Sampler | None = None,
) -> Iterator[int]:
    """One token after another, until EOS, which is not among them."""
    bos, eos = markers
    masked = [bos] if bos is not None and bos != eos else []
    window = list(context)
    while True:
        logits_V = next_logits(model, window, masked)
        token = int(logits_V.argmax()) if sampler is None else sampler.draw(logits_V)
        if token == eos:
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
    return Continuation(ids, "limit" if len(ids) == limit else "eos")


def cycle_length(context: Sequence[int], ids: Sequence[int]) -> int | None:
    """After how many tokens a greedy continuation repeats itself for ever; None: not yet seen to.

    A model of fixed context that always takes the best token is caught as soon as a context comes
    back: from there everything does.
    """
    length, seen = len(context), dict[tuple[int, ...], int]()
    stream = [*context, *ids]
    for end in range(length, len(stream) + 1):
        window = tuple(stream[end - length : end])
        if window in seen:
            return end - seen[window]
        seen[window] = end
    return None
