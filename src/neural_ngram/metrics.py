"""Pure formulas between nats, perplexity and bits per byte."""

import math

__all__ = ["bits_per_byte", "perplexity"]


def perplexity(loss_nats: float) -> float:
    """exp of the mean cross-entropy in nats; inf when it overflows a float."""
    try:
        return math.exp(loss_nats)
    except OverflowError:
        return math.inf


def bits_per_byte(summed_nats: float, utf8_bytes: int) -> float:
    """Summed cross-entropy in bits over the raw UTF-8 bytes of the text that was scored.

    Comparable between tokenizers, as perplexity is not.
    """
    return summed_nats / (utf8_bytes * math.log(2)) if utf8_bytes else math.nan
