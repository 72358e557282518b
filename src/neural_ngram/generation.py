"""Continuing a context: greedily or by sampling."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.errors import ModelError
from neural_ngram.model import Model, logits
from neural_ngram.randomness import SplitMix64

__all__ = ["Continuation", "Sampler", "continue_context", "next_logits", "opening_context"]


@dataclass(frozen=True)
class Continuation:
    """New token IDs and why they ended: `eos` (not among the IDs) or `limit`."""

    ids: list[int]
    stop: str


@dataclass(frozen=True)
class Sampler:
    """Draws from softmax(logits / temperature) by inverting the cumulative distribution."""

    temperature: float
    generator: SplitMix64

    def draw(self, logits_V: NDArray[np.float64]) -> int:
        """One token ID."""
        weights = np.exp((logits_V - logits_V.max()) / self.temperature)
        cumulative = weights.cumsum()
        point = self.generator.uniform(1)[0] * cumulative[-1]
        return int(np.searchsorted(cumulative, point, side="right"))


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
    bos, eos = markers
    masked = [bos] if bos is not None and bos != eos else []
    window, ids = list(context), list[int]()
    for _ in range(max_new_tokens):
        logits_V = next_logits(model, window, masked)
        token = int(logits_V.argmax()) if sampler is None else sampler.draw(logits_V)
        if token == eos:
            return Continuation(ids, "eos")
        ids.append(token)
        window = [*window[1:], token]
    return Continuation(ids, "limit")
