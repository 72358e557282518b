"""What counting alone can say about a next token: the floor of a neural model, and its rival."""

from neural_ngram.ngram.arpa import export_arpa
from neural_ngram.ngram.discounts import Discounts
from neural_ngram.ngram.entropy import Entropy, conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.ngram.mixture import Mixture, mixture_loss, tuned_weight
from neural_ngram.ngram.storage import load_kneser_ney, save_kneser_ney

__all__ = [
    "Discounts",
    "Entropy",
    "KneserNey",
    "Mixture",
    "conditional_entropies",
    "export_arpa",
    "load_kneser_ney",
    "mixture_loss",
    "save_kneser_ney",
    "tuned_weight",
]
