"""Negative log-likelihood of a model over windows, every window exactly once.

Dimension letters: N windows, B windows at once, U distinct contexts at once, C context length,
V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.contexts import Contexts, distinct_contexts
from neural_ngram.errors import ModelError
from neural_ngram.model import Model, logits
from neural_ngram.windows import Windows

__all__ = ["Scores", "check_windows", "score"]

# So many numbers at once stay in a processor's cache; more only cost memory.
MOST_LOGITS, MOST_HIDDEN = 2**20, 2**18


@dataclass(frozen=True)
class Scores:
    """What a model gave each window.

    log_probabilities: (N,) of the targets, in nats, float64.
    hits: (N,) whether the target was the most probable token (ties to the lower ID).
    confidences: (N,) the probability of the most probable token, float64.
    """

    log_probabilities: NDArray[np.float64]
    hits: NDArray[np.bool_]
    confidences: NDArray[np.float64]

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
        return float(self.hits.mean())

    def parts(self, sizes: Sequence[int]) -> list["Scores"]:
        """The scores of partitions that were scored as one, by their numbers of windows."""
        borders = np.cumsum(sizes)[:-1]
        columns = (self.log_probabilities, self.hits, self.confidences)
        split = (np.split(column, borders) for column in columns)
        return [Scores(*part) for part in zip(*split, strict=True)]


def score(model: Model, windows: Windows, *, batch_size: int) -> Scores:
    """Score every window once; `batch_size` bounds memory and does not weight the mean.

    When at least half of the windows share their context with another one, each distinct context
    is computed once and read by all its windows.

    Raises ModelError when the windows do not belong to the model.
    """
    check_windows(model, windows)
    contexts = distinct_contexts(windows)
    V, W = model.architecture.vocabulary_size, model.architecture.output_width
    step = max(1, min(batch_size, MOST_LOGITS // V, MOST_HIDDEN // W))
    if 2 * len(contexts) <= len(windows):
        return _score_distinct(model, windows, contexts, step)
    N = len(windows)
    scores = Scores(np.empty(N), np.empty(N, dtype=bool), np.empty(N))
    for start in range(0, N, step):
        rows = slice(start, start + step)
        log_p_BV = _log_p(model, windows.contexts(rows))
        target_B = windows.targets(rows).astype(np.int64)
        each, best_B = np.arange(len(target_B)), log_p_BV.argmax(axis=1)
        scores.log_probabilities[rows] = log_p_BV[each, target_B]
        scores.hits[rows] = best_B == target_B
        scores.confidences[rows] = np.exp(log_p_BV[each, best_B])
    return scores


def _score_distinct(model: Model, windows: Windows, contexts: Contexts, step: int) -> Scores:
    pairs, U = contexts.pairs, len(contexts)
    log_p_P, best_U, confidence_U = np.empty(len(pairs.context)), np.empty(U, int), np.empty(U)
    for start in range(0, U, step):
        some = slice(start, start + step)
        log_p_UV = _log_p(model, windows.contexts(contexts.first[some]))
        first, last = np.searchsorted(pairs.context, (start, start + step))
        row_P, target_P = pairs.context[first:last] - start, pairs.target[first:last]
        log_p_P[first:last] = log_p_UV[row_P, target_P]
        best_U[some] = log_p_UV.argmax(axis=1)
        confidence_U[some] = np.exp(log_p_UV.max(axis=1))
    hits = best_U[contexts.context_of] == contexts.targets
    return Scores(log_p_P[pairs.pair_of], hits, confidence_U[contexts.context_of])


def _log_p(model: Model, context_BC: NDArray[np.integer]) -> NDArray[np.floating]:
    with torch.no_grad():
        logits_BV = logits(model, torch.from_numpy(context_BC.astype(np.int64)))
        return torch.log_softmax(logits_BV, dim=1, out=logits_BV).numpy()


def check_windows(model: Model, windows: Windows) -> None:
    """Raise ModelError when there is no window, or one that the model cannot read or predict."""
    architecture = model.architecture
    if not len(windows):
        raise ModelError("there is no window to score; lower windows.context_length")
    if windows.context_length != architecture.context_length:
        raise ModelError(
            f"the windows have contexts of {windows.context_length} tokens but the model reads "
            f"{architecture.context_length}; build both with the same windows.context_length"
        )
    largest = windows.largest_token
    if largest >= architecture.vocabulary_size:
        raise ModelError(
            f"token {largest} of the windows lies outside the model's vocabulary of "
            f"{architecture.vocabulary_size}; build both with the same tokenizer"
        )
