"""Drawing the next token from logits, one or one for each of many streams.

Dimension letters: S samples, V vocabulary.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neural_ngram.randomness import SplitMix64, uniform_of_each
from neural_ngram.settings import GenerationSettings

__all__ = ["Sampler", "sampler_of", "samplers_of", "truncate"]

LEAST_TEMPERATURE = 1e-30  # greedy already, and no float32 overflows


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

    def draw_each(
        self, logits_SV: Tensor, states_S: NDArray[np.uint64], memory_SV: Tensor
    ) -> NDArray[np.int64]:
        """(S,) one token ID per row, by the next number of each stream.

        Overwrites the logits, and the float64 `memory`: allocating it takes longer than filling it.
        """
        logits_SV.div_(max(self.temperature, LEAST_TEMPERATURE))
        p_SV = torch.softmax(logits_SV, dim=1, out=logits_SV)
        kept_SV = torch.from_numpy(truncate(p_SV.numpy(), self.top_k, self.top_p))
        cumulative_SV = torch.cumsum(kept_SV, dim=1, dtype=torch.float64, out=memory_SV)
        point_S = torch.from_numpy(uniform_of_each(states_S)) * cumulative_SV[:, -1]
        token_S1 = torch.searchsorted(cumulative_SV, point_S[:, None], right=True)
        return np.asarray(token_S1[:, 0].numpy())

    def split(self, count: int) -> list["Sampler"]:
        """Samplers with streams of their own, seeded by the next outputs of this one's."""
        seeds = self.generator.draw(count).tolist()
        return [replace(self, generator=SplitMix64(seed)) for seed in seeds]

    def weights(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """(..., V) the unnormalised probabilities of the tokens."""
        weights = logits - logits.max(axis=-1, keepdims=True)
        weights /= self.temperature
        np.exp(weights, out=weights)
        return truncate(weights, self.top_k, self.top_p)


def sampler_of(asked: GenerationSettings) -> Sampler | None:
    """The sampler that the settings describe; None at temperature 0, which samples nothing."""
    if not asked.temperature:
        return None
    return Sampler(asked.temperature, SplitMix64(asked.seed), asked.top_k, asked.top_p)


def samplers_of(asked: GenerationSettings) -> list[Sampler | None]:
    """A sampler per sample, each with its own stream; a single None at temperature 0: greedy."""
    sampler = sampler_of(asked)
    return [*sampler.split(asked.samples)] if sampler else [None]


def truncate(
    weights: NDArray[np.float64], top_k: int | None = None, top_p: float = 1.0
) -> NDArray[np.float64]:
    """(..., V) the weights, zero for all but the heaviest tokens; ties go to the lower ID.

    The `top_k` heaviest are kept (Fan, Lewis & Dauphin 2018), and of these the fewest that hold the
    fraction `top_p` of their sum (Holtzman et al. 2020).
    """
    if top_k is None and top_p == 1:
        return weights
    heaviest = np.argsort(-weights, axis=-1, kind="stable")[..., :top_k]
    falling = np.take_along_axis(weights, heaviest, axis=-1)
    cumulative = falling.cumsum(axis=-1)
    falling[..., 1:][cumulative[..., :-1] >= top_p * cumulative[..., -1:]] = 0
    kept = np.zeros_like(weights)
    np.put_along_axis(kept, heaviest, falling, axis=-1)
    return kept
