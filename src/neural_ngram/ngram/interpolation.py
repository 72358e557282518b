"""Two models in one: the mean loss of an interpolation, and the weight that makes it smallest.

Dimension letter: N windows.

Bengio et al. (2003), section 3.1, interpolate the neural model with a trigram at equal weights.
"""

from dataclasses import dataclass

import numpy as np

from neural_ngram.errors import ModelError
from neural_ngram.ngram.counts import Floats

__all__ = ["Interpolation", "interpolated_loss", "tuned_weight"]

BISECTIONS = 52


@dataclass(frozen=True, kw_only=True)
class Interpolation:
    """The first model's weight in the interpolation, and the resulting mean loss in nats."""

    weight: float
    loss_nats: float


def interpolated_loss(first_N: Floats, second_N: Floats, *, weight: float = 0.5) -> float:
    """−mean ln (weight · p_first + (1 − weight) · p_second), in nats.

    first_N, second_N: (N,) ln p(target | context) of the two models over the same windows.

    Raises ModelError when their shapes do not match or the weight is not in [0, 1].
    """
    _check(first_N, second_N)
    if not 0 <= weight <= 1:
        raise ModelError(f"the interpolation weight is {weight}, but must be from 0 to 1")
    with np.errstate(divide="ignore"):
        logs = np.log(weight), np.log1p(-weight)
    return -float(np.logaddexp(logs[0] + first_N, logs[1] + second_N).mean())


def tuned_weight(first_N: Floats, second_N: Floats) -> Interpolation:
    """The weight of the first model with the smallest loss; tune it on validation windows only.

    The loss is convex in the weight, so its derivative, which rises, is bisected to the last bit.

    Raises ModelError as `interpolated_loss` does.
    """
    _check(first_N, second_N)
    scale = np.maximum(np.maximum(first_N, second_N), np.finfo(np.float64).min)
    first, second = np.exp(first_N - scale), np.exp(second_N - scale)
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        weight = (low + high) / 2
        mixed = weight * first + (1 - weight) * second
        slope = np.sum((first - second)[mixed > 0] / mixed[mixed > 0])
        low, high = (weight, high) if slope > 0 else (low, weight)
    weight = low if low == 0 else high if high == 1 else (low + high) / 2
    loss = interpolated_loss(first_N, second_N, weight=weight)
    return Interpolation(weight=weight, loss_nats=loss)


def _check(first_N: Floats, second_N: Floats) -> None:
    if first_N.shape != second_N.shape or first_N.ndim != 1 or not len(first_N):
        raise ModelError(
            f"log probabilities of shapes {first_N.shape} and {second_N.shape} do not match; "
            "score the same windows, at least one, with both models: (N,) each"
        )
