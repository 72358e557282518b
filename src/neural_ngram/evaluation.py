"""What a partition's scores say: cross-entropy, perplexity, bits per byte, accuracy."""

from neural_ngram.metrics import bits_per_byte, perplexity
from neural_ngram.scoring import Scores

__all__ = ["report"]


def report(scores: Scores, *, scored_bytes: int) -> dict[str, float | int]:
    """The metrics of one partition; `scored_bytes` are the UTF-8 bytes of the scored text."""
    return {
        "loss_nats": scores.loss_nats,
        "perplexity": perplexity(scores.loss_nats),
        "bits_per_byte": bits_per_byte(scores.summed_nats, scored_bytes),
        "accuracy": scores.accuracy,
        "tokens": scores.tokens,
    }
