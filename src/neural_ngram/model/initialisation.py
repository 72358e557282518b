"""Where weights start: named rules, drawn from one seeded stream, parameter after parameter.

    xavier_uniform   limit * (2u - 1), limit = sqrt(6 / (fan in + fan out)); Glorot & Bengio 2010
    normal           N(0, scale^2)
    scaled           hidden matrices N(0, gain^2 / fan in), the gain as the layer states it (He et
                     al. 2015); the embedding N(0, 1); output and direct, and a tied embedding,
                     N(0, scale^2): the first loss is close to ln V and no tanh starts saturated

Matrices are filled row by row, in the order of `parameter_shapes`. Biases start at zero and draw
nothing.
"""

import math

import numpy as np
from numpy.typing import NDArray

from neural_ngram.model.hidden import layer_named
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings

__all__ = ["draw_matrix", "normal"]

SMALL = ("output", "direct")


def normal(generator: SplitMix64, count: int) -> NDArray[np.float64]:
    """(count,) standard normals (Box & Muller 1958): two per pair of uniform numbers."""
    pairs = generator.uniform(count + count % 2).reshape(-1, 2)
    radius = np.sqrt(-2 * np.log1p(-pairs[:, 0]))
    angle = 2 * math.pi * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()[:count]


def draw_matrix(
    name: str, shape: tuple[int, int], settings: ModelSettings, generator: SplitMix64
) -> NDArray[np.float64]:
    """(fan in, fan out) the first values of one matrix."""
    count = math.prod(shape)
    if settings.initialisation == "xavier_uniform":
        values = math.sqrt(6 / sum(shape)) * (2 * generator.uniform(count) - 1)
    else:
        values = _deviation(name, shape[0], settings) * normal(generator, count)
    return values.reshape(shape)


def _deviation(name: str, fan_in: int, settings: ModelSettings) -> float:
    small = settings.initialisation == "normal" or name in SMALL
    if small or (name == "embedding" and settings.tied_output):
        return settings.initialisation_scale
    if name == "embedding":
        return 1.0
    return layer_named(settings.hidden).gain / math.sqrt(fan_in)
