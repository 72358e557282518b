"""Training: batches, the optimizer's rules, and the loop that puts them together."""

from neural_ngram.training.batches import Batches
from neural_ngram.training.loop import Objective, Record, train
from neural_ngram.training.optimizer import Optimizer, learning_rates

__all__ = ["Batches", "Objective", "Optimizer", "Record", "learning_rates", "train"]
