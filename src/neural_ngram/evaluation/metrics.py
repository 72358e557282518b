"""Pure formulas between nats, perplexity and bits per byte."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bits_per_byte", "mean_loss", "perplexity"]


def perplexity(loss_nats: float) -> float:
    """exp of the mean cross-entropy in nats; inf when it overflows a float."""
    try:
        return math.exp(loss_nats)
    except OverflowError:
        return math.inf


def bits_per_byte(summed_nats: float, utf8_bytes: int) -> float:
    """Summed cross-entropy in bits over the raw UTF-8 bytes of the text that was scored.

    Comparable between tokenizers, unlike perplexity, unless some words are unknown to one of them.
    """
    return summed_nats / (utf8_bytes * math.log(2)) if utf8_bytes else math.nan


def mean_loss(log_probabilities: NDArray[np.float64], *, scored_bytes: int) -> dict[str, Any]:
    """Loss, perplexity, bits per byte and tokens from (N,) log probabilities in nats.

    scored_bytes: the UTF-8 bytes of the text that the targets represent. Figures that are not
    finite (the perplexity of a huge loss, bits per byte without bytes) are left out.
    """
    summed = -float(log_probabilities.sum())
    loss = summed / len(log_probabilities)
    measured = {
        "loss_nats": loss,
        "perplexity": perplexity(loss),
        "bits_per_byte": bits_per_byte(summed, scored_bytes),
        "tokens": len(log_probabilities),
    }
    return {name: value for name, value in measured.items() if math.isfinite(value)}
