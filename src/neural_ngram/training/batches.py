"""Batches of windows: in which order they come, and which of their windows share a context.

Dimension letters: N windows of the partition, B windows of a batch, R rows, C context length,
H hidden width, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neural_ngram.model.architecture import Architecture, parameter_count
from neural_ngram.model.hidden import layer_suffixes
from neural_ngram.model.network import Model
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import TrainingSettings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.gradients.batch import Batch

__all__ = ["Batches", "Position", "dropout_masks", "sampled_rows", "shares_contexts"]

BLOCK = 2**16
LEAST_WORK_SAVED = 2**21


def sampled_rows(
    size: int, settings: TrainingSettings, generator: SplitMix64
) -> Iterator[NDArray[np.int64]]:
    """Endless blocks of window numbers, to be cut into batches from the front.

    A block of `shuffle` or `sequential` is an epoch, whose last batch may be smaller; a block of
    `replacement` is a whole number of batches.
    """
    while True:
        match settings.sampling:
            case "shuffle":
                yield generator.permutation(size)
            case "sequential":
                yield np.arange(size)
            case _:
                count = max(1, BLOCK // settings.batch_size) * settings.batch_size
                yield (generator.uniform(count) * size).astype(np.int64)


def shares_contexts(architecture: Architecture, windows: Windows, batch_size: int) -> bool:
    """Whether batches compute each distinct context once.

    They do when that is expected to save at least half of the rows and two million multiplications
    per step, which is what finding them costs. Never with dropout, where each window has its own
    mask.
    """
    if architecture.settings.dropout:
        return False
    rows = windows.distinct.expected_in_batch(batch_size)
    V, D = architecture.vocabulary_size, architecture.settings.embedding_width
    row_products = parameter_count(architecture) - (not architecture.settings.tied_output) * V * D
    saved = (batch_size - rows) * row_products
    return rows <= batch_size / 2 and saved >= LEAST_WORK_SAVED


@dataclass(frozen=True)
class Position:
    """Where a block of `sampled_rows` starts.

    state: of the random numbers. taken: how many batches all earlier blocks yielded.
    """

    state: int
    taken: int = 0


class Batches:
    """Endless batches of one partition, gathered many at a time and never one row at a time.

    position: of the block that the last batch was cut from. A sequential batch that holds the whole
    partition is always the same and gathered once.
    """

    def __init__(self, model: Model, windows: Windows, settings: TrainingSettings) -> None:
        self.windows, self.settings, self.dtype = windows, settings, model.dtype
        self.vocabulary_size = model.architecture.vocabulary_size
        self.shared = shares_contexts(model.architecture, windows, settings.batch_size)
        self.position = Position(SplitMix64(settings.seed).state)

    def __iter__(self) -> Iterator[Batch]:
        return self.after(0, self.position)

    def after(self, taken: int, position: Position) -> Iterator[Batch]:
        """The batches after the first `taken`; `position` is as it was when these were taken."""
        generator = SplitMix64(position.state)
        B = self.settings.batch_size
        step, skipped = max(1, BLOCK // B) * B, (taken - position.taken) * B
        self.position = position
        if self.settings.sampling == "sequential" and len(self.windows) <= B:
            whole = np.arange(len(self.windows))
            yield from repeat(next(self._shared(whole) if self.shared else self._single(whole)))
        for rows in sampled_rows(len(self.windows), self.settings, generator):
            for start in range(skipped, len(rows), step):
                block = rows[start : start + step]
                yield from self._shared(block) if self.shared else self._single(block)
            skipped = 0
            self.position = Position(generator.state, self.position.taken + -(-len(rows) // B))

    def _single(self, rows: NDArray[np.int64]) -> Iterator[Batch]:
        """One row per window."""
        B, C = self.settings.batch_size, self.windows.context_length
        tokens = torch.from_numpy(self.windows.contexts(rows).astype(np.int64).ravel())
        row = np.arange(len(rows)) % B
        flat_targets = torch.from_numpy(row * self.vocabulary_size + self.windows.targets(rows))
        return map(Batch, torch.split(tokens, B * C), torch.split(flat_targets, B))

    def _shared(self, rows: NDArray[np.int64]) -> Iterator[Batch]:
        """One row per distinct context of a batch."""
        contexts, V = self.windows.distinct, self.vocabulary_size
        for start in range(0, len(rows), self.settings.batch_size):
            batch = rows[start : start + self.settings.batch_size]
            multiplicity_U = np.bincount(contexts.context_of[batch], minlength=len(contexts))
            present_R = np.flatnonzero(multiplicity_U)
            row_of = np.empty(len(contexts), dtype=np.int64)
            row_of[present_R] = np.arange(len(present_R))
            flat_targets = row_of[contexts.context_of[batch]] * V + self.windows.targets(batch)
            yield Batch(
                torch.from_numpy(contexts.tokens[present_R].ravel()),
                torch.from_numpy(np.sort(flat_targets)),
                torch.from_numpy(multiplicity_U[present_R, None]).to(self.dtype),
            )


def dropout_masks(
    architecture: Architecture, dtype: torch.dtype, generator: SplitMix64, rows: int
) -> list[Tensor]:
    """One (R, H) mask per hidden layer: 0 with probability dropout, else 1 / (1 - dropout)."""
    settings = architecture.settings
    shape = rows, settings.hidden_width
    kept = (
        generator.uniform(rows * settings.hidden_width).reshape(shape) >= settings.dropout
        for _ in layer_suffixes(settings)
    )
    return [torch.from_numpy(mask / (1 - settings.dropout)).to(dtype) for mask in kept]
