"""Negative log-likelihood of a model over windows, every window exactly once."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.model import Model, logits
from neural_ngram.windows import Windows

__all__ = ["Scores", "score"]


@dataclass(frozen=True)
class Scores:
    """What a model gave each window.

    log_probabilities: (N,) of the targets, in nats, float64.
    correct: how many targets were the most probable token (ties to the lower ID).
    """

    log_probabilities: NDArray[np.float64]
    correct: int

    @property
    def tokens(self) -> int:
        """N, the number of targets scored."""
        return len(self.log_probabilities)

    @property
    def summed_nats(self) -> float:
        """Summed negative log-likelihood in nats."""
        return -float(self.log_probabilities.sum())

    @property
    def loss_nats(self) -> float:
        """Mean cross-entropy in nats a token."""
        return self.summed_nats / self.tokens

    @property
    def accuracy(self) -> float:
        """Share of the targets that were the most probable token."""
        return self.correct / self.tokens


@torch.no_grad()
def score(model: Model, windows: Windows, *, batch_size: int) -> Scores:
    """Score every window once; `batch_size` bounds memory and does not weight the mean."""
    log_probabilities = np.empty(len(windows))
    correct = 0
    for start in range(0, len(windows), batch_size):
        rows = slice(start, start + batch_size)
        context_BC = torch.from_numpy(windows.contexts(rows).astype(np.int64))
        target_B = torch.from_numpy(windows.targets(rows).astype(np.int64))
        log_p_BV = logits(model, context_BC).log_softmax(dim=1)
        log_probabilities[rows] = log_p_BV.gather(1, target_B[:, None])[:, 0].numpy()
        correct += int((log_p_BV.argmax(dim=1) == target_B).sum())
    return Scores(log_probabilities, correct)
