"""Training: batches, the optimizer's rules, the loop over them, and checkpoints of it."""

from neural_ngram.training.batches import Batches
from neural_ngram.training.checkpoints import Checkpoints, State
from neural_ngram.training.loop import Objective, Record, resume, train
from neural_ngram.training.optimizer import Optimizer, learning_rates

__all__ = [
    "Batches",
    "Checkpoints",
    "Objective",
    "Optimizer",
    "Record",
    "State",
    "learning_rates",
    "resume",
    "train",
]
