"""CPU threads while a model computes, and the number before once it has."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from neural_ngram.model.architecture import Architecture
from neural_ngram.model.threads import thread_count
from neural_ngram.settings import TrainingSettings

__all__ = ["threads_for"]


@contextmanager
def threads_for(
    architecture: Architecture, settings: TrainingSettings | None = None
) -> Iterator[int]:
    """As many threads as the stages take for such a model; how many that is."""
    before, count = (
        torch.get_num_threads(),
        thread_count(architecture, settings or TrainingSettings()),
    )
    torch.set_num_threads(count)
    try:
        yield count
    finally:
        torch.set_num_threads(before)
