"""Negative log-likelihood of a model over windows, every window exactly once.

Dimension letters: N windows, B windows at once, U distinct contexts at once, E entries (one for
each window, or for each distinct pair of context and target), C context length, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neural_ngram.errors import ModelError
from neural_ngram.model.network import Model, logits
from neural_ngram.tokens.contexts import Contexts
from neural_ngram.tokens.windows import Windows

__all__ = ["Scores", "check_windows", "score"]

# The fastest number of logits or hidden values at once; more only cost memory.
MOST_VALUES = 2**20


@dataclass(frozen=True)
class Scores:
    """The log probabilities of windows, as entries that windows may share.

    entry_log_probabilities: (E,) of the target, in nats, float64.
    entry_hits: (E,) whether the target was the most probable token (ties to the lower ID).
    entry_confidences: (E,) the probability of the most probable token, float64.
    entries: (N,) the entry of each window.
    counts: (E,) how many windows have each entry.
    """

    entry_log_probabilities: NDArray[np.float64]
    entry_hits: NDArray[np.bool_]
    entry_confidences: NDArray[np.float64]
    entries: NDArray[np.int64]
    counts: NDArray[np.int64]

    @cached_property
    def log_probabilities(self) -> NDArray[np.float64]:
        """(N,) of the targets, in nats."""
        return self.entry_log_probabilities[self.entries]

    @cached_property
    def hits(self) -> NDArray[np.bool_]:
        """(N,) whether the target was the most probable token."""
        return self.entry_hits[self.entries]

    @cached_property
    def confidences(self) -> NDArray[np.float64]:
        """(N,) the probability of the most probable token."""
        return self.entry_confidences[self.entries]

    @property
    def tokens(self) -> int:
        """N, the number of targets scored."""
        return len(self.entries)

    @property
    def summed_nats(self) -> float:
        """Summed negative log-likelihood in nats."""
        return -float((self.entry_log_probabilities * self.counts).sum())

    @property
    def loss_nats(self) -> float:
        """Mean cross-entropy in nats per token."""
        return self.summed_nats / self.tokens

    @property
    def accuracy(self) -> float:
        """Fraction of the targets that were the most probable token."""
        return int(self.counts[self.entry_hits].sum()) / self.tokens

    def parts(self, sizes: Sequence[int]) -> list["Scores"]:
        """The scores of partitions that were scored together, split by their numbers of windows."""
        return [
            replace(self, entries=part, counts=np.bincount(part, minlength=len(self.counts)))
            for part in np.split(self.entries, np.cumsum(sizes)[:-1])
        ]


def score(model: Model, windows: Windows, *, batch_size: int) -> Scores:
    """Score every window once; `batch_size` bounds memory and does not weight the mean.

    When at least half of the windows share their context with another one, each distinct context
    is computed once and used by all its windows.

    Raises ModelError when the windows do not belong to the model.
    """
    check_windows(model, windows)
    contexts = windows.distinct
    V, W = model.architecture.vocabulary_size, model.architecture.output_width
    step = max(1, min(batch_size, MOST_VALUES // max(V, W)))
    if 2 * len(contexts) <= len(windows):
        return _score_distinct(model, contexts, step)
    N = len(windows)
    ones = np.broadcast_to(np.int64(1), N)
    scores = Scores(np.empty(N), np.empty(N, dtype=bool), np.empty(N), np.arange(N), ones)
    for start in range(0, N, step):
        rows = slice(start, start + step)
        log_p_BV, most_B, best_B = _log_p(model, windows.contexts(rows))
        target_B = windows.targets(rows).astype(np.int64)
        scores.entry_log_probabilities[rows] = log_p_BV[np.arange(len(target_B)), target_B]
        scores.entry_hits[rows] = best_B == target_B
        scores.entry_confidences[rows] = np.exp(most_B)
    return scores


def _score_distinct(model: Model, contexts: Contexts, step: int) -> Scores:
    pairs, U = contexts.pairs, len(contexts)
    log_p_E, best_U, confidence_U = np.empty(len(pairs.context)), np.empty(U, int), np.empty(U)
    for start in range(0, U, step):
        some = slice(start, start + step)
        log_p_UV, most_U, best_U[some] = _log_p(model, contexts.tokens[some])
        first, last = np.searchsorted(pairs.context, (start, start + step))
        row_E, target_E = pairs.context[first:last] - start, pairs.target[first:last]
        log_p_E[first:last] = log_p_UV[row_E, target_E]
        confidence_U[some] = np.exp(most_U)
    hit_E = best_U[pairs.context] == pairs.target
    return Scores(log_p_E, hit_E, confidence_U[pairs.context], pairs.pair_of, pairs.counts)


def _log_p(model: Model, context_BC: NDArray[np.integer]) -> tuple[NDArray[Any], ...]:
    """(B, V) the logarithms of the probabilities, (B,) the largest of each row, and its token."""
    with torch.no_grad():
        logits_BV = logits(model, torch.from_numpy(context_BC.astype(np.int64, copy=False)))
        log_p_BV = torch.log_softmax(logits_BV, dim=1, out=logits_BV).numpy()
    best_B = log_p_BV.argmax(axis=1)  # up to eight times as fast as the tensor library's
    return log_p_BV, log_p_BV[np.arange(len(best_B)), best_B], best_B


def check_windows(model: Model, windows: Windows) -> None:
    """Raise ModelError when there is no window, or one that does not fit the model."""
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
