"""What counting alone can say about a next token: the floor of a neural model, and its rival."""

from neural_ngram.ngram.entropy import Entropy, conditional_entropies

__all__ = ["Entropy", "conditional_entropies"]
